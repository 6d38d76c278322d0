"""An answer that was arriving when the process was killed (I5, case 45): what had been written of it is there again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from marextui.context.entries import MessageAdded
from marextui.engine.api import LATEST
from marextui.engine.events import MessageAppended, Notice, TurnFinished
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, ModelError, TextChunk
from marextui.store.database import StoreError
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import Hold, ScriptedChat, say

SECRET = "sk-proj-" + "x7Kq" * 9


@dataclass
class Talk:
    """An engine in the middle of an answer whose pieces come when the test says so."""

    r: Rig
    holds: list[Hold]
    written: list[str] = field(default_factory=list)
    broken: bool = False
    _at: int = 0

    async def piece(self, *, after: float) -> None:
        """The next piece comes `after` seconds; what is being saved then is saved."""
        self.r.clock.time += after
        await self.holds[self._at].reached.wait()
        self.holds[self._at].go.set()
        self._at += 1
        await self.holds[self._at].reached.wait()
        await asyncio.gather(*(t for t in asyncio.all_tasks() if "_save" in repr(t.get_coro())))

    async def end(self) -> TurnFinished:
        self.holds[self._at].go.set()
        done = await self.r.until(lambda e: isinstance(e, TurnFinished))
        await self.r.idle()
        assert isinstance(done, TurnFinished)
        return done


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Any]:
    rigs: list[Rig] = []

    async def begin(*pieces: str, ends: object = None) -> Talk:
        holds = [Hold() for _ in range(len(pieces) + 1)]
        reply: list[Any] = [Accepted(), holds[0]]
        for text, hold in zip(pieces, holds[1:], strict=True):
            reply += [TextChunk(text), hold]
        reply.append(ends or Finished("stop", None))
        r = await Rig(tmp_path / "first", chat=ScriptedChat([reply]), ids=RandomIds()).start(connect=False)
        rigs.append(r)
        talking = Talk(r, holds)
        store = r.engine.state.archive.store
        save = store.save_unfinished

        async def counted(conversation_id: str, message: Any) -> None:
            if talking.broken:
                raise StoreError("The disk is full.")
            talking.written.append(message.text)
            await save(conversation_id, message)

        store.save_unfinished = counted  # type: ignore[method-assign]
        r.engine.submit("question")
        await holds[0].reached.wait()
        return talking

    (tmp_path / "first").mkdir()
    yield begin
    for r in rigs:
        await r.engine.close()


async def killed(talking: Talk, tmp_path: Path, **parts: Any) -> Rig:
    """What the next process finds after kill -9: the files as they are at this moment."""
    after = tmp_path / "after"
    shutil.copytree(talking.r.folder, after)
    return await Rig(after, wanted=LATEST, ids=RandomIds(), **parts).start(connect=False)


async def test_what_was_streamed_before_a_kill_is_there_again_and_gone_on_with(talk: Any, tmp_path: Path) -> None:
    t = await talk("The answer ", "is this: ", f"the key {SECRET} ", "and so on ")
    for _ in range(4):
        await t.piece(after=2.5)
    assert t.written[-1].startswith("The answer is this: the key")
    assert not any(SECRET.encode() in p.read_bytes() for p in t.r.folder.rglob("*") if p.is_file()), "I10"

    again = await killed(t, tmp_path, chat=ScriptedChat([say("it goes on.")]))
    kept = again.history()[-1]
    assert kept.role == "assistant"
    assert kept.text == t.written[-1].replace(SECRET, kept.text.partition("key ")[2].partition(" and")[0])
    assert [n.action for n in again.of(Notice) if "interrupted by a crash" in n.text] == ["retry"]
    page = await again.engine.page(None, 50)
    assert [r.entry.message.text for r in page.records if type(r.entry).__name__ == "MessageAdded"][-1] == kept.text
    again.engine.retry()
    done = await again.until(lambda e: isinstance(e, TurnFinished))
    await again.idle()
    assert isinstance(done, TurnFinished)
    assert done.end == "done"
    assert again.chat.turns[0].messages[-1]["role"] == "user", "as after any broken answer: never as a complete one"
    assert texts(again.chat.turns[0])[2] == kept.text
    again.check_log()
    await again.engine.close()

    third = await Rig(tmp_path / "after", wanted=LATEST, ids=RandomIds()).start(connect=False)
    assert [m.text for m in third.history()].count(kept.text) == 1, "taken over once"
    await third.engine.close()


async def test_it_is_written_at_most_every_two_seconds(talk: Any) -> None:
    """The whole each time, so that a secret cut by the stream is redacted; therefore seldom."""
    t = await talk(*(f"word{n} " for n in range(40)))
    for _ in range(40):
        await t.piece(after=0.25)
    assert 4 <= len(t.written) <= 5
    assert (await t.end()).end == "done"


@pytest.mark.parametrize("ends", [None, ModelError("network", "Gone.")], ids=["finished", "broken"])
async def test_an_answer_that_ended_is_kept_once(talk: Any, tmp_path: Path, ends: object) -> None:
    t = await talk("The answer ", "is this.", ends=ends)
    await t.piece(after=3)
    await t.piece(after=3)
    await t.end()
    assert await t.r.engine.state.archive.store.unfinished(t.r.engine.session.id) is None
    again = await killed(t, tmp_path)
    assert [m.text for m in again.history()] == ["question", "The answer is this."]
    await again.engine.close()


async def test_killed_between_the_log_and_the_end_of_the_turn_it_is_not_there_twice(talk: Any, tmp_path: Path) -> None:
    t = await talk("The answer ", "is this.")
    await t.piece(after=3)
    await t.piece(after=3)
    after = tmp_path / "after"

    def kill(event: object) -> None:
        if isinstance(event, MessageAppended) and event.message.role == "assistant":
            shutil.copytree(t.r.folder, after)

    t.r.engine.subscribe(kill)
    await t.end()
    again = await Rig(after, wanted=LATEST, ids=RandomIds()).start(connect=False)
    assert again.engine.session.conversation.open_turn
    logged = [x.entry.message.text for x in await again.records() if isinstance(x.entry, MessageAdded)]
    assert logged == ["question", "The answer is this."]
    assert [m.text for m in again.history()] == ["question", "The answer is this."]
    assert await again.engine.state.archive.store.unfinished(again.engine.session.id) is None
    await again.engine.close()


async def test_a_full_disk_costs_a_warning_and_no_answer(talk: Any) -> None:
    t = await talk("The answer ", "is this.")
    t.broken = True
    await t.piece(after=3)
    await t.piece(after=3)
    assert (await t.end()).end == "done"
    assert [n.level for n in t.r.of(Notice) if "while it arrives" in n.text] == ["warning"]
