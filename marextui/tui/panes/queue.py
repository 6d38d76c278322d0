"""Messages typed while the engine was busy, above the composer."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from marextui.engine.event_values import QueuedPrompt
from marextui.tui.panes.cards import KeyLabel
from marextui.tui.text import line

ROWS = 3


class QueuePane(Static):
    """One row a message, newest last; the oldest goes next. Hidden while the queue is empty."""

    def __init__(self, key_label: KeyLabel) -> None:
        super().__init__("", id="queue", markup=False)
        self._key_label = key_label

    def on_mount(self) -> None:
        self.display = False

    def show(self, items: tuple[QueuedPrompt, ...]) -> None:
        self.display = bool(items)
        if not items:
            return
        rows = [Content.assemble((f"  queued {i}  ", "bold"), line(q.text, 300)) for i, q in enumerate(items, 1)]
        if len(rows) > ROWS:
            rows = [*rows[: ROWS - 1], Content(f"  … {len(rows) - ROWS} more"), rows[-1]]
        edit, drop = self._key_label("queue.edit"), self._key_label("queue.drop")
        rows.append(Content.styled(f"  {edit} edits the newest, {drop} takes it back", "$foreground-muted"))
        self.update(Content("\n").join(rows))
