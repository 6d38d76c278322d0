"""Text of tools and people put into a block of our own so that it stays data: one line, no heading, no marker (126)."""

from __future__ import annotations

import re

from marextui.context.marks import SUMMARY_MARK
from marextui.context.redaction import redact
from marextui.context.sanitise import one_line

_MARK = re.compile(re.escape(SUMMARY_MARK), re.IGNORECASE)
_TAG = re.compile(r"<(?=/?(?:context_update|system|summary|instructions)\b)", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_PLAIN = "(" + SUMMARY_MARK.strip("[]") + ")"


def inert(text: str, limit: int = 300) -> str:
    """`text` as one line of at most `limit` cells, secrets redacted, our own markers and tags defused."""
    return one_line(_TAG.sub("‹", _MARK.sub(_PLAIN, redact(text[: 16 * limit]))), limit)


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


def fitting(lines: list[str], max_chars: int, rest: str) -> str:
    """As many of `lines` as fit into `max_chars`; `rest` (with `{n}`) counts those left out, where it fits."""
    if len("\n".join(lines)) <= max_chars:
        return "\n".join(lines)
    for kept in range(len(lines) - 1, 0, -1):
        text = "\n".join([*lines[:kept], rest.format(n=len(lines) - kept)])
        if len(text) <= max_chars:
            return text
    return lines[0] if lines and len(lines[0]) <= max_chars else ""
