"""Checks after a compaction, `/context check` and `/probe` through the engine (P17, P19, P20; cases 11, 48, 123)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import CompactionChecked, CompactionCommitted, MessageAdded
from marextui.context.validate import strict_violations
from marextui.engine.events import CompactionFinished, CompactionProbed, Notice, ProbesAnswered, TurnFinished
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Finished, ModelError, ReasoningChunk, TextChunk, Usage
from tests.engine.test_compaction import SUMMARY
from tests.engine.test_undo import ASKED, compact, fill, undo, view
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(100_000, "discovery"))
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def compacted(rig, *more, **kw) -> Rig:
    """A conversation with an order and an edited file in the part that was cut away."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY), *more]), **kw)
    await r.ask("Never touch config/redis.ts. " + ASKED)
    await fill(r, 5)
    await compact(r)
    return r


def checked(records) -> list[CompactionChecked]:
    return [x.entry for x in records if isinstance(x.entry, CompactionChecked)]


async def test_every_compaction_is_checked_and_the_result_logged(rig) -> None:
    """P17: free, without a request; an event, and an entry that a restart finds."""
    r = await compacted(rig)
    [event] = r.of(CompactionProbed)
    entry = event.entry
    assert entry.total > 0
    assert entry.in_view + entry.by_recall + len(entry.lost) == entry.total
    assert checked(await r.records()) == [entry]
    assert len(r.chat.summary_requests) == 1
    kinds = [type(x.entry) for x in await r.records()]
    assert kinds.index(CompactionChecked) > kinds.index(CompactionCommitted)
    diff = await r.engine.compaction_diff(1)
    assert diff is not None
    assert diff.checked == entry
    assert (await r.engine.status()).aftermaths[0].checked == entry


async def test_a_check_is_never_part_of_the_view_and_spoils_no_compaction(rig) -> None:
    """It is written beside whatever goes on: a compaction under way still commits (case 119)."""
    r = await compacted(rig, say(SUMMARY))
    before, version = view(r), r.engine.session.version
    await r.engine.session.append(CompactionChecked(1, 1, 0, (), 1))
    assert (view(r), r.engine.session.version) == (before, version)
    r.check_log()


async def test_a_check_holds_up_nothing(rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next message is answered while the check still runs."""
    import threading

    from marextui.engine import probing

    go, real = threading.Event(), probing.check_compaction

    def slow(entries, cycle):
        assert go.wait(20)
        return real(entries, cycle)

    monkeypatch.setattr(probing, "check_compaction", slow)
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 6)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    mark = len(r.events)
    r.engine.submit("meanwhile")
    await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    assert r.engine.checking
    assert not r.of(CompactionProbed)
    go.set()
    await r.until(lambda e: isinstance(e, CompactionProbed))
    assert r.history()[-2].text == "meanwhile"


async def test_switched_off_nothing_is_checked(rig) -> None:
    r = await compacted(rig, policy=Policy(check_compactions=False))
    assert checked(await r.records()) == []


async def test_lost_facts_are_told(rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from marextui.engine import probing

    monkeypatch.setattr(probing, "check_compaction", lambda e, cycle: CompactionChecked(cycle, 1, 0, ("a", "b"), 3))
    r = await compacted(rig)
    [note] = [n for n in r.of(Notice) if "lost 2 of 3 facts" in n.text]
    assert "/compact undo" in note.hint


async def test_the_checklist_has_five_computed_lines(rig) -> None:
    """P19."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    lines = await r.engine.context_check()
    assert len(lines) == 5
    assert "nothing was compacted" in lines[1].detail
    await fill(r, 6)
    await compact(r)
    records, sent = await r.records(), len(r.chat.requests)
    lines = await r.engine.context_check()
    assert [c.name for c in lines] == ["Trigger", "Sections", "Merged incrementally", "Probes", "Re-fetches"]
    assert [c.passed for c in lines] == [True] * 5
    assert (await r.records(), len(r.chat.requests)) == (records, sent)


async def test_the_checklist_fails_where_nothing_triggers_and_where_nothing_was_probed(rig) -> None:
    r = await compacted(rig, policy=Policy(auto_compress=False, check_compactions=False))
    trigger, sections, _, probes, _ = await r.engine.context_check()
    assert (trigger.passed, sections.passed, probes.passed) == (False, True, False)
    assert "not probed" in probes.detail


async def test_what_is_read_again_after_a_compaction_is_counted(rig) -> None:
    """P20: in the status and in the diff; told at the next compaction when it is more than a fifth."""
    reads = [
        piece for n in range(2) for piece in (call(("Read", '{"path":"src/parser.py"}'), ids=[f"r{n}"]), say("ok"))
    ]
    r = await rig(
        chat=ScriptedChat(reads[:2], summaries=[say(SUMMARY)] * 2),
        tools=ScriptedTools({"Read": ["1\tdef parse(): pass\n" * 30] * 2}),
    )
    await fill(r, 6)
    await compact(r)
    r.chat.replies = reads[2:]
    await fill(r, 5)
    [after] = (await r.engine.status()).aftermaths
    assert after.fetches is not None
    assert (after.fetches.fetches, len(after.fetches.refetched)) == (1, 1)
    assert not (await r.engine.context_check())[4].passed
    await compact(r)
    assert any("fetched again" in n.text for n in r.of(Notice))
    diff = await r.engine.compaction_diff(1)
    assert diff is not None
    assert diff.fetches == after.fetches


# --- /probe -------------------------------------------------------------------------------------------------------


async def probed(r: Rig) -> ProbesAnswered:
    mark = len(r.events)
    r.engine.probe()
    event = await r.until(lambda e: isinstance(e, ProbesAnswered), after=mark)
    await r.idle()
    assert isinstance(event, ProbesAnswered)
    return event


async def test_probe_asks_once_outside_the_conversation_and_grades(rig) -> None:
    """P17: one request over the view, no message logged, no text streamed, the same view afterwards."""
    r = await compacted(rig)
    records, before, mark = await r.records(), view(r), len(r.events)
    r.chat.summaries = [say("1. Never touch config/redis.ts.\n2. unknown")]
    event = await probed(r)
    request = r.chat.requests[-1]
    assert [len(r.chat.requests), request.stream, request.extra["tool_choice"]] == [
        len(r.chat.turns) + 2,
        False,
        "none",
    ]
    assert [m["content"] for m in request.messages[1:-1]] == [m.text for m in r.history()]
    assert "1. " in request.messages[-1]["content"]
    assert event.cycle == 1
    assert {g.correct for g in event.graded} == {True, False}
    for graded in event.graded:
        question = " ".join(graded.probe.question.split())
        assert question in request.messages[-1]["content"]
    assert (await r.records(), view(r)) == (records, before)
    assert not [e for e in r.events[mark:] if isinstance(e, MessageAdded)]
    assert [p for p in r.phases() if p == "probing"] == ["probing"]


async def test_its_usage_is_its_own_kind(rig) -> None:
    """Cases 11, 123: in the journal, never in the turn or the trigger."""
    r = await compacted(rig)
    r.chat.summaries = [say("1. unknown", Usage(9_000, 20))]
    await probed(r)
    lines = [x for x in await r.usage_lines() if x["kind"] == "probe"]
    assert [(x["inp"], x["out"], x["model"]) for x in lines] == [(9_000, 20, "scripted")]
    assert (await r.engine.context()).measured is None


async def test_probe_without_a_compaction_asks_nothing(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 6)
    sent = len(r.chat.requests)
    r.engine.probe()
    await r.until(lambda e: isinstance(e, Notice) and "nothing to probe" in e.text)
    assert len(r.chat.requests) == sent
    await compact(r)
    await undo(r)
    mark = len(r.events)
    r.engine.probe()
    await r.until(lambda e: isinstance(e, Notice) and "nothing to probe" in e.text, after=mark)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ([ModelError("server", "boom")], "could not be asked"),
        (say("  "), "gave no answer"),
        ([ReasoningChunk("thinking"), Finished("length", None)], "gave no answer"),
        (say("<think>1. all of it</think>"), "gave no answer"),
    ],
)
async def test_a_failed_probe_is_said_and_harms_nothing(rig, reply, told: str) -> None:
    r = await compacted(rig)
    before, records = view(r), await r.records()
    r.chat.summaries = [reply]
    r.engine.probe()
    await r.until(lambda e: isinstance(e, Notice) and told in e.text)
    await r.idle()
    assert (view(r), await r.records()) == (before, records)
    assert (await r.ask("go on")).end == "done"


