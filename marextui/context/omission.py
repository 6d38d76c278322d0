"""Omissions: which tool outputs leave the view, the marker that stands for them, and how they are read back (M23–M30).

Lengths are characters (Unicode code points) unless a name says otherwise.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from marextui.context.marks import OMITTED_OPEN
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

TOOL_OUTPUT = "tool output"
"""What a marker says it stands for, unless told otherwise (M24)."""

_MARKER = re.compile(
    r"\[omitted (omitted-\d{3,}): [^\[\]\n]{1,80}, (\d{1,3}(?: \d{3})*) chars "
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


def marker(omission_id: str, chars: int, label: str = TOOL_OUTPUT) -> str:
    """The text that stands in the view for a stored output of `chars` characters (M24, exact).

    `label` names anything else that can be read back the same way: a tool input, a message, an image.
    """
    return (
        f"{OMITTED_OPEN}{omission_id}: {label}, {grouped(chars)} chars "
        f'— retrieve with ReadOmittedContent content_id="{omission_id}"]'
    )


def unstored_marker(chars: int, label: str = TOOL_OUTPUT) -> str:
    """What ends a capped text of `chars` characters whose whole could not be stored: no id to read it back by."""
    return f"[{label}, {grouped(chars)} chars in all — the whole could not be stored: run the tool again to see more]"


def parse_marker(text: str) -> str | None:
    """The id of the marker that `text` is, or that stands on its last line (a capped output, M30); else None.

    The text may come from a tool: before trusting the id, check that it was given to this very message.
    """
    match = _MARKER.fullmatch(text.rstrip().rpartition("\n")[2].strip())
    return match.group(1) if match else None


@dataclass(frozen=True, slots=True)
class Eligible:
    """A payload to replace. `part` is the index in a multi-part content, -1 for a plain string."""

    message_id: str
    part: int
    text: str
    tool_name: str


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
            Eligible(message.id, part, text, tool)
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
    """(text of at most `limit` characters, its true length): three quarters head, the rest tail, a gap note (M27)."""
    size = len(text)
    if size <= limit:
        return text, size
    tail = limit // 4
    head = limit - tail - len(gap_line(size)) - 2  # the note for `size` is never shorter than the real one
    if head <= 0:
        return text[:limit], size
    note = gap_line(size - head - tail)
    head = limit - tail - len(note) - 2
    return f"{text[:head]}\n{gap_line(size - head - tail)}\n{text[size - tail :]}"[:limit], size


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


_CONTEXT_LINES = 2
_NOTE_ROOM = 200
"""Characters kept free in an answer for the line that says where the reader is."""
_LINE_SHOWN = 400
"""Longest stretch of one line shown around a match: minified files have one line."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a read-back answers; `found` is False for a sentence that only says why there is nothing to show."""

    text: str
    found: bool = True


