"""Where a key goes, decided for each in the order of arrival, before any widget sees it.

A widget gets its keys through its own queue, later than the next key is looked at; what depends on the keys before (the
rest of a burst must follow its first letter) cannot be decided there. Here the focus moves at once, and the following
key already meets it.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.widgets import Input

from marextui.tui.action_types import Scope
from marextui.tui.actions import ACTIONS
from marextui.tui.main_screen import MainScreen
from marextui.tui.ports import Clock

BURST = 0.3
"""Seconds between two keys below which the second belongs to the first: one text, typed or sent at once."""

PANES: frozenset[Scope] = frozenset(("conversation", "gauge", "omissions", "memory"))


class KeyRouter:
    """For the main screen only. `keys` is the person's remapping (action id to keys)."""

    def __init__(self, main: MainScreen, clock: Clock, keys: Mapping[str, str]) -> None:
        self._main = main
        self._clock = clock
        self._letters: dict[Scope, frozenset[str]] = {
            scope: frozenset(k for a in ACTIONS if a.scope == scope for k in _split(keys.get(a.id, a.keys)))
            for scope in PANES
        }
        self._arrived = float("-inf")
        self._text = ""
        """The latest key when it was a letter, digit or sign."""
        self._clicked: Scope = "app"
        """The pane the mouse went to last: its letters are text until a key chose it."""

    def key(self, event: events.Key) -> bool:
        """Move the focus to where the key belongs; False when it must go nowhere."""
        at = self._clock.arrival(event.time)
        quiet = at - self._arrived >= BURST
        before, self._arrived = self._text, at
        self._text = event.character if event.is_printable and event.character else ""
        main = self._main
        scope = main.scope()
        if scope != self._clicked:
            self._clicked = "app"
        if scope == "permission":
            return main.dock.admit(event, quiet=quiet)
        if scope in PANES and self._text.strip() and not isinstance(main.focused, Input):
            acts = event.key in self._letters[scope] and scope != self._clicked
            if not acts or not (quiet or before in ("", self._text)):
                main.to_draft()
        elif scope == "app" and main.focused is None and self._text:
            main.to_draft()
        return True

    def paste(self) -> None:
        """Pasted text is for the draft, unless a line to write in has the focus."""
        if not isinstance(self._main.focused, Input) and self._main.scope() != "composer":
            self._main.to_draft()

    def clicked(self) -> None:
        """The mouse was pressed somewhere on the main screen."""
        self._clicked = self._main.scope()


def _split(keys: str) -> list[str]:
    return [k.strip() for k in keys.split(",")]