async def test_probe_can_be_stopped(rig) -> None:
    hold = Hold()
    r = await compacted(rig)
    r.chat.summaries = [[hold, TextChunk("1. late"), Finished("stop", None)]]
    r.engine.probe()
    await hold.reached.wait()
    r.engine.interrupt()
    await r.until(lambda e: isinstance(e, Notice) and "cancelled" in e.text)
    await r.idle()
    assert r.of(ProbesAnswered) == []


async def test_probe_waits_for_the_end_of_a_turn(rig) -> None:
    hold = Hold()
    r = await compacted(rig)
    r.chat.replies = [[hold, TextChunk("late"), Finished("stop", None)]]
    r.engine.submit("slow")
    await hold.reached.wait()
    sent = len(r.chat.requests)
    r.engine.probe()
    assert len(r.chat.requests) == sent
    hold.go.set()
    await r.until(lambda e: isinstance(e, ProbesAnswered))


async def test_questions_that_do_not_fit_are_not_sent(rig) -> None:
    r = await compacted(rig)
    used = r.engine.state.reading().used
    r.hub.connection.window = Window(used + 500, "discovery")
    sent = len(r.chat.requests)
    r.engine.probe()
    await r.until(lambda e: isinstance(e, Notice) and "do not fit" in e.text)
    assert len(r.chat.requests) == sent


async def test_the_question_follows_an_unanswered_message_validly(rig) -> None:
    """I1: after a turn that failed the view ends with the user; the request still alternates."""
    r = await compacted(rig)
    r.chat.replies = [[ModelError("server", "boom")]]
    await r.ask("lost in the wind")
    r.chat.summaries = [say("1. unknown")]
    await probed(r)
    sent = r.chat.requests[-1].messages
    assert [m["role"] for m in sent].count("user") == [m.role for m in r.history()].count("user")
    assert "lost in the wind" in sent[-1]["content"]
    assert strict_violations(r.history()) == ()


async def test_probe_after_a_restart(rig) -> None:
    r = await compacted(rig)
    await r.engine.close()
    again = await rig(wanted=r.engine.session.id, ids=RandomIds(), chat=ScriptedChat(summaries=[say("1. unknown")]))
    assert (await probed(again)).cycle == 1
