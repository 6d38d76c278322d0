"""What later entries of a log say of the compaction cards before them: that one was undone, what a check found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from marextui.tui.items import CompactionItem, Item

if TYPE_CHECKING:
    from marextui.context.entries import CompactionChecked


class Later:
    """Undos and checks read so far. Pages are loaded newest first, so what a card is to say may be known before it."""

    def __init__(self) -> None:
        self._undone: list[int] = []
        """Each takes back the compactions before it from that cycle on."""
        self._checked: dict[int, CompactionChecked] = {}

    def undone(self, cycle: int, items: Iterable[Item]) -> None:
        """An undo that comes after all of `items`."""
        self._undone.append(cycle)
        for card in _cards(items):
            if _cycle(card) >= cycle:
                card.undone = True
                card.version += 1

    def checked(self, entry: CompactionChecked, items: Iterable[Item]) -> None:
        """A check that comes after all of `items`."""
        self._checked[entry.cycle] = entry
        for card in _cards(items):
            if _cycle(card) == entry.cycle:
                card.checked = entry
                card.version += 1

    def before(self, older: Later, items: Iterable[Item]) -> None:
        """Tell the `items` of an older page what is known, and take in what that page itself said."""
        first = min(self._undone, default=None)
        for card in _cards(items):
            card.undone = card.undone or (first is not None and _cycle(card) >= first)
            card.checked = card.checked or self._checked.get(_cycle(card))
        self._undone += older._undone
        self._checked = {**older._checked, **self._checked}


def _cards(items: Iterable[Item]) -> Iterator[CompactionItem]:
    return (i for i in items if isinstance(i, CompactionItem) and i.entry is not None)


def _cycle(card: CompactionItem) -> int:
    return card.entry.cycle if card.entry is not None else 0
