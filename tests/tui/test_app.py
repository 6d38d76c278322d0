"""The app: layout, keys, settings, escape and ctrl+c, with a fake engine."""

from __future__ import annotations

import pytest
from textual import events

from marextui.engine import events as ev
from marextui.engine.event_values import Phase
from marextui.tui.app import MarexApp
from marextui.tui.screens.help import HelpScreen
from marextui.tui.screens.palette import Palette
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.stubs.ports import FakePorts
from tests.tui.scenes import make_app, tool_turn

WIDE, NARROW = (120, 40), (80, 24)


def toasts(app: MarexApp) -> list[str]:
    return [n.message for n in app._notifications]


async def test_wide_shows_all_panes_and_narrow_one_with_the_gauge_in_a_line() -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        main = app.main
        assert all(main.pane(p).region.area for p in ("conversation", "gauge", "omissions", "memory"))
        assert not main.gauge_line.display
        assert 38 <= main.side.size.width <= 46
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert main.gauge_line.display
        assert main.conversation.display
        assert not main.side.display
        await pilot.press("f4")
        await pilot.pause()
        assert main.memory.region.area
        assert not main.conversation.display
        assert "[Memory]" in frame(app)
        assert "39" in frame(app).splitlines()[1]
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        assert all(main.pane(p).region.area for p in ("conversation", "gauge", "omissions", "memory"))


async def test_the_gauge_is_right_before_the_first_message() -> None:
    """Case 43."""
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        assert "1 860 of 4 743" in frame(app).replace("\N{NO-BREAK SPACE}", " ")


async def test_typing_while_a_dialog_was_open_is_kept() -> None:
    """Case 35: the draft survives any picker."""
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"my draft")
        for opening in ("f1", "ctrl+p", "ctrl+o"):
            await pilot.press(opening)
            await pilot.pause()
            assert app.screen is not app.main
            await pilot.press("escape")
            await pilot.pause()
            assert app.screen is app.main
            assert app.main.composer.text == "my draft"
            assert app.focused is app.main.composer.draft


async def test_escape_ends_the_waiting_for_a_server_that_loads_its_model() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(ev.ModelLoading("m", "the server is loading its model"))
        await pilot.pause()
        assert "the server is loading its model" in app.model.status.detail
        await pilot.press("escape")
        assert len(engine.said("interrupt")) == 1


async def test_escape_is_a_ladder() -> None:
    """Case 55: popup, then the turn; idle, nothing."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("escape")
        assert engine.said("interrupt") == []
        engine.emit(ev.PhaseChanged("streaming"))
        await pilot.press(*"/he")
        await pilot.pause()
        await pilot.press("escape")
        assert engine.said("interrupt") == []
        assert app.main.composer.popup_rows == []
        await pilot.press("escape")
        assert len(engine.said("interrupt")) == 1
        assert app.main.composer.text == "/he"


@pytest.mark.parametrize("phase", ["connecting", "prompt", "streaming", "tools", "permission", "compacting"])
async def test_escape_stops_in_every_phase(phase: Phase) -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        engine.emit(ev.PhaseChanged(phase))
        await pilot.press("escape")
        assert len(engine.said("interrupt")) == 1


async def test_ctrl_c_clears_with_undo_then_asks_then_quits() -> None:
    """Case 34."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"draft", "ctrl+c")
        assert app.main.composer.text == ""
        await pilot.press("ctrl+z")
        assert app.main.composer.text == "draft"
        await pilot.press("ctrl+c", "ctrl+c")
        await pilot.pause()
        assert any("again to quit" in t for t in toasts(app))
        ports.clock.advance(10)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert engine.said("close") == []
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert engine.said("close") == [()]


async def test_ctrl_c_copies_a_selection_in_the_draft() -> None:
    """Case 20."""
    ports = FakePorts()
    app = make_app(ports=ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"some text")
        app.main.composer.draft.select_all()
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert ports.clipboard.copied == ["some text"]
        assert app.main.composer.text == "some text"


async def test_a_remapped_key_works_and_is_shown() -> None:
    """Case 39."""
    app = make_app(keys={"app.palette": "f10", "composer.newline": "ctrl+n"})
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        last = frame(app).splitlines()[-1]
        assert "F10 Palette" in last
        assert "ctrl+n New line" in last
        assert "ctrl+p" not in last
        await pilot.press("a", "ctrl+n", "b")
        assert app.main.composer.text == "a\nb"
        await pilot.press("ctrl+p")
        assert app.screen is app.main
        await pilot.press("f10")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        await pilot.press("escape", "f1")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert any(row[0] == "F10" and row[1] == "Palette" for row in app.screen.rows)


async def test_wrong_settings_are_told_and_the_app_starts() -> None:
    """Case 28: an unknown theme or key never stops the app."""
    app = make_app(keys={"app.nope": "x"}, theme="no-such-theme")  # type: ignore[arg-type]
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        assert any("app.nope" in t for t in toasts(app))
        assert any("no-such-theme" in t for t in toasts(app))


