"""Resume, undo, races, crash: whatever comes in between, the log stays what was said and the view what it was.

Cases 113–122 of the reported ones; I5, I16; Part 2, 12.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.entries import CompactionCommitted, CompactionUndone, MessageAdded
from marextui.context.fold import fold
from marextui.context.marks import SUMMARY_MARK
from marextui.context.memory import parse_memory
from marextui.context.omission import parse_marker
from marextui.context.redacted import redacted_entry
from marextui.context.validate import violations
from marextui.engine.archive import LATEST
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionReverted,
    CompactionStarted,
    Notice,
    QueueChanged,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, ChatRequest, Chunk, Finished, TextChunk
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.fuse import Fuse, later, run_until_death
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say

SUMMARY = """## Session Intent
- make src/parser.py faster
## Files Modified
- src/parser.py: loop unrolled
## Decisions Made
- keep the old API
## Current State
- the tests pass
## Next Steps
- measure src/parser.py"""
ASKED = "make src/parser.py faster: loop unrolled, keep the old API. The tests pass; measure. "
WIDE = Window(100_000, "discovery")


def held_summary(hold: Hold) -> list[Any]:
    return [Accepted(), TextChunk(SUMMARY[:40]), hold, TextChunk(SUMMARY[40:]), Finished("stop", None)]


async def fill(r: Rig, turns: int, size: int = 3_000) -> None:
    for n in range(turns):
        await r.ask(f"question {n}: {ASKED}" + "x" * size)


async def compacted(r: Rig, *, offline: bool = False) -> None:
    mark = len(r.events)
    r.engine.compact(offline=offline)
    await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
    await r.idle()


async def undone(r: Rig) -> None:
    mark = len(r.events)
    r.engine.undo_compaction()
    await r.until(lambda e: isinstance(e, CompactionReverted), after=mark)
    await r.idle()


def said(r: Rig) -> list[str]:
    """What the user said, as logged."""
    return [m.text for m in r.engine.session.conversation.messages if m.role == "user"]


# -- going back --------------------------------------------------------------------------------------------------------


async def test_every_state_before_a_compaction_can_be_had_again_also_after_restarts(rig: StartRig) -> None:
    """Case 113: three compactions, a restart before each undo; the summary is no undo target, no mark is orphaned."""
    outputs = [f"output {n} " * 120 for n in range(12)]
    replies: list[Any] = []
    for n in range(12):
        replies += [call(("Look", json.dumps({"n": n})), ids=[f"c{n}"]), say(f"seen {n}")]
    r = await rig(window=WIDE, chat=ScriptedChat(replies), tools=ScriptedTools({"Look": outputs[:]}))
    views = []
    for cycle in range(3):
        for n in range(4):
            await r.ask(f"look {cycle}.{n}: {ASKED}" + "x" * 2_000)
        views.append(r.history())
        await compacted(r, offline=True)
    for expected in reversed(views):
        await r.engine.close()
        r = await rig(window=WIDE, wanted=LATEST, ids=RandomIds())
        await undone(r)
        ids = [m.id for m in expected]
        assert [m.id for m in r.history()][: len(ids)] == ids
        assert r.history() == expected or expected is not views[-1], "nothing was said since: it is the same view"
        for omission_id in filter(None, (parse_marker(m.text) for m in r.history())):
            assert await r.engine.read_omission(omission_id) in outputs
        r.check_log()
    mark = len(r.events)
    r.engine.undo_compaction()
    await r.until(lambda e: isinstance(e, Notice) and "no compaction to undo" in e.text, after=mark)
    kinds = [type(x.entry) for x in await r.records()]
    assert kinds.count(CompactionCommitted) == kinds.count(CompactionUndone) == 3, (
        "nothing is ever taken out of the log"
    )


async def test_a_superseded_summary_is_still_there(rig: StartRig) -> None:
    """Case 113: the diff of the first compaction opens after two more."""
    r = await rig(window=WIDE)
    for _ in range(3):
        await fill(r, 4)
        await compacted(r, offline=True)
    for cycle in (1, 2, 3):
        diff = await r.engine.compaction_diff(cycle)
        assert diff is not None
        assert diff.entry.cycle == cycle
    assert len([x for x in await r.records() if isinstance(x.entry, CompactionCommitted)]) == 3


async def test_an_undo_touches_no_file(rig: StartRig, real_tools: Callable[[], dict[str, Any]], project: Path) -> None:
    """Case 114: files belong to the workspace: going back in the conversation leaves them alone."""
    write = json.dumps({"file_path": "made.txt", "content": "precious\n" * 50})
    chat = ScriptedChat([call(("Write", write), ids=["w"]), say("written")])
    r = await rig(window=WIDE, chat=chat, **real_tools())
    await r.ask("write it: " + ASKED)
    await fill(r, 4)
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file() and ".marex" not in p.parts}
    await compacted(r, offline=True)
    await undone(r)
    await r.engine.open_conversation(None)
    assert {p: p.read_bytes() for p in project.rglob("*") if p.is_file() and ".marex" not in p.parts} == before
    assert (project / "made.txt").read_text().startswith("precious")


# -- while a compaction runs -------------------------------------------------------------------------------------------


async def test_what_is_typed_during_a_compaction_is_sent_after_it(rig: StartRig) -> None:
    """Case 117: acknowledged means delivered: in order, once each, on top of the summary."""
    hold = Hold()
    r = await rig(window=WIDE, chat=ScriptedChat(summaries=[held_summary(hold)]))
    await fill(r, 4)
    r.engine.compact()
    await hold.reached.wait()
    r.engine.submit("typed meanwhile")
    r.engine.submit("and one more")
    assert [p.text for p in r.of(QueueChanged)[-1].items] == ["typed meanwhile", "and one more"]
    hold.go.set()
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 6)
    await r.idle()
    assert said(r)[-2:] == ["typed meanwhile", "and one more"]
    assert len(r.of(CompactionFinished)) == 1
    assert SUMMARY_MARK in texts(r.chat.turns[-2])[1]
    r.check_log()


async def test_what_is_typed_during_a_compaction_that_fails_or_is_cancelled_is_not_lost(rig: StartRig) -> None:
    """Case 117, the neighbours: the summary is refused; Escape is pressed; the conversation is left and found again."""
    hold = Hold()
    chat = ScriptedChat(summaries=[[Accepted(), hold, TextChunk("no"), Finished("stop", None)], held_summary(Hold())])
    r = await rig(window=WIDE, chat=chat)
    await fill(r, 4)
    r.engine.compact()
    await hold.reached.wait()
    r.engine.submit("typed during a failure")
    hold.go.set()
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 5)
    await r.idle()
    assert r.of(CompactionFailed)
    second = chat.summaries[0][2]
    assert isinstance(second, Hold)
    r.engine.compact()
    await second.reached.wait()
    r.engine.submit("typed before Escape")
    r.engine.interrupt()
    await r.idle()
    assert said(r)[-1] == "typed during a failure"
    assert [p.text for p in r.of(QueueChanged)[-1].items] == ["typed before Escape"], "it waits in sight"
    r.engine.retry()
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 6)
    assert said(r)[-1] == "typed before Escape"


@dataclass
class CountingChat(ScriptedChat):
    """Knows how many of its requests ran at once."""

    running: int = 0
    most: int = 0

    async def stream(self, request: ChatRequest) -> AsyncIterator[Chunk]:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            async for chunk in super().stream(request):
                await asyncio.sleep(0)
                yield chunk
        finally:
            self.running -= 1


async def test_compactions_never_run_side_by_side(rig: StartRig) -> None:
    """Case 118: asked for twice by hand while one is due by itself: one at a time, and never beside an answer."""
    chat = CountingChat(summaries=[say(SUMMARY)] * 9)
    r = await rig(window=Window(8_192, "discovery"), chat=chat, policy=Policy(compact_at=0.4))
    for n in range(10):
        r.engine.submit(f"question {n}: {ASKED}" + "x" * 1_600)
        r.engine.compact()
        r.engine.compact()
        await asyncio.sleep(0)
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 10)
    await r.idle()
    assert chat.most == 1
    started = [e.cycle for e in r.of(CompactionStarted)]
    finished = [e.entry.cycle for e in r.of(CompactionFinished)]
    assert finished == sorted(set(finished))
    assert set(finished) <= set(started)
    r.check_log()


async def test_a_summary_that_comes_too_late_changes_nothing(rig: StartRig, tmp_path: Path) -> None:
    """Case 119: the conversation was undone, or written to, by another process while the model was summarising."""
    hold = Hold()
    r = await rig(window=WIDE, chat=ScriptedChat(summaries=[held_summary(hold)]))
    await fill(r, 5)
    r.engine.compact()
    await hold.reached.wait()
    other = await rig(window=WIDE, wanted=r.engine.session.id, ids=RandomIds())
    await other.ask("said elsewhere")
    hold.go.set()
    failed = await r.until(lambda e: isinstance(e, CompactionFailed))
    await r.idle()
    assert isinstance(failed, CompactionFailed)
    assert "changed meanwhile" in failed.reason
    assert not [x for x in await r.records() if isinstance(x.entry, CompactionCommitted)]
    await r.ask("and here")
    assert said(r)[-2:] == ["said elsewhere", "and here"]
    r.check_log()


async def test_a_summary_never_reaches_the_conversation_opened_meanwhile(rig: StartRig) -> None:
    """Case 119: leaving a conversation during its compaction leaves both as they were."""
    hold = Hold()
    r = await rig(window=WIDE, chat=ScriptedChat(summaries=[held_summary(hold)]))
    await fill(r, 5)
    first = r.engine.session.id
    before = await r.records()
    r.engine.compact()
    await hold.reached.wait()
    await r.engine.open_conversation(None)
    hold.go.set()
    await r.ask("something else")
    assert all(SUMMARY_MARK not in t for t in texts(r.chat.turns[-1]))
    await r.engine.open_conversation(first)
    assert await r.records() == before
    r.check_log()


async def test_escape_ends_a_compaction_at_once_and_leaves_the_log_as_it_was(rig: StartRig) -> None:
    """Cases 46, 111, 121: it does not wait behind anything; the model is told to stop; the next one works."""
    hold = Hold()
    r = await rig(window=WIDE, chat=ScriptedChat(summaries=[held_summary(hold), say(SUMMARY)]))
    await fill(r, 4)
    r.engine.compact()
    await hold.reached.wait()
    before, closed = await r.records(), r.chat.closed
    r.engine.interrupt()
    await r.idle()
    assert not hold.go.is_set()
    assert r.chat.closed == closed + 1
    assert await r.records() == before
    assert any("cancelled; nothing was changed" in n.text for n in r.of(Notice))
    await compacted(r)
    assert (await r.ask("go on")).end == "done"
    r.check_log()


# -- resuming ----------------------------------------------------------------------------------------------------------


async def test_one_id_for_life_and_the_summary_is_in_the_next_request(rig: StartRig) -> None:
    """Case 122: through compactions, an undo and restarts the printed id opens it, whole or by its beginning."""
    r = await rig(window=WIDE, ids=RandomIds())
    await fill(r, 4)
    printed = r.engine.session.id
    await compacted(r, offline=True)
    assert r.engine.session.id == printed
    await fill(r, 3)
    await compacted(r, offline=True)
    await r.engine.close()
    for wanted in (printed, printed[:8], LATEST):
        again = await rig(window=WIDE, wanted=wanted, ids=RandomIds())
        assert again.engine.session.id == printed
        await again.ask("go on")
        sent = texts(again.chat.turns[-1])
        assert sum(t.startswith(SUMMARY_MARK) for t in sent) == 1
        assert sent[1].startswith(SUMMARY_MARK)
        assert len(sent) < 15, "what was summarised is not sent again"
        again.check_log()
        await again.engine.close()
    rows = await (await rig(ids=RandomIds())).engine.conversations()
    assert [row.id for row in rows if row.messages] == [printed], "it is never split over several"


# -- two processes -----------------------------------------------------------------------------------------------------


async def test_two_processes_on_one_conversation_see_each_other(rig: StartRig) -> None:
    """Neighbour of case 122: what one said stands in the other's next request, in the order of the log."""
    a = await rig(window=WIDE, ids=RandomIds())
    await a.ask("first, in a")
    b = await rig(window=WIDE, wanted=a.engine.session.id, ids=RandomIds())
    await b.ask("second, in b")
    await a.ask("third, in a")
    assert [t for t in texts(a.chat.turns[-1]) if t.endswith((" a", " b"))] == [
        "first, in a",
        "second, in b",
        "third, in a",
    ]
    assert any("taken over" in n.text for n in a.of(Notice))
    await compacted(b, offline=True) if len(b.history()) > 8 else None
    await b.ask("fourth, in b")
    assert b.engine.session.conversation.turn == 4
    c = await rig(window=WIDE, wanted=a.engine.session.id, ids=RandomIds())
    assert c.history() == b.history()
    c.check_log()


