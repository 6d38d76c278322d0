"""Prewarms: when one is sent, what ends it, and that nobody notices it but the server (L30–L50)."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.entry_codec import encode
from marextui.context.memory import MemoryEntry
from marextui.context.messages import canonical_json
from marextui.context.refills import RefillWatch
from marextui.engine import prewarm as prewarming
from marextui.engine.events import (
    CompactionFinished,
    CompactionReverted,
    Notice,
    PhaseChanged,
    PrewarmChanged,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.engine.state import EngineState
from marextui.models.slots import SlotFacts
from marextui.models.types import Accepted, ChatRequest, Finished, ModelError, TextChunk, Usage
from tests.stubs.engine_rig import ManualClock, Rig, texts
from tests.stubs.one_slot import OneSlotChat
from tests.stubs.project_rig import page, taken
from tests.stubs.scripted_model import CHOICE, Hold, Piece, ScriptedConnection, ScriptedTools, call, say

ONE = SlotFacts(total=1, busy=False)
SUMMARY = """## Session Intent
- make the parser faster
## Files Modified
- src/parser.py: loop unrolled
## Decisions Made
- keep the old API
## Current State
- tests pass
## Next Steps
- measure"""
ABOUT = "In src/parser.py, make the parser faster and keep the old API. "
DOT: list[Piece] = [Accepted(), TextChunk("!"), Finished("length", None)]


class HeldClock(ManualClock):
    """As `ManualClock`, but a sleep of `held` seconds ends only when `go` is set."""

    def __init__(self, held: float) -> None:
        super().__init__()
        self.held = held
        self.go = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds != self.held:
            await super().sleep(seconds)
            return
        self.slept.append(seconds)
        await self.go.wait()


@dataclass
class WarmChat(OneSlotChat):
    """`OneSlotChat` that answers prewarms from `warm` and never finds two requests at work at once."""

    warm: list[list[Piece]] = field(default_factory=list)
    at_work: int = 0
    most: int = 0

    async def stream(self, request: ChatRequest) -> Any:
        if request.kind == "prewarm":
            self.summaries.insert(0, self.warm.pop(0) if self.warm else list(DOT))
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            async for chunk in super().stream(request):
                yield chunk
        finally:
            self.at_work -= 1

    @property
    def prewarms(self) -> list[ChatRequest]:
        return [r for r in self.requests if r.kind == "prewarm"]

    @property
    def kinds(self) -> list[str]:
        return [r.kind for r in self.requests]


@dataclass
class Warm:
    """A rig with the key, on a server with one slot."""

    rig: Rig

    @property
    def chat(self) -> WarmChat:
        assert isinstance(self.rig.chat, WarmChat)
        return self.rig.chat

    @property
    def states(self) -> list[str]:
        return [e.state for e in self.rig.of(PrewarmChanged)]

    async def until(self, state: str, mark: int = 0) -> PrewarmChanged:
        found = await self.rig.until(lambda e: isinstance(e, PrewarmChanged) and e.state == state, after=mark)
        assert isinstance(found, PrewarmChanged)
        return found

    async def settled(self, mark: int = 0) -> PrewarmChanged:
        """What became of the prewarm since event `mark`."""
        ends = ("ready", "refused")
        found = await self.rig.until(lambda e: isinstance(e, PrewarmChanged) and e.state in ends, after=mark)
        assert isinstance(found, PrewarmChanged)
        return found

    async def ask(self, text: str) -> PrewarmChanged:
        """A turn, and what became of the prewarm after it."""
        mark = len(self.rig.events)
        await self.rig.ask(text)
        return await self.settled(mark)

    async def why(self) -> str:
        line = next(x for x in (await self.rig.engine.status()).economy if x.key == "prewarm")
        return f"{line.state}: {line.why}"


class Warms:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Rig] = []

    async def __call__(self, *replies: list[Piece], mode: str = "on", facts: SlotFacts = ONE, **kw: Any) -> Warm:
        kw.setdefault("window", Window(32_768, "discovery"))
        kw.setdefault("chat", WarmChat())
        kw["chat"].replies.extend(replies)
        policy = replace(kw.pop("policy", Policy()), prewarm=mode)
        local = kw.pop("local", True)
        folder = self.folder / kw.pop("folder", f"rig-{len(self.made)}")
        folder.mkdir(exist_ok=True)
        rig = Rig(folder, policy=policy, **kw)
        rig.hub.connection.facts = facts
        if not local:
            rig.hub.connection.choice = replace(CHOICE, local=False)
        self.made.append(await rig.start())
        return Warm(rig)


@pytest.fixture
async def warms(tmp_path: Path) -> AsyncIterator[Warms]:
    made = Warms(tmp_path)
    yield made
    for rig in made.made:
        await rig.engine.close()


async def quiet(rig: Rig) -> None:
    """Let everything happen that would happen by itself."""
    for _ in range(200):
        await asyncio.sleep(0)


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_it_is_the_next_turn_with_a_sentinel(warms: Warms) -> None:
    """L32, L33: one more user message `.`, one token, no stream; all else is as the next turn then has it."""
    warm = await warms(say("Because."), policy=Policy(temperature=0.3))
    assert (await warm.ask("Why?")).state == "ready"
    await warm.rig.ask("And then?")
    sent, turn = warm.chat.requests[1:3]
    assert (sent.kind, turn.kind) == ("prewarm", "main")
    assert dict(sent.messages[-1]) == {"role": "user", "content": "."}
    assert canonical_json(list(sent.messages[:-1])) == canonical_json(list(turn.messages[:-1]))
    assert (sent.max_tokens, sent.stream) == (1, False)
    alike = replace(
        sent,
        messages=turn.messages,
        max_tokens=turn.max_tokens,
        stream=True,
        kind="main",
        message_ids=turn.message_ids,
    )
    assert alike == turn


async def test_the_next_turn_computes_only_its_message(warms: Warms) -> None:
    """L33: what the prewarm computed is in the slot."""
    warm = await warms(say("Because."))
    ready = await warm.ask("Why?")
    assert ready.computed is not None
    assert ready.computed > 0
    await warm.rig.ask("And then?")
    line = [x for x in await warm.rig.usage_lines() if x["kind"] == "main"][-1]
    assert line["inp"] - line["cache_read"] == 4 + len("And then?") // 4 + 1


async def test_a_page_written_meanwhile_changes_what_is_computed(warms: Warms) -> None:
    """L33: with the project block made anew each turn, the prompt begins otherwise: it is computed again."""
    warm = await warms(say("One."), say("Two."))
    await warm.ask("Why?")
    mark = len(warm.rig.events)
    assert await warm.rig.engine.save_page("ports", "# Ports\n8080 is taken") == ""
    assert (await warm.settled(mark)).state == "ready"
    first, second = warm.chat.prewarms
    assert "Ports" in str(second.messages)
    assert first.messages != second.messages
    await warm.rig.ask("And then?")
    assert warm.chat.turns[1].messages[:-1] == second.messages[:-1]


@pytest.mark.parametrize("pages", [1, 60])
async def test_what_the_project_copy_will_do_is_foreseen(warms: Warms, pages: int) -> None:
    """L32, L34: an update stands at the head of the next message and is not sent ahead, since it is dated; where it
    would be too long, the new copy that is taken instead is."""
    hold = Hold()
    warm = await warms([Accepted(), hold, *say("One.")[1:]], say("Two."), policy=Policy(proj_snapshot=True))
    warm.rig.engine.submit("Write pages.")
    await hold.reached.wait()
    for n in range(pages):
        await page(warm.rig, f"page-number-{n}")
    hold.go.set()
    assert (await warm.settled()).state == "ready"
    [ahead] = warm.chat.prewarms
    assert dict(ahead.messages[-1]) == {"role": "user", "content": "."}
    await warm.rig.ask("And then?")
    turn = warm.chat.turns[1]
    assert turn.messages[:-1] == ahead.messages[:-1]
    assert ("<context_update" in turn.messages[-1]["content"]) is (pages == 1)
    assert ("page-number-0" in str(turn.messages[:-1])) is (pages > 1)


async def test_what_the_next_turn_puts_aside_is_put_aside_in_it(warms: Warms) -> None:
    """L34: the omission at the start of the next turn is foreseen, and nothing of it is written."""
    chat = WarmChat(replies=[call(("Look", "{}")), say("Seen."), say("Yes."), say("No.")])
    warm = await warms(chat=chat, tools=ScriptedTools({"Look": "word " * 500}))
    await warm.ask("Look.")
    assert (await warm.ask("Well?")).state == "ready"
    before = [encode(r.entry) for r in await warm.rig.records()]
    ahead = chat.prewarms[-1]
    assert "[omitted" in str(ahead.messages)
    assert "[omitted" not in str(warm.rig.history())
    await quiet(warm.rig)
    assert [encode(r.entry) for r in await warm.rig.records()] == before
    await warm.rig.ask("And?")
    assert chat.requests[-2].messages[:-1] == ahead.messages[:-1]


async def test_notes_that_came_meanwhile_are_in_it(warms: Warms) -> None:
    """L33, L34: what a turn starts with is what is on disk then, whoever wrote it."""
    warm = await warms(say("One."), say("Two."))
    await warm.ask("Why?")
    await warm.rig.memory.feed(MemoryEntry("2023-11-14T22:13:20Z", "c-9", 1, ("port 8080 is taken",)))
    mark = len(warm.rig.events)
    warm.rig.engine.begin_phase("two")
    await warm.until("warming", mark)
    await warm.settled(mark)
    ahead = warm.chat.prewarms[-1]
    assert "port 8080 is taken" in ahead.messages[0]["content"]
    await warm.rig.ask("And then?")
    assert warm.chat.turns[1].messages[:-1] == ahead.messages[:-1]


async def test_a_server_swapped_under_its_address_is_noticed_before_anything_is_computed_ahead(warms: Warms) -> None:
    """L18: what is sent ahead is made for the window that holds now; the notice comes once."""
    warm = await warms(say("Because."), say("So."), say("Well."), facts=replace(ONE, window=32_768, model="a"))
    await warm.ask("Why?")
    await quiet(warm.rig)
    warm.rig.hub.connection.facts = replace(ONE, window=4_096, model="b")
    for question in ("And then?", "And?"):
        await warm.ask(question)
        await quiet(warm.rig)
    told = [e.text for e in warm.rig.of(Notice) if "window" in e.text]
    assert told == ["The server holds another model now: b. Its window is 4096 tokens now; it was 32768 tokens."]
    assert warm.rig.engine.state.meter.window == Window(4_096, "discovery")
    assert [r.max_tokens for r in warm.chat.turns][-1] == 1_024


async def test_what_no_longer_fits_a_swapped_server_is_not_computed_ahead(warms: Warms) -> None:
    warm = await warms(say("Because."), say("So."), facts=replace(ONE, window=32_768))
    await warm.ask("Why? " + "x" * 16_000)
    await quiet(warm.rig)
    sent = len(warm.chat.prewarms)
    warm.rig.hub.connection.facts = replace(ONE, window=4_096)
    await warm.ask("And then?")
    await quiet(warm.rig)
    assert (sent, len(warm.chat.prewarms)) == (1, 1)
    assert warm.rig.of(PrewarmChanged)[-1].state == "refused"


async def test_another_model_of_the_same_window_is_noticed_by_its_name(warms: Warms) -> None:
    warm = await warms(say("Because."), say("So."), facts=replace(ONE, window=32_768, model="a"))
    await warm.ask("Why?")
    await quiet(warm.rig)
    warm.rig.hub.connection.facts = replace(ONE, window=32_768, model="b")
    await warm.ask("And then?")
    await quiet(warm.rig)
    assert [e.text for e in warm.rig.of(Notice)] == ["The server holds another model now: b."]


@pytest.mark.parametrize("snapshot", [False, True])
async def test_it_changes_nothing_of_the_conversation(warms: Warms, snapshot: bool) -> None:
    """L34, L43, L45: log, view, figures, usage and attempts are as before, whatever the server says of it."""
    warm = await warms(say("Because."), policy=Policy(proj_snapshot=snapshot))
    warm.chat.warm.append([Accepted(), TextChunk("x"), Finished("length", Usage(inp=120, out=1, cache_read=100))])
    rig = warm.rig
    hold = Hold()
    rig.hub.connection.facts = SlotFacts(total=2)
    await warm.ask("Why?")
    state = rig.engine.state
    seen = [encode(r.entry) for r in await rig.records()], rig.history(), state.reading(), state.usage.lines()
    memory = state.compactor.attempts, state.meter.ledger.factor, state.learned
    rig.hub.connection.facts = ONE
    warm.chat.warm[0].insert(0, hold)
    rig.engine.begin_phase("next")
    await rig.until(lambda e: isinstance(e, Notice) and e.text.startswith("Phase"))
    await hold.reached.wait()
    at = len(await rig.records())
    hold.go.set()
    ready = await warm.until("ready")
    assert (ready.computed, ready.cached) == (20, 100)
    records = [encode(r.entry) for r in await rig.records()]
    assert len(records) == at
    assert records[: len(seen[0])] == seen[0]
    assert (rig.history(), state.reading(), state.usage.lines()) == seen[1:]
    assert (state.compactor.attempts, state.meter.ledger.factor, state.learned) == memory
    refills = RefillWatch()
    for record in await rig.records():
        refills.take(record.entry)
    assert rig.engine.session.refills == refills
    assert state.project.carrier in ("", "m-1")
    assert all(m.text != "." for m in rig.engine.session.conversation.messages)


async def test_it_is_booked_as_what_it_is(warms: Warms) -> None:
    """L45, L50: one line of kind "prewarm", and no turn's figures hold any of it."""
    warm = await warms(say("Because."))
    warm.chat.warm.append([Accepted(), Finished("length", Usage(inp=120, out=1, cache_read=100))])
    await warm.ask("Why?")
    await quiet(warm.rig)
    while not (lines := [x for x in await warm.rig.usage_lines() if x["kind"] == "prewarm"]):  # noqa: ASYNC110 -- written by a thread, told to nobody
        await asyncio.sleep(0)
    [line] = lines
    assert (line["inp"], line["out"], line["cache_read"], line["computed"]) == (120, 1, 100, 20)
    assert (line["conv"], line["turn"]) == (warm.rig.engine.session.id, 1)
    [turn] = warm.rig.engine.state.usage.lines()
    assert turn.inp is not None
    assert turn.inp != 120


