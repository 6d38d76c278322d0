"""The memory pane: rules, what was learned, and what of it the model is given now (M31–M37)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from marextui.engine.event_values import MemoryReport
from marextui.tui import formats
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import ports_of
from marextui.tui.text import line, plain

NO_RULES = "No rules. Write how to work in this project into MAREX.md (press e): it is sent with every request."
NO_ENTRIES = "Nothing learned yet. Each compaction adds what is worth keeping, with its date and conversation."
NO_NOTES = "None yet. Press p to make a page or a tracker that every conversation of this project is told of."
SHOWN_NOTES = 20
"""Pages, and trackers, shown; their own screen has them all."""
SHOWN_ENTRIES = 200
"""Newest entries shown; the file has them all."""


def memory_text(report: MemoryReport, now: float) -> Content:
    """The whole pane as text; `now` in seconds since the epoch."""
    return Content("\n").join(_lines(report, now))


def _lines(r: MemoryReport, now: float) -> Iterator[Content]:
    yield Content.styled("Rules", "bold")
    yield line(r.rules_path, 300)
    if r.rules.strip():
        cut = ", too long: only the beginning is sent" if r.rules_truncated else ""
        yield Content(f"{formats.chars(len(r.rules))}{cut}")
    else:
        yield Content.styled(NO_RULES, "$text-secondary")
    yield Content("")
    yield Content.styled("Sent with every request now", "bold")
    used = f"{formats.tokens(len(r.injected))} of at most {formats.chars(r.injected_limit)} of memory"
    yield Content(used if r.injected else f"nothing of memory (at most {formats.chars(r.injected_limit)})")
    if r.injected:
        yield plain(r.injected).stylize("$text-secondary")
    yield Content("")
    yield from _notes(r)
    count = len(r.entries)
    yield Content.assemble(("Memory", "bold"), f": {count} entr{'y' if count == 1 else 'ies'}")
    yield Content.assemble(line(r.memory_path, 300), f", {formats.size(r.memory_bytes)}")
    if not r.entries:
        yield Content.styled(NO_ENTRIES, "$text-secondary")
    for entry in reversed(r.entries[-SHOWN_ENTRIES:]):
        source = Content.assemble(
            (line(entry.date, 30).plain, "$text-primary"),
            " from conversation ",
            line(entry.conversation_id, 40),
            f", compaction {entry.cycle}",
        )
        yield source
        for fact in entry.facts:
            yield Content.assemble("- ", line(fact, 400))
    if count > SHOWN_ENTRIES:
        yield Content(f"... and {formats.tokens(count - SHOWN_ENTRIES)} older ones in the file (m opens it)")
    yield Content("")
    yield Content.styled("Omissions", "bold")
    yield Content(_omissions(r, now))


def _notes(r: MemoryReport) -> Iterator[Content]:
    """Pages, trackers, and how much of the project the model is told at the head of the conversation."""
    yield Content.assemble(("Pages", "bold"), f": {len(r.pages)}, ", ("trackers", "bold"), f": {len(r.trackers)}")
    if not r.pages and not r.trackers:
        yield Content.styled(NO_NOTES, "$text-secondary")
    for page in r.pages[:SHOWN_NOTES]:
        yield Content.assemble("- ", (line(page.title, 80).plain, "$text-primary"), "  ", line(page.hook, 200))
    for tracker in r.trackers[:SHOWN_NOTES]:
        value = line(f"{tracker.value} {tracker.unit}".strip(), 160)
        yield Content.assemble("- ", (line(tracker.slug, 80).plain, "$text-primary"), "  ", value)
    more = max(0, len(r.pages) - SHOWN_NOTES) + max(0, len(r.trackers) - SHOWN_NOTES)
    if more:
        yield Content(f"... and {formats.tokens(more)} more (p lists them)")
    if r.project:
        sent = f"{formats.tokens(len(r.project))} of at most {formats.chars(r.project_limit)} sent as project context"
        yield Content(sent)
    yield Content("")


def _omissions(r: MemoryReport, now: float) -> str:
    kept = f"kept {r.retention_days} days" if r.retention_days > 0 else "kept for ever"
    if not r.omissions:
        return f"none stored ({kept})"
    parts = [f"{formats.tokens(r.omissions)} stored, {formats.size(r.omissions_bytes)}, {kept}"]
    if r.oldest_omission_at is not None:
        parts.append(f"oldest {formats.age(now - r.oldest_omission_at)}")
    if r.days_to_purge is not None:
        parts.append(f"next purge: {formats.days(r.days_to_purge)}")
    return "; ".join(parts)


class MemoryPane(VerticalScroll, can_focus=True):
    """Rules, entries with their date and conversation, the injected excerpt, omissions in numbers."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "memory")]

    DEFAULT_CSS = """
    MemoryPane {
        height: 1fr; border: round $border-blurred; padding: 0 1; background: $surface;
        border-title-color: $foreground; border-title-style: bold; scrollbar-size-vertical: 1;
        &:focus { border: round $border; }
    }
    MemoryPane > Static { height: auto; width: 1fr; }
    """

    class EditRequested(Message):
        """Open this file (MAREX.md or MEMORY.md) in the editor, then `EngineApi.reload_memory`."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    class NotesRequested(Message):
        """Show the pages and trackers."""

    class ClearRequested(Message):
        """Ask for confirmation (`screens.confirm.Confirm`), then `EngineApi.clear_memory` (M37)."""

    def __init__(self, report: MemoryReport | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.report = report
        self._text = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._text

    def on_mount(self) -> None:
        self._draw()

    def show(self, report: MemoryReport) -> None:
        """Replace what is shown (`MemoryChanged`, and once at the start)."""
        self.report = report
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        if self.report is None:
            self.border_title = plain("Memory")
            self._text.update(Content("Reading the memory of this project..."))
            return
        count = len(self.report.entries)
        self.border_title = plain(f"Memory: {count} entr{'y' if count == 1 else 'ies'}")
        self._text.update(memory_text(self.report, ports_of(self.app).clock.now()))

    def action_edit_rules(self) -> None:
        if self.report is not None:
            self.post_message(self.EditRequested(self.report.rules_path))

    def action_edit_memory(self) -> None:
        if self.report is not None:
            self.post_message(self.EditRequested(self.report.memory_path))

    def action_notes(self) -> None:
        if self.report is not None:
            self.post_message(self.NotesRequested())

    def action_clear(self) -> None:
        if self.report is not None:
            self.post_message(self.ClearRequested())