async def test_interleaved_writers_leave_a_valid_log(rig: StartRig) -> None:
    """Where no lock can be had (`store.open_elsewhere`) nothing is lost all the same, and every view is valid."""
    hold = Hold()
    chat = ScriptedChat([call(("Slow", "{}"), ids=["s"]), say("done")])
    a = await rig(window=WIDE, ids=RandomIds(), chat=chat, tools=ScriptedTools({"Slow": hold}))
    a.engine.submit("run it")
    await hold.reached.wait()
    b = await rig(window=WIDE, wanted=a.engine.session.id, ids=RandomIds())
    await b.ask("in between")
    hold.go.set()
    await a.until(lambda e: isinstance(e, TurnFinished))
    await a.idle()
    a.check_log()
    c = await rig(window=WIDE, wanted=a.engine.session.id, ids=RandomIds())
    assert c.history() == a.history()
    logged = [x.entry.message.text for x in await c.records() if isinstance(x.entry, MessageAdded)]
    assert logged == ["run it", "", "in between", "ok", "released", "done"]


# -- death at any moment -----------------------------------------------------------------------------------------------


async def a_turn_with_tools(r: Rig) -> None:
    await r.ask("look at it")
    await r.ask("and on")


async def a_compaction(r: Rig) -> None:
    await compacted(r)
    await r.ask("after it")


