"""An answer as one widget: what it draws, what streaming costs, selecting, links."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from marextui.tui.glyphs import ASCII, Glyphs
from marextui.tui.markdown.highlighting import AT_ONCE
from marextui.tui.panes.block_list import BlockList
from marextui.tui.panes.markdown import MarkdownView
from tests.stubs.frames import frame
from tests.tui.scenes import ANSWER


class ViewApp(App[None]):
    def __init__(self, text: str | None = None, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        if glyphs is not None:
            self.glyphs = glyphs
        self.view = MarkdownView(text)
        self.clicked: list[str] = []

    def compose(self) -> ComposeResult:
        with BlockList(str, lambda _by: None, lambda: None):
            yield self.view

    def on_markdown_view_link_clicked(self, event: MarkdownView.LinkClicked) -> None:
        self.clicked.append(event.href)


async def test_an_answer_is_one_widget() -> None:
    app = ViewApp(ANSWER * 20)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert len(app.view.children) == 0
        assert "The bug is in parse" in frame(app)


async def test_only_the_rows_in_sight_are_drawn() -> None:
    app = ViewApp("line\n\n" * 500)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.view.size.height == 999
        assert len(app.view._strips) <= 24


async def test_text_is_wrapped_again_for_another_width() -> None:
    app = ViewApp("- " + "word " * 30)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        wide = app.view.size.height
        await pilot.resize_terminal(40, 24)
        await pilot.pause()
        assert app.view.size.height > wide
        assert all(len(row) <= 40 for row in frame(app).splitlines())


async def test_a_flush_lays_the_screen_out_once_and_only_when_the_answer_grew() -> None:
    """No full layout for a few more words on the last row."""
    app = ViewApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.feed("Some words")
        await pilot.pause()
        layouts: list[int] = []
        real = app.screen._refresh_layout

        def counted(*args: object, **options: object) -> None:
            layouts.append(1)
            real(*args, **options)  # type: ignore[arg-type]

        app.screen._refresh_layout = counted  # type: ignore[method-assign, assignment]
        app.view.feed("Some words and more")
        await pilot.pause()
        assert layouts == []
        assert "Some words and more" in frame(app)
        app.view.feed("Some words and more\n\nA new paragraph")
        await pilot.pause()
        assert layouts == [1]
        assert "A new paragraph" in frame(app)


async def test_a_long_answer_costs_what_its_text_costs() -> None:
    """5,000 tokens: no widget more, each line broken into rows a bounded number of times."""
    source = (ANSWER + "\n\n") * 70
    app = ViewApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for end in range(0, len(source), 48):
            app.view.feed(source[:end])
        app.view.feed(source)
        await pilot.pause()
        lines = len(app.view.lines)
        assert lines > 600
        assert app.view.laid_out <= 12 * lines
        assert app.view.parsed <= 12 * len(source)
        assert len(app.view.children) == 0


async def test_a_long_open_fence_lays_each_line_out_once() -> None:
    """Case 7: 500 lines of code, one at a time."""
    app = ViewApp()
    text = "Look:\n\n```python\n"
    async with app.run_test() as pilot:
        app.view.feed(text)
        await pilot.pause()
        before, parsed = app.view.laid_out, app.view.parsed
        for i in range(500):
            text += f"x{i} = {i}\n"
            app.view.feed(text)
        assert app.view.laid_out - before == 500
        assert app.view.parsed == parsed
        app.view.show(text + "```\n")
        await pilot.pause()
        assert app.view.lines[-1].strip() == "x499 = 499"


async def test_long_code_is_coloured_away_from_the_loop() -> None:
    app = ViewApp("```python\n" + "x = 1\n" * AT_ONCE + "```\n")
    async with app.run_test() as pilot:
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert any(line.text.spans for line in app.view._lines)
        assert len(app.view.lines) == AT_ONCE


async def test_an_escape_sequence_cut_in_two_is_still_dropped() -> None:
    app = ViewApp()
    async with app.run_test() as pilot:
        for text in ("red \x1b[3", "red \x1b[31mtext", "red \x1b[31mtext\n\nmore"):
            app.view.feed(text)
        await pilot.pause()
        assert "red text" in frame(app)


async def test_what_was_streamed_is_mended_at_the_end() -> None:
    """A link whose address came last."""
    app = ViewApp()
    text = "See [the page][1].\n\nAnd more.\n\n[1]: https://example.org/x\n"
    async with app.run_test() as pilot:
        for end in range(0, len(text), 5):
            app.view.feed(text[:end])
        app.view.show(text)
        await pilot.pause()
        assert "See the page (https://example.org/x)." in frame(app)
        await pilot.click(MarkdownView, offset=(8, 0))
        await pilot.click(MarkdownView, offset=(20, 0))
        assert app.clicked == ["https://example.org/x"] * 2
        await pilot.click(MarkdownView, offset=(3, 0))
        assert len(app.clicked) == 2


async def test_back_at_a_width_it_had_before_nothing_is_cut_off() -> None:
    """The height for a width that was seen is not asked for again; the rows have to be broken for it all the same."""
    words = [f"word{i}" for i in range(60)]
    app = ViewApp(" ".join(words))
    async with app.run_test(size=(80, 24)) as pilot:
        for width in (80, 40, 80, 40):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            assert [w for w in frame(app).split() if w.startswith("word")] == words


async def test_a_selection_is_made_of_lines_not_of_rows() -> None:
    app = ViewApp("- one " + "word " * 30 + "end\n- two\n\n```\na  b\n```\n")
    async with app.run_test(size=(40, 24)) as pilot:
        await pilot.pause()
        told = app.view.get_selection(Selection(None, None))
        assert told is not None
        assert told[0] == "• one " + "word " * 30 + "end\n• two\n\n  a  b"
        part = app.view.get_selection(Selection(Offset(2, 1), Offset(4, 3)))
        assert part is not None
        assert part[0] == "two\n\n  a "


async def test_the_mouse_selects_through_wrapped_rows() -> None:
    app = ViewApp("one " + "word " * 12 + "end\n\n- two")
    async with app.run_test(size=(40, 24)) as pilot:
        await pilot.pause()
        await pilot.mouse_down(MarkdownView, offset=(2, 0))
        await pilot.hover(MarkdownView, offset=(7, 3))
        await pilot.mouse_up(MarkdownView, offset=(7, 3))
        await pilot.pause()
        selected = app.screen.get_selected_text()
        assert selected is not None
        assert selected.startswith("one word")
        assert selected.endswith("end\n\n• two"[: len(selected) - selected.index("end")])
        assert "\n• tw" in selected


async def test_the_ascii_set_draws_only_ascii() -> None:
    app = ViewApp("- a\n\n> b\n\n---\n\n| x | y |\n|--|--|\n| 1 | 2 |\n", ASCII)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert frame(app).isascii()


async def test_another_theme_draws_it_anew() -> None:
    app = ViewApp("`code` and **bold**\n")
    async with app.run_test() as pilot:
        await pilot.pause()
        dark = app.export_screenshot(simplify=True)
        app.theme = "textual-light"
        await pilot.pause()
        assert app.export_screenshot(simplify=True) != dark
        assert "code and bold" in frame(app)


async def test_inline_code_can_be_read_in_every_theme() -> None:
    app = ViewApp("Some `code` here.\n\n```python\nx = 1\n```\n")
    async with app.run_test() as pilot:
        for theme in app.available_themes:
            app.theme = theme
            await pilot.pause()
            (code,) = (segment for segment in app.view.render_line(0) if segment.text == "code")
            assert code.style is not None
            assert code.style.color != code.style.bgcolor, theme
            assert "x = 1" in app.view.render_line(2).text
