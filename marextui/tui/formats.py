"""Numbers, times and sizes as people read them. Pure; unknown is "?", never 0 (M38)."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from marextui.engine.event_values import Gauge, UsageLine

if TYPE_CHECKING:
    from marextui.context.entries import CompactionChecked

Zone = Literal["unknown", "ok", "soon", "compacting next", "over", "not compacting", "stopped"]

SOON = 0.85
"""Share of the threshold from which the gauge says "soon"."""

_SPACE = "\u00a0"
"""No-break, so that a number is never torn over two lines."""


def tokens(n: int | None, *, compact: bool = False) -> str:
    """A count of tokens: "12 480" (no-break space), or "12k" when `compact` (rounded half up); None is "?"."""
    if n is None:
        return "?"
    if compact and abs(n) >= 1_000_000:
        return f"{n / 1_000_000:.1f}M"
    if compact and abs(n) >= 9_950:
        return f"{math.floor(n / 1000 + 0.5)}k"
    if compact and abs(n) >= 1_000:
        return f"{n / 1000:.1f}k"
    return f"{n:,}".replace(",", _SPACE)


def chars(n: int) -> str:
    """A count of characters: "812 chars", "12k chars", "3.4M chars"."""
    return f"{tokens(n, compact=n >= 10_000)}{_SPACE}char{'' if n == 1 else 's'}"


def size(n: int) -> str:
    """A size in bytes, in the largest unit that keeps it at 1 or more: "812 B", "1.5 KiB", "3.0 MiB"."""
    value = float(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{n}{_SPACE}B" if unit == "B" else f"{value:.1f}{_SPACE}{unit}"


def age(seconds: float) -> str:
    """How long ago, one unit: "now", "42 s", "5 min", "3 h", "12 d". A clock that went back reads "now"."""
    if seconds < 1:
        return "now"
    for limit, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)}{_SPACE}{name}"
    return f"{int(seconds // 86400)}{_SPACE}d"


def days(left: float | None, *, compact: bool = False) -> str:
    """Days until something is purged: "29 days left", "under a day left", `compact` "29 d left"; None: "kept"."""
    if left is None:
        return "kept"
    if left <= 0:
        return "due now"
    if left < 1:
        return f"<1{_SPACE}d{_SPACE}left" if compact else f"under a day{_SPACE}left"
    whole = int(left)
    if compact:
        return f"{whole}{_SPACE}d{_SPACE}left"
    return f"{whole}{_SPACE}day{'' if whole == 1 else 's'}{_SPACE}left"


def clock(at: float) -> str:
    """Local date and minute of `at` (seconds since the epoch): "2025-03-01 14:05"; "?" when it is no date."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"


def day(at: float, now: float) -> str:
    """When, in local time, as told at `now` (both seconds since the epoch): the nearer, the more exact.

    "today 14:02", "yesterday 09:30", "Mon 23 Nov" of this year, "23 Nov 2024"; "?" when it is no date.
    """
    try:
        then, today = datetime.fromtimestamp(at), datetime.fromtimestamp(now)
    except (OverflowError, ValueError, OSError):
        return "?"
    ago = (today.date() - then.date()).days
    if ago in (0, 1):
        return f"{('today', 'yesterday')[ago]}{_SPACE}{then:%H:%M}"
    date = f"{then.day}{_SPACE}{then:%b}"
    return f"{then:%a}{_SPACE}{date}" if then.year == today.year else f"{date}{_SPACE}{then.year}"


def duration(seconds: float) -> str:
    """How long something took: "0.4 s", "12 s", "2 min 05 s", "1 h 02 min"."""
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f}{_SPACE}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{_SPACE}s"
    if whole < 3600:
        return f"{whole // 60}{_SPACE}min{_SPACE}{whole % 60:02d}{_SPACE}s"
    return f"{whole // 3600}{_SPACE}h{_SPACE}{whole % 3600 // 60:02d}{_SPACE}min"


def percent(part: float, whole: float | None) -> str:
    """`part` of `whole` in whole per cent, rounded down, so that it reads 65 % only once 65 % is reached."""
    if not whole or whole <= 0:
        return f"?{_SPACE}%"
    return f"{math.floor(part * 100 / whole)}{_SPACE}%"


def share(value: float) -> str:
    """A fraction as per cent without needless decimals: 0.65 is "65 %", 0.675 is "67.5 %"."""
    return f"{value * 100:.2f}".rstrip("0").rstrip(".") + f"{_SPACE}%"


def usage_line(usage: UsageLine) -> str:
    """The per-turn line (M38): "inp 1 234 / out 56 / cache ? · local · 12.3 tok/s"."""
    parts = [f"inp {tokens(usage.inp)} / out {tokens(usage.out)} / cache {tokens(usage.cache_read)}"]
    if usage.cost:
        parts.append(usage.cost)
    if usage.tokens_per_second is not None:
        parts.append(f"{usage.tokens_per_second:.1f}{_SPACE}tok/s")
    return " · ".join(parts)


def probes(checked: CompactionChecked) -> str:
    """ "38/40 in view, 2 by recall, 0 lost" (P17)."""
    lost = len(checked.lost)
    return f"{checked.in_view}/{checked.total} in view, {checked.by_recall} by recall, {lost} lost"


def zone(g: Gauge) -> Zone:
    """Where the gauge stands. "not compacting": past the threshold, and something forbids compaction (`why_not`).

    "soon" promises a compaction: where something forbids it, that is "stopped".
    """
    if g.budget is None or g.threshold is None:
        return "unknown"
    if g.used > g.budget or g.budget <= 0:
        return "over"
    if g.used >= g.threshold:
        return "compacting next" if g.auto and not g.why_not else "not compacting"
    turns = g.turns_until_compaction
    if g.used >= SOON * g.threshold or (turns is not None and turns < 2):
        return "soon" if g.auto and not g.why_not else "stopped"
    return "ok"


_WORDS: dict[Zone, str] = {
    "unknown": "window unknown",
    "ok": "ok",
    "soon": "soon",
    "compacting next": "compacting next",
    "over": "over",
    "not compacting": "past the mark",
    "stopped": "not compacting",
}


def gauge_word(g: Gauge) -> str:
    """The word beside the colour: ok, soon, compacting next, not compacting, over, past the mark, window unknown,
    loading model."""
    return "loading model…" if g.loading and g.budget is None else _WORDS[zone(g)]


def about(g: Gauge) -> str:
    """ "~" when the gauge's figures are estimates, else ""."""
    return "~" if g.estimated else ""


_KEY_NAMES = {
    "slash": "/",
    "colon": ":",
    "escape": "Esc",
    "enter": "Enter",
    "tab": "Tab",
    "space": "Space",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "question_mark": "?",
    "at": "@",
}


def keys(names: str) -> str:
    """Textual's key names as people know them: "slash,pagedown,ctrl+j" is "/ PgDn Ctrl+J"; letters stay as they are."""
    return " ".join(_key(name.strip()) for name in names.split(",") if name.strip())


def _key(name: str) -> str:
    *modifiers, last = name.split("+")
    if re.fullmatch(r"f\d+", last):
        last = last.upper()
    last = _KEY_NAMES.get(last, last.upper() if modifiers and len(last) == 1 else last)
    return "+".join([*(m.capitalize() for m in modifiers), last])