# -- when --------------------------------------------------------------------------------------------------------------


async def test_without_the_key_nothing_is_asked(warms: Warms) -> None:
    """L30, L31: not one more request, not one look at the server, not one event."""
    warm = await warms(mode="off")
    await warm.rig.ask("One?")
    await warm.rig.ask("Two?")
    await quiet(warm.rig)
    assert warm.chat.kinds == ["main", "main"]
    assert warm.rig.hub.connection.looked == 0
    assert warm.states == []
    assert await warm.why() == "off: Not switched on: a prompt is computed when you send your message."


async def test_never_with_an_external_model(warms: Warms) -> None:
    """L30, B25."""
    warm = await warms(local=False)
    assert (await warm.ask("Why?")).why == "scripted is not a local engine"
    assert warm.chat.kinds == ["main"]
    assert warm.rig.hub.connection.looked == 0
    assert await warm.why() == "off: scripted is not a local engine: nothing is computed ahead."


@pytest.mark.parametrize(
    ("facts", "sent"),
    [(SlotFacts(total=2), 0), (ONE, 1), (SlotFacts(), 0), (SlotFacts(total=1, sleeping=True), 0)],
)
async def test_only_on_one_slot(warms: Warms, facts: SlotFacts, sent: int) -> None:
    """L38: total_slots 2 → none; 1 → one; /props unreachable → none."""
    warm = await warms(facts=facts)
    await warm.ask("Why?")
    assert len(warm.chat.prewarms) == sent


