"""`/compact preview` and `/compact undo` through the engine (cases 12, 48, 113; I4, I5)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import CompactionUndone
from marextui.context.messages import canonical_json, to_wire
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionReverted,
    CompactionStarted,
    GaugeChanged,
    Notice,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Finished, ModelError, TextChunk
from tests.engine.test_compaction import SUMMARY
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say

BIG = Window(100_000, "discovery")
ASKED = "make src/parser.py faster, keep the old API, unroll the loop in it, then measure. The tests pass. "
"""What the summaries of these tests tell: a summary that names what never occurred is refused."""


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", BIG)
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


def view(r: Rig) -> list[str]:
    """What would be sent, as bytes."""
    return [canonical_json(to_wire(m)) for m in r.history()]


async def fill(r: Rig, turns: int, size: int = 4000) -> None:
    for n in range(turns):
        await r.ask(f"question {n}: {ASKED}" + "x" * size)


async def compact(r: Rig) -> None:
    mark = len(r.events)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
    await r.idle()


async def undo(r: Rig, *, force: bool = False) -> CompactionReverted:
    mark = len(r.events)
    r.engine.undo_compaction(force=force)
    reverted = await r.until(lambda e: isinstance(e, CompactionReverted), after=mark)
    await r.idle()
    assert isinstance(reverted, CompactionReverted)
    return reverted


async def test_undo_restores_the_view_byte_for_byte(rig) -> None:
    """Nothing was deleted, so the view is what it was, and the figures with it."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    before, used = view(r), r.engine.state.reading().used
    await compact(r)
    small = r.engine.state.reading().used
    assert view(r) != before
    reverted = await undo(r)
    assert view(r) == before
    assert reverted == CompactionReverted(1, small, used, len(before))
    assert r.of(GaugeChanged)[-1].gauge.used == used
    r.check_log()


