"""Leaving loses nothing that was written: queued messages and the draft come back with their conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from textual.pilot import Pilot

from marextui.engine import events as ev
from marextui.engine.event_values import QueuedPrompt
from marextui.tui.screens.lines import LineView
from marextui.tui.unsent import Unsent
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.stubs.ports import FakePorts
from tests.tui.scenes import make_app

OPENED = ev.ConversationOpened("c1", "A talk", True, 0)


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(5):
        await pilot.pause()


async def test_queued_messages_and_the_draft_come_back(tmp_path: Path) -> None:
    engine = FakeEngine()
    app = make_app(engine)
    app.unsent = Unsent(tmp_path)
    async with app.run_test() as pilot:
        engine.emit(OPENED)
        await settled(pilot)
        engine.emit(ev.QueueChanged((QueuedPrompt("q1", "first"), QueuedPrompt("q2", "second"))))
        await settled(pilot)
        assert "second" in (tmp_path / "c1.json").read_text(), "kept when it is queued, whatever comes then"
        app.main.composer.set_text("a draft")
        await pilot.pause()
        app.action_leave()
        await settled(pilot)
    engine = FakeEngine()
    app = make_app(engine)
    app.unsent = Unsent(tmp_path)
    async with app.run_test() as pilot:
        engine.emit(OPENED)
        await settled(pilot)
        assert app.main.composer.text == "first\n\nsecond\n\na draft"
        app.main.composer.set_text("")
        app.keep_unsent()
        assert not (tmp_path / "c1.json").exists()


def test_the_disk_gets_no_secret_of_it(tmp_path: Path) -> None:
    """I10: what comes back has a placeholder where the key stood, in sight in the draft."""
    unsent = Unsent(tmp_path)
    asyncio.run(unsent.open("c1"))
    unsent.keep(["use OPENAI_API_KEY=sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy0123456789"])
    assert "sk-proj" not in (tmp_path / "c1.json").read_text()
    [left] = asyncio.run(Unsent(tmp_path).open("c1"))
    assert left.startswith("use OPENAI_API_KEY=[redacted:")


async def test_the_draft_is_kept_while_a_queued_message_is_edited(tmp_path: Path) -> None:
    engine = FakeEngine(busy=True)
    app = make_app(engine)
    app.unsent = Unsent(tmp_path)
    async with app.run_test() as pilot:
        engine.emit(OPENED)
        await settled(pilot)
        await pilot.press(*"first", "enter", *"my draft", "f7", "!")
        await settled(pilot)
        assert app.main.composer.text == "first!"
        app.keep_unsent()
        assert json.loads((tmp_path / "c1.json").read_text()) == ["first", "my draft"]


async def test_queued_messages_go_into_the_draft_when_another_conversation_is_opened(tmp_path: Path) -> None:
    engine = FakeEngine(busy=True)
    app = make_app(engine)
    app.unsent = Unsent(tmp_path)
    async with app.run_test() as pilot:
        engine.emit(OPENED)
        await settled(pilot)
        await pilot.press(*"one", "enter", *"two", "enter", *"draft")
        app.action_new()
        await settled(pilot)
        assert app.main.composer.text == "one\n\ntwo\ndraft"
        assert engine.queue == []
        app.keep_unsent()
        assert not (tmp_path / "c1.json").exists(), "it went along"
        assert "two" in (tmp_path / "c-new.json").read_text()


async def test_blank_lines_hide_nothing_of_a_command_and_pgdn_scrolls_it_from_the_composer() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    command = "make all" + "\n" * 60 + "rm -rf build\n" + "".join(f"echo {n}\n" for n in range(20))
    async with app.run_test(size=(80, 24)) as pilot:
        engine.emit(ev.PermissionAsked("p1", "c", "Bash", "bash", "Bash make all", command, "make all", ""))
        await settled(pilot)
        for _ in range(2):
            ports.clock.advance(2)
            app.main.dock.tick()
        await settled(pilot)
        shown = frame(app)
        assert "· 59 blank lines ·" in shown
        assert "rm -rf build" in shown
        assert "more lines" in shown
        app.main.to_draft()
        await pilot.press("pagedown")
        assert app.main.dock.query_one(LineView).scroll_offset.y == 5
