"""Text of tools and people put into a block of our own so that it stays data: one line, no heading, no marker (126)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from marextui.context.marks import SUMMARY_MARK
from marextui.context.redaction import redact
from marextui.context.sanitise import one_line

_MARK = re.compile(re.escape(SUMMARY_MARK), re.IGNORECASE)
_TAG = re.compile(r"<(?=/?(?:context_update|system|summary|instructions)\b)", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_PLAIN = "(" + SUMMARY_MARK.strip("[]") + ")"


def without_mark(text: str) -> str:
    """`text` with the mark of a summary defused: only the real one may open a message (M13)."""
    return _MARK.sub(_PLAIN, text)


def inert(text: str, limit: int = 300) -> str:
    """`text` as one line of at most `limit` cells, secrets redacted, our own markers and tags defused."""
    return _inert(text[: 16 * limit], limit)


@lru_cache(maxsize=4096)
def _inert(text: str, limit: int) -> str:
    return one_line(_TAG.sub("‹", without_mark(redact(text))), limit)


def code(text: str, limit: int = 300) -> str:
    """`text` as inline code: `inert`, between more backticks than it holds itself."""
    line = inert(text, limit)
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest and (line[:1] == "`" or line[-1:] == "`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def quoted(text: str, limit: int = 300) -> str:
    """`text` between quotation marks: `inert`, its own closing marks made straight."""
    return "“" + inert(text, limit).replace("”", '"').replace("“", '"') + "”"


def fitting(lines: Sequence[str], max_chars: int, rest: str) -> str:
    """Those of `lines`, in order, that fit into `max_chars`; `rest` (with `{n}`) counts the others, where it fits."""
    whole = "\n".join(lines)
    if len(whole) <= max_chars:
        return whole
    counted = len(rest.format(n=len(lines))) + 1
    kept = _kept(lines, max_chars - counted)
    if not kept:  # rather one line than a count
        return "\n".join(_kept(lines, max_chars))
    return "\n".join([*kept, rest.format(n=len(lines) - len(kept))])


def _kept(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        cost = len(line) + bool(kept)
        if cost <= room:
            kept.append(line)
            room -= cost
    return kept
