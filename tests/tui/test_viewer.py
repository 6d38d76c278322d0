"""The viewer opens any text at once, because only the rows in view are worked on (cases 24, 50; 200,000 lines)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.color import Color
from textual.pilot import Pilot
from textual.widgets import Input

from marextui.tui.screens import lines as lines_module
from marextui.tui.screens.line_index import BLOCK, PIECE, LineIndex
from marextui.tui.screens.lines import LineView
from marextui.tui.screens.viewer import TextViewer
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp
from tests.tui.test_themes import contrast

N = "\u00a0"
BIG = "\n".join(f"line {i} " + "x" * (i % 90) for i in range(200_000))
TEXTS = st.lists(st.text(st.sampled_from("ab\té日🎉\x1b[m\r \u0301"), max_size=60), max_size=20).map("\n".join)


def status(app: MiniApp) -> str:
    return str(app.screen.query_one("#viewer-status").render())


async def opened(pilot: Pilot[Any]) -> TextViewer:
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, TextViewer)
    return screen


# --- the index


@given(TEXTS, st.integers(0, 30))
def test_rows_and_pieces_agree(text: str, width: int) -> None:
    index = LineIndex(text, width)
    for piece in range(len(index.pieces)):
        index.span(piece)
    seen = [index.at(row) for row in range(index.height)]
    expected = [(p, sub) for p in range(len(index.pieces)) for sub in range(len(index.rows(p)))]
    assert seen == expected
    assert index.at(index.height) is None
    assert index.at(-1) is None
    if width > 1:
        for piece in range(len(index.pieces)):
            for display, start, end in index.rows(piece):
                assert cell_len(display[start:end]) <= width


@given(TEXTS)
def test_offsets_find_their_piece_and_lines_come_back_raw(text: str) -> None:
    index = LineIndex(text)
    for piece, start in enumerate(index.starts):
        assert index.piece_at(start) == piece
    assert index.line_text(0, len(index.pieces) - 1) == text.removesuffix("\n")


def test_a_line_of_a_megabyte_is_cut_into_pieces() -> None:
    index = LineIndex("short\n" + "a" * 1_000_000 + "\nend", 80)
    assert index.lines == 3
    assert len(index.pieces) == 2 + 1_000_000 // PIECE
    assert index.numbers[1] == index.numbers[-2] == 1
    assert index.line_text(5, 5) == "a" * 1_000_000
    assert index.first_of(2) == len(index.pieces) - 1
    assert index.sanitised == 0


def test_only_blocks_that_are_looked_at_are_measured() -> None:
    index = LineIndex("é\x1b[31m\n" * 200_000, 80)
    assert index.height == 200_000
    assert index.sanitised == 0
    index.at(0)
    index.at(199_999)
    assert index.sanitised <= 2 * BLOCK


def test_empty_texts_have_one_line() -> None:
    assert LineIndex("").lines == 1
    assert LineIndex("a\n").lines == 1
    assert LineIndex("a\n\n").lines == 2


# --- the screen


async def test_opening_200_000_lines_draws_at_most_two_screens() -> None:
    app = MiniApp(screen=TextViewer("big", BIG))
    async with app.run_test(size=(80, 24)) as pilot:
        viewer = await opened(pilot)
        assert viewer.view.rendered <= 2 * 24
        assert viewer.view.index.sanitised <= 24
        before = viewer.view.rendered
        await pilot.press("G")
        await pilot.pause()
        assert "line 199999" in frame(app)
        assert viewer.view.rendered - before <= 2 * 24
        before = viewer.view.rendered
        await pilot.resize_terminal(100, 24)
        await pilot.pause()
        assert viewer.view.rendered - before <= 4 * 24
        await pilot.press("g")
        await pilot.pause()
        assert "line 0 " in frame(app)


async def test_goto_a_line() -> None:
    app = MiniApp(screen=TextViewer("big", BIG))
    async with app.run_test(size=(80, 24)) as pilot:
        viewer = await opened(pilot)
        await pilot.press("colon", *"150000", "enter")
        await pilot.pause()
        assert "line 149999 " in frame(app)
        assert f"line 150{N}000 of 200{N}000" in status(app)
        assert app.focused is viewer.view
        await pilot.press("colon", *"99999999999", "enter")
        await pilot.pause()
        assert "line 199999 " in frame(app)
        await pilot.press("colon", *"x", "enter")
        await pilot.pause()
        assert "not a line number" in status(app)


async def test_search_forward_back_around_and_case() -> None:
    text = "\n".join(["alpha", "Beta", "beta", *["filler"] * 50, "BETA end"])
    app = MiniApp(screen=TextViewer("t", text))
    async with app.run_test(size=(60, 14)) as pilot:
        viewer = await opened(pilot)
        await pilot.press("slash", *"beta")
        await pilot.pause()
        assert viewer.view.cursor == 1
        await pilot.press("enter", "n")
        await pilot.pause()
        assert viewer.view.cursor == 2
        await pilot.press("n")
        await pilot.pause()
        assert viewer.view.cursor == 53
        assert "BETA end" in frame(app)
        await pilot.press("n")
        await pilot.pause()
        assert viewer.view.cursor == 1
        assert "around the end" in status(app)
        await pilot.press("N")
        await pilot.pause()
        assert viewer.view.cursor == 53
        await pilot.press("g", "slash", *"BETA", "enter")
        await pilot.pause()
        assert viewer.view.cursor == 53
        await pilot.press("slash", *"nowhere", "enter")
        await pilot.pause()
        assert "not found" in status(app)
        assert viewer.view.cursor == 53


async def test_incremental_search_goes_back_as_the_needle_gets_shorter() -> None:
    app = MiniApp(screen=TextViewer("t", "xx\nab\nabc\nabd"))
    async with app.run_test(size=(60, 14)) as pilot:
        viewer = await opened(pilot)
        await pilot.press("slash", *"abd")
        await pilot.pause()
        assert viewer.view.cursor == 3
        await pilot.press("backspace")
        await pilot.pause()
        assert viewer.view.cursor == 1


async def test_n_without_a_search_says_so() -> None:
    app = MiniApp(screen=TextViewer("t", "a"))
    async with app.run_test(size=(60, 14)) as pilot:
        await opened(pilot)
        await pilot.press("n")
        await pilot.pause()
        assert "press / to search first" in status(app)


async def test_a_search_is_done_in_slices_and_finds_what_lies_across_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "SEARCH_SLICE", 10)
    text = "." * 28 + "needle" + "." * 50 + "\nneedle\n" + "." * 33
    app = MiniApp(screen=TextViewer("t", text))
    async with app.run_test(size=(60, 14)) as pilot:
        viewer = await opened(pilot)
        slices: list[int] = []
        on = viewer.view._search_on

        def counted(task: Any) -> None:
            slices.append(task.at)
            on(task)

        viewer.view._search_on = counted  # type: ignore[method-assign]
        viewer.view.search("needle", start=0)
        for _ in range(20):
            await pilot.pause()
        assert viewer.view.match_at == 28
        assert slices == [0, 10, 20]
        viewer.view.search_again()
        for _ in range(20):
            await pilot.pause()
        assert viewer.view.match_at == text.index("\nneedle") + 1
        viewer.view.search_again(backwards=True)
        for _ in range(20):
            await pilot.pause()
        assert viewer.view.match_at == 28
        slices.clear()
        viewer.view.search("absent", start=50)
        for _ in range(40):
            await pilot.pause()
        assert viewer.view._search is None
        assert len(slices) == 8 + 5  # 75 characters to the end, then the 50 before the start


async def test_copy_line_selection_and_all() -> None:
    text = "one\n\ttwo\x1b[31m\nthree\nfour"
    app = MiniApp(screen=TextViewer("t", text))
    async with app.run_test(size=(60, 14)) as pilot:
        await opened(pilot)
        await pilot.press("down", "c", "v", "down", "c", "escape", "up", "shift+up", "c", "C")
        await pilot.pause()
    assert app.fakes.clipboard.copied == ["\ttwo", "\ttwo\nthree", "one\n\ttwo", "one\n\ttwo\nthree\nfour"]
    assert app.notes[1].startswith("Copied 2 lines")


async def test_pager_and_editor_get_the_whole_text_and_failures_are_told() -> None:
    app = MiniApp(screen=TextViewer("t", "a\x1b[1mb"))
    async with app.run_test(size=(60, 14)) as pilot:
        await opened(pilot)
        await pilot.press("p", "e")
        assert app.fakes.pager.shown == ["a\x1b[1mb"]
        assert app.fakes.editor.edited == ["ab"]
        assert app.notes == []
        app.fakes.pager.problem = app.fakes.editor.problem = "No pager [/]."
        await pilot.press("p", "e")
        assert app.notes == ["No pager [/].", "No pager [/]."]
        app.fakes.editor.problem, app.fakes.editor.result = "", "changed"
        await pilot.press("e")
        assert "does not change" in app.notes[2]


async def test_wrap_numbers_and_sideways() -> None:
    app = MiniApp(screen=TextViewer("t", "ab" * 100 + "END\nsecond"))
    async with app.run_test(size=(60, 14)) as pilot:
        viewer = await opened(pilot)
        assert "END" in frame(app)
        await pilot.press("w")
        await pilot.pause()
        assert "END" not in frame(app)
        for _ in range(30):
            await pilot.press("right")
        await pilot.pause()
        assert "END" in frame(app)
        assert "not wrapped" in status(app)
        await pilot.press("w", "l")
        await pilot.pause()
        assert viewer.view.scroll_offset.x == 0
        assert "│▶abab" in frame(app)


async def test_a_line_longer_than_the_screen_can_be_read_through() -> None:
    app = MiniApp(screen=TextViewer("t", "a" * 1900 + "\nend"))
    async with app.run_test(size=(40, 12)) as pilot:
        viewer = await opened(pilot)
        tops = []
        for _ in range(6):
            await pilot.press("down")
            tops.append(viewer.view.scroll_offset.y)
        assert tops == [1, 2, 3, 4, 5, 6]
        assert viewer.view.cursor == 0
        await pilot.press("end")
        await pilot.pause()
        assert viewer.view.cursor == 1
        assert "end" in frame(app)


async def test_wide_characters_tabs_and_diffs() -> None:
    text = "@@ -1 +1 @@\n-日本語\tx\n+\té\n same"
    app = MiniApp(screen=TextViewer("t", text, language="diff"))
    async with app.run_test(size=(40, 12)) as pilot:
        viewer = await opened(pilot)
        rows = frame(app).split("\n")
        assert "-日本語 x" in rows[2]
        assert all(cell_len(r) == 40 for r in rows[1:5])
        colours = {viewer.view._row_style(0, sign + "x").color for sign in ("+", "-", "@@", " ")}
        assert len(colours) == 4


@pytest.mark.parametrize("theme", ["marex-dark", "marex-light", "high-contrast"])
async def test_line_numbers_can_be_read_in_every_theme(theme: str) -> None:
    app = MiniApp(screen=TextViewer("t", "a\nb"), theme=theme)
    async with app.run_test(size=(40, 12)) as pilot:
        viewer = await opened(pilot)
        segment = next(iter(viewer.view.render_line(1)))
        assert "2" in segment.text
        assert segment.style is not None
        front, back = segment.style.color, segment.style.bgcolor
        assert front is not None
        assert back is not None
        assert contrast(Color.from_rich_color(front), Color.from_rich_color(back)) >= 4.5


async def test_escape_leaves_the_prompt_then_the_selection_then_the_viewer() -> None:
    app = MiniApp(screen=TextViewer("t", "a\nb"))
    async with app.run_test(size=(60, 14)) as pilot:
        viewer = await opened(pilot)
        await pilot.press("v", "slash", "a", "escape")
        assert app.focused is viewer.view
        assert not viewer.query_one(Input).has_class("-asking")
        await pilot.press("escape")
        assert viewer.view.anchor_piece is None
        assert app.screen is viewer
        await pilot.press("escape")
        await pilot.pause()
        assert app.answers == [None]


@pytest.mark.parametrize(
    "text",
    ["", "\n", "[/]", "\x1b]0;T\x07\x9b31m\u202ex\r\x0b" * 50, "\t" * 3000],
    ids=["empty", "newline", "markup", "hostile", "tabs"],
)
async def test_any_text_and_any_key(text: str) -> None:
    app = MiniApp(screen=TextViewer("[/foo] \x1b[2J", text))
    async with app.run_test(size=(40, 12)) as pilot:
        await opened(pilot)
        await pilot.press(*"GgwlvnNcC", "down", "up", "pagedown", "pageup", "end", "home", "right", "left", "space")
        await pilot.press("slash", "x", "enter", "colon", "9", "enter", "shift+down", "shift+up")
        await pilot.pause()
        assert control_bytes(frame(app)) == []
        assert isinstance(app.screen, TextViewer)


async def test_another_text_starts_at_its_top() -> None:
    view = LineView("a\nb")
    app = MiniApp(view)
    async with app.run_test(size=(40, 6)) as pilot:
        view.go_to_piece(1)
        view.set_text("\n".join(map(str, range(100))))
        await pilot.pause()
        assert (view.cursor, view.scroll_offset.y, view.index.lines) == (0, 0, 100)
        assert frame(app).split("\n")[0].strip().startswith("▶  1 0")
