"""The ladder through the engine: masking before a summary, proof before money, no request over a budget (I2, I3, P22;
cases 1–3, 10, 13, 14, 31, 34, 91)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import InputsOmitted, MessageAdded, OutputsOmitted, ReasoningDropped, TextsShortened
from marextui.context.marks import SUMMARY_MARK
from marextui.context.omission import parse_marker
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    Notice,
    OutputsReplaced,
    StepRefused,
    StepStarted,
    ViewReduced,
)
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, ModelError, ReasoningChunk, TextChunk
from tests.stubs.engine_rig import Rig, four, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

LATE = Policy(omit_after_turns=50)
"""Outputs do not grow old by themselves: what goes, goes by the ladder."""


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(8192, "discovery"))
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


def within_budget(r: Rig) -> None:
    """No request that left was over its budget, and every view of it was valid."""
    assert all(s.budget is None or s.used <= s.budget for s in r.of(StepStarted))
    r.check_log()


async def readable(r: Rig, omission_id: str) -> str:
    text = await r.engine.read_omission(omission_id)
    assert text is not None
    return text


async def test_masking_alone_makes_a_summary_unnecessary(rig) -> None:
    """P22: over the threshold, old outputs and inputs free enough: no summary request, everything readable (I6)."""
    body = "value = 1\n" * 300
    replies = []
    for n in range(12):
        arguments = json.dumps({"file_path": f"f{n}.py", "content": body})
        replies += [call(("Write", arguments), ids=[f"w{n}"]), say(f"wrote {n}")]
    r = await rig(chat=ScriptedChat(replies), tools=ScriptedTools({"Write": "o" * 700}), policy=LATE)
    for n in range(12):
        await r.ask(f"write file {n}")
    assert r.of(OutputsReplaced)
    assert [e.kind for e in r.of(ViewReduced)][:1] == ["inputs"]
    assert r.chat.summary_requests == []
    assert r.of(CompactionStarted) == []
    first = json.loads(r.history()[1].tool_calls[0].arguments)
    assert first["file_path"] == "f0.py"
    assert await readable(r, parse_marker(first["content"]) or "") == body
    within_budget(r)


async def test_a_file_read_again_leaves_one_copy(rig) -> None:
    """Rung (a), case 9: the copies go first, the newest stays whole."""
    replies = []
    for n in range(8):
        replies += [call(("Read", '{"file_path":"a.py"}'), ids=[f"r{n}"]), say("read")]
    contents = [chr(97 + n) * 2_800 for n in range(8)]
    r = await rig(
        window=Window(32_768, "discovery"),
        chat=ScriptedChat(replies),
        tools=ScriptedTools({"Read": contents[:]}),
        policy=Policy(omit_after_turns=50, compact_at=0.1),
    )
    for n in range(8):
        await r.ask(f"read it, {n}")
    repeats = [x.entry for x in await r.records() if isinstance(x.entry, OutputsOmitted)]
    assert {e.why for e in repeats} == {"repeat"}
    assert [t for t in texts(r.chat.turns[-1]) if "h" * 1_000 in t]
    assert r.chat.summary_requests == []
    for e in repeats:
        for ref in e.refs:
            assert await readable(r, ref.omission_id) in contents
    within_budget(r)


async def test_what_the_ladder_decided_is_the_same_after_a_restart(rig) -> None:
    """Replayable: the fold of the log alone gives the view that was sent."""
    replies = []
    for n in range(9):
        arguments = json.dumps({"file_path": f"f{n}.py", "content": "x" * 2_400})
        replies += [call(("Write", arguments), ids=[f"w{n}"]), say("ok")]
    r = await rig(chat=ScriptedChat(replies), tools=ScriptedTools({"Write": "fine"}), policy=LATE)
    for n in range(9):
        await r.ask(f"write {n}")
    assert any(isinstance(x.entry, InputsOmitted) for x in await r.records())
    view, conversation = r.history(), r.engine.session.id
    await r.engine.close()
    again = await rig(wanted=conversation, ids=RandomIds(), policy=LATE)
    assert again.history() == view


async def test_no_model_is_asked_for_what_cannot_help(rig) -> None:
    """Case 2, I3: rules and tools leave so little that no cut could end below 0.8 of the threshold: said, not tried."""
    r = await rig(window=Window(4096, "discovery"), policy=Policy(compact_at=0.3))
    (r.folder / "project" / "MAREX.md").write_text("- keep this rule\n" * 420)
    for n in range(9):
        await r.ask(f"question {n} " + "x" * 400)
    assert r.chat.summary_requests == []
    reasons = [e.reason for e in r.of(CompactionFailed)]
    assert any("rules 1.8k + " in x and "of 4.1k" in x and "newest turn holds" in x for x in reasons), reasons
    assert all(e.skipped for e in r.of(CompactionFailed))
    within_budget(r)


async def test_a_compaction_lands_with_room_above_it(rig) -> None:
    """Case 14, I3: what it leaves is at most 0.8 of the threshold, also when the summary fills its cap."""
    fat = "## Current State\n" + "\n".join(f"- item {n} " + "z" * 60 for n in range(40))
    r = await rig(chat=ScriptedChat(summaries=[say(fat)] * 9))
    for n in range(14):
        await r.ask(f"question {n} " + "x" * 1_600)
    finished = r.of(CompactionFinished)
    assert finished
    threshold = max(s.threshold or 0 for s in r.of(StepStarted))
    for e in finished:
        assert e.entry.tokens_after <= 0.8 * threshold
        assert e.entry.tokens_after < e.entry.tokens_before


async def test_when_the_model_fails_at_the_hard_limit_a_summary_is_made_without_it(rig) -> None:
    """Rung (e), cases 31, 34: at the threshold a failure changes nothing (B17); over the budget the turn must go on."""
    bad = [[ModelError("server", "boom")] for _ in range(50)]
    r = await rig(window=Window(4096, "discovery"), chat=ScriptedChat(summaries=bad))
    for n in range(16):
        done = await r.ask(f"question {n} " + "x" * 1_000)
        assert done.end == "done"
    assert [e.entry.summarizer for e in r.of(CompactionFinished)] == ["offline"] * len(r.of(CompactionFinished))
    assert r.of(CompactionFinished)
    assert len(r.chat.summary_requests) == 3  # its failures still count: a summary without it is none of its successes
    assert "/compact" in (await r.engine.status()).why_no_compaction
    assert r.history()[0].text.startswith(SUMMARY_MARK)
    within_budget(r)


async def test_switched_off_nothing_is_summarised_and_the_refusal_says_what_helps(rig) -> None:
    """M18: outputs may still make room; summaries only when asked for."""
    r = await rig(window=Window(2048, "discovery"), policy=Policy(auto_compress=False))
    ends = [(await r.ask(f"question {n} " + "x" * 900)).end for n in range(8)]
    assert ends[-1] == "refused"
    assert r.of(CompactionFinished) == []
    assert any("/compact makes room" in e.hint for e in r.of(Notice))


async def test_a_message_larger_than_the_budget_is_sent_as_head_and_tail_with_a_notice(rig) -> None:
    """I2, the last rung: told, the whole readable by id, the log untouched."""
    words = " ".join(f"word{n}" for n in range(2_000))
    r = await rig(window=Window(2048, "discovery"))
    done = await r.ask(words)
    assert done.end == "done"
    [sent] = [t for t in texts(r.chat.turns[-1]) if t.startswith("word0 ")]
    assert "word1999\n[omitted " in sent
    assert await readable(r, parse_marker(sent) or "") == words
    assert any("only its beginning and end" in e.text for e in r.of(Notice))
    assert any(isinstance(x.entry, MessageAdded) and x.entry.message.text == words for x in await r.records())
    within_budget(r)


async def test_the_newest_output_is_cut_to_head_and_tail_and_never_vanishes_while_it_can_be_shown(rig) -> None:
    """I2, case 3: what the model has just asked for stays in sight."""
    output = "first\n" + "line of the output\n" * 120 + "last"
    replies = [*(call(("A", "{}"), ids=[f"i{n}"], text="t " * 150) for n in range(4)), say("done")]
    r = await rig(
        window=Window(1_400, "discovery"), chat=ScriptedChat(replies), tools=ScriptedTools({"A": [output] * 4})
    )
    done = await r.ask("look " * 20)
    assert done.end == "done"
    for request in r.chat.turns[1:]:
        newest = texts(request)[-1]
        assert newest.startswith("first\n")
        assert "last\n[omitted " in newest
    within_budget(r)


async def test_a_loop_in_a_4k_window_never_stops(rig) -> None:
    """Issue section 3: forty rounds of reads and writes on 4 096 tokens, without any model for summaries."""
    replies = []
    for n in range(20):
        replies.append(call(("Read", json.dumps({"file_path": f"f{n}.py"})), ids=[f"r{n}"], text="Let me read it."))
        edit = {"file_path": f"f{n}.py", "old_string": "a" * 300, "new_string": "b" * 2_000}
        replies.append(call(("Edit", json.dumps(edit)), ids=[f"e{n}"]))
    r = await rig(
        window=Window(4096, "discovery"),
        chat=ScriptedChat([*replies, say("all done")], summaries=[[ModelError("server", "no")]] * 50),
        tools=ScriptedTools({"Read": [f"def f{n}(): ...\n" * 200 for n in range(20)], "Edit": "ok"}),
        policy=Policy(max_tool_rounds=100),
    )
    done = await r.ask("Change all twenty files, and never touch the tests.")
    assert done.end == "done"
    assert "Change all twenty files, and never touch the tests." in texts(r.chat.turns[-1])
    assert r.of(StepRefused) == []
    within_budget(r)


async def test_a_refusal_names_its_floor(rig) -> None:
    """Case 2, typed: the parts, largest first."""
    r = await rig(window=Window(2048, "discovery"))
    (r.folder / "project" / "MAREX.md").write_text("- keep this rule\n" * 600)
    done = await r.ask("hello")
    assert done.end == "refused"
    [refused] = r.of(StepRefused)
    assert refused.floor[0][0] == "rules"
    assert dict(refused.floor)["rules"] > 2_000
    assert "rules 2.6k" in refused.reason
    assert "leave 0 of 2k" in refused.reason
    assert r.chat.turns == []


async def test_old_reasoning_is_no_longer_sent_back(rig) -> None:
    """Rung (d), case 25: where it is echoed; that of the newest turn keeps its bytes."""

    def thinks(text: str) -> list:
        return [Accepted(), ReasoningChunk("because " * 350), TextChunk(text), Finished("stop", None)]

    r = await rig(chat=ScriptedChat([thinks(f"answer {n}") for n in range(12)]), policy=Policy(echo_reasoning=True))
    for n in range(12):
        await r.ask(f"question {n}")
    assert any(isinstance(x.entry, ReasoningDropped) for x in await r.records())
    assert "reasoning" in {e.kind for e in r.of(ViewReduced)}
    assert r.chat.summary_requests == []
    sent = [m.get("reasoning_content", "") for m in r.chat.turns[-1].messages if m["role"] == "assistant"]
    assert sent[0] == ""
    assert sent[-1] == "because " * 350


async def test_every_rewrite_of_the_prefix_is_announced(rig) -> None:
    """I7: between the announcements every request starts with the bytes of the one before."""
    replies = []
    for n in range(14):
        replies += [call(("A", json.dumps({"text": "i" * 900})), ids=[f"k{n}"]), say(f"answer {n}")]
    r = await rig(window=Window(4096, "discovery"), chat=ScriptedChat(replies), tools=ScriptedTools({"A": "o" * 1_200}))
    bodies: list[list] = []
    for n in range(14):
        await r.ask(f"question {n}")
    requests = iter(r.chat.turns)
    announced = True
    for event in r.events:
        if isinstance(event, OutputsReplaced | ViewReduced | CompactionFinished):
            announced = True
        elif isinstance(event, StepStarted):
            body = list(next(requests).messages)[1:]
            if bodies and not announced:
                assert body[: len(bodies[-1])] == bodies[-1]
            bodies.append(body)
            announced = False
    assert len(bodies) == 28


async def test_a_full_disk_stops_omitting_and_not_the_turn(rig, monkeypatch) -> None:
    replies = []
    for n in range(6):
        replies += [call(("A", "{}"), ids=[f"a{n}"]), say("seen")]
    r = await rig(
        window=Window(32_768, "discovery"),
        chat=ScriptedChat(replies),
        tools=ScriptedTools({"A": "a" * 590}),
        policy=Policy(compact_at=0.02),
    )

    async def full(*args, **kw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(r.omissions, "put", full)
    for n in range(6):
        assert (await r.ask(f"turn {n}")).end == "done"
    assert any("could not be stored" in e.text and "No space left" in e.text for e in r.of(Notice))
    assert r.of(OutputsReplaced) == []
    r.check_log()


async def test_a_shortened_text_is_one_small_entry(rig) -> None:
    """I16: the log says where to cut, not what is left."""
    r = await rig(window=Window(2048, "discovery"))
    await r.ask("word " * 4_000)
    [entry] = [x.entry for x in await r.records() if isinstance(x.entry, TextsShortened)]
    assert entry.refs[0].chars == 20_000
    assert four(str(entry)) < 100
