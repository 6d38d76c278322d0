"""The composer: keys, pastes, history, completion, and a draft that survives (cases 8, 34 to 38)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message as TextualMessage
from textual.pilot import Pilot

from marextui.engine.event_values import QueuedPrompt
from marextui.tui.actions import slash_commands
from marextui.tui.history import PromptHistory
from marextui.tui.panes.composer import HEIGHTS, Composer


class ComposerApp(App[None]):
    CSS_PATH = "../../marextui/tui/app.tcss"

    def __init__(self, history: PromptHistory | None = None) -> None:
        super().__init__()
        self.files_come = asyncio.Event()
        self.files_come.set()
        self.got: list[TextualMessage] = []
        self.asked_files = 0
        self.composer = Composer(history or PromptHistory(), slash_commands(), self._files)

    async def _files(self) -> tuple[str, ...]:
        self.asked_files += 1
        await self.files_come.wait()
        return ("README.md", "src/app.py", "src/other.py", "ap\nrm -rf", "ap\udce9")

    def compose(self) -> ComposeResult:
        yield self.composer

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.got.append(event)

    def on_composer_command_given(self, event: Composer.CommandGiven) -> None:
        self.got.append(event)

    def on_composer_unknown_command(self, event: Composer.UnknownCommand) -> None:
        self.got.append(event)

    def on_composer_queued_edited(self, event: Composer.QueuedEdited) -> None:
        self.got.append(event)

    def on_composer_editor_requested(self, event: Composer.EditorRequested) -> None:
        self.got.append(event)

    @property
    def sent(self) -> list[str]:
        return [e.text for e in self.got if isinstance(e, Composer.Submitted)]


@asynccontextmanager
async def running(app: ComposerApp) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(size=(60, 24)) as pilot:
        app.composer.focus_draft()
        await pilot.pause()
        yield pilot


async def paste(app: ComposerApp, pilot: Pilot[None], text: str) -> None:
    app.composer.draft.post_message(events.Paste(text))
    await pilot.pause()


async def test_enter_sends_and_ctrl_j_does_not() -> None:
    """Case 38."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c")
        assert app.composer.text == "a\nb\nc"
        await pilot.press("enter")
        assert app.sent == ["a\nb\nc"]
        assert app.composer.text == ""


async def test_blank_drafts_are_not_sent() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press("space", "enter", "ctrl+j", "enter")
        assert app.sent == []


async def test_clearing_can_be_undone() -> None:
    """Case 34."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"precious")
        assert app.composer.clear()
        assert app.composer.text == ""
        assert not app.composer.clear()
        await pilot.press("ctrl+z")
        assert app.composer.text == "precious"


async def test_history_only_at_the_first_and_last_line() -> None:
    history = PromptHistory()
    for prompt in ("first", "second"):
        await history.add(prompt)
    app = ComposerApp(history)
    async with running(app) as pilot:
        await pilot.press("x", "ctrl+j", "y")
        await pilot.press("up")
        assert app.composer.text == "x\ny"
        await pilot.press("up")
        assert app.composer.text == "second"
        await pilot.press("up")
        assert app.composer.text == "first"
        await pilot.press("up")
        assert app.composer.text == "first"
        await pilot.press("down", "down")
        assert app.composer.text == "x\ny"


async def test_up_moves_within_a_wrapped_line_first() -> None:
    history = PromptHistory()
    await history.add("old")
    app = ComposerApp(history)
    async with running(app) as pilot:
        app.composer.set_text("word " * 30)
        await pilot.pause()
        await pilot.press("up")
        assert app.composer.text.startswith("word")
        await pilot.press("up", "up", "up")
        assert app.composer.text == "old"


async def test_reverse_search() -> None:
    history = PromptHistory()
    for prompt in ("run the tests", "explain this", "run the linter"):
        await history.add(prompt)
    app = ComposerApp(history)
    async with running(app) as pilot:
        await pilot.press("ctrl+r")
        assert app.composer.popup_rows == ["run the linter", "explain this", "run the tests"]
        await pilot.press(*"run")
        await pilot.pause()
        assert app.composer.popup_rows == ["run the linter", "run the tests"]
        await pilot.press("ctrl+r", "enter")
        assert app.composer.text == "run the tests"
        assert app.sent == []


async def test_slash_popup_completes_and_runs() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/sta")
        await pilot.pause()
        assert app.composer.popup_rows == ["/status"]
        await pilot.press("enter")
        event = app.got[-1]
        assert isinstance(event, Composer.CommandGiven)
        assert event.command.action.id == "app.status"
        assert app.composer.text == ""


async def test_a_command_with_an_argument_waits_for_it() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/ren", "tab")
        assert app.composer.text == "/rename "
        assert app.got == []
        await pilot.press(*"New", "enter")
        event = app.got[-1]
        assert isinstance(event, Composer.CommandGiven)
        assert event.command.argument == "New"


async def test_a_typed_command_runs_even_if_a_longer_one_exists() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/memory", "enter")
        event = app.got[-1]
        assert isinstance(event, Composer.CommandGiven)
        assert event.command.action.id == "app.focus_memory"


async def test_an_unknown_command_is_not_sent_and_stays() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/zzz", "enter")
        assert isinstance(app.got[-1], Composer.UnknownCommand)
        assert app.sent == []
        assert app.composer.text == "/zzz"


async def test_paths_are_text() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        app.composer.set_text("/usr/bin is full")
        await pilot.press("enter")
        app.composer.set_text(" /zzz")
        await pilot.press("enter")
        assert app.sent == ["/usr/bin is full", "/zzz"]


async def test_at_completes_files() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"see @ap")
        await pilot.pause()
        assert app.composer.popup_rows == ["src/app.py"]
        assert app.asked_files == 1
        await pilot.press("tab", *"now")
        assert app.composer.text == "see @src/app.py now"
        assert app.composer.popup_rows == []


async def test_escape_order_popup_first() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/he")
        await pilot.pause()
        assert app.composer.close_popup()
        assert not app.composer.close_popup()
        assert app.composer.text == "/he"


async def test_the_draft_grows_in_steps_not_with_each_line() -> None:
    """Case 2: of 12 new lines, only the steps change the height."""
    app = ComposerApp()
    async with running(app) as pilot:
        heights = []
        for _ in range(12):
            await pilot.press("ctrl+j")
            await pilot.pause()
            height = app.composer.draft.size.height
            if not heights or heights[-1] != height:
                heights.append(height)
        assert heights == list(HEIGHTS)


async def test_editing_a_queued_message_puts_the_draft_aside() -> None:
    """Case 36."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"my draft")
        app.composer.edit_queued(QueuedPrompt("q1", "queued"))
        await pilot.pause()
        assert app.composer.text == "queued"
        await pilot.press("!", "enter")
        event = app.got[-1]
        assert isinstance(event, Composer.QueuedEdited)
        assert (event.prompt_id, event.text) == ("q1", "queued!")
        assert app.composer.text == "my draft"
        assert app.sent == []