def _page(text: str, offset: int, length: int | None, limit_chars: int) -> Slice:
    size = len(text)
    if offset >= size:
        return Slice(f"[offset={offset} is past the end: the output has {size} characters, numbered from 0]", False)
    wanted = size - offset if length is None else length
    if offset == 0 and wanted >= size and size <= limit_chars:
        return Slice(text)
    end = min(size, offset + wanted)
    body = text[offset:end]
    room = max(1, limit_chars - _NOTE_ROOM)
    if len(body) > room:
        newline = body.rfind("\n", room - room // 5, room)
        end = offset + (newline + 1 if newline != -1 else room)
        body = text[offset:end]
    follow = f"continue with offset={end}" if end < size else "this is the end"
    return Slice(f"{body}\n[characters {offset} to {end} of {size}; {follow}]")


def _matching_lines(text: str, query: str) -> tuple[str, list[tuple[int, int]]]:
    """(how it matched, [(start, end) of each match]): the literal, else lines with all words, else with most words."""
    spans = [m.span() for m in re.finditer(re.escape(query), text, re.IGNORECASE)]
    if spans:
        return f"“{query}”", spans
    words = {w for w in re.findall(r"\w+", query.lower()) if len(w) > 1} or set(re.findall(r"\w+", query.lower()))
    best, spans, start = 0, [], 0
    for line in text.split("\n"):
        lowered = line.lower()
        count = sum(1 for w in words if w in lowered)
        if count > best:
            best, spans = count, []
        if count and count == best:
            # Point at the rarest thing a line can be found by: its longest matching word.
            word = max((w for w in words if w in lowered), key=lambda w: (len(w), w))
            at = start + lowered.find(word) if len(lowered) == len(line) else start
            spans.append((at, min(at + len(word), start + len(line))))
        start += len(line) + 1
    if not best:
        return "", []
    how = "all words of" if best == len(words) else f"{best} of {len(words)} words of"
    return f"{how} “{query}”", spans


def _shown(line: str, around: int) -> str:
    if len(line) <= _LINE_SHOWN:
        return line
    start = max(0, min(around - _LINE_SHOWN // 2, len(line) - _LINE_SHOWN))
    end = start + _LINE_SHOWN
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def _find(text: str, query: str, offset: int, limit_chars: int) -> Slice:
    how, spans = _matching_lines(text, query)
    total = len(spans)
    spans = [s for s in spans if s[0] >= offset]
    shown_query = preview(query, 60)
    if not total:
        instead = f"the output has {len(text)} characters, read it with offset and length"
        return Slice(f"[no line matches “{shown_query}”; {instead}]", False)
    if not spans:
        return Slice(f"[no match for “{shown_query}” at or after offset={offset}; {total} before it]", False)
    starts = [0]
    starts.extend(m.end() for m in re.finditer("\n", text))
    ends = [s - 1 for s in starts[1:]] + [len(text)]
    how = how.replace(query, shown_query)
    out = [f"[{total} match{'' if total == 1 else 'es'} for {how}; {len(starts)} lines, {len(text)} characters]"]
    used = len(out[0])
    room = max(1, limit_chars - _NOTE_ROOM)
    printed = -1  # last line number already shown
    done = 0
    for begin, _ in spans:
        row = bisect_right(starts, begin) - 1
        if row <= printed and not (ends[row] - starts[row] > _LINE_SHOWN):
            done += 1
            continue
        first = max(printed + 1, row - _CONTEXT_LINES)
        last = row if row <= printed else min(len(starts) - 1, row + _CONTEXT_LINES)
        block = [f"--- line {row + 1}, offset={begin} ---"] if first > printed + 1 or done == 0 else []
        for n in range(min(first, row), last + 1):
            line = text[starts[n] : ends[n]]
            block.append(f"{n + 1}{'>' if n == row else ':'} {_shown(line, begin - starts[n] if n == row else 0)}")
        size = sum(len(b) + 1 for b in block)
        if done and used + size > room:
            break
        out.extend(block)
        used += size
        printed = max(printed, last)
        done += 1
    left = len(spans) - done
    answer = "\n".join(out)
    if len(answer) > room:  # the first block alone may be longer
        answer = answer[:room] + "…"
    if left:
        answer += f"\n[{left} more; repeat the query with offset={spans[done][0]}, or make it more precise]"
    return Slice(answer)


def read_slice(text: str, *, offset: int | None, length: int | None, query: str | None, limit_chars: int) -> Slice:
    """The answer of ReadOmittedContent: the whole text if it fits, a page of it, or the lines a query matches (M26).

    `offset` (from 0) and `length` count characters; the answer stays within `limit_chars` characters and says where
    it stands and how to go on. `query` is searched literally without regard to case, then by its words; with a query,
    `offset` skips earlier matches. Out-of-range numbers get a sentence, never an exception (case 83).
    """
    start = max(0, offset or 0)
    if query is not None and query.strip():
        return _find(text, query.strip(), start, limit_chars)
    if length is not None and length <= 0:
        return Slice(f"[length={length}: give at least 1 character; the output has {len(text)}]", False)
    if not text:
        return Slice("[the stored output is empty]")
    return _page(text, start, length, limit_chars)
