"""Markdown as lines: wrapping, parsing, and text that is still coming. No app is needed here."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from marextui.context.sanitise import sanitise
from marextui.tui.glyphs import ASCII, UNICODE
from marextui.tui.markdown.highlighting import AT_ONCE, Highlighter, coloured
from marextui.tui.markdown.lines import Line, Piece
from marextui.tui.markdown.parsing import document, parse
from marextui.tui.markdown.stream import MarkdownStream
from marextui.tui.markdown.wrapping import cell_breaks, column_widths, word_breaks

TEXT = st.text(st.sampled_from("ab c-日本é́👍 "), max_size=60)
WIDTH = st.integers(2, 24)


def rows(text: str, breaks: list[int]) -> list[str]:
    cuts = [0, *breaks, len(text)]
    return [text[a:b] for a, b in pairwise(cuts)]


# --- wrapping --------------------------------------------------------------------------------------------------------


@given(TEXT, WIDTH)
def test_wrapped_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    for breaks in (word_breaks(text, width), cell_breaks(text, width)):
        assert breaks == sorted(set(breaks))
        parts = rows(text, breaks)
        assert "".join(parts) == text
        for row in parts:
            assert cell_len(row.rstrip()) <= width


@given(TEXT, WIDTH)
def test_words_are_only_cut_when_they_must_be(text: str, width: int) -> None:
    for at in word_breaks(text, width):
        before, after = text[:at], text[at:]
        inside = before and after and not before[-1].isspace() and not after[0].isspace()
        if inside:
            word = before.split()[-1] + after.split()[0]
            assert cell_len(word) > width


def test_code_is_cut_at_the_last_cell() -> None:
    assert rows("a  b  c", cell_breaks("a  b  c", 3)) == ["a  ", "b  ", "c"]


@given(st.lists(st.integers(1, 80), min_size=1, max_size=6), st.integers(1, 200))
def test_columns_share_the_room(natural: list[int], room: int) -> None:
    least = [min(n, 4) for n in natural]
    widths = column_widths(natural, least, room)
    assert all(lo <= w <= n for lo, w, n in zip(least, widths, natural, strict=True))
    assert sum(widths) <= room or widths == least
    if sum(natural) <= room:
        assert widths == natural
    elif sum(least) <= room:
        assert sum(widths) == room


# --- parsing ---------------------------------------------------------------------------------------------------------


def shown(pieces: list[Piece], width: int = 40) -> list[str]:
    """Every row of `pieces`."""
    out: list[str] = []
    for piece in pieces:
        for line in piece.lines(width):
            for n, row in enumerate(rows(line.text.plain, line.breaks(width))):
                out.append(((line.rest if n else line.first).plain + row).rstrip())
    return out


def rendered(source: str, width: int = 40, *, ascii_only: bool = False) -> str:
    glyphs = ASCII if ascii_only else UNICODE
    return "\n".join(shown(document(parse(source, glyphs, Highlighter())), width))


def test_blocks_stand_apart_and_items_hang() -> None:
    source = "# Title\nSome *text*\nthat goes on.\n\n- one item that has to be wrapped somewhere\n- two\n  - nested\n"
    assert rendered(source, 24) == (
        "Title\n\nSome text that goes on.\n\n• one item that has to\n  be wrapped somewhere\n• two\n  ▪ nested"
    )


def test_numbers_are_those_of_the_source_and_line_up() -> None:
    assert rendered("9. nine\n10. ten\n") == "  9. nine\n 10. ten"


def test_loose_items_keep_their_paragraphs() -> None:
    assert rendered("- one\n\n  more\n\n- two\n") == "• one\n\n  more\n\n• two"


def test_quotes_have_a_bar_on_every_row() -> None:
    assert rendered("> said\n>\n> - a\n", ascii_only=True) == "| said\n|\n| - a"


def test_code_keeps_its_blanks() -> None:
    assert rendered("```\na  b\n\n\tc\n```\n") == "  a  b\n\n          c"


def test_a_table_wraps_in_its_cells() -> None:
    source = "| a | what it does |\n|--|--:|\n| x | one two three four five |\n| y | 1 |\n"
    assert rendered(source, 20, ascii_only=True) == (
        "a |     what it does\n--+-----------------\nx |    one two three\n  |        four five\ny |                1"
    )


def test_html_is_shown_as_it_was_written_and_not_dropped() -> None:
    assert rendered("a <b>c</b><br>d\n\n<div>\nx\n</div>\n") == "a <b>c</b>\nd\n\n<div>\nx\n</div>"


def test_images_are_links_without_a_picture() -> None:
    (line,) = document(parse("![a plan](http://x/y.png)", UNICODE, Highlighter()))[0].lines(40)
    assert line.text.plain == "a plan (http://x/y.png)"
    assert any("http://x/y.png" in str(span.style) for span in line.text.spans)


@pytest.mark.parametrize(
    ("source", "shown_as"),
    [
        ("See [the *docs*](https://example.org/a), then go.", "See the docs (https://example.org/a), then go."),
        ("[https://bank.example](https://evil.example/)", "https://bank.example (https://evil.example/)"),
        ("[a.py](src/a.py:3)", "a.py (src/a.py:3)"),
        ("[`x`](#there)", "x (#there)"),
        ("[empty]()", "empty"),
        ("[](http://x)", "http://x"),
        ("![](http://x/y.png)", "http://x/y.png"),
        ("[src/a.py](src/a.py)", "src/a.py"),
        ("<https://example.org/>", "https://example.org/"),
        ("[example.org](https://example.org/)", "example.org"),
        ("www.x.org me@x.org", "www.x.org me@x.org"),
        ("https://ru.wikipedia.org/wiki/Кошка", "https://ru.wikipedia.org/wiki/Кошка"),
        ("[t](http://x/&#x202e;b)", "t (http://x/%E2%80%AEb)"),
    ],
)
def test_a_link_shows_where_it_leads_unless_its_text_says_so(source: str, shown_as: str) -> None:
    assert rendered(source, 200) == shown_as


def test_a_name_that_only_looks_like_another_shows_what_it_is() -> None:
    """A Cyrillic а in the host."""
    assert rendered("http://pаy.example", 80) == "http://pаy.example (http://xn--py-7kc.example)"


def test_a_long_address_is_shortened() -> None:
    shown_as = rendered(f"[x](http://x/{'y' * 900})", 10_000)
    assert len(shown_as) < 220
    assert shown_as.endswith("…)")


@pytest.mark.parametrize("code", ["#x202e", "#8238", "#x2066", "#12", "#155", "#x85"])
def test_no_character_is_smuggled_in_as_an_entity(code: str) -> None:
    """Case 27: the source is clean, what an entity stands for must be too."""
    for source in (f"a &{code}; b", f"[&{code};x](y)", f"![&{code};x](y)", f"| &{code}; |\n|--|\n"):
        text = rendered(source)
        assert text == sanitise(text)


@given(st.text(st.sampled_from("ab \n-*_`#>|[]()!<&1.~:\\"), max_size=120), WIDTH)
def test_any_source_can_be_laid_out(source: str, width: int) -> None:
    shown(document(parse(source, UNICODE, Highlighter())), width)


# --- colours ---------------------------------------------------------------------------------------------------------


def test_short_code_is_coloured_at_once_and_long_code_is_asked_for() -> None:
    highlighter = Highlighter()
    assert highlighter.lines("x = 1", "python") is not None
    assert highlighter.wanted == set()
    assert highlighter.lines("x = 1", "ruby") is None, "the rules of a language that was not met are loaded elsewhere"
    assert highlighter.wanted == {("x = 1", "ruby")}
    highlighter.wanted.clear()
    long = "x = 1\n" * AT_ONCE
    assert highlighter.lines(long, "python") is None
    (key,) = highlighter.wanted
    highlighter.add(key, coloured(*key))
    assert highlighter.wanted == set()
    assert highlighter.lines(long, "python") is not None


@pytest.mark.parametrize("language", ["python", "no-such-language", "json", "diff"])
@pytest.mark.parametrize("code", ["", "x", "\n\nx", 'a = """\n', "\tx", "{ "])
def test_colours_change_no_character(code: str, language: str) -> None:
    assert "\n".join(line.plain for line in coloured(code, language)) == code


