"""Numbers, times and sizes as people read them. Pure; unknown is "?", never 0 (M38)."""

from __future__ import annotations

from marextui.engine.events import UsageLine


def tokens(n: int | None, *, compact: bool = False) -> str:
    """A count of tokens: "12 480", or "12k" when `compact`."""
    if n is None:
        return "?"
    if compact and n >= 10_000:
        return f"{n // 1000}k"
    return f"{n:,}".replace(",", " ")


def usage_line(usage: UsageLine) -> str:
    """The per-turn line (M38): "inp 1 234 / out 56 / cache ? · local · 12.3 tok/s"."""
    return f"inp {tokens(usage.inp)} / out {tokens(usage.out)} / cache {tokens(usage.cache_read)} · {usage.cost}"
