"""What the sanitiser does with each kind of dangerous text (tui-facts 3.4)."""

from __future__ import annotations

import pickle

import pytest

from marextui.context.sanitise import BIDI_MARK, SOFT_BREAK, StreamSanitiser, one_line, sanitise


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain é 日本 👩‍👩‍👧 \n", "plain é 日本 👩‍👩‍👧 \n"),
        # sequences with bodies
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]0;title\x1b\\x", "x"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1b]52;c;cm0gLXJm\x07x", "x"),
        ("\x1b]8;;https://evil/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\x\x90q1\x9cx", "xx"),
        ("\x1b_Gf=100;AAAA\x1b\\x\x1b^pm\x1b\\x\x1bXsos\x1b\\x", "xxx"),
        ("\x1bP0;1q#0;2;0;0;0\n#0~~@@vv\n$-\x1b\\after", "after"),
        ("\x1bPtmux;\x1b\x1b]52;c;AA\x07\x1b\\x", "␛x"),
        # unterminated: to the end of the line, not of the answer
        ("\x1b]0;oops\nthe answer", "\nthe answer"),
        ("\x1b]0;oops\r\nthe answer", "\nthe answer"),
        ("\x1b]0;oops\u2028the answer", "\nthe answer"),
        ("\x1b]0;oops", ""),
        ("\x1b]0;aborted\x18x", "x"),
        ("\x1b]0;a\x1b[1mb", "b"),
        ("\x1bPq stray, with blanks\nthe answer", "\nthe answer"),
        # CSI
        ("\x1b[1;31mred\x1b[0m \x1b[2J\x1b[?25l\x1b[6 q", "red "),
        ("\x9b31mred", "red"),
        ("\x1b[12\nx", "\nx"),
        ("\x1b[é", "é"),
        ("\x1b[", ""),
        # other sequences
        ("\x1b(Bx\x1b=\x1b7\x1bc\x1b#8", "x"),
        ("\x1b", "␛"),
        ("\x1b\x1b[0m[31m", "␛[31m"),
        ("\x1b\n", "␛\n"),
        # single controls
        ("a\x00b\x07c\x08d\x1c", "a␀b␇c␈d␜"),
        ("a\x7fb\x80c\ud800d", "a\ufffdb\ufffdc\ufffdd"),
        ("a\x0bb\x0cc\x85d\u2028e\u2029f", "a\nb\nc\nd\ne\nf"),
        ("\u202eabc\u202c \u2066x\u2069 \u200e\u200f\u061c", "\u21c4abc\u21c4 \u21c4x\u21c4 \u21c4\u21c4\u21c4"),
        # line ends and tabs
        ("a\r\nb\r\r\nc", "a\nb\nc"),
        ("a\tb\n\tc\nabcd\td", "a   b\n    c\nabcd    d"),
        ("日\tx", "日  x"),
    ],
)
def test_dangerous_text(raw: str, shown: str) -> None:
    assert sanitise(raw) == shown


def test_bidi_mark_is_one_visible_cell() -> None:
    assert sanitise("if a\u202e b") == f"if a{BIDI_MARK} b"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("  5% |#   |\r 50% |##  |\r100% |####|\ndone", "100% |####|\ndone"),
        (
            "Receiving objects: 1\rReceiving objects: 22\rReceiving objects: 333, done.\n",
            "Receiving objects: 333, done.\n",
        ),
        ("1/10\r2/10\r\x1b[K10/10\r\n", "10/10\n"),
        ("\r- working\r\\ working\r| working\rready\n", "ready\n"),
        ("10.5 MB\r11 MB\r", "11 MB"),
        # no progress display: nothing is left out
        ("line one\rline two\r", "line one\nline two\n"),
        ("import os\rimport sys", "import os\nimport sys"),
        ("rm -rf /\recho hello", "rm -rf /\necho hello"),
        ("5%" + "x" * 500 + "\rshort", "5%" + "x" * 500 + "\nshort"),
    ],
)
def test_lone_carriage_returns(raw: str, shown: str) -> None:
    assert sanitise(raw) == shown


def test_what_a_person_approves_is_shown_whole() -> None:
    text = "+run_evil()  # 5%\r+print(1)  # 100%\n"
    assert "run_evil" not in sanitise(text)
    assert sanitise(text, collapse_progress=False) == "+run_evil()  # 5%\n+print(1)  # 100%\n"


def test_long_lines_are_broken_by_cells() -> None:
    assert sanitise("abcdefg", max_line=3) == f"abc{SOFT_BREAK}def{SOFT_BREAK}g"
    assert sanitise("abcdef\nxyz", max_line=3) == f"abc{SOFT_BREAK}def\nxyz"
    assert sanitise("日本語x", max_line=4) == f"日本{SOFT_BREAK}語x"
    assert sanitise("aé日", max_line=3) == f"aé{SOFT_BREAK}日"
    assert sanitise("x" * 2000) == "x" * 2000
    assert sanitise("x" * 2001) == "x" * 2000 + SOFT_BREAK + "x"
    assert sanitise("é" * 4001) == SOFT_BREAK.join(["é" * 2000, "é" * 2000, "é"])


def test_accents_stay_on_their_letter_but_have_an_end() -> None:
    assert sanitise("abce\u0301d", max_line=4) == f"abce\u0301{SOFT_BREAK}d"
    longest = max(map(len, sanitise("e" + "\u0301" * 1000, max_line=10).split("\n")))
    assert longest <= 10 + 16 + 1


def test_one_line() -> None:
    assert one_line("  a\tb\n\n c\x1b[1m\x07 ") == "a b c␇"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"
    assert one_line("日本語", 5) == "日本…"
    assert one_line("abc", 0) == ""
    assert one_line("5%\r100%") == "5% 100%", "nothing is hidden in a title"
    assert len(one_line("word " * 100_000)) == 200
    assert one_line(" " * 5000 + "x", 10) == "…", "what was not looked at is not claimed to be empty"


def test_stream_shows_text_at_once_and_holds_only_unfinished_sequences() -> None:
    stream = StreamSanitiser()
    assert stream.feed("hello ") == "hello "
    assert stream.feed("wor\x1b[3") == "wor"
    assert stream.feed("1mld\r") == "ld"
    assert stream.feed("\n") == "\n"
    assert stream.feed("x\x1b]52;c;" + "A" * 100) == "x"
    assert stream.feed("AAAA\x1b") == ""
    assert stream.feed("\\y\x1b") == "y"
    assert stream.flush() == "␛"
    assert stream.feed("z") == "z"


def test_stream_holds_back_in_bounded_space() -> None:
    stream = StreamSanitiser()
    for introducer in ("\x1b]0;", "\x1bPq", "\x1bP1;1;1", "\x1b[", "\x1b[ ", "\x1b( ", "\x9d"):
        stream.feed(introducer)
        for _ in range(50):
            assert stream.feed(" " if introducer.endswith(" ") else "1" * 1000) == ""
        assert len(pickle.dumps(stream)) < 400
        stream.flush()


def test_stream_tracks_columns_across_pieces() -> None:
    stream = StreamSanitiser(max_line=5)
    assert "".join(map(stream.feed, ["ab", "\tc", "d", "\tx"])) == f"ab  c{SOFT_BREAK}d  x"
