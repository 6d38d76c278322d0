"""How far a local server is with reading the prompt: a bar, what comes from its cache, the time left. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from marextui.engine.events import PromptProcessed
from marextui.tui import formats
from marextui.tui.glyphs import Glyphs

BARS = (20, 12, 8)
"""Widths of the bar in cells, the widest first."""


def seconds_left(p: PromptProcessed, since: float = 0.0) -> float | None:
    """Seconds until the rest is computed at the speed so far, `since` seconds after this was told.

    By the server's own time and the tokens it computed in it, those from the cache left out: they cost nothing. None
    before there is anything to go by.
    """
    computed = p.done - p.cached
    if p.seconds is None or p.seconds <= 0 or computed <= 0:
        return None
    return max(0.0, p.seconds * (p.total - p.done) / computed - since)


def bar(p: PromptProcessed, width: int, glyphs: Glyphs) -> str:
    """`width` cells: what was cached, what was computed, what is left. It is full only when all is done."""
    if p.total <= 0:
        return glyphs.free * width
    done = math.floor(p.done * width / p.total)
    cached = min(done, math.floor(p.cached * width / p.total))
    return glyphs.cached * cached + glyphs.computed * (done - cached) + glyphs.free * (width - done)


def _seconds(left: float | None) -> str:
    if left is None:
        return "–"
    whole = math.ceil(left)
    return formats.duration(whole) if whole >= 10 else f"{whole} s" if left >= 1 else "<1 s"


def wordings(p: PromptProcessed, since: float, glyphs: Glyphs) -> Iterator[str]:
    """The progress in words, the richest wording first; each holds what is done, the whole and the time left."""
    time = f"{_seconds(seconds_left(p, since))} left"
    figures = f"{formats.tokens(p.done)} of {formats.tokens(p.total)} tokens"
    cache = f"{formats.tokens(p.cached)} from cache"
    for width in BARS[:2]:
        yield f"{bar(p, width, glyphs)} {figures}, {cache} {glyphs.dot} {time}"
    short = f"{formats.tokens(p.done, compact=True)}/{formats.tokens(p.total, compact=True)}"
    cached = f"{formats.tokens(p.cached, compact=True)} cached"
    yield f"{bar(p, BARS[1], glyphs)} {short}, {cached} {glyphs.dot} {time}"
    yield f"{bar(p, BARS[2], glyphs)} {short}, {cached} {glyphs.dot} {time}"
    yield f"{bar(p, BARS[2], glyphs)} {short} {glyphs.dot} {time}"
    yield f"{short} {glyphs.dot} {time}"
