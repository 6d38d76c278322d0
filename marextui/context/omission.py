"""Omissions: which tool outputs leave the view, the marker that stands for them, and how they are read back (M23–M30).

Lengths are characters (Unicode code points) unless a name says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from marextui.context.messages import Message, TextPart

OMIT_OVER = 600
"""A tool payload longer than this is replaced once its turn is old enough (M23: 600 kept, 601 replaced)."""

UNKNOWN_WINDOW_CAP = 30_000
"""Cap of one tool output while the window is unknown (M30)."""

STORE_LIMIT = 200_000
"""Most characters kept of one entry (M27)."""

PREVIEW_CHARS = 200
DEFAULT_RETENTION_DAYS = 30

ID_PATTERN = re.compile(r"omitted-\d{3,}", re.ASCII)
"""A stored id; use `fullmatch` (M33: no path can be smuggled in)."""

_MARKER = re.compile(
    r"\[omitted (omitted-\d{3,}): tool output, (\d{1,3}(?: \d{3})*) chars "
    r'— retrieve with ReadOmittedContent content_id="\1"\]',
    re.ASCII,
)


def format_id(n: int) -> str:
    """Id of the n-th omission of a project: `omitted-003`, growing past 999 (M25). `n` is at least 1."""
    if n < 1:
        raise ValueError(f"omission numbers start at 1, not {n}")
    return f"omitted-{n:03d}"


def grouped(n: int) -> str:
    """`n` with U+0020 between thousands, as markers and notes write it: 12480 → `12 480`."""
    return f"{n:,}".replace(",", " ")


def marker(omission_id: str, chars: int) -> str:
    """The text that stands in the view for a stored output of `chars` characters (M24, exact)."""
    return (
        f"[omitted {omission_id}: tool output, {grouped(chars)} chars "
        f'— retrieve with ReadOmittedContent content_id="{omission_id}"]'
    )


def parse_marker(text: str) -> str | None:
    """The id of the marker that `text` is, or that stands on its last line (a capped output, M30); else None.

    The text may come from a tool: before trusting the id, check that it was given to this very message.
    """
    match = _MARKER.fullmatch(text.rstrip().rpartition("\n")[2].strip())
    return match.group(1) if match else None


@dataclass(frozen=True, slots=True)
class Eligible:
    """A payload to replace. `part` is the index in a multi-part content, -1 for a plain string.

    `stored_id` is the id the text itself ends with when it was capped at execution (M30): reuse it, after checking
    that it was allocated for this message, instead of storing the capped copy.
    """

    message_id: str
    part: int
    text: str
    tool_name: str
    stored_id: str = ""


def _call_names(messages: Sequence[Message]) -> dict[str, str]:
    return {call.id: call.name for message in messages for call in message.tool_calls}


def eligible(
    messages: Sequence[Message],
    *,
    current_turn: int,
    omit_after_turns: int,
    omitted: Mapping[tuple[str, int], object],
    exempt: Container[str] = (),
) -> tuple[Eligible, ...]:
    """Tool payloads to replace at the start of `current_turn`, in message order (M23, B7).

    A payload of turn t goes when `current_turn - t > omit_after_turns`: with 1 it is raw in turns t and t+1 and a
    marker from t+2 on. `omitted` holds (message id, part) already replaced; `exempt` message ids or tool names.
    """
    names = _call_names(messages)
    found: list[Eligible] = []
    for message in messages:
        if message.role != "tool" or current_turn - message.turn <= omit_after_turns:
            continue
        tool = message.name or names.get(message.tool_call_id, "")
        if message.id in exempt or tool in exempt:
            continue
        if isinstance(message.content, str):
            payloads = [(-1, message.content)]
        else:
            payloads = [(n, p.text) for n, p in enumerate(message.content) if isinstance(p, TextPart)]
        found.extend(
            Eligible(message.id, part, text, tool, parse_marker(text) or "")
            for part, text in payloads
            if len(text) > OMIT_OVER and (message.id, part) not in omitted
        )
    return tuple(found)


def output_cap_chars(window: int | None) -> int:
    """Most characters of one tool output at execution: 4 % of the window in tokens, 4 characters each (M30, B10)."""
    if window is None:
        return UNKNOWN_WINDOW_CAP
    return max(OMIT_OVER, window * 4 // 25)


def fits(text: str, window: int | None) -> bool:
    """True when `text` may reach the model uncapped (M30)."""
    return len(text) <= output_cap_chars(window)


def gap_line(chars: int) -> str:
    """The line that stands between a kept head and a kept tail."""
    return f"[… {grouped(chars)} characters left out here …]"


def head_tail(text: str, limit: int, *, head_share: float = 0.5) -> str:
    """Head and tail of `text`, `limit` characters in all, a gap line between them (not counted); `text` if it fits.

    Cuts move to a line break when one is near, so that no line is shown in half without need.
    """
    if len(text) <= limit:
        return text
    head_end = max(0, int(limit * head_share))
    tail_start = len(text) - (limit - head_end)
    newline = text.rfind("\n", head_end - head_end // 5, head_end)
    if newline > 0:
        head_end = newline
    newline = text.find("\n", tail_start, tail_start + (len(text) - tail_start) // 5)
    if newline != -1:
        tail_start = newline + 1
    return f"{text[:head_end]}\n{gap_line(tail_start - head_end)}\n{text[tail_start:]}"


def cap_output(text: str, *, window: int | None, omission_id: str) -> str:
    """`text` within the cap of `window`, ending with the marker of its stored original; `text` itself if it fits (M30).

    The full text must have been stored before: the marker gives its length.
    """
    if fits(text, window):
        return text
    return f"{head_tail(text, output_cap_chars(window))}\n{marker(omission_id, len(text))}"


def truncate_for_store(text: str, limit: int = STORE_LIMIT) -> tuple[str, int]:
    """(text of at most `limit` characters, its true length): three quarters head, one quarter tail, a gap note (M27)."""
    size = len(text)
    if size <= limit:
        return text, size
    tail = limit // 4
    note = "\n" + gap_line(size) + "\n"  # as long as the final note or longer: the total never passes `limit`
    head = limit - tail - len(note)
    if head < 0:
        return text[:limit], size
    note = "\n" + gap_line(size - head - tail) + "\n"
    head += limit - head - tail - len(note)
    note = "\n" + gap_line(size - head - tail) + "\n"
    kept = text[:head] + note + (text[size - tail :] if tail else "")
    return kept[:limit], size


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The first `limit` characters as one line, blanks collapsed (M28)."""
    return " ".join(text[: limit * 20].split())[:limit].rstrip()


def retention_days(value: str | None) -> tuple[int, str]:
    """(days to keep omissions, warning or "") for the setting `value`; 0 days: for ever (M29).

    Unset is 30 days; blank, not a whole number or negative is 30 days with a warning.
    """
    if value is None:
        return DEFAULT_RETENTION_DAYS, ""
    if re.fullmatch(r"\s*\+?\d{1,9}\s*", value, re.ASCII):
        return int(value), ""
    shown = preview(value, 40)
    return DEFAULT_RETENTION_DAYS, (
        f"MAREX_MEMORY_RETENTION_DAYS is “{shown}”, which is not a whole number of days (0 keeps for ever): "
        f"omitted outputs are kept {DEFAULT_RETENTION_DAYS} days."
    )


def expired(created_at: float, now: float, days: int) -> bool:
    """True when an entry of `created_at` (seconds since the epoch) is past its `days`; never for 0 days (M29)."""
    return days > 0 and now - created_at > days * 86_400


def read_slice(text: str, *, offset: int | None, length: int | None, query: str | None, limit_chars: int) -> str:
    """The answer of ReadOmittedContent (M26)."""
    raise NotImplementedError
