"""The composer: keys, pastes, history, completion, and a draft that survives (cases 8, 34 to 38)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message as TextualMessage
from textual.pilot import Pilot

from marextui.engine.events import QueuedPrompt
from marextui.tui.actions import slash_commands
from marextui.tui.history import PromptHistory
from marextui.tui.panes.composer import HEIGHTS, Composer


class ComposerApp(App[None]):
    CSS_PATH = "../../marextui/tui/app.tcss"

    def __init__(self, history: PromptHistory | None = None) -> None:
        super().__init__()
        self.got: list[TextualMessage] = []
        self.asked_files = 0
        self.composer = Composer(history or PromptHistory(), slash_commands(), self._files)

    async def _files(self) -> tuple[str, ...]:
        self.asked_files += 1
        return ("README.md", "src/app.py", "src/other.py")

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n".join(f"row {i}" for i in range(685)), "[Pasted #1: 685 lines]"),
        ("x" * 1_000_000, "[Pasted #1: 1,000,000 characters]"),
        ("a\r\nb\r\nc\r\nd\r\ne\r\nf", "[Pasted #1: 6 lines]"),
    ],
)
async def test_a_huge_paste_is_a_placeholder_that_expands_when_sent(text: str, shown: str) -> None:
    """Case 8."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"see ")
        await paste(app, pilot, text)
        assert app.composer.text == f"see {shown}"
        await pilot.press("enter")
        assert app.sent == ["see " + text.replace("\r\n", "\n")]


async def test_a_small_paste_stays_and_loses_only_control_bytes() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "\tone\x1b[31m\r\ntwo\x07")
        assert app.composer.text == "\tone[31m\ntwo"


async def test_two_pastes_keep_their_own_text() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "a\n" * 10)
        await paste(app, pilot, "b\n" * 20)
        assert app.composer.text == "[Pasted #1: 11 lines][Pasted #2: 21 lines]"
        await pilot.press("enter")
        assert app.sent == [("a\n" * 10 + "b\n" * 20).rstrip()]


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
        assert app.composer.popup_rows[0] == "src/app.py"
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


# --- the history file ------------------------------------------------------------------------------------------------


async def test_history_is_kept_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.jsonl"
    one = PromptHistory(path)
    await one.load()
    await one.add("two\nlines")
    await one.add("two\nlines")
    await one.add("[/] \u2028")
    two = PromptHistory(path)
    await two.load()
    assert two.entries == ["two\nlines", "[/] \u2028"]
    assert (path.stat().st_mode & 0o077) == 0


async def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('"good"\n{broken\n3\n"also"\n')
    history = PromptHistory(path)
    await history.load()
    assert history.entries == ["good", "also"]


async def test_a_history_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = PromptHistory(tmp_path / "file" / "history.jsonl")
    await history.load()
    await history.add("x")
    assert history.entries == ["x"]
    assert history.problem
