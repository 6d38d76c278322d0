"""Sums over a history that mostly grows at its end: what was taken in before is not visited again (I7)."""

from __future__ import annotations

from collections.abc import Callable

from marextui.context.messages import Message

Figures = tuple[int, ...]
"""What one message adds to each of the sums."""


def extends(history: tuple[Message, ...], before: tuple[Message, ...]) -> bool:
    """Whether `history` begins with all of `before`."""
    return history is before or history[: len(before)] == before


class Running:
    """Sums of the `figures` of a history's messages.

    A history that begins with the one asked for before costs its new messages only; any other is summed anew.
    `visited` counts the messages whose figures were asked for: work, for tests.
    """

    def __init__(self, figures: Callable[[Message], Figures]) -> None:
        self.visited = 0
        self._figures = figures
        self._history: tuple[Message, ...] = ()
        self._sums: Figures = ()

    def over(self, history: tuple[Message, ...]) -> Figures:
        """The sums over `history`; () for an empty one."""
        if not extends(history, self._history):
            self.forget()
        for message in history[len(self._history) :]:
            figures = self._figures(message)
            self._sums = tuple(map(int.__add__, self._sums, figures)) if self._sums else figures
            self.visited += 1
        self._history = history
        return self._sums

    def forget(self) -> None:
        """What a message adds has changed: sum anew."""
        self._history, self._sums = (), ()