async def test_another_program_at_work_is_not_disturbed(warms: Warms) -> None:
    """L39: asked once more after 2 seconds, since a server notices a closed request late; then left alone."""
    warm = await warms(facts=SlotFacts(total=1, busy=True))
    assert (await warm.ask("Why?")).why == "another program is using the server"
    assert warm.rig.hub.connection.looked == 2
    assert warm.rig.clock.slept == [2.0]
    assert warm.chat.prewarms == []
    assert "another program" in await warm.why()


async def test_a_queued_message_goes_first(warms: Warms) -> None:
    """L39, L46: with messages waiting there is none, until the last turn has ended."""
    hold = Hold()
    warm = await warms([Accepted(), hold, *say("One.")], say("Two."))
    warm.rig.engine.submit("First?")
    await hold.reached.wait()
    warm.rig.engine.submit("Second?")
    hold.go.set()
    await warm.settled()
    assert warm.chat.kinds == ["main", "main", "prewarm"]


async def test_a_message_sent_in_the_same_moment_goes_first(warms: Warms) -> None:
    """L36, L39: sent when all was decided and nothing had left: the turn leaves, and waits for nothing."""
    warm = await warms(say("One."), say("Two."))
    connection = warm.rig.hub.connection
    usual = connection.read_slots

    async def meanwhile() -> SlotFacts:
        connection.read_slots = usual  # type: ignore[method-assign]
        asyncio.get_running_loop().call_soon(warm.rig.engine.submit, "Second?")
        return ONE

    connection.read_slots = meanwhile  # type: ignore[method-assign]
    await warm.rig.ask("First?")
    async with asyncio.timeout(5):
        await warm.settled()
    assert warm.chat.kinds == ["main", "main", "prewarm"]