async def test_focus_of_the_terminal_restyles_nothing() -> None:
    """Case 3: AppBlur and AppFocus do no styling work."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await pilot.pause()
        styled: list[object] = []
        real = app.stylesheet.update_nodes

        def counting(nodes: object, animate: bool = False) -> None:
            listed = list(nodes)  # type: ignore[call-overload]
            styled.extend(listed)
            real(listed, animate=animate)

        app.stylesheet.update_nodes = counting  # type: ignore[method-assign, assignment]
        for event in (events.AppBlur(), events.AppFocus()) * 5:
            app.post_message(event)
        await pilot.pause()
        assert styled == []
        assert app.focused is app.main.composer.draft


async def test_moving_the_focus_does_not_restyle_the_blocks() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await pilot.pause()
        styled: list[object] = []
        real = app.stylesheet.update_nodes

        def counting(nodes: object, animate: bool = False) -> None:
            listed = list(nodes)  # type: ignore[call-overload]
            styled.extend(listed)
            real(listed, animate=animate)

        app.stylesheet.update_nodes = counting  # type: ignore[method-assign, assignment]
        await pilot.press("f2")
        await pilot.pause()
        blocks = set(app.main.conversation.blocks.walk_children())
        assert not blocks.intersection(styled)


async def test_nothing_ticks_when_idle() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        assert not app.main.status.ticking
        engine.emit(ev.PhaseChanged("streaming"))
        assert app.main.status.ticking
        engine.emit(ev.PhaseChanged("idle"))
        assert not app.main.status.ticking
        assert not app.main.composer.draft.cursor_blink


async def test_the_status_line_says_what_happens_in_words() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(ev.PhaseChanged("prompt"), ev.PromptProcessed(3_000, 1_000, 1_000, 0.01))
        ports.clock.advance(7)
        engine.emit(ev.PromptProcessed(3_000, 1_000, 2_500, 7.0))
        await pilot.pause()
        line = frame(app).splitlines()[-2].replace("\u00a0", " ")
        said = "▓▓▓▓▓▓██████████░░░░ 2 500 of 3 000 tokens, 1 000 from cache · 3 s left · 7 s · esc stops"
        assert f"reading the prompt · {said}" in line
        ports.clock.advance(2.5)
        app.main.status.on_resize()
        await pilot.pause()
        assert "· <1 s left · 9 s" in frame(app).replace("\u00a0", " ")
        engine.emit(ev.PhaseChanged("streaming"), ev.TextStreamed("a", "It"))
        await pilot.pause()
        line = frame(app).splitlines()[-2]
        assert "answering · 9 s" in line
        assert "left" not in line, "gone with the first token"
        assert "Qwen2.5-Coder 1.5B (local)" in line


async def test_how_far_the_prompt_is_fits_eighty_columns() -> None:
    """Issue 4, section 5: bar, done, whole and time left, with nothing cut off; unknown is a dash."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        engine.emit(ev.PhaseChanged("prompt"), ev.PromptProcessed(30_560, 12_000, 12_000, 0.01))
        await pilot.pause()
        line = frame(app).splitlines()[-2]
        assert "reading the prompt · ▓▓▓░░░░░ 12k/31k, 12k cached · – left · 0 s · esc stops" in line
        engine.emit(ev.PromptProcessed(30_560, 12_000, 13_000, 20.0))
        await pilot.pause()
        line = frame(app).splitlines()[-2].replace("\u00a0", " ")
        assert "reading the prompt · ▓▓▓░░░░░ 13k/31k · 5 min 52 s left · 0 s · esc stops" in line


async def test_scroll_keys_work_from_the_composer() -> None:
    """Case 14."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        engine.emit(*tool_turn())
        for _ in range(3):
            await pilot.pause()
        scroller = app.main.conversation.blocks
        bottom = scroller.scroll_y
        assert bottom > 0
        await pilot.press("shift+up")
        assert scroller.scroll_y == bottom - 1
        await pilot.press("pageup")
        assert scroller.scroll_y < bottom - 1
        await pilot.press("pagedown", "pagedown")
        assert scroller.scroll_y == bottom
        await pilot.press("pageup", "end")
        for _ in range(3):
            await pilot.pause()
        assert scroller.scroll_y == bottom
        assert app.main.conversation.following
        assert app.focused is app.main.composer.draft


async def test_ascii_mode_draws_no_other_letters() -> None:
    engine = FakeEngine()
    app = make_app(engine, ascii=True)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn()[:12])
        await pilot.pause()
        text = frame(app).replace("\N{NO-BREAK SPACE}", " ")
        left = "\n".join(row[1:78] for row in text.splitlines()[:36])
        assert "Read src/parse.py" in left
        assert left.isascii()
