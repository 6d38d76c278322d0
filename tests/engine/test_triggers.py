"""Triggers through the engine: sliding window, task boundary, share of the window; all guarded (P12–P15, case 110)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.entries import NoticeLogged
from marextui.context.messages import canonical_json
from marextui.context.triggers import TASK_BOUNDARY, SlidingWindow
from marextui.engine.events import CompactionFinished, CompactionStarted, GaugeChanged, Notice
from marextui.engine.policy import Policy
from tests.engine.test_compaction import ABOUT, SUMMARY
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import Piece, ScriptedChat, ScriptedTools, call, say

BIG = Window(200_000, "discovery")
TURN = 10_000
"""Characters of a question: 2 500 tokens at four characters."""
Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(**kw: Any) -> Rig:
        kw.setdefault("window", BIG)
        kw.setdefault("chat", ScriptedChat(summaries=[say(SUMMARY) for _ in range(100)]))
        made.append(await Rig(tmp_path, **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


async def talk(r: Rig, turns: int, size: int = TURN) -> None:
    for n in range(turns):
        await r.ask(f"{ABOUT} {n:03d} " + "x" * size)


def sizes(r: Rig) -> list[int]:
    return [sum(map(len, texts(request))) for request in r.chat.turns]


async def test_a_window_that_slides_at_every_turn_keeps_the_request_the_same_size(rig: Start) -> None:
    """P13: 30 turns, 6 of them in view: less than 10 % between the requests after the seventh."""
    r = await rig(policy=Policy(trigger=SlidingWindow(keep=6, slide_by=1)))
    await talk(r, 30)
    late = sizes(r)[7:]
    assert max(late) < 1.1 * min(late)
    assert {e.trigger for e in r.of(CompactionStarted)} == {"sliding"}
    r.check_log()


def breaks(r: Rig) -> int:
    """Requests that do not begin with the one before: what a cached prefix is lost for."""
    requests = [[canonical_json(m) for m in q.messages] for q in r.chat.turns]
    return sum(b[: len(a)] != a for a, b in pairwise(requests))


@pytest.mark.parametrize(("slide_by", "least", "most"), [(3, 10, 14), (1, 30, 40)])
async def test_sliding_by_several_turns_spares_the_prefix(rig: Start, slide_by: int, least: int, most: int) -> None:
    """Case 110: over 40 turns the prefix breaks at a third of them, not at each."""
    r = await rig(policy=Policy(trigger=SlidingWindow(keep=6, slide_by=slide_by), omit_after_turns=99))
    await talk(r, 40)
    assert least <= breaks(r) <= most


async def test_the_threshold_guards_a_sliding_window(rig: Start) -> None:
    """P15: turns too large for the window do not wait for their number."""
    r = await rig(window=Window(16_384, "discovery"), policy=Policy(trigger=SlidingWindow(keep=6, slide_by=3)))
    await talk(r, 6)
    assert {e.trigger for e in r.of(CompactionStarted)} == {"threshold"}


async def test_nothing_slides_when_compaction_is_switched_off(rig: Start) -> None:
    """M18."""
    r = await rig(policy=Policy(trigger=SlidingWindow(keep=2, slide_by=1), auto_compress=False))
    await talk(r, 6)
    assert r.of(CompactionStarted) == []
    assert (await r.engine.preview_compaction()).triggers == ()


async def test_sliding_that_would_gain_nothing_is_not_tried(rig: Start) -> None:
    """M10: short turns stay; no request is made, nothing is remembered as refused."""
    r = await rig(policy=Policy(trigger=SlidingWindow(keep=2, slide_by=1)))
    await talk(r, 12, size=100)
    assert r.of(CompactionStarted) == []
    assert r.engine.state.compactor.last_failure == ""


async def phase(r: Rig, name: str) -> None:
    r.engine.begin_phase(name)
    await r.until(lambda e: isinstance(e, Notice) and name in e.text)
    await r.idle()


async def test_a_phase_ends_with_a_compaction_at_40_percent(rig: Start) -> None:
    """P14: only the last turn stays; the boundary is in the log and never in a view (case 49)."""
    r = await rig(window=Window(65_536, "discovery"))
    await talk(r, 10)
    await phase(r, "implement")
    [finished] = r.of(CompactionFinished)
    assert finished.entry.trigger == "task"
    assert [m.role for m in r.history()] == ["user", "assistant", "user", "assistant"]
    logged = [x.entry.text for x in await r.records() if isinstance(x.entry, NoticeLogged)]
    assert logged == ["Phase: implement. What came before is compacted."]
    assert "implement" not in "".join(m.text for m in r.history())
    assert "tools" not in r.chat.summary_requests[0].extra


async def test_a_phase_ends_without_one_at_10_percent(rig: Start) -> None:
    """P14: nothing is asked; people are told why, with the figure."""
    r = await rig(window=Window(65_536, "discovery"))
    await talk(r, 2)
    await phase(r, "plan")
    assert r.of(CompactionStarted) == []
    text = r.of(Notice)[-1].text
    assert text.startswith("Phase: plan. Nothing is compacted: it is worth it above 25% of the budget")
    assert "fills 8%" in text


async def test_a_phase_without_anything_said_leaves_no_trace(rig: Start) -> None:
    r = await rig()
    r.engine.begin_phase("plan")
    await r.until(lambda e: isinstance(e, Notice) and "no phase to end" in e.text)
    await r.idle()
    assert await r.engine.conversations() == []


async def test_a_phase_waits_for_the_turn_and_is_asked_for_once(rig: Start) -> None:
    """Case 118: queued while busy; the same order twice runs once."""
    r = await rig(window=Window(65_536, "discovery"))
    await talk(r, 10)
    r.engine.submit(ABOUT)
    await r.until(lambda e: e.__class__.__name__ == "TurnStarted", after=len(r.events))
    r.engine.begin_phase("test")
    r.engine.begin_phase("test")
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    assert sum("Phase: test." in n.text for n in r.of(Notice)) == 1


def todo(status: str) -> list[Piece]:
    return call(("TodoWrite", f'{{"todos": [{{"content": "unroll the loop", "status": "{status}"}}]}}'))


@pytest.mark.parametrize(("status", "compacted"), [("completed", True), ("in_progress", False)])
async def test_a_finished_list_is_the_end_of_a_task(rig: Start, status: str, compacted: bool) -> None:
    """P14: at the start of the next turn, above a quarter of the budget."""
    chat = ScriptedChat(
        [*(say("ok") for _ in range(6)), todo(status), say("all of it is there"), say("next")],
        summaries=[say(SUMMARY)],
    )
    tools = ScriptedTools({"TodoWrite": "noted"})
    r = await rig(window=Window(65_536, "discovery"), chat=chat, tools=tools, policy=Policy(trigger=TASK_BOUNDARY))
    await talk(r, 7)
    assert r.of(CompactionStarted) == []
    await r.ask("Now the lexer, please. " + ABOUT)
    assert [e.trigger for e in r.of(CompactionStarted)] == (["task"] if compacted else [])


async def test_a_share_of_the_window_counts_the_system_part(rig: Start) -> None:
    """P12, B1: the gauge keeps drawing the mark on the budget; `/status` says what it is a share of."""
    r = await rig(window=Window(8192, "discovery"), policy=Policy(compact_at=0.75, compact_base="window"))
    await r.ask(ABOUT)
    gauge = r.of(GaugeChanged)[-1].gauge
    assert gauge.threshold == 6144 - gauge.system_part
    assert gauge.budget is not None
    assert gauge.compact_at == pytest.approx(gauge.threshold / gauge.budget, abs=0.001)
    status = await r.engine.status()
    assert status.triggers == ("at 75% of the window (now 0% of the budget)",)
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "x" * 1200)
    assert r.of(CompactionFinished)[0].entry.tokens_before > 0.7 * 8192 - gauge.system_part


async def test_status_and_preview_say_what_begins_a_compaction(rig: Start) -> None:
    """M22, P18."""
    r = await rig(policy=Policy(trigger=SlidingWindow(keep=6, slide_by=3)))
    await talk(r, 2)
    told = (await r.engine.status()).triggers
    assert told[0] == "from 9 turns in view on (now 2), when that makes room; 6 stay"
    assert told[1].startswith("at the latest at 65% of the budget (now 3%")
    assert (await r.engine.preview_compaction()).triggers == told