async def test_messages_that_wait_after_an_interrupt_are_waiting(warms: Warms) -> None:
    """L46: a paused queue is not empty."""
    hold = Hold()
    warm = await warms([Accepted(), hold, *say("One.")])
    warm.rig.engine.submit("First?")
    await hold.reached.wait()
    warm.rig.engine.submit("Second?")
    warm.rig.engine.interrupt()
    await warm.rig.idle()
    await quiet(warm.rig)
    assert warm.chat.prewarms == []


async def test_a_failed_turn_may_be_tried_again(warms: Warms) -> None:
    """L46: what comes next is not known."""
    warm = await warms(say("One."), [ModelError("server", "broken", status=500)])
    await warm.ask("One?")
    assert (await warm.ask("Two?")).why == "the last turn failed and may be tried again"
    assert len(warm.chat.prewarms) == 1


async def test_an_interrupted_turn_is_gone_on_from(warms: Warms) -> None:
    """Esc: what is in the view then is what the next turn sends."""
    hold = Hold()
    warm = await warms([Accepted(), TextChunk("Half an"), hold], say("Whole."))
    mark = len(warm.rig.events)
    warm.rig.engine.submit("Why?")
    await hold.reached.wait()
    warm.rig.engine.interrupt()
    assert (await warm.settled(mark)).state == "ready"
    ahead = warm.chat.prewarms[0]
    await warm.rig.ask("Again?")
    assert warm.chat.requests[2].messages[:-1] == ahead.messages[:-1]


@pytest.mark.parametrize(("second", "sent"), [(0, 1), (1, 0)])
async def test_not_in_the_last_ten_minutes_of_a_day(warms: Warms, second: int, sent: int) -> None:
    """L42: 23:50:00 is allowed, 23:50:01 refused."""
    local = datetime.datetime(2026, 10, 2, 23, 50, second)
    warm = await warms(clock=ManualClock(local.timestamp()))
    await warm.ask("Why?")
    assert len(warm.chat.prewarms) == sent


async def test_the_day_may_end_where_the_project_copy_holds_the_date(warms: Warms) -> None:
    """B21: a new day is told at the head of the next message; what was computed stays right."""
    clock = ManualClock(datetime.datetime(2026, 10, 2, 23, 59, 50).timestamp())
    warm = await warms(clock=clock, policy=Policy(proj_snapshot=True))
    assert (await warm.ask("Why?")).state == "ready"
    ahead = warm.chat.prewarms[0]
    clock.time += 60
    await warm.rig.ask("What day is it?")
    turn = warm.chat.requests[2]
    assert turn.messages[:-1] == ahead.messages[:-1]
    assert "2026-10-03" in turn.messages[-1]["content"]


async def until_over_the_threshold(warm: Warm) -> None:
    """The answer of the third turn makes it so; that turn itself can stay."""
    warm.chat.replies += [say("Because. " * 300), say("Because. " * 300), say("Because. " * 300)]
    for n in range(3):
        await warm.ask(ABOUT + f"Question {n}.")


async def test_not_when_the_next_turn_compacts(warms: Warms) -> None:
    """L41: the turn's own predicate, with the sentinel added; nothing is asked of the server then."""
    warm = await warms(window=Window(4096, "discovery"))
    warm.chat.summaries.append([ModelError("network", "gone")])  # nor could it be made ahead
    await until_over_the_threshold(warm)
    looked, sent = warm.rig.hub.connection.looked, len(warm.chat.prewarms)
    assert warm.rig.engine.state.reading().over_threshold
    assert (await warm.settled(len(warm.rig.events) - 1)).why == "the next turn will compact the conversation first"
    assert (warm.rig.hub.connection.looked, len(warm.chat.prewarms)) == (looked, sent)
    warm.chat.summaries.append(say(SUMMARY))
    await warm.rig.ask("And?")
    assert warm.rig.of(CompactionFinished)


async def test_the_compaction_of_the_next_turn_is_made_ahead_and_the_prompt_after_it(warms: Warms) -> None:
    """L46: at the end of a turn, with the key. The next turn has nothing to do but its own message."""
    warm = await warms(window=Window(4096, "discovery"))
    warm.chat.summaries.append(say(SUMMARY))
    await until_over_the_threshold(warm)
    kinds = [type(e) for e in warm.rig.events if isinstance(e, TurnFinished | CompactionFinished)]
    assert kinds == [TurnFinished, TurnFinished, TurnFinished, CompactionFinished]
    assert not warm.rig.engine.state.reading().over_threshold
    ahead = warm.chat.prewarms[-1]
    assert any("Session Intent" in str(m["content"]) for m in ahead.messages), "what it computes is the view after it"
    await warm.rig.ask("And?")
    turn = next(r for r in reversed(warm.chat.requests) if r.kind == "main")
    assert turn.messages[:-1] == ahead.messages[:-1]
    assert len(warm.rig.of(CompactionFinished)) == 1
    lines = await warm.rig.journal.read()
    assert [x["kind"] for x in lines if x["kind"] == "compact"] == ["compact"], "its tokens are counted once"