async def test_undo_keeps_what_was_said_after_the_compaction(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    before = view(r)
    await compact(r)
    await r.ask("after it")
    newest = view(r)[-2:]
    await undo(r)
    assert view(r) == before + newest


async def test_three_compactions_are_undone_one_by_one_and_redone_with_new_cycles(rig) -> None:
    """Each undo goes one further back; a cycle number is never used twice."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)] * 4))
    before = []
    for _ in range(3):
        await fill(r, 4)
        before.append(view(r))
        await compact(r)
    said_between = [v[-8:] for v in before]
    assert (await undo(r)).cycle == 3
    assert view(r) == before[2]
    assert (await undo(r)).cycle == 2
    assert view(r) == before[1] + said_between[2]
    assert (await undo(r)).cycle == 1
    assert view(r) == before[0] + said_between[1] + said_between[2]
    r.check_log()
    await compact(r)
    assert r.of(CompactionFinished)[-1].entry.cycle == 4
    assert (await undo(r)).cycle == 4


async def test_undo_after_a_restart(rig) -> None:
    """The log alone knows how to go back, and an undone compaction stays undone."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)] * 2))
    await fill(r, 5)
    before = view(r)
    await compact(r)
    await fill(r, 4)
    second = view(r)
    await compact(r)
    await r.engine.close()
    again = await rig(wanted=r.engine.session.id, ids=RandomIds())
    await undo(again)
    assert view(again) == second
    await again.engine.close()
    third = await rig(wanted=r.engine.session.id, ids=RandomIds())
    assert view(third) == second
    await undo(third)
    assert view(third)[: len(before)] == before
    third.check_log()


async def test_undo_with_tool_outputs_and_markers(rig) -> None:
    """Outputs that were markers stay markers, whole ones stay whole: exactly what was sent before."""
    looks = [piece for n in range(6) for piece in (call(("Look", "{}"), ids=[f"i{n}"]), say(f"seen {n}"))]
    r = await rig(
        chat=ScriptedChat(looks, summaries=[say(SUMMARY)]),
        tools=ScriptedTools({"Look": ["y" * 3000 + str(n) for n in range(6)]}),
    )
    await fill(r, 6, 2000)
    before = view(r)
    assert any("[omitted " in m for m in before)
    assert any("yyy" in m for m in before)
    await compact(r)
    await undo(r)
    assert view(r) == before
    r.check_log()


async def test_with_nothing_to_undo_a_sentence_says_so_and_the_log_is_unchanged(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    records = await r.records()
    r.engine.undo_compaction()
    await r.until(lambda e: isinstance(e, Notice) and "no compaction to undo" in e.text)
    await r.idle()
    assert await r.records() == records
    await compact(r)
    await undo(r)
    mark = len(r.events)
    r.engine.undo_compaction()
    await r.until(lambda e: isinstance(e, Notice) and "no compaction to undo" in e.text, after=mark)


async def test_a_view_that_would_not_fit_is_refused_with_its_figures_and_restored_only_by_force(rig) -> None:
    """No dead conversation by accident; and no refusal that a person cannot overrule."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 8)
    before = view(r)
    used = r.engine.state.reading().used
    await compact(r)
    r.hub.connection.window = Window(8192, "discovery")
    r.engine.state.settle_window(r.hub.connection)
    budget = r.engine.state.reading().budget
    records = await r.records()
    r.engine.undo_compaction()
    refused = await r.until(lambda e: isinstance(e, Notice) and "not undone" in e.text)
    await r.idle()
    assert isinstance(refused, Notice)
    assert f"takes {used} tokens" in refused.text
    assert f"budget is {budget}" in refused.text
    assert "/compact undo force" in refused.hint
    assert await r.records() == records
    await undo(r, force=True)
    assert view(r) == before


async def reconnecting(r: Rig, window: Window) -> Hold:
    """Eight turns and a compaction; then the model, of that window, is being made ready again."""
    await fill(r, 8)
    await compact(r)
    hold = r.hub.hold = Hold()
    r.hub.connection.window = window
    (option,) = await r.engine.models()
    await r.engine.select_model(option.id)
    await hold.reached.wait()
    assert r.engine.state.meter.window.tokens is None
    return hold


async def test_while_the_model_is_being_made_ready_it_waits_to_know_whether_the_view_fits(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    hold = await reconnecting(r, Window(8192, "discovery"))
    r.engine.undo_compaction()
    for _ in range(5):  # time enough for the log to be written, if it were
        await r.records()
    assert r.engine.busy
    hold.go.set()
    await r.until(lambda e: isinstance(e, Notice) and "not undone" in e.text)
    await r.idle()
    assert not r.of(CompactionReverted)


@pytest.mark.parametrize("failing", [True, False])
async def test_without_a_window_to_be_had_it_undoes_unchecked(rig, failing: bool) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    hold = await reconnecting(r, Window(None, "unknown"))
    r.hub.failures = [ModelError("network", "no server")] * 2 if failing else []
    hold.go.set()
    await undo(r)


async def test_waiting_for_the_window_can_be_interrupted_and_undoes_nothing(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    hold = await reconnecting(r, Window(8192, "discovery"))
    records = await r.records()
    mark = len(r.events)
    r.engine.undo_compaction()
    for _ in range(5):  # until it waits for the model; nothing is told of that
        await asyncio.sleep(0)
    assert r.engine.busy
    r.engine.interrupt()
    await r.until(lambda e: isinstance(e, Notice) and "Nothing was undone" in e.text, after=mark)
    await r.idle()
    assert await r.records() == records
    hold.go.set()


async def test_asked_for_during_a_turn_it_waits_for_its_end(rig) -> None:
    hold = Hold()
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    before = view(r)
    await compact(r)
    r.chat.replies = [[hold, TextChunk("late"), Finished("stop", None)]]
    r.engine.submit("slow")
    await hold.reached.wait()
    mark = len(r.events)
    r.engine.undo_compaction()
    assert any(isinstance(e, Notice) and "when this turn has ended" in e.text for e in r.events[mark:])
    assert not any(isinstance(x.entry, CompactionUndone) for x in await r.records())
    hold.go.set()
    await r.until(lambda e: isinstance(e, CompactionReverted), after=mark)
    kinds = [type(e) for e in r.events[mark:]]
    assert kinds.index(CompactionReverted) > kinds.index(TurnFinished)
    assert view(r)[: len(before)] == before


async def test_orders_run_in_the_order_they_were_given(rig) -> None:
    """Compact, undo, undo while busy: one compaction, its undo, and the undo of the one before."""
    hold = Hold()
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)] * 2))
    await fill(r, 5)
    await compact(r)
    await fill(r, 4)
    r.chat.replies = [[hold, TextChunk("late"), Finished("stop", None)]]
    r.engine.submit("slow")
    await hold.reached.wait()
    mark = len(r.events)
    r.engine.compact()
    r.engine.compact()
    r.engine.undo_compaction()
    r.engine.undo_compaction()
    hold.go.set()
    await r.until(lambda e: isinstance(e, CompactionReverted) and e.cycle == 1, after=mark)
    told = [e for e in r.events[mark:] if isinstance(e, CompactionFinished | CompactionReverted)]
    assert [e.entry.cycle if isinstance(e, CompactionFinished) else -e.cycle for e in told] == [2, -2, -1]


async def test_what_was_asked_for_does_not_follow_into_another_conversation(rig) -> None:
    hold = Hold()
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    await compact(r)
    first = r.engine.session.id
    r.chat.replies = [[hold]]
    r.engine.submit("slow")
    await hold.reached.wait()
    r.engine.undo_compaction()
    r.engine.compact()
    await r.engine.open_conversation(None)
    await r.idle()
    await r.engine.open_conversation(first)
    assert len(r.engine.session.conversation.compactions) == 1
    assert not r.of(CompactionFailed)


async def test_the_undone_view_is_not_compacted_again_until_something_new_is_said(rig) -> None:
    """I4: a retry of what failed before finds nothing new, though the view is far over the threshold."""
    r = await rig(window=Window(16_384, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)] * 3))
    while not r.of(CompactionFinished):
        gauge = r.of(GaugeChanged)[-1].gauge
        if gauge.threshold is not None and gauge.used + 700 >= gauge.threshold:
            r.chat.replies = [[ModelError("server", "boom")]]
        await r.ask(f"question: {ASKED}" + "x" * 2400)
    reverted = await undo(r)
    assert reverted.tokens_after > r.of(GaugeChanged)[-1].gauge.threshold
    assert any("compacted again" in n.text for n in r.of(Notice))
    assert "Nothing new was said" in (await r.engine.status()).why_no_compaction
    mark = len(r.events)
    r.engine.retry()
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    await r.idle()
    assert done.end == "done"
    assert not any(isinstance(e, CompactionStarted) for e in r.events[mark:])
    await r.ask("something new")
    assert any(isinstance(e, CompactionFinished) for e in r.events[mark:])


async def test_what_was_said_before_an_undo_is_not_new_after_it(rig) -> None:
    """I4: a turn between the compaction and its undo, or a restart, does not make the restored view due at once."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)] * 2))
    await fill(r, 5)
    await compact(r)
    await r.ask("one more turn")
    assert (await r.engine.status()).why_no_compaction == ""
    await undo(r)
    assert "Nothing new was said" in (await r.engine.status()).why_no_compaction
    await r.ask("something new")
    assert (await r.engine.status()).why_no_compaction == ""
    await compact(r)
    await r.engine.close()
    again = await rig(wanted=r.engine.session.id, ids=RandomIds())
    await undo(again)
    assert "Nothing new was said" in (await again.engine.status()).why_no_compaction


async def test_switched_off_no_word_of_compacting_again(rig) -> None:
    r = await rig(
        window=Window(8192, "discovery"),
        policy=Policy(auto_compress=False),
        chat=ScriptedChat(summaries=[say(SUMMARY)]),
    )
    await fill(r, 7, 2400)
    await compact(r)
    await undo(r)
    assert not any("compacted again" in n.text for n in r.of(Notice))


# --- preview ------------------------------------------------------------------------------------------------------


async def test_a_preview_says_what_then_happens(rig) -> None:
    """The cut, the messages and the bound of the figures are those of the compaction that follows."""
    looks = [piece for n in range(3) for piece in (call(("Look", "{}"), ids=[f"i{n}"]), say(f"seen {n}"))]
    r = await rig(
        chat=ScriptedChat(looks, summaries=[say(SUMMARY)] * 2),
        tools=ScriptedTools({"Look": ["y" * 3000 for _ in range(3)]}),
    )
    for cycle in (1, 2):
        await fill(r, 6)
        seen = await r.engine.preview_compaction()
        messages = r.engine.session.conversation.messages
        await compact(r)
        entry = r.of(CompactionFinished)[-1].entry
        assert (seen.cycle, seen.cut, seen.tokens_now) == (cycle, entry.cut, entry.tokens_before)
        assert (seen.messages_now, seen.messages_after) == (entry.messages_before, entry.messages_after)
        assert entry.tokens_after <= seen.tokens_after
        assert seen.saved == seen.tokens_now - seen.tokens_after > 0
        at = [m.id for m in messages].index(entry.cut)
        gone = {row.message_id for row in seen.rows if row.fate == "condensed"}
        assert gone <= {m.id for m in messages[:at]}
        assert {row.message_id for row in seen.rows if row.fate == "kept"} == {m.id for m in messages[at:]}
        taken_in = [row.message_id for row in seen.rows if row.fate == "superseded"]
        assert taken_in == ([] if cycle == 1 else ["summary-1", "summary-1-ack"])
        assert sum(row.tokens for row in seen.rows) == seen.tokens_now
    stored = [row for row in seen.rows if row.fate == "omitted"]
    assert all(row.omission_id for row in stored)


async def test_a_preview_names_the_outputs_that_can_be_read_back(rig) -> None:
    looks = [piece for n in range(3) for piece in (call(("Look", "{}"), ids=[f"i{n}"]), say(f"seen {n}"))]
    r = await rig(
        chat=ScriptedChat(looks, summaries=[say(SUMMARY)]),
        tools=ScriptedTools({"Look": ["y" * 3000 for _ in range(3)]}),
    )
    await fill(r, 6)
    seen = await r.engine.preview_compaction()
    ids = [row.omission_id for row in seen.rows if row.fate == "omitted"]
    assert ids == ["omitted-001", "omitted-002", "omitted-003"]


async def test_a_preview_costs_nothing_and_changes_nothing(rig) -> None:
    """Case 48: no request, no log entry, no event, the same view."""
    r = await rig()
    await fill(r, 5)
    records, sent, before, mark = await r.records(), len(r.chat.requests), view(r), len(r.events)
    assert (await r.engine.preview_compaction()).reason == ""
    assert (await r.records(), len(r.chat.requests), view(r), len(r.events)) == (records, sent, before, mark)


async def test_a_preview_says_why_nothing_can_be_cut(rig) -> None:
    """The same sentence's sense as the refusal that follows; every message is kept."""
    r = await rig()
    seen = await r.engine.preview_compaction()
    assert "nothing to compact" in seen.reason
    await r.ask("only this")
    seen = await r.engine.preview_compaction()
    assert seen.reason
    assert {row.fate for row in seen.rows} == {"kept"}
    assert (seen.cut, seen.saved, seen.tokens_after) == ("", 0, seen.tokens_now)
    r.engine.compact()
    failed = await r.until(lambda e: isinstance(e, CompactionFailed))
    assert isinstance(failed, CompactionFailed)
    assert failed.skipped


async def test_a_preview_during_a_turn_is_answered_at_once(rig) -> None:
    hold = Hold()
    r = await rig()
    await fill(r, 5)
    r.chat.replies = [[hold, TextChunk("late"), Finished("stop", None)]]
    r.engine.submit("slow")
    await hold.reached.wait()
    assert (await r.engine.preview_compaction()).rows[-1].line == "slow"
    hold.go.set()
    await r.until(lambda e: isinstance(e, TurnFinished))


# --- diff ---------------------------------------------------------------------------------------------------------


async def test_the_diff_of_a_compaction_is_what_its_preview_said(rig) -> None:
    """Row for row; with the facts that went to memory; also after a restart and after the undo."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY), say(SUMMARY.replace("tests pass", "tests fail"))]))
    await fill(r, 5)
    await compact(r)
    await fill(r, 4)
    seen = await r.engine.preview_compaction()
    await compact(r)
    diff = await r.engine.compaction_diff(2)
    assert diff is not None
    assert diff.rows == seen.rows
    assert diff.entry == r.of(CompactionFinished)[-1].entry
    assert {c.item.text for c in diff.changed("new")} >= {"tests fail"}
    first = await r.engine.compaction_diff(1)
    assert first is not None
    assert any("keep the old API" in fact for fact in first.memory)
    await undo(r)
    await r.engine.close()
    again = await rig(wanted=r.engine.session.id, ids=RandomIds())
    later = await again.engine.compaction_diff(2)
    assert later is not None
    assert (later.rows, later.items, later.undone) == (diff.rows, diff.items, True)
    assert await again.engine.compaction_diff(3) is None


async def test_looking_at_a_diff_costs_nothing(rig) -> None:
    """Case 48."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    assert await r.engine.compaction_diff(1) is None
    await fill(r, 5)
    await compact(r)
    records, sent, before, mark = await r.records(), len(r.chat.requests), view(r), len(r.events)
    assert await r.engine.compaction_diff(1) is not None
    assert (await r.records(), len(r.chat.requests), view(r), len(r.events)) == (records, sent, before, mark)
