"""What must hold for any text: nothing dangerous comes out, and pieces give what the whole gives (facts 3.4)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.sanitise import SOFT_BREAK, StreamSanitiser, one_line, sanitise

FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

fragments = st.one_of(
    st.sampled_from(
        [
            *"\x1b\x9b\x9d\x90\x9c\x07\x18\r\n\t\x0b\x85\x00\x7f\u202e\u2028\ud800 []PqX^_\\;0189mK#~%é",
            *"日\u0301\u200d👩",
            "\x1b[",
            "\x1b]52;c;",
            "\x1bP1;2q",
            "\x1b\\",
            "\x1bPtmux;",
            "\r\n",
            "\r\r\n",
            "50%\r",
            "\x1b(B",
            "\x1b[?25l",
            "\x1b[1;2",
            "\x1b ",
        ]
    ),
    st.text(st.characters(), max_size=4),
)
hostile = st.lists(fragments, max_size=40).map("".join)


@given(hostile, st.integers(2, 30), st.booleans())
def test_no_control_byte_comes_out(text: str, max_line: int, collapse: bool) -> None:
    assert FORBIDDEN.search(sanitise(text, max_line=max_line, collapse_progress=collapse)) is None


@given(hostile, st.integers(0, 40))
def test_one_line_is_one_safe_short_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert FORBIDDEN.search(line) is None
    assert "\n" not in line
    assert len(line) <= limit


@given(st.lists(hostile, max_size=8), st.integers(2, 30))
def test_pieces_give_what_the_whole_gives(pieces: list[str], max_line: int) -> None:
    stream = StreamSanitiser(max_line=max_line)
    shown = "".join(map(stream.feed, pieces)) + stream.flush()
    assert shown == sanitise("".join(pieces), max_line=max_line, collapse_progress=False)


@given(hostile)
def test_character_by_character_gives_what_the_whole_gives(text: str) -> None:
    stream = StreamSanitiser()
    assert "".join(map(stream.feed, text)) + stream.flush() == sanitise(text, collapse_progress=False)


@given(hostile)
def test_every_piece_is_safe_and_holds_back_little(text: str) -> None:
    stream = StreamSanitiser()
    for char in text * 3:
        assert FORBIDDEN.search(stream.feed(char)) is None
    assert FORBIDDEN.search(stream.flush()) is None
    assert stream.feed("ok") == "ok", "a flush ends the sequence that was open"


@given(hostile)
def test_what_is_safe_stays_as_it_is(text: str) -> None:
    once = sanitise(text)
    assert sanitise(once) == once


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), max_size=60), st.integers(2, 20))
def test_breaking_lines_loses_nothing(text: str, max_line: int) -> None:
    assert sanitise(text, max_line=max_line).replace(SOFT_BREAK, "") == text