async def test_without_the_key_a_compaction_waits_for_the_next_turn(warms: Warms) -> None:
    warm = await warms(window=Window(4096, "discovery"), mode="off")
    warm.chat.replies += [say("Because. " * 300), say("Because. " * 300), say("Because. " * 300)]
    for n in range(3):
        await warm.rig.ask(ABOUT + f"Question {n}.")
    await quiet(warm.rig)
    assert warm.rig.engine.state.reading().over_threshold
    assert not warm.rig.of(CompactionFinished)


async def test_a_compaction_ahead_is_left_off_when_a_person_says_so(warms: Warms) -> None:
    """Esc: nothing is changed. A message typed meanwhile is not lost."""
    held = Hold()
    warm = await warms(window=Window(4096, "discovery"))
    warm.chat.summaries.append([held, *say(SUMMARY)])
    warm.chat.replies += [say("Because. " * 300), say("Because. " * 300), say("Because. " * 300)]
    for n in range(2):
        await warm.ask(ABOUT + f"Question {n}.")
    warm.rig.engine.submit(ABOUT + "Question 2.")
    await held.reached.wait()
    before = warm.rig.engine.session.version
    warm.rig.engine.submit("And?")
    warm.rig.engine.interrupt()
    await warm.rig.idle()
    assert warm.rig.engine.session.version == before
    assert not warm.rig.of(CompactionFinished)
    assert "Compaction cancelled" in " ".join(n.text for n in warm.rig.of(Notice))
    warm.chat.summaries.append(say(SUMMARY))
    warm.rig.engine.retry()
    await warm.rig.until(lambda e: isinstance(e, TurnFinished) and e.turn == 4)


async def test_after_a_restart_a_turn_must_have_run(warms: Warms) -> None:
    """L48: what the next turn may do is known from the last one of this run only."""
    warm = await warms(say("Because."), folder="same", mode="full")
    await warm.ask("Why?")
    conversation = warm.rig.engine.session.id
    await warm.rig.engine.close()
    again = await warms(say("So."), folder="same", mode="full", wanted=conversation, ids=warm.rig.ids)
    again.rig.engine.begin_phase("two")
    assert (await again.settled()).why.startswith("no turn of this conversation has ended")
    assert again.chat.prewarms == []
    assert (await again.ask("And then?")).state == "ready"


async def test_only_so_many_conversations_are_remembered(warms: Warms, monkeypatch: pytest.MonkeyPatch) -> None:
    """L48: bounded, the oldest goes first."""
    monkeypatch.setattr(prewarming, "MOST_KNOWN", 2)
    warm = await warms(mode="full")
    ids = []
    for n in range(3):
        await warm.rig.engine.open_conversation(None)
        await warm.ask(f"Question {n}?")
        ids.append(warm.rig.engine.session.id)
    mark = len(warm.rig.events)
    await warm.rig.engine.open_conversation(ids[0])
    assert (await warm.settled(mark)).why.startswith("no turn of this conversation has ended")
    mark = len(warm.rig.events)
    await warm.rig.engine.open_conversation(ids[1])
    assert (await warm.settled(mark)).state == "ready"


# -- making way --------------------------------------------------------------------------------------------------------


async def test_a_summary_request_ends_it_before_its_first_byte(warms: Warms) -> None:
    """L36, L37: kind compact → cancelled; never two at work."""
    hold = Hold()
    warm = await warms(say("One " * 50), say("Two " * 50))
    await warm.ask(ABOUT * 20)
    warm.chat.warm.append([hold])
    mark = len(warm.rig.events)
    await warm.rig.ask("Two?")
    await hold.reached.wait()
    warm.chat.summaries.append(say(SUMMARY))
    closed = warm.chat.closed
    warm.rig.engine.compact()
    await warm.rig.until(lambda e: isinstance(e, CompactionFinished))
    assert warm.chat.kinds[-2:] == ["prewarm", "compact"] or warm.chat.kinds[-3:] == ["prewarm", "compact", "prewarm"]
    assert warm.chat.closed > closed
    assert warm.chat.most == 1
    assert (await warm.settled(mark)).state == "ready"


async def held(warm: Warm, hold: Hold) -> None:
    """A turn, and a prewarm after it that is at work until `hold` is released."""
    warm.chat.warm.append([Accepted(), hold, Finished("length", None)])
    await warm.rig.ask("Why?")
    await hold.reached.wait()


async def departing(warm: Warm, mark: int) -> None:
    """The turn has come to where its request leaves."""
    await warm.rig.until(lambda e: isinstance(e, PhaseChanged) and e.phase == "connecting", after=mark)
    await quiet(warm.rig)