async def test_leaving_the_queued_message_as_it_was() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"my draft")
        app.composer.edit_queued(QueuedPrompt("q1", "queued"))
        await pilot.press("x")
        assert app.composer.stop_editing_queued()
        assert app.composer.text == "my draft"
        assert not app.composer.stop_editing_queued()
        assert app.got == []


async def test_the_editor_gets_the_whole_text() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "a\n" * 10)
        await pilot.press("ctrl+g")
        event = app.got[-1]
        assert isinstance(event, Composer.EditorRequested)
        assert event.text == "a\n" * 10


# --- keys that come faster than the screen ---------------------------------------------------------------------------


async def burst(app: ComposerApp, pilot: Pilot[None], *keys: str) -> None:
    """Keys that are all there before the first is looked at, as on a busy machine."""
    special = {"enter", "up", "down", "tab", "escape"}
    for key in keys:
        app.post_message(events.Key(key, None if key in special else key))
    for _ in range(3):
        await pilot.pause()


@pytest.mark.parametrize("text", ["hello", "日本語", "e\u0301te\u0301", "/usr/bin is full"])
async def test_enter_waits_for_what_was_typed_before_it(text: str) -> None:
    """Also what an input method commits at once."""
    app = ComposerApp()
    async with running(app) as pilot:
        await burst(app, pilot, *text, "enter")
        assert app.sent == [text]
        assert app.composer.text == ""


async def test_enter_waits_for_a_paste() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        app.post_message(events.Paste("a\n" * 10))
        await burst(app, pilot, "!", "enter")
        assert app.sent == ["a\n" * 10 + "!"]


async def test_enter_twice_sends_once() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await burst(app, pilot, *"hello", "enter", "enter", *"more", "enter")
        assert app.sent == ["hello", "more"]


async def test_what_a_popup_offered_for_less_text_is_not_taken() -> None:
    """The popup still shows "/status" for "/sta" when the rest and Enter are there: the whole text counts."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"/sta")
        await pilot.pause()
        await burst(app, pilot, *"nd up", "enter")
        assert isinstance(app.got[-1], Composer.UnknownCommand)
        assert app.composer.text == "/stand up"


async def test_enter_twice_takes_the_completion_then_sends() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"see @ap")
        await pilot.pause()
        await burst(app, pilot, "enter", "enter")
        assert app.sent == ["see @src/app.py"]
        assert app.composer.popup_rows == []


async def test_a_file_name_typed_to_its_end_needs_one_enter() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"see @src/app.py")
        await pilot.pause()
        assert app.composer.popup_rows == ["src/app.py"]
        await pilot.press("enter")
        assert app.sent == ["see @src/app.py"]


async def test_files_that_come_after_the_message_was_sent_open_nothing() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        app.files_come.clear()
        await pilot.press(*"see @ap")
        await burst(app, pilot, "enter")
        assert app.sent == ["see @ap"]
        app.files_come.set()
        await pilot.pause()
        assert app.composer.popup_rows == []


async def test_history_keeps_its_place_behind_quick_typing() -> None:
    history = PromptHistory()
    for prompt in ("first", "second", "third"):
        await history.add(prompt)
    app = ComposerApp(history)
    async with running(app) as pilot:
        await burst(app, pilot, "x", "up", "up")
        assert app.composer.text == "second"
        await pilot.press("up")
        assert app.composer.text == "first"
        await pilot.press("down", "down", "down")
        assert app.composer.text == "x"


async def test_a_search_that_finds_nothing_says_so() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press("ctrl+r")
        assert [n.message for n in app._notifications] == ["There is no earlier prompt yet."]


async def test_the_popup_fits_above_the_composer_on_a_low_screen() -> None:
    app = ComposerApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.composer.styles.dock = "bottom"
        app.composer.focus_draft()
        await pilot.press("/")
        await pilot.pause()
        popup = app.composer.popup
        assert len(app.composer.popup_rows) > 12
        assert popup.region.y >= 2
        assert popup.region.bottom == app.composer.draft.region.y
