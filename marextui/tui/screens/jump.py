"""Jump mode: every pane wears a letter, and that letter goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.widgets import Static

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS

Target = tuple[str, str, Offset]
"""(letter, pane name, where its label goes on the screen)."""


class JumpScreen(ModalScreen[str | None]):
    """Dismisses with the name of the pane whose letter was pressed; any other key leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [b for b in bindings_for(PANE_ACTIONS, "picker") if b.id == "picker.cancel"]

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__()
        self._targets = tuple(targets)

    def compose(self) -> ComposeResult:
        for letter, name, offset in self._targets:
            label = Static(f" {letter} {name} ", classes="jump-label", markup=False)
            label.absolute_offset = offset
            yield label

    def on_key(self, event: events.Key) -> None:
        chosen = next((name for letter, name, _ in self._targets if event.character == letter), None)
        if chosen is not None or event.is_printable:
            event.stop()
            self.dismiss(chosen)

    def action_cancel(self) -> None:
        self.dismiss(None)
