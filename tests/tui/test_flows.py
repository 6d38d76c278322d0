"""What people do, from key to command and from event to screen."""

from __future__ import annotations

from dataclasses import replace

from textual.pilot import Pilot

from marextui.context.messages import Message
from marextui.engine import events as ev
from marextui.engine.api import ConversationInfo
from marextui.engine.economy_switch import OFFER, OFFER_HINT
from marextui.tui.screens.confirm import Confirm
from marextui.tui.screens.conversations import ConversationPicker
from marextui.tui.screens.help import HelpScreen
from marextui.tui.screens.jump import JumpScreen
from marextui.tui.screens.models import ModelPicker
from marextui.tui.screens.palette import Palette
from marextui.tui.screens.setup import SetupScreen
from marextui.tui.screens.status import StatusScreen
from marextui.tui.screens.viewer import TextViewer
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.stubs.ports import FakePorts
from tests.tui.scenes import ANSWER, log_turns, make_app, short_turn, tool_turn
from tests.tui.test_app import NARROW, WIDE, toasts


async def settled(pilot: Pilot[None], times: int = 4) -> None:
    for _ in range(times):
        await pilot.pause()


async def test_send_stream_and_read() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"Why?", "enter")
        assert engine.said("submit") == [("Why?",)]
        engine.emit(*tool_turn())
        await settled(pilot)
        text = frame(app)
        assert "Shall I change it?" in text
        assert "Bash pytest -q · failed" in text
        await pilot.press("up")
        assert app.main.composer.text == "Why?"


async def test_messages_typed_while_busy_are_queued_edited_and_dropped() -> None:
    """Case 36."""
    engine = FakeEngine(busy=True)
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for text in ("one", "two"):
            await pilot.press(*text, "enter")
        await settled(pilot)
        assert "queued 1  one" in frame(app)
        assert "queued 2  two" in frame(app)
        await pilot.press(*"draft", "f7")
        await pilot.pause()
        assert app.main.composer.text == "two"
        await pilot.press("!", "enter")
        await pilot.pause()
        assert engine.said("edit_queued") == [("q2", "two!")]
        assert app.main.composer.text == "draft"
        await pilot.press("f8")
        await pilot.pause()
        assert engine.said("drop_queued") == [("q2",)]
        assert app.main.composer.text == "two!\ndraft"
        assert [q.text for q in engine.queue] == ["one"]


async def test_an_edit_that_comes_too_late_is_not_lost() -> None:
    engine = FakeEngine(busy=True)
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"one", "enter", "f7", "!")
        engine.queue.clear()
        await pilot.press("enter")
        await settled(pilot)
        assert app.main.composer.text == "one!"
        assert any("sent already" in t for t in toasts(app))


async def test_commands_reach_the_engine() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for line in ("/compact", "/new", "/rename A b", "/export out.json"):
            await pilot.press(*line, "enter")
            await settled(pilot, 2)
        assert engine.said("compact") == [()]
        assert engine.said("open_conversation") == [(None,)]
        assert engine.said("rename") == [("A b",)]
        assert engine.said("export") == [("out.json", "json")]
        assert engine.said("submit") == []
        await pilot.press(*"/nope", "enter")
        await pilot.pause()
        assert engine.said("submit") == []
        assert any("/nope is no command" in t for t in toasts(app))


async def test_a_new_name_is_confirmed_and_only_when_it_was_taken() -> None:
    """The title stands nowhere on the main screen: without a word nobody knew whether it worked."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        engine.emit(ev.ConversationOpened("c-1", "", False, 0))
        engine.conversation_id = "another"  # the disk is full: no ConversationRenamed for this one
        await pilot.press(*"/rename A [/] b", "enter")
        await settled(pilot)
        assert toasts(app) == []
        engine.conversation_id = "c-1"
        await pilot.press(*"/rename A [/] b", "enter")
        await settled(pilot)
        assert toasts(app) == ["This conversation is now called: A [/] b"]


async def test_the_economy_command_switches_or_shows_how_things_stand() -> None:
    """By keyboard alone: on, off, the status without a word, and nothing for a word that is neither."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        for line in ("/economy on", "/economy off", "/economy maybe"):
            await pilot.press(*line, "enter")
            await settled(pilot, 2)
        assert engine.said("switch_economy") == [(True,), (False,)]
        assert any("takes on or off, not 'maybe'" in t for t in toasts(app))
        await pilot.press(*"/economy", "enter")
        await settled(pilot)
        assert isinstance(app.screen, StatusScreen)