async def test_a_turn_that_goes_on_from_it_lets_it_finish(warms: Warms) -> None:
    """L37: an extending turn → kept, and sent right after it."""
    hold = Hold()
    warm = await warms(say("Because."), say("So."))
    await held(warm, hold)
    mark = len(warm.rig.events)
    warm.rig.engine.submit("And then?")
    await departing(warm, mark)
    assert warm.chat.kinds == ["main", "prewarm"]
    assert (warm.chat.at_work, warm.chat.closed) == (1, 1)
    assert warm.rig.of(PhaseChanged)[-1] == PhaseChanged("connecting", "its prompt is being computed already")
    hold.go.set()
    await warm.until("idle", mark)
    assert [e.state for e in warm.rig.events[mark:] if isinstance(e, PrewarmChanged)] == ["ready", "idle"]
    await warm.settled(len(warm.rig.events))
    assert warm.chat.kinds == ["main", "prewarm", "main", "prewarm"]
    assert warm.chat.most == 1
    assert warm.chat.turns[1].messages[:-1] == warm.chat.prewarms[0].messages[:-1]


def following(sent: ChatRequest) -> ChatRequest:
    """The turn that a prewarm was made for."""
    asked = {"role": "user", "content": "And then?"}
    return replace(sent, messages=(*sent.messages[:-1], asked), max_tokens=99, stream=True, kind="main")


OTHERS = {
    "the turn": (lambda r: following(r), True),
    "the turn, other sampling": (lambda r: replace(following(r), temperature=0.9), True),
    "other tools": (lambda r: replace(following(r), tools=()), False),
    "another history": (lambda r: replace(following(r), messages=(r.messages[0], *following(r).messages[2:])), False),
    "the prefix only": (lambda r: replace(following(r), messages=r.messages[:-1]), False),
    **{
        kind: (lambda r, kind=kind: replace(following(r), kind=kind), False)
        for kind in ("subagent", "verify", "task", "compact", "prewarm", "probe", "doctor", "bench", "foreign")
    },
}


@pytest.mark.parametrize(("made", "kept"), OTHERS.values(), ids=OTHERS)
async def test_what_leaves_ends_it_or_follows_it(
    warms: Warms, made: Callable[[ChatRequest], ChatRequest], kept: bool
) -> None:
    """L36, L37: extending turn → kept; other tools, other history, prefix only, any other kind → cancelled before the
    first byte."""
    hold = Hold()
    warm = await warms(say("Because."))
    await held(warm, hold)
    request = made(warm.chat.prewarms[0])
    connection = warm.rig.engine.state.control.connection
    assert connection is not None

    async def send() -> None:
        async for _ in connection.chat.stream(request):
            pass

    sending = asyncio.create_task(send())
    await quiet(warm.rig)
    assert (request in warm.chat.requests) is not kept
    assert (warm.chat.at_work == 1) is kept
    hold.go.set()
    await sending
    assert warm.chat.requests[-1] == request
    assert warm.chat.most == 1


async def test_a_turn_that_waits_for_it_can_be_interrupted(warms: Warms) -> None:
    """Esc while the turn waits: it ends at once. What was not answered is joined by the next message, which then stands
    for no turn (L32): the one under way is ended, and no other is sent."""
    hold = Hold()
    warm = await warms(say("Because."), say("So."))
    await held(warm, hold)
    mark = len(warm.rig.events)
    warm.rig.engine.submit("And then?")
    await departing(warm, mark)
    warm.rig.engine.interrupt()
    assert (await warm.settled(mark)).why == "your last message was not answered, and the next one joins it"
    assert warm.chat.kinds == ["main", "prewarm"]
    await quiet(warm.rig)
    assert warm.chat.at_work == 0
    assert (await warm.rig.ask("Well?")).end == "done"


