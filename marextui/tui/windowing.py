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

LONG_NODES = 250
"""An answer that would take more nodes is shown as plain text, shortened, to be opened in the viewer."""


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
    """Upper estimate of the widgets an item takes: one for most; Markdown takes one per paragraph, bullet and cell."""
    if not isinstance(item, AssistantItem):
        return 1
    return min(markdown_nodes(str(item.text)) + 2, LONG_NODES)


def markdown_nodes(text: str) -> int:
    """Estimate of the nodes Textual's Markdown makes of `text`."""
    nodes = 1
    blank = True
    fenced = False
    for raw in text.splitlines():
        stripped = raw.lstrip()
        if stripped.startswith(("```", "~~~")):
            nodes += 0 if fenced else 2
            fenced = not fenced
        elif fenced:
            continue
        elif not stripped:
            blank = True
            continue
        elif stripped[0] in "-*+" or stripped[:2].rstrip(".)").isdigit():
            nodes += 4
        elif stripped.startswith("|"):
            nodes += stripped.count("|")
        elif stripped.startswith("#") or blank:
            nodes += 1
        blank = False
    return nodes


def is_long(item: Item) -> bool:
    """True for an answer too big for live Markdown, or a user text that would fill screens."""
    if isinstance(item, AssistantItem):
        text = str(item.text)
        return len(text) > 60_000 or markdown_nodes(text) > LONG_NODES
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