async def test_an_offer_comes_while_somebody_types_and_takes_nothing_from_them() -> None:
    """Issue 4, section 5: no modal; every key still goes to the draft."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press(*"my next")
        engine.emit(*tool_turn(), ev.Notice("info", OFFER, OFFER_HINT))
        await pilot.press(*" words")
        await settled(pilot)
        assert app.main.composer.text == "my next words"
        assert app.screen is app.main
        assert "/economy on or /economy off" in frame(app)


async def test_an_export_that_fails_says_why() -> None:
    engine = FakeEngine(export_error=PermissionError(13, "Permission denied"))
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/export x.md", "enter")
        await settled(pilot)
        assert any("Could not write x.md: Permission denied" in t for t in toasts(app))


async def test_an_export_writes_over_a_file_only_when_told_to() -> None:
    engine = FakeEngine(export_error=FileExistsError(17, "File exists"))
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/export my file.md", "enter")
        await settled(pilot)
        assert any("/export my file.md --replace writes over it" in t for t in toasts(app))
        await pilot.press(*"/export my file.md --replace", "enter")
        await settled(pilot)
        assert engine.said("export")[-1] == ("my file.md", "markdown", True)


async def test_dialogs_open_from_commands() -> None:
    engine = FakeEngine(conversation_rows=[ConversationInfo("c-7", "Old one", "p", 1.0, 2.0, 4, 2)])
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for line, kind in (
            ("/help", HelpScreen),
            ("/status", StatusScreen),
            ("/model", ModelPicker),
            ("/resume", ConversationPicker),
            ("/theme", Palette),
            ("/memory clear", Confirm),
        ):
            await pilot.press(*line, "enter")
            await settled(pilot, 2)
            assert isinstance(app.screen, kind), line
            await pilot.press("escape")
            await settled(pilot, 2)
            assert app.screen is app.main, line
        assert engine.said("clear_memory") == []
        assert engine.said("select_model") == []


async def test_the_memory_command_and_the_gauge_key_go_to_their_panes() -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/memory", "enter")
        await settled(pilot)
        assert app.main.scope() == "memory"
        await pilot.press("escape", "f5")
        await settled(pilot)
        assert app.main.scope() == "gauge"


async def test_the_palette_runs_what_is_chosen() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause()
        await pilot.press(*"compact now", "enter")
        await settled(pilot)
        assert engine.said("compact") == [()]
        assert app.focused is app.main.composer.draft


async def test_jump_mode_goes_to_a_pane_by_letter() -> None:
    app = make_app()
    for size in (WIDE, NARROW):
        app = make_app()
        async with app.run_test(size=size) as pilot:
            await pilot.press("ctrl+o")
            await pilot.pause()
            assert isinstance(app.screen, JumpScreen)
            assert "s omissions" in frame(app)
            await pilot.press("s")
            await settled(pilot)
            assert app.main.scope() == "omissions"
            await pilot.press("ctrl+o")
            await pilot.pause()
            await pilot.press("g")
            await settled(pilot)
            assert app.main.scope() == "composer"


async def test_tab_goes_round_the_panes() -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        scopes = []
        for _ in range(9):
            await pilot.press("tab")
            scope = app.main.scope()
            if not scopes or scopes[-1] != scope:
                scopes.append(scope)
            if scope == "composer":
                break
        assert scopes[:2] == ["conversation", "gauge"]
        assert scopes[-1] == "composer"
        assert {"omissions", "memory"} <= set(scopes)


async def test_a_tool_card_opens_its_stored_output() -> None:
    engine = FakeEngine(texts={"om-7f3a": "the whole output"})
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await settled(pilot)
        await pilot.press("f2")
        app.main.conversation.reveal(2)
        await settled(pilot)
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert engine.said("read_omission") == [("om-7f3a",)]
        assert isinstance(app.screen, TextViewer)
        assert app.screen.text == "the whole output"


async def test_a_purged_output_says_so_and_shows_what_is_left() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await settled(pilot)
        await pilot.press("f2")
        app.main.conversation.reveal(2)
        await settled(pilot)
        await pilot.press("v")
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert "line 60" in app.screen.text
        assert any("no longer stored" in t for t in toasts(app))


async def test_search_finds_what_is_not_mounted() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for n in range(1, 61):
            engine.emit(*short_turn(n))
        await settled(pilot)
        conversation = app.main.conversation
        assert "u3" not in conversation.mounted
        await pilot.press("ctrl+f", *"Question 3")
        await settled(pilot)
        assert "11 of 11" in frame(app)
        await pilot.press("f6")
        await settled(pilot)
        assert "1 of 11" in frame(app)
        assert conversation.cursor == "u3"
        assert "Question 3?" in frame(app)
        await pilot.press("shift+f6")
        await settled(pilot)
        assert conversation.cursor == "u39"
        await pilot.press("escape")
        await settled(pilot)
        assert app.focused is app.main.composer.draft
        assert not app.main.search.display


async def test_copying_tells_the_truth() -> None:
    """Case 18."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await settled(pilot)
        await pilot.press(*"/copy", "enter")
        await settled(pilot)
        assert ports.clipboard.copied == [ANSWER]
        ports.clipboard.outcome = replace(ports.clipboard.outcome, ok=False, problem="Install xclip.")
        await pilot.press("f2", "k", "y")
        await settled(pilot)
        assert any("Install xclip." in t for t in toasts(app))


