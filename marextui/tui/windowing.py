"""Which items of a long conversation are mounted as widgets: pure arithmetic on positions and node counts.

The view-model is complete; the screen holds a window of it, so that 400 turns cost what 20 do (cases 2, 4, 11).
A `Window` is half-open, in positions of the view-model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marextui.tui.items import AssistantItem, Item, UserItem

Weigh = Callable[[int], int]
"""Nodes that the item at a position takes when mounted."""

LONG_CHARS = 60_000
"""Characters from which an answer is shown as plain text, shortened, to be opened in the viewer."""
CHARS_PER_NODE = 250
"""Characters of Markdown that cost about as much as a widget."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`items` and `nodes` bound a window; `page` is how many items it moves by at an edge."""

    items: int = 60
    nodes: int = 800
    page: int = 15


@dataclass(frozen=True, slots=True)
class Window:
    lo: int = 0
    hi: int = 0

    def __len__(self) -> int:
        return self.hi - self.lo

    def __contains__(self, position: int) -> bool:
        return self.lo <= position < self.hi


def node_weight(item: Item) -> int:
    """What an item costs to mount and to lay out, in widgets: a few for an answer and more for its length, else one."""
    return 4 + len(str(item.text)) // CHARS_PER_NODE if isinstance(item, AssistantItem) else 1


def is_long(item: Item) -> bool:
    """True for an answer too big to be parsed in one go, or a user text that would fill screens."""
    if isinstance(item, AssistantItem):
        return len(str(item.text)) > LONG_CHARS
    return isinstance(item, UserItem) and (item.text.count("\n") > 60 or len(item.text) > 6_000)


def _fill_back(hi: int, first: int, weigh: Weigh, items: int, nodes: int) -> int:
    lo, total = hi, 0
    while lo > first and hi - lo < items:
        total += weigh(lo - 1)
        if total > nodes and lo < hi:
            break
        lo -= 1
    return lo


def _fill_forward(lo: int, end: int, weigh: Weigh, items: int, nodes: int) -> int:
    hi, total = lo, 0
    while hi < end and hi - lo < items:
        total += weigh(hi)
        if total > nodes and hi > lo:
            break
        hi += 1
    return hi


def tail(first: int, end: int, weigh: Weigh, limits: Limits) -> Window:
    """The newest items: half of what is allowed, so that there is room to grow into."""
    return Window(_fill_back(end, first, weigh, max(1, limits.items // 2), limits.nodes // 2), end)


def follow(window: Window, first: int, end: int, weigh: Weigh, limits: Limits) -> Window:
    """The window extended to the newest item and to at least the tail; trimmed to that only when over a limit."""
    lo = max(first, min(window.lo, tail(first, end, weigh, limits).lo))
    if end - lo > limits.items or sum(map(weigh, range(lo, end))) > limits.nodes:
        return tail(first, end, weigh, limits)
    return Window(lo, end)


def up(window: Window, first: int, weigh: Weigh, limits: Limits) -> Window:
    """One page of older items more; what is over a limit is dropped from the bottom."""
    lo = max(first, window.lo - limits.page)
    return Window(lo, min(window.hi, _fill_forward(lo, window.hi, weigh, limits.items, limits.nodes)))


def down(window: Window, end: int, weigh: Weigh, limits: Limits) -> Window:
    """One page of newer items more; what is over a limit is dropped from the top."""
    hi = min(end, window.hi + limits.page)
    return Window(max(window.lo, _fill_back(hi, window.lo, weigh, limits.items, limits.nodes)), hi)


def around(position: int, first: int, end: int, weigh: Weigh, limits: Limits) -> Window:
    """A window with `position` in it, some items before it and more after."""
    lo = max(first, position - limits.page // 2)
    hi = _fill_forward(lo, end, weigh, limits.items // 2, limits.nodes // 2)
    if position >= hi:
        lo = position
        hi = _fill_forward(lo, end, weigh, limits.items // 2, limits.nodes // 2)
    return Window(lo, hi)
