"""Properties of omissions: nothing unreadable, every bound holds (M23, M24, M27, M28, M30; I6; case 83)."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from marextui.context.messages import Message, TextPart
from marextui.context.omission import (
    OMIT_OVER,
    cap_output,
    eligible,
    fits,
    format_id,
    gap_line,
    marker,
    output_cap_chars,
    parse_marker,
    preview,
    read_slice,
    truncate_for_store,
)

TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\t\u2028éß數🙂İ"), max_size=400) | st.text(max_size=60)
LONG = st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=30), st.integers(1, 400))
WINDOWS = st.none() | st.integers(1, 3_000_000)


@given(st.integers(1, 10**7), st.integers(0, 10**9))
def test_markers_are_read_back(n: int, chars: int) -> None:
    """M24, M25: the id survives, alone or at the end of a capped output; a marker itself is never omitted."""
    text = marker(format_id(n), chars)
    assert parse_marker(text) == parse_marker(f"head\n{text}\n") == format_id(n)
    assert len(text) <= OMIT_OVER


@given(LONG, WINDOWS)
def test_capped_output_keeps_its_bound(text: str, window: int | None) -> None:
    """M30: at most cap + gap line + marker (and their line breaks); both ends are the original's."""
    capped = cap_output(text, window=window, omission_id="omitted-001")
    if fits(text, window):
        assert capped == text
        return
    last = marker("omitted-001", len(text))
    assert capped.endswith("\n" + last)
    assert len(capped) <= output_cap_chars(window) + len(gap_line(len(text))) + len(last) + 3
    body = capped[: -len(last) - 1]
    head, gap, tail = re.split(r"\n(\[… [\d ]+ characters left out here …\])\n", body, maxsplit=1)
    assert text.startswith(head)
    assert text.endswith(tail)
    hidden = int("".join(c for c in gap if c.isdigit()))
    assert len(head) + hidden + len(tail) == len(text)


@given(LONG, st.integers(0, 3000))
def test_store_never_passes_its_limit(text: str, limit: int) -> None:
    """M27: at most the limit, the true length returned, what fits unchanged."""
    kept, size = truncate_for_store(text, limit)
    assert size == len(text)
    assert len(kept) <= limit
    if size <= limit:
        assert kept == text
    elif limit >= 200:
        assert len(kept) == limit


@given(TEXTS, st.integers(0, 300))
def test_preview_is_a_short_single_line(text: str, limit: int) -> None:
    """M28."""
    shown = preview(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1


@given(LONG, st.integers(400, 3000))
def test_pages_join_to_the_whole(text: str, limit: int) -> None:
    """I6: every omitted character is readable by its offsets, each page within its limit."""
    offset, pages = 0, []
    while True:
        page = read_slice(text, offset=offset, length=None, query=None, limit_chars=limit).text
        assert len(page) <= limit
        if offset == 0 and page == text:
            return
        body, _, note = page.rpartition("\n[characters ")
        pages.append(body)
        if note.endswith("this is the end]"):
            break
        step = int(note.rsplit("offset=", 1)[1].rstrip("]"))
        assert step > offset
        offset = step
    assert "".join(pages) == text


@example("0" * 326, "0", None, 400)
@given(TEXTS | LONG, st.text(max_size=12), st.none() | st.integers(-5, 500), st.integers(400, 1500))
def test_queries_never_fail_and_stay_bounded(text: str, query: str, offset: int | None, limit: int) -> None:
    """M26, case 83: any query over any text is an answer within its limit."""
    answer = read_slice(text, offset=offset, length=None, query=query, limit_chars=limit).text
    assert answer
    assert len(answer) <= limit


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(595, 606), st.booleans()), max_size=12),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_eligible_is_exactly_the_long_and_old(outputs: list[tuple[int, int, bool]], turn: int, keep: int) -> None:
    """M23/B7: old enough and over 600 characters; replacing them leaves nothing more to replace."""
    messages = [
        Message(f"m{n}", "tool", (TextPart("x" * size),) if parts else "x" * size, origin="tool", turn=t)
        for n, (t, size, parts) in enumerate(outputs)
    ]
    found = eligible(messages, current_turn=turn, omit_after_turns=keep, omitted={})
    expected = {f"m{n}" for n, (t, size, _) in enumerate(outputs) if size > 600 and turn - t > keep}
    assert {e.message_id for e in found} == expected
    done = {(e.message_id, e.part): e for e in found}
    assert eligible(messages, current_turn=turn, omit_after_turns=keep, omitted=done) == ()