async def an_undo(r: Rig) -> None:
    await r.ask("Never push to main.")  # something for memory to keep
    await r.ask("and on " + "x" * 1_200)
    await compacted(r, offline=True)
    await undone(r)


@dataclass(frozen=True)
class Life:
    """What a process does until it dies, and what stood in the log before."""

    scenario: Callable[[Rig], Awaitable[None]]
    before: int

    def rig(self, folder: Path) -> Rig:
        long = "line of output\n" * 600
        replies = (
            [call(("Look", '{"n": 1}'), ("Look", '{"n": 2}'), ids=["a", "b"]), say("seen")] if not self.before else []
        )
        return Rig(
            folder,
            window=Window(16_000, "discovery"),
            chat=ScriptedChat(replies, summaries=[say(SUMMARY)] * 3),
            tools=ScriptedTools({"Look": [long, long + "more"]}),
        )


LIVES = {"turn": Life(a_turn_with_tools, 0), "compaction": Life(a_compaction, 5), "undo": Life(an_undo, 5)}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
async def test_killed_at_any_write_the_conversation_goes_on_from_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, life: Life, after: bool
) -> None:
    """Cases 45, 46, I5: between every two writes of log, store, memory and journal, and inside those of several files.

    The log holds what it had taken, whole entries only; the view is its fold; every marker in it can be read; memory
    and journal are readable; the next turn works.
    """
    number = 0
    while True:
        number += 1
        folder = tmp_path / f"{number}"
        folder.mkdir()
        r = await life.rig(folder).start()
        await fill(r, life.before, 1_200)
        fuse = Fuse(number, after=after)
        fuse.durable = [x.entry for x in await r.records()] if life.before else []
        with monkeypatch.context() as patch:
            fuse.into(r, patch)
            await run_until_death(r, fuse, life.scenario)
        if not fuse.where:
            break
        again = await later(r, chat=ScriptedChat()).start()
        logged = [x.entry for x in await again.records()]
        assert logged == [redacted_entry(e) for e in fuse.durable if type(e).__name__ != "WholeOutput"], fuse.where
        if fuse.durable:
            assert again.engine.session.id == r.engine.session.id
        assert again.history() == fold(logged).history(), fuse.where
        open_turn = again.engine.session.conversation.open_turn
        assert violations(again.history(), with_system=False, closed=not open_turn) == (), fuse.where
        for omission_id in filter(None, (parse_marker(m.text) for m in again.history())):
            assert await again.engine.read_omission(omission_id), (fuse.where, omission_id)
        parse_memory(await again.memory.read())
        assert all("v" in line for line in await again.usage_lines())
        assert (await again.ask("go on")).end == "done", fuse.where
        again.check_log()
        await again.engine.close()
    assert number >= 6, "the fuse was in the circuit"
