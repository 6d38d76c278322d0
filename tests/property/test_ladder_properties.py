"""Whatever was said and whatever the window: a request fits or is refused by name, and nothing is lost (I2-I4, I15)."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.budget import Window, budget_for, reserve_for
from marextui.context.cut import forced_cut
from marextui.context.entries import Entry, MessageAdded, Record, TurnOpened
from marextui.context.fold import Conversation
from marextui.context.ladder import LEAST_BUDGET, Ladder
from marextui.context.memory_keeping import Fed
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall, canonical_json, to_wire
from marextui.context.omission import parse_marker
from marextui.context.tokens import TokenLedger
from marextui.context.validate import strict_violations
from marextui.engine.bus import Bus
from marextui.engine.compactor import Compactor, goal_of
from marextui.engine.events import CompactionFailed, CompactionFinished, CompactionStarted, Event, Notice, StepStarted
from marextui.engine.meter import Meter
from marextui.engine.omitter import Omitter
from marextui.engine.policy import Policy
from marextui.engine.prompt import SystemPart
from marextui.engine.reducer import Reducer
from marextui.engine.session import Session
from tests.stubs.engine_rig import ManualClock, Rig, four
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

WINDOWS = st.sampled_from([4_096, 5_000, 8_192, 16_384, 32_768, 131_072, 1_000_000, 2_000_000])
SIZES = st.sampled_from([1, 80, 350, 700, 2_500, 9_000, 30_000])


def words(size: int, n: int) -> str:
    """A text of `size` characters that no other message has."""
    return (f"text {n} " + f"line {n} of something said\n" * (size // 12 + 1))[:size] or "x"


@st.composite
def talks(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Turns with tool rounds, parallel calls, bulky inputs and outputs, images, repeated reads; the last one open."""
    entries: list[Entry] = []
    count = itertools.count(1)

    def say_(role: str, content: Any, turn: int, **kw: Any) -> None:
        origin = {"user": "user", "assistant": "model", "tool": "tool"}[role]
        message = Message(f"m{next(count)}", role, content, origin=origin, turn=turn, **kw)  # type: ignore[arg-type]
        entries.append(MessageAdded(message))

    turns = draw(st.integers(1, 5))
    for turn in range(1, turns + 1):
        entries.append(TurnOpened(turn))
        text = words(draw(SIZES), turn)
        pictures = draw(st.integers(0, 2)) if draw(st.booleans()) else 0
        parts = (TextPart(text), *(ImagePart(f"data:,{turn}-{i}") for i in range(pictures)))
        say_("user", parts if pictures else text, turn)
        for round_ in range(draw(st.integers(0, 4))):
            calls = []
            for i in range(draw(st.integers(1, 2))):
                n = turn * 100 + round_ * 10 + i
                path = draw(st.sampled_from(["a.py", f"f{n}.py"]))
                bulk = words(draw(SIZES), n) if draw(st.booleans()) else ""
                arguments = canonical_json({"file_path": path, "content": bulk} if bulk else {"file_path": path})
                calls.append(ToolCall(f"c{n}", "Write" if bulk else "Read", arguments))
            say_("assistant", draw(st.sampled_from(["", "I look."])), turn, tool_calls=tuple(calls))
            for c in calls:
                say_("tool", words(draw(SIZES), int(c.id[1:])), turn, tool_call_id=c.id, name=c.name)
        if turn < turns:
            say_("assistant", words(draw(SIZES), turn), turn)
    return tuple(entries)


@dataclass
class _Log:
    seq: int = 0

    async def since(self, conversation_id: str, after: int) -> tuple[Record, ...]:
        return ()

    async def append(
        self, conversation_id: str, entries: Any, *, at: float, after: int | None = None
    ) -> tuple[Record, ...]:
        made = tuple(Record(self.seq + i + 1, at, e) for i, e in enumerate(entries))
        self.seq += len(made)
        return made


@dataclass
class _Meta:
    id: str
    tool: str
    what: str
    chars: int
    stored_chars: int
    created_at: float
    reads: int
    preview: str
    conversation_id: str
    message_id: str