async def test_a_turn_waits_only_so_long(warms: Warms, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hangs on a prewarm does not hold up the turn for ever."""
    monkeypatch.setattr(prewarming, "FOLLOW_WAIT", 0.0)
    hold = Hold()
    warm = await warms(say("Because."), say("So."))
    warm.chat.warm.append([Accepted(), hold])
    await warm.rig.ask("Why?")
    await hold.reached.wait()
    await warm.rig.ask("And then?")
    assert warm.chat.kinds[:3] == ["main", "prewarm", "main"]
    assert warm.chat.most == 1


async def test_a_turn_after_other_rules_ends_it(warms: Warms) -> None:
    """L37, L49: the system message of the next turn differs, as that of a plan would: cancelled."""
    hold = Hold()
    warm = await warms(say("Because."), say("So."))
    warm.chat.warm.append([Accepted(), hold])
    await warm.rig.ask("Why?")
    await hold.reached.wait()
    (warm.rig.folder / "project" / "MAREX.md").write_text("Plan only.\n")
    await warm.rig.ask("And then?")
    assert warm.chat.kinds[:3] == ["main", "prewarm", "main"]
    assert "Plan only." in warm.chat.turns[1].messages[0]["content"]
    assert warm.chat.most == 1


async def test_a_new_one_replaces_the_one_under_way(warms: Warms) -> None:
    """L40, and an undo of a compaction: the first is cancelled, the second sent; never two at once."""
    warm = await warms(say("One " * 50), say("Two " * 50))
    await warm.ask(ABOUT * 20)
    await warm.ask("Two?")
    hold = Hold()
    warm.chat.warm.append([hold])
    warm.rig.engine.compact(offline=True)
    await hold.reached.wait()
    short = warm.chat.prewarms[-1]
    mark = len(warm.rig.events)
    warm.rig.engine.undo_compaction()
    assert (await warm.settled(mark)).state == "ready"
    assert warm.rig.of(CompactionReverted)
    whole = warm.chat.prewarms[-1]
    assert "[Earlier conversation summary" in str(short.messages) or len(short.messages) < len(whole.messages)
    assert warm.chat.most == 1
    await warm.rig.ask("Three?")
    assert warm.chat.turns[-1].messages[:-1] == whole.messages[:-1]


async def test_one_that_does_not_end_is_not_replaced(warms: Warms, monkeypatch: pytest.MonkeyPatch) -> None:
    """L40: 5 s are given to it; after that the new one stays away rather than being a second one."""
    monkeypatch.setattr(prewarming, "END_WAIT", 0.0)
    warm = await warms(say("One " * 50), say("Two " * 50))
    await warm.ask(ABOUT * 20)
    await warm.ask("Two?")
    deaf, told = asyncio.Event(), asyncio.Event()

    class Deaf(WarmChat):
        async def stream(self, request: ChatRequest) -> Any:
            warm.chat.requests.append(request)
            yield Accepted()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told.set()
                await deaf.wait()
                raise

    usual = warm.rig.hub.connection.chat._inner  # type: ignore[attr-defined]
    warm.rig.hub.connection.chat._inner = Deaf()  # type: ignore[attr-defined]
    warm.rig.engine.compact(offline=True)
    await warm.until("warming", len(warm.rig.events))
    await quiet(warm.rig)
    sent = len(warm.chat.prewarms)
    mark = len(warm.rig.events)
    warm.rig.engine.undo_compaction()
    assert (await warm.settled(mark)).why == "the one before it does not end"
    assert told.is_set()
    assert len(warm.chat.prewarms) == sent
    deaf.set()
    warm.rig.hub.connection.chat._inner = usual  # type: ignore[attr-defined]


async def test_the_same_one_is_not_sent_twice(warms: Warms) -> None:
    """L40: what is under way, or computed and still there, is left alone."""
    warm = await warms(say("Because."))
    await warm.ask("Why?")
    mark = len(warm.rig.events)
    warm.rig.engine.compact(offline=True)  # there is nothing to compact
    await warm.until("ready", mark)
    await quiet(warm.rig)
    assert len(warm.chat.prewarms) == 1


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        ModelError("bad_request", "no", status=400),
        ModelError("overflow", "too long", status=400, n_ctx=512, n_prompt=600),
        ModelError("server", "no", status=500),
        ModelError("loading", "Loading model", status=503, passing=True, retry_after=1.0),
        ModelError("network", "gone"),
    ],
)
async def test_errors_are_dropped(warms: Warms, problem: ModelError, caplog: pytest.LogCaptureFixture) -> None:
    """L43, L44: one log line for each status, no retry, no notice; the next turn is as without it."""
    warm = await warms(say("One."), say("Two."), say("Three."), say("Four."))
    warm.chat.warm = [[problem], [problem], [problem]]
    with caplog.at_level(logging.WARNING, "marextui"):
        for n in range(3):
            assert (await warm.ask(f"Question {n}?")).state == "refused"
            assert len(warm.chat.prewarms) == n + 1
    assert len([r for r in caplog.records if "prewarm" in r.getMessage()]) == 1
    assert warm.rig.of(Notice) == []
    assert warm.rig.engine.state.meter.window.tokens == 32_768
    assert (await warm.rig.ask("Last?")).end == "done"


async def test_one_without_an_end_is_given_up(warms: Warms, monkeypatch: pytest.MonkeyPatch) -> None:
    """L44: 15 minutes in all."""
    assert prewarming.LONGEST == 15 * 60
    monkeypatch.setattr(prewarming, "LONGEST", 0.0)
    hold = Hold()
    warm = await warms(say("One."), say("Two."))
    warm.chat.warm.append([Accepted(), hold])
    assert (await warm.ask("One?")).why == "the server did not take it (timeout)"
    assert warm.chat.at_work == 0
    assert (await warm.rig.ask("Two?")).end == "done"


# -- conversations, models, the end ------------------------------------------------------------------------------------


async def two_conversations(warm: Warm) -> list[str]:
    ids = []
    for name in ("a", "b", "c"):
        if ids:
            await warm.rig.engine.open_conversation(None)
        await warm.ask(f"About {name}?")
        ids.append(warm.rig.engine.session.id)
    return ids


async def test_with_full_only_the_conversation_that_stays_is_prewarmed(warms: Warms) -> None:
    """L47: A→B→C within 3 s → only C."""
    clock = HeldClock(3.0)
    warm = await warms(mode="full", clock=clock)
    a, b, c = await two_conversations(warm)
    sent = len(warm.chat.prewarms)
    for conversation in (a, b, a, c) if warm.rig.engine.session.id != a else (b, c):
        await warm.rig.engine.open_conversation(conversation)
    await quiet(warm.rig)
    assert len(warm.chat.prewarms) == sent
    mark = len(warm.rig.events)
    clock.go.set()
    assert (await warm.settled(mark)).state == "ready"
    await quiet(warm.rig)
    assert [r.conversation for r in warm.chat.prewarms[sent:]] == [c]
    ahead = warm.chat.prewarms[-1]
    await warm.rig.ask("And?")
    assert warm.chat.turns[-1].messages[:-1] == ahead.messages[:-1]


async def test_a_resumed_copy_is_taken_anew_in_it_and_in_the_turn(warms: Warms) -> None:
    """L34: what the project context of a resumed conversation will do is tried on a copy; the turn does it itself."""
    warm = await warms(mode="full", policy=Policy(proj_snapshot=True))
    await warm.ask("Why?")
    await page(warm.rig, "ports")
    await warm.ask("And then?")
    first = warm.rig.engine.session.id
    mark = len(warm.rig.events)
    await warm.rig.engine.open_conversation(None)
    await warm.settled(mark)
    mark = len(warm.rig.events)
    await warm.rig.engine.open_conversation(first)
    assert (await warm.settled(mark)).state == "ready"
    ahead = warm.chat.prewarms[-1]
    assert taken(warm.rig) == ["first request"]
    await warm.rig.ask("And now?")
    assert taken(warm.rig) == ["first request", "the application was started again"]
    assert warm.chat.turns[-1].messages[:-1] == ahead.messages[:-1]


async def test_with_on_a_change_of_conversation_prewarms_nothing(warms: Warms) -> None:
    """L47: on → none; the old one's prewarm is cancelled at once."""
    warm = await warms()
    a, _, _ = await two_conversations(warm)
    hold = Hold()
    warm.chat.warm.append([Accepted(), hold])
    await warm.rig.ask("More?")
    await hold.reached.wait()
    sent = len(warm.chat.prewarms)
    await warm.rig.engine.open_conversation(a)
    assert warm.chat.at_work == 0
    await quiet(warm.rig)
    assert len(warm.chat.prewarms) == sent
    assert warm.states[-1] == "idle"


async def test_a_conversation_left_in_the_middle_of_a_turn_is_not_prewarmed(
    warms: Warms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L47: leaving ends the turn, and what its end would bring about is for nobody; however long leaving takes."""
    hold = Hold()

    async def slowly(_: EngineState) -> None:
        for _ in range(20):
            await quiet(warm.rig)

    monkeypatch.setattr(EngineState, "leave_slot", slowly)
    warm = await warms([Accepted(), TextChunk("Half an"), hold], mode="full")
    warm.rig.engine.submit("Why?")
    await hold.reached.wait()
    await warm.rig.engine.open_conversation(None)
    await quiet(warm.rig)
    assert warm.chat.kinds == ["main"]
    assert warm.rig.hub.connection.looked == 0


async def test_a_new_conversation_has_nothing_to_compute(warms: Warms) -> None:
    """L32: no user message yet → none."""
    warm = await warms(mode="full")
    await warm.ask("Why?")
    mark = len(warm.rig.events)
    await warm.rig.engine.open_conversation(None)
    assert (await warm.settled(mark)).why == "nothing was said yet"


async def test_another_model_ends_it_and_must_have_run_a_turn(warms: Warms) -> None:
    """L48: switched while warming, the old server is left alone first; the new one gets none before its first turn."""
    hold = Hold()
    warm = await warms(say("Because."), mode="full")
    warm.chat.warm.append([Accepted(), hold])
    await warm.rig.ask("Why?")
    await hold.reached.wait()
    other = WarmChat(replies=[say("So.")])
    connection = ScriptedConnection(other, warm.rig.window, replace(CHOICE, name="other", label="other"), facts=ONE)
    warm.rig.hub.connection = connection
    [option] = (await warm.rig.engine.models(),)
    pick = next(o for o in option if o.label == "other")
    await warm.rig.engine.select_model(pick.id)
    assert warm.chat.at_work == 0
    await quiet(warm.rig)
    assert other.requests == []
    assert (await warm.ask("And then?")).state == "ready"
    assert other.kinds == ["main", "prewarm"]


async def test_the_end_of_the_engine_ends_it_at_once(warms: Warms) -> None:
    """/quit while warming: nothing is waited for, nothing starts anew."""
    hold = Hold()
    warm = await warms(say("Because."))
    warm.chat.warm.append([Accepted(), hold])
    await warm.rig.ask("Why?")
    await hold.reached.wait()
    async with asyncio.timeout(2):
        await warm.rig.engine.close()
    assert warm.chat.at_work == 0
    assert len(warm.chat.prewarms) == 1
    assert warm.rig.of(Notice) == []


# -- the advice --------------------------------------------------------------------------------------------------------


def counted(inp: int, cached: int | None) -> Usage:
    return Usage(inp=inp, out=1, cache_read=cached)


@pytest.mark.parametrize(("cached", "times"), [(3_000, 1), (None, 0), (12_000, 0)])
async def test_a_server_that_forgets_is_told_of_once(warms: Warms, cached: int | None, times: int) -> None:
    """L50: before 20 000, cached 3 000 after something else was sent → one advice per launch; unknown → none."""
    replies = [say("One " * 50, counted(19_000, 0)), say("Two " * 50, counted(20_000, 0))]
    warm = await warms(*replies, window=Window(65_536, "discovery"))
    await warm.ask(ABOUT * 20)
    await warm.ask("Two?")
    for _ in range(2):
        warm.chat.summaries.append([ModelError("server", "no", status=500)])
        warm.chat.warm.append([Accepted(), Finished("length", counted(20_050, cached))])
        mark = len(warm.rig.events)
        warm.rig.engine.compact()
        await warm.until("ready", mark)
    await quiet(warm.rig)
    advice = [e for e in warm.rig.of(Notice) if "gave up this conversation's prompt" in e.text]
    assert len(advice) == times
    assert texts(warm.chat.prewarms[-1])[-1] == "."


async def test_a_prompt_that_was_rewritten_was_not_forgotten(warms: Warms) -> None:
    """L50: after a compaction there is little left to find in the cache."""
    replies = [say("One " * 50, counted(19_000, 0)), say("Two " * 50, counted(20_000, 0))]
    warm = await warms(*replies, window=Window(65_536, "discovery"))
    await warm.ask(ABOUT * 20)
    await warm.ask("Two?")
    warm.chat.summaries.append(say(SUMMARY))
    warm.chat.warm.append([Accepted(), Finished("length", counted(2_000, 300))])
    mark = len(warm.rig.events)
    warm.rig.engine.compact()
    await warm.until("ready", mark)
    assert warm.rig.of(CompactionFinished)
    assert not [e for e in warm.rig.of(Notice) if "gave up" in e.text]