async def test_a_block_opens_in_editor_and_pager() -> None:
    """Case 24."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn())
        await settled(pilot)
        await pilot.press("f2", "k", "e", "o")
        await settled(pilot)
        assert ports.editor.edited == [ANSWER]
        assert ports.pager.shown == [ANSWER]


async def test_the_draft_comes_back_from_the_editor() -> None:
    ports = FakePorts()
    ports.editor.result = "edited\n"
    app = make_app(ports=ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"draft", "ctrl+g")
        await settled(pilot)
        assert app.main.composer.text == "edited"
        ports.editor.problem = "vi is not installed."
        await pilot.press("ctrl+g")
        await settled(pilot)
        assert app.main.composer.text == "edited"
        assert any("vi is not installed." in t for t in toasts(app))


async def test_an_error_offers_its_key() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(ev.ModelFailed("tiny", "the server died", "It is started anew.", retry=True))
        await settled(pilot)
        text = frame(app)
        assert "Error: tiny: the server died" in text
        assert "It is started anew." in text
        assert "F9 tries again" in text
        await pilot.press("f9")
        assert engine.said("retry") == [()]


async def test_without_a_model_the_first_run_screen_comes() -> None:
    """Case 28."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(ev.ModelNeeded())
        await settled(pilot)
        assert isinstance(app.screen, SetupScreen)
        assert engine.said("setup") == [()]


async def test_a_long_conversation_is_resumed_at_its_end_and_paged_back() -> None:
    """Case 4."""
    engine = FakeEngine()
    log_turns(engine, 2_500)
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        assert "Answer 2500" in frame(app)
        assert len(engine.said("page")) == 1
        assert len(app.main.conversation.mounted) <= 60
        await pilot.press("f2")
        for _ in range(3):
            await pilot.press("home")
            await settled(pilot)
        assert len(engine.said("page")) >= 2
        assert len(app.main.conversation.mounted) <= 60
        await pilot.press("end")
        await settled(pilot)
        assert "Answer 2500" in frame(app)


async def test_switching_conversations_shows_the_other_one() -> None:
    engine = FakeEngine()
    log_turns(engine, 3)
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        assert "Answer 3" in frame(app)
        await pilot.press(*"/new", "enter")
        await settled(pilot)
        assert "Answer 3" not in frame(app)
        assert app.main.conversation.mounted == []
        engine.emit(ev.MessageAppended(Message("n1", "user", "Fresh start"), 1))
        await settled(pilot)
        assert "Fresh start" in frame(app)


async def test_permission_is_asked_and_answered_without_stealing_keys() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"typing")
        engine.emit(ev.PermissionAsked("p1", "c", "Bash", "bash", "Bash ls", "ls -la", "ls", ""))
        await pilot.press(*" on")
        await settled(pilot)
        assert app.main.composer.text == "typing on"
        app.main.dock.post_message(app.main.dock.Answered("p1", "deny", "not now"))
        await settled(pilot)
        assert engine.said("answer_permission") == [("p1", "deny", "not now")]
        assert app.main.composer.text == "typing on"


async def test_links_are_shown_before_they_are_opened() -> None:
    app = make_app()
    opened: list[str] = []
    async with app.run_test(size=WIDE) as pilot:
        app.open_url = lambda url, new_tab=True: opened.append(url)  # type: ignore[method-assign]
        conversation = app.main.conversation
        conversation.post_message(conversation.LinkClicked("javascript:alert(1)"))
        await settled(pilot)
        assert app.screen is app.main
        assert any("not a web address" in t for t in toasts(app))
        conversation.post_message(conversation.LinkClicked("https://example.org/x"))
        await settled(pilot)
        assert isinstance(app.screen, Confirm)
        await pilot.press("escape")
        await settled(pilot)
        assert opened == []


async def test_quitting_closes_the_engine_first() -> None:
    """Case 30."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=NARROW) as pilot:
        engine.emit(ev.PhaseChanged("streaming"), ev.TextStreamed("m", "half"))
        await pilot.press(*"/quit", "enter")
        await settled(pilot)
    assert engine.said("close") == [()]
    assert app.return_code == 0


async def test_an_output_the_disk_cannot_give_is_named_and_the_screen_stays() -> None:
    engine = FakeEngine()
    app = make_app(engine)

    async def broken(omission_id: str) -> str | None:
        raise OSError(5, "Input/output error")

    engine.read_omission = broken  # type: ignore[method-assign]
    async with app.run_test(size=WIDE) as pilot:
        app.action_open_omission("omitted-001")
        await settled(pilot)
        assert app.screen is app.main
        assert any("omitted-001 cannot be read: Input/output error" in t for t in toasts(app))


async def test_a_command_with_words_it_does_not_take_stays_in_the_composer() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/new fix it", "enter")
        await settled(pilot)
        assert engine.said("open_conversation") == []
        assert app.main.composer.text == "/new fix it"
        assert any("/new takes no 'fix it'" in t for t in toasts(app))