@dataclass
class _Store:
    texts: dict[str, str] = field(default_factory=dict)

    async def put(self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str) -> _Meta:
        name = f"omitted-{len(self.texts) + 1:03d}"
        self.texts[name] = text
        return _Meta(name, tool, what, len(text), len(text), 0.0, 0, "", conversation_id, message_id)


class _Memory:
    async def feed(self, entry: object) -> Fed:
        return Fed()


@dataclass
class _Host:
    part: SystemPart

    def system_part(self) -> SystemPart:
        return self.part

    def may_summarise(self) -> bool:
        return True

    def today(self) -> str:
        return "2026-01-01T00:00:00Z"


class Bench:
    """A reducer over a conversation in memory."""

    def __init__(self, entries: tuple[Entry, ...], window: int, system: int) -> None:
        self.events: list[Event] = []
        bus, clock, ledger = Bus(), ManualClock(), TokenLedger(four)
        bus.subscribe(self.events.append)
        state = Conversation()
        for entry in entries:
            state.apply(entry)
        self.session = Session("c", _Log(), bus, clock, ledger, state)
        meter = Meter(ledger, 0.65, None, window=Window(window, "discovery"))
        self.store = _Store()
        omitter = Omitter(self.store, bus, clock, 30, 1)  # type: ignore[arg-type]
        compactor = Compactor(bus, clock, meter, _Memory(), omitter)
        host = _Host(SystemPart("s" * system * 4, "", "", ()))
        self.reducer = Reducer(self.session, host, meter, omitter, compactor, bus)

    @property
    def turn(self) -> int:
        return self.session.conversation.turn

    def told(self) -> str:
        return "\n".join(e.text for e in self.events if isinstance(e, Notice))

    def markers(self) -> set[str]:
        """Ids of all markers in the view, in contents and in arguments."""
        found = set()
        for m in self.session.history():
            texts = (
                [m.content] if isinstance(m.content, str) else [p.text for p in m.content if isinstance(p, TextPart)]
            )
            texts += [v for c in m.tool_calls for v in _strings(c.arguments)]
            found |= {i for t in texts if (i := parse_marker(t))}
        return found


def _strings(arguments: str) -> list[str]:
    loaded = json.loads(arguments)
    return [v for v in loaded.values() if isinstance(v, str)]


@given(talks(), WINDOWS, st.sampled_from([100, 900, 2_600]))
@settings(max_examples=60, deadline=None)
def test_a_request_is_made_to_fit_and_nothing_is_lost(entries: tuple[Entry, ...], window: int, system: int) -> None:
    """I2, I3, I6: within the budget whenever there is room for anything; what changed of the newest was told."""

    async def scenario() -> None:
        bench = Bench(entries, window, system)
        before = bench.reducer.reading()
        assert before.budget is not None
        logged = list(bench.session.conversation.messages)
        await bench.reducer.fit(bench.turn, before.budget)
        after = bench.reducer.reading()
        assert after.used <= max(before.used, before.budget)
        assert bench.session.conversation.messages == logged
        if before.used <= before.budget or before.budget < LEAST_BUDGET:
            assert bench.session.history() == _fold(entries).history()
            return
        assert after.used <= before.budget
        assert strict_violations(bench.session.history(), with_system=False) == ()
        assert bench.markers() <= set(bench.store.texts)
        asked = next(m for m in reversed(logged) if m.role == "user")
        if "Your message is too long" not in bench.told():
            shown = bench.session.history()
            assert any(to_wire(m) == to_wire(asked) for m in shown)
        newest = Ladder(_fold(entries), TokenLedger(four), bench.turn)
        if not bench.told() and (outputs := [m for m in newest.messages[newest._round :] if m.role == "tool"]):
            texts = {m.id: m.text for m in bench.session.history()}
            assert all(texts[m.id] == m.text for m in outputs)

    asyncio.run(scenario())


def _fold(entries: tuple[Entry, ...]) -> Conversation:
    state = Conversation()
    for entry in entries:
        state.apply(entry)
    return state