# --- text that is coming ---------------------------------------------------------------------------------------------

BLOCKS = st.lists(
    st.sampled_from(
        (
            "A paragraph with **bold** and `code`\nover two lines.",
            "# Title",
            "- one\n- two\n  - three",
            "1. one\n2. two",
            "- loose\n\n  more\n\n- items",
            "```python\nx = 1\n\n# no title\n```",
            "~~~\n```\n~~~~",
            "> quoted\n> text",
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "Set\n===",
            "***",
            "<div>\nx\n</div>",
            "    indented",
        )
    ),
    min_size=1,
    max_size=8,
)


class Screen:
    """What a view of the stream shows: pieces replaced as it says."""

    def __init__(self) -> None:
        self.stream = MarkdownStream(UNICODE, Highlighter())
        self.pieces: list[Piece] = []
        self.replaced = 0

    def feed(self, text: str) -> None:
        change = self.stream.feed(text)
        self.replaced += len(change.pieces)
        self.pieces[change.keep :] = change.pieces


@given(BLOCKS, st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_what_came_in_pieces_looks_like_the_whole(blocks: list[str], sizes: list[int]) -> None:
    source = "\n\n".join(blocks) + "\n"
    screen, at, n = Screen(), 0, 0
    while at < len(source):
        screen.feed(source[at : at + sizes[n % len(sizes)]])
        at, n = at + sizes[n % len(sizes)], n + 1
    assert shown(screen.pieces) == shown(document(parse(source, UNICODE, Highlighter())))


def test_what_may_open_code_is_held_back() -> None:
    screen = Screen()
    screen.feed("Look:\n\n``")
    assert shown(screen.pieces) == ["Look:"]
    screen.feed("`py")
    screen.feed("\nx")
    assert shown(screen.pieces) == ["Look:", "", "  x"]
    screen.feed(" = 1\n``")
    assert shown(screen.pieces) == ["Look:", "", "  x = 1"]
    screen.feed("`\nend")
    assert shown(screen.pieces) == ["Look:", "", "  x = 1", "", "end"]


def test_an_open_fence_is_never_parsed_and_only_its_new_lines_are_laid_out() -> None:
    """Case 7: 500 lines, one at a time."""
    screen = Screen()
    screen.feed("Look:\n\n```python\n")
    parsed, replaced = screen.stream.parsed, screen.replaced
    for n in range(500):
        screen.feed(f"x{n} = {n}\n")
    assert screen.stream.parsed == parsed
    assert screen.replaced - replaced == 500
    screen.feed("```\n\nDone.")
    assert len(shown(screen.pieces)) == 504
    assert shown(screen.pieces)[-1] == "Done."


def test_long_code_gets_its_colours_later() -> None:
    highlighter = Highlighter()
    stream = MarkdownStream(UNICODE, highlighter)
    pieces: list[Piece] = []

    def styles() -> int:
        return sum(len(p.text.spans) for p in pieces if isinstance(p, Line) and p.code)

    for text in ("Intro\n\n```python\n" + "x = 1\n" * AT_ONCE + "```\n", "After."):
        change = stream.feed(text)
        pieces[change.keep :] = change.pieces
    assert styles() == 0
    assert stream.colour() is None
    for key in list(highlighter.wanted):
        highlighter.add(key, coloured(*key))
    coming = stream.colour()
    assert coming is not None
    pieces[coming.keep :] = coming.pieces
    assert styles() > AT_ONCE
    assert shown(pieces)[0] == "Intro"
    assert shown(pieces)[-2:] == ["", "After."]
    assert stream.colour() is None


PROSE = "A paragraph with some **bold** words and `code` in it, as answers have. " * 5 + "\n\n- one\n- two\n- three\n\n"
KINDS = {
    "prose": PROSE,
    "one paragraph": "word " * 100,
    "one list": "- an item with some words in it\n" * 10,
    "code": "```python\n" + "value = compute(1)\n" * 40 + "```\n\n",
}


@pytest.mark.parametrize("kind", KINDS)
def test_parsing_a_stream_is_linear(kind: str) -> None:
    """Twice the answer, twice the work: 2,500 and 5,000 tokens of 4 characters, a flush every 12."""

    def work(tokens: int) -> tuple[int, int]:
        source = (KINDS[kind] * (tokens * 4 // len(KINDS[kind]) + 1))[: tokens * 4]
        screen = Screen()
        for at in range(0, len(source), 48):
            screen.feed(source[at : at + 48])
        return screen.stream.parsed, screen.replaced

    for half, whole in zip(work(2_500), work(5_000), strict=True):
        assert whole <= 2.3 * half + 1_000
    assert work(5_000)[0] <= 60 * 5_000 * 4
