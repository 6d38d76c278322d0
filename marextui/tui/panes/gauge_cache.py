"""What the gauge says of the server's cache, in words: of the last request, of now, of the next turn. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from marextui.context.sanitise import one_line
from marextui.engine.economy import CacheState
from marextui.engine.events import PrewarmChanged
from marextui.tui import formats


@dataclass(frozen=True, slots=True)
class Cache:
    """The last that was told of the cache and of the prewarm."""

    state: CacheState = field(default_factory=CacheState)
    prewarm: PrewarmChanged = field(default_factory=lambda: PrewarmChanged("idle"))

    def lines(self) -> Iterator[str]:
        """A sentence for each thing that is known; none for what the server does not tell: a cache of which nothing is
        known is not an empty one."""
        yield from last_request(self.state)
        if self.prewarm.state != "ready":
            yield from held_now(self.state)
        yield from _next_turn(self.prewarm)


def last_request(c: CacheState) -> Iterator[str]:
    """How much of the last prompt came from the cache, and why not more."""
    if c.cached is not None or c.computed is not None:
        total = None if c.cached is None or c.computed is None else c.cached + c.computed
        share = "" if total is None else f"{formats.percent(c.cached or 0, total)} from the cache: "
        yield f"Last request: {share}{formats.tokens(c.cached)} cached, {formats.tokens(c.computed)} computed"
    if c.broke:
        yield f"Computed anew because of: {one_line(c.broke, 200)}"


def held_now(c: CacheState) -> Iterator[str]:
    """Whether the server holds the conversation, where books are kept of that."""
    if c.held is not None:
        yield (
            "The server holds this conversation" if c.held else f"The server does not hold it: {one_line(c.lost, 200)}"
        )


def _next_turn(p: PrewarmChanged) -> Iterator[str]:
    if p.state == "warming":
        yield "Next turn: its prompt is being computed"
    elif p.state == "ready":
        told = "" if p.computed is None else f": {formats.tokens(p.computed)} tokens computed ahead"
        yield f"Next turn: its prompt is ready{told}"
    elif p.state == "refused":
        yield f"Next turn: not computed ahead, {one_line(p.why, 200)}"
