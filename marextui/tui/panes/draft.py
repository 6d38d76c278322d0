"""The text area of the composer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from textual import events
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.message import Message
from textual.widgets import TextArea

from marextui.tui.action_types import bindings_for
from marextui.tui.actions import OWN_ACTIONS
from marextui.tui.glyphs import unfiltered


class Owner(Protocol):
    """What the draft's keys do (`panes.composer.Composer`)."""

    def paste(self, text: str) -> None: ...
    def enter(self) -> None: ...
    def vertical(self, by: int) -> None: ...
    def tab(self) -> None: ...
    def ask_for_editor(self) -> None: ...
    def search_history(self) -> None: ...


class Draft(TextArea):
    """The text area. Keys come from the action registry; they are asked before the text area's own.

    Such keys reach the app before characters typed ahead of them have reached the draft, so what they do waits its turn
    in the draft's own queue: else Enter on a busy machine would send half of a line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(OWN_ACTIONS, "composer")]

    class Typed(Message):
        """A key reached the draft."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(
            "",
            soft_wrap=True,
            tab_behavior="focus",
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder="Write a message. / for commands, @ for files",
            id="draft",
        )
        self.cursor_blink = False
        self._owner = owner

    def get_line_filters(self) -> Sequence[LineFilter]:
        return unfiltered(super().get_line_filters())

    async def _on_key(self, event: events.Key) -> None:
        self.post_message(self.Typed())
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._owner.paste(event.text)

    @property
    def on_first_line(self) -> bool:
        """The cursor stands on the first line as wrapped."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def on_last_line(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y >= self.wrapped_document.height - 1

    @property
    def before_cursor(self) -> str:
        """The line up to the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def replace_before_cursor(self, text: str) -> None:
        """Put `text` in the place of the line up to the cursor."""
        row, column = self.cursor_location
        self.replace(text, (row, 0), (row, column), maintain_selection_offset=False)

    def replace_all(self, text: str) -> None:
        """Put `text` in the place of everything; undo brings the old text back."""
        self.history.checkpoint()
        self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.document.end)
        self.history.checkpoint()

    def action_submit(self) -> None:
        self.call_later(self._owner.enter)

    def action_newline(self) -> None:
        self.call_later(self.insert, "\n")

    def action_up(self) -> None:
        self.call_later(self._owner.vertical, -1)

    def action_down(self) -> None:
        self.call_later(self._owner.vertical, 1)

    def action_tab(self) -> None:
        self.call_later(self._owner.tab)

    def action_editor(self) -> None:
        self.call_later(self._owner.ask_for_editor)

    def action_history(self) -> None:
        self.call_later(self._owner.search_history)
