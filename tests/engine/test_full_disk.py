"""A disk without room costs no turn, no output and no prompt, and is said in words (I6; case 116)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.entries import MessageAdded, OutputStored
from marextui.engine.events import MessageAppended, Notice, QueueChanged, ToolFinished, TurnFinished
from marextui.store.database import Database
from marextui.store.log import LogStore
from tests.stubs.engine_rig import Rig, full_disk, texts
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say

LONG = "".join(f"line {n}\n" for n in range(5_000))
Start = Callable[..., Coroutine[Any, Any, Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(**kw: Any) -> Rig:
        made.append(await Rig(tmp_path, window=Window(32_768, "discovery"), **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


async def test_an_output_that_cannot_be_stored_is_kept_whole_and_shown_capped(rig: Start, monkeypatch: Any) -> None:
    replies = [call(("A", "{}"), ("B", "{}")), say("seen"), say("2"), say("3")]
    r = await rig(chat=ScriptedChat(replies), tools=ScriptedTools({"A": LONG, "B": "b" * 700}))
    with monkeypatch.context() as full:
        full.setattr(r.omissions, "put", full_disk)
        assert (await r.ask("one")).end == "done"
    notices = [n for n in r.of(Notice) if "could not be stored" in n.text]
    assert [n.level for n in notices] == ["warning", "warning"]
    assert "No space left on device" in notices[0].text
    assert "Free disk space" in notices[0].hint
    assert [(f.is_error, f.omission_id) for f in r.of(ToolFinished)] == [(False, "")] * 2
    logged = {e.message.name: e.message.text for x in await r.records() if isinstance(e := x.entry, MessageAdded)}
    assert (logged["A"], logged["B"]) == (LONG, "b" * 700)
    shown = next(t for t in texts(r.chat.turns[1]) if t.startswith("line 0"))
    assert len(shown) < 5_600
    assert "could not be stored" in shown
    assert "ReadOmittedContent" not in shown
    r.check_log()

    await r.ask("two")
    assert next(t for t in texts(r.chat.turns[2]) if t.startswith("line 0")) == shown
    await r.ask("three")  # there is room again: grown old, it is stored whole
    assert any(t.startswith("[omitted omitted-001") for t in texts(r.chat.turns[3]))
    assert await r.engine.read_omission("omitted-001") == LONG


async def test_the_view_is_the_same_after_a_restart(rig: Start, monkeypatch: Any) -> None:
    r = await rig(chat=ScriptedChat([call(("A", "{}")), say("seen")]), tools=ScriptedTools({"A": LONG}))
    monkeypatch.setattr(r.omissions, "put", full_disk)
    await r.ask("one")
    before = r.history()
    await r.engine.open_conversation(r.engine.session.id)
    assert r.history() == before
    assert not [x for x in await r.records() if isinstance(x.entry, OutputStored)]


class SmallDisk:
    """A log whose disk can be filled: then SQLite itself says "database or disk is full"."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.log = LogStore(database)

    async def fill(self) -> None:
        await self._database.run(lambda c: c.execute("PRAGMA max_page_count = 1").fetchall())

    async def free(self) -> None:
        await self._database.run(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())


@pytest.fixture
async def disk(tmp_path: Path) -> SmallDisk:
    return SmallDisk(await Database.open(tmp_path / "log.db"))


async def test_a_prompt_that_cannot_be_logged_is_kept_and_sent_on_retry(rig: Start, disk: SmallDisk) -> None:
    r = await rig(log=disk.log, chat=ScriptedChat([say("hello"), say("again")]))
    await r.ask("first")
    await disk.fill()
    mark = len(r.events)
    prompt = "p" * 20_000
    r.engine.submit(prompt)
    notice = await r.until(lambda e: isinstance(e, Notice), after=mark)
    await r.idle()
    assert isinstance(notice, Notice)
    assert "full" in notice.text
    assert (notice.level, notice.hint, notice.action) == ("error", "Free disk space, then retry.", "retry")
    assert [q.text for q in r.of(QueueChanged)[-1].items] == [prompt]
    await disk.free()
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: isinstance(e, MessageAppended) and e.message.text == "again", after=mark)
    await r.idle()
    assert prompt in texts(r.chat.turns[-1])


async def test_a_log_that_fills_up_in_a_turn_ends_it_with_one_clear_error(rig: Start, disk: SmallDisk) -> None:
    answering = Hold()
    r = await rig(log=disk.log, chat=ScriptedChat([say("hi"), [answering, *say("z" * 50_000)], say("after")]))
    await r.ask("first")
    mark = len(r.events)
    r.engine.submit("second")
    await answering.reached.wait()
    await disk.fill()
    answering.go.set()
    finished = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    await r.idle()
    assert isinstance(finished, TurnFinished)
    assert finished.end == "error"
    errors = [e for e in r.events[mark:] if isinstance(e, Notice) and e.level == "error"]
    assert len(errors) == 1
    assert "full" in errors[0].text
    assert errors[0].action == "retry"
    await disk.free()
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: isinstance(e, MessageAppended) and e.message.text == "after", after=mark)
    await r.idle()
    r.check_log()
