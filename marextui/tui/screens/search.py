"""Search in the conversation: a line above the composer, matches over every loaded block, mounted or not."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from marextui.tui.panes.cards import KeyLabel


class SearchBar(Horizontal):
    """Posts `Changed` as the person types and `Moved` for next and previous; the app finds and reveals."""

    class Changed(Message):
        def __init__(self, query: str) -> None:
            super().__init__()
            self.query = query

    class Moved(Message):
        """Go to the next (1) or previous (-1) match."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, key_label: KeyLabel, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._key_label = key_label
        self._more = False
        self.matches: list[int] = []
        self.at = 0
        self.display = False

    def compose(self) -> ComposeResult:
        field = Input(placeholder="Search the conversation", id="search-field", compact=True, select_on_focus=False)
        field.cursor_blink = False
        yield Static(" search ", id="search-label", markup=False)
        yield field
        yield Static("", id="search-count", markup=False)

    def open(self) -> None:
        if not self.is_mounted:
            return  # the first paint is not even done
        self.display = True
        self.query_one(Input).focus()

    def close(self) -> bool:
        """Hide; False when it was not open."""
        was = bool(self.display)
        self.display = False
        return was

    def show(self, matches: list[int], *, more: bool) -> None:
        """New matches (positions, oldest first); the newest is current. `more`: older messages are not loaded."""
        self.matches = matches
        self.at = len(matches) - 1
        self._more = more
        self._count()

    def move(self, by: int) -> int | None:
        """Position of the next or previous match, around the ends; None without matches."""
        if not self.matches:
            return None
        self.at = (self.at + by) % len(self.matches)
        self._count()
        return self.matches[self.at]

    def _count(self) -> None:
        if not self.query_one(Input).value:
            text = ""
        elif self.matches:
            keys = f"{self._key_label('search.next')} next, {self._key_label('search.previous')} previous"
            text = f"{self.at + 1} of {len(self.matches)}, {keys}"
        else:
            text = "no match"
        self.query_one("#search-count", Static).update(
            f" {text}{' (older messages not loaded)' if self._more else ''} "
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Moved(-1))