@given(talks(), WINDOWS)
@settings(max_examples=60, deadline=None)
def test_masking_is_done_only_when_it_is_enough(entries: tuple[Entry, ...], window: int) -> None:
    """P22, I3: either it ends at 0.8 of the threshold, or not a byte of the view changes; the newest turn's newest
    round and request never do."""

    async def scenario() -> None:
        bench = Bench(entries, window, 100)
        reading = bench.reducer.reading()
        view = bench.session.history()
        if reading.threshold is None or not reading.over_threshold:
            return
        done = await bench.reducer.relieve(bench.turn, reading)
        after = bench.reducer.reading()
        if done:
            assert after.used <= goal_of(reading.threshold)
            assert bench.markers() <= set(bench.store.texts)
        else:
            assert bench.session.history() == view
        assert strict_violations(bench.session.history(), with_system=False) == ()
        raw = {m.id: m for m in bench.session.conversation.messages}
        ladder = bench.reducer.ladder(bench.turn)
        shown = {m.id: m for m in bench.session.history()}
        for m in ladder.messages[ladder._round :]:
            assert shown[m.id] == raw[m.id]

    asyncio.run(scenario())


@given(
    st.lists(st.sampled_from([20, 300, 1_500, 4_000]), min_size=3, max_size=9),
    st.sampled_from([4_096, 8_192, 32_768]),
    st.sampled_from([0.3, 0.65, 0.9]),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_one_compaction_for_new_content_and_three_failures(
    sizes: list[int], window: int, compact_at: float, fails: bool
) -> None:
    """I4, I3 through the engine: whatever the model answers, every turn ends and no request is over its budget."""

    async def scenario(folder: Path) -> None:
        replies = []
        for n, size in enumerate(sizes):
            replies += [call(("Look", f'{{"n":{n}}}'), ids=[f"i{n}"]), say(words(size, n))]
        bad = [say("") for _ in range(50)]
        chat = ScriptedChat(replies, summaries=bad if fails else [])
        r = Rig(folder, chat=chat, window=Window(window, "discovery"), policy=Policy(compact_at=compact_at))
        r.tools = ScriptedTools({"Look": [words(size, n) for n, size in enumerate(sizes)]})
        await r.start()
        for n, size in enumerate(sizes):
            assert (await r.ask(words(size, 1_000 + n))).end == "done"
        assert all(s.budget is None or s.used <= s.budget for s in r.of(StepStarted))
        between = 0
        for event in r.events:
            if isinstance(event, StepStarted):
                between = 0
            elif isinstance(event, CompactionStarted):
                between += 1
                assert between <= 2  # one that asks the model, and one without it where that failed
        if fails:
            assert len(chat.summary_requests) <= 3
        for done in r.of(CompactionFinished):
            assert done.entry.tokens_after < done.entry.tokens_before
        assert all(e.reason for e in r.of(CompactionFailed))
        r.check_log()
        await r.engine.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


@given(st.integers(4_096, 2_000_000), st.one_of(st.none(), st.integers(0, 10_000_000)))
def test_half_of_every_window_is_usable(window: int, max_output: int | None) -> None:
    """I15, cases 5, 6, 33."""
    usable = budget_for(window, reserve_for(window, max_output), 0)
    assert usable is not None
    assert usable >= window / 2


@given(talks(), st.integers(150, 6_000), st.integers(0, 900))
@settings(max_examples=150, deadline=None)
def test_a_forced_cut_fits_and_shrinks(entries: tuple[Entry, ...], room: int, pending: int) -> None:
    """Rung (e), judged by its figures: within the room, smaller than before, a summary worth the name."""
    state, ledger = _fold(entries), TokenLedger(four)
    kept = state.kept()
    counts = [ledger.message(m) for m in kept]
    used = sum(counts) + pending
    found = forced_cut(kept, counts, cap=700, overhead=30, room=room, used=used, pending=pending)
    if found is not None:
        cut, cap = found
        assert 100 <= cap <= 700
        assert cut.kept_tokens + 30 + cap <= min(room, used)
        assert kept[cut.index].role in {"user", "assistant"}
