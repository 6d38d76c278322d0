"""Where a key goes, decided for each in the order of arrival, before any widget sees it.

A widget gets its keys through its own queue, later than the next key is looked at; what depends on the keys before (the
rest of a burst must follow its first letter) cannot be decided there. Here the focus moves at once, and the following
key already meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from textual import events
from textual.widgets import Input

from marextui.tui.action_types import Scope
from marextui.tui.actions import ACTIONS
from marextui.tui.main_screen import MainScreen
from marextui.tui.ports import Clock

BURST = 0.3
"""Seconds between two keys below which the second belongs to the first: one text, typed or sent at once."""

TOGETHER = 0.08
"""Seconds for which a letter that acts in a pane waits for another one; if one comes, both begin a text."""

PANES: frozenset[Scope] = frozenset(("conversation", "gauge", "omissions", "memory"))


class KeyRouter:
    """For the main screen only. `keys` is the person's remapping (action id to keys).

    `let_go(key)` is asked for when a letter has waited long enough: call `overdue` with it behind all keys that are
    there by then.
    """

    def __init__(
        self, main: MainScreen, clock: Clock, keys: Mapping[str, str], let_go: Callable[[events.Key], object]
    ) -> None:
        self._main = main
        self._clock = clock
        self._let_go = let_go
        self._letters: dict[Scope, frozenset[str]] = {
            scope: frozenset(k for a in ACTIONS if a.scope == scope for k in _split(keys.get(a.id, a.keys)))
            for scope in PANES
        }
        self._arrived = float("-inf")
        self._text = ""
        """The latest key when it was a letter, digit or sign."""
        self._held: tuple[events.Key, Scope] | None = None
        """A letter that waits, and the pane it acts in."""
        self._clicked: Scope = "app"
        """The pane the mouse went to last: its letters are text until a key chose it."""

    def take(self, event: events.Key | events.Paste) -> Iterator[events.Key | events.Paste]:
        """What goes now to where the focus is, in order. Before each the focus is moved to where that belongs."""
        if isinstance(event, events.Paste):
            yield from self._waited()
            self._paste()
            yield event
            return
        at = self._clock.arrival(event.time)
        gap, self._arrived = at - self._arrived, at
        before, self._text = self._text, event.character if event.is_printable and event.character else ""
        if self._held is not None and gap < BURST and self._text not in ("", before):
            held, _ = self._held
            self._held = None
            self._main.to_draft()
            yield from (held, event)
            return
        yield from self._waited()
        if self._admit(event, before, quiet=gap >= BURST):
            yield event

    def overdue(self, event: events.Key) -> Iterator[events.Key]:
        """As `take`, for a letter that waited alone: it acts."""
        if self._held is not None and self._held[0] is event:
            yield from self._waited()

    def clicked(self) -> None:
        """The mouse was pressed somewhere on the main screen."""
        self._clicked = self._main.scope()

    def _waited(self) -> Iterator[events.Key]:
        if self._held is None:
            return
        (event, scope), self._held = self._held, None
        if self._main.scope() != scope:  # something else has the focus by now: there it is a letter
            self._main.to_draft()
        yield event

    def _admit(self, event: events.Key, before: str, *, quiet: bool) -> bool:
        """Whether the key goes on now; a letter that acts waits first."""
        main = self._main
        scope = main.scope()
        if scope != self._clicked:
            self._clicked = "app"
        if scope == "permission":
            return main.dock.admit(event, quiet=quiet)
        if scope in PANES and self._text.strip() and not isinstance(main.focused, Input):
            acts = event.key in self._letters[scope] and scope != self._clicked
            repeated = before == self._text and not quiet
            if acts and (quiet or before == ""):
                self._held = event, scope
                self._clock.after(TOGETHER, lambda: self._let_go(event))
                return False
            if not (acts and repeated):
                main.to_draft()
        elif scope == "app" and main.focused is None and self._text:
            main.to_draft()
        return True

    def _paste(self) -> None:
        """Pasted text is for the draft, unless a line to write in has the focus."""
        if not isinstance(self._main.focused, Input) and self._main.scope() != "composer":
            self._main.to_draft()


def _split(keys: str) -> list[str]:
    return [k.strip() for k in keys.split(",")]
