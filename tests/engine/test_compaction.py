"""Compaction through the engine: when it runs, what it asks, what it leaves alone (M4–M21, B13, I3–I5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import CompactionCommitted
from marextui.context.marks import SUMMARY_MARK
from marextui.context.messages import to_wire
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    GaugeChanged,
    Notice,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, ModelError, ReasoningChunk, TextChunk, ToolCallChunk, Usage
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.one_slot import OneSlotChat
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say

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
SMALL = Window(8192, "discovery")
ABOUT = "In src/parser.py and src/lexer.py, make the parser faster and keep the old API. "
"""Names what the summaries name: what was never said would be taken out of them (case 38)."""


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", SMALL)
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def fill(r: Rig, turns: int, size: int = 2400) -> None:
    """Turns of `size` characters of question each (600 tokens at four characters)."""
    for n in range(turns):
        await r.ask(ABOUT + f"question {n} " + "x" * size)


async def test_it_runs_at_the_threshold_and_keeps_the_newest_turn(rig) -> None:
    """M5, M9, M13, I2: compacted before the call, the kept messages byte for byte."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    before: list = []
    while not r.of(CompactionFinished):
        before = [to_wire(m) for m in r.history()]
        await r.ask(ABOUT + "x" * 2400)
    view = [to_wire(m) for m in r.history()]
    assert view[0]["content"].startswith(SUMMARY_MARK + "\n")
    assert [m["role"] for m in view[:2]] == ["user", "assistant"]
    kept = view[2:-2]
    assert kept == before[len(before) - len(kept) :]
    entry = r.of(CompactionFinished)[0].entry
    assert entry.tokens_after < entry.tokens_before
    assert sum(t.count(SUMMARY_MARK) for t in texts(r.chat.turns[-1])) == 1
    r.check_log()


async def test_the_summary_request_is_plain_capped_and_cold(rig) -> None:
    """M12, B4: two messages, no tools, not streamed."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "x" * 2400)
    [request] = r.chat.summary_requests
    assert [m["role"] for m in request.messages] == ["system", "user"]
    assert request.tools == ()
    assert (request.max_tokens, request.temperature, request.stream) == (700, 0.1, False)
    assert "tool_choice" not in request.extra


async def test_two_compactions_leave_one_summary_with_both_cycles(rig) -> None:
    """M13, P5, P11: one block, first-cycle facts still there, the second request holds only the new span."""
    second = SUMMARY.replace("src/parser.py: loop unrolled", "src/lexer.py: split")
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY), say(second)]))
    n = 0
    while len(r.of(CompactionFinished)) < 2:
        n += 1
        await r.ask(ABOUT + f"question number {n} " + "x" * 2400)
    block = r.history()[0].text
    assert "src/parser.py" in block
    assert "src/lexer.py" in block
    assert "(cycle 1)" in block
    assert "question number 1 " not in r.chat.summary_requests[1].messages[1]["content"]
    assert sum(t.count(SUMMARY_MARK) for t in texts(r.chat.turns[-1])) == 1


async def test_regenerative_asks_for_everything_anew(rig) -> None:
    """P4: the earlier summary is summarised again with the new span; the answer stands for both."""
    second = SUMMARY.replace("make the parser faster", "make src/lexer.py faster")
    policy = Policy(strategy="regenerative")
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY), say(second)]), policy=policy)
    while len(r.of(CompactionFinished)) < 2:
        await r.ask(ABOUT + "x" * 2400)
    asked = r.chat.summary_requests[1].messages[1]["content"]
    assert "Yours replace them" in asked
    assert "- make the parser faster (cycle 1)" in asked
    block = r.history()[0].text
    assert "- make src/lexer.py faster (cycle 2)" in block
    assert "- make the parser faster" not in block.partition("## Work Log")[0].partition("## Standing Orders")[0]


FRENCH = """## Session Intent
- rendre l'analyseur plus rapide et garder l'ancienne interface du programme pour les clients
## Files Modified
- src/parser.py : la boucle est déroulée et les tests de vitesse sont dans le dossier
## Decisions Made
- nous gardons l'ancienne interface, et la mesure se fait avec les données du client
## Current State
- les tests passent sur la machine, mais il reste une mesure à faire avec le client
## Next Steps
- mesurer la vitesse avec les données du client et écrire le résultat dans le rapport"""
ENGLISH = """## Session Intent
- make the parser faster and keep the old interface of the program for the clients
## Files Modified
- src/parser.py: the loop was unrolled and the tests of the speed are in the folder
## Decisions Made
- we keep the old interface, and the measurement is done with the data of the client
## Current State
- the tests pass on the machine, but there is a measurement to be done with the client
## Next Steps
- measure the speed with the data of the client and write the result into the report"""
ASKED_IN_FRENCH = (
    "Dans src/parser.py, il faut que l'analyseur soit plus rapide avec les données du client, et que l'ancienne "
    "interface reste. Les tests passent sur la machine. Il reste une mesure à faire et le rapport à écrire. "
)


async def compacted(r: Rig, asked: str) -> None:
    while not r.of(CompactionFinished) and not r.of(CompactionFailed):
        await r.ask(asked + "x" * 2000)


async def test_a_summary_in_the_wrong_language_is_asked_for_once_more(rig) -> None:
    """I11, case 125: in the user's language, and told what was wrong; both requests are counted (case 123)."""
    usage = Usage(900, 100, None)
    r = await rig(chat=ScriptedChat(summaries=[say(ENGLISH, usage=usage), say(FRENCH, usage=usage)]))
    await compacted(r, ASKED_IN_FRENCH)
    first, second = (q.messages[1]["content"] for q in r.chat.summary_requests)
    assert "could not be used" not in first
    assert "could not be used: The summary is in English; write it in French.\n" in second
    assert "- nous gardons l'ancienne interface" in r.history()[0].text
    assert "we keep the old interface" not in r.history()[0].text
    assert sum(line["kind"] == "compact" for line in await r.usage_lines()) == 2
    assert r.of(CompactionFailed) == []


async def test_the_wrong_language_twice_is_a_failure(rig) -> None:
    """I11, M15: nothing changes, and the reason names both languages."""
    r = await rig(chat=ScriptedChat(summaries=[say(ENGLISH), say(ENGLISH), say(FRENCH)]))
    await compacted(r, ASKED_IN_FRENCH)
    assert len(r.chat.summary_requests) == 2
    assert r.of(CompactionFinished) == []
    assert "The summary is in English; write it in French." in r.of(CompactionFailed)[0].reason
    assert not any(isinstance(x.entry, CompactionCommitted) for x in await r.records())


async def test_a_summary_in_the_users_language_is_asked_for_once(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(FRENCH)]))
    await compacted(r, ASKED_IN_FRENCH)
    assert len(r.chat.summary_requests) == 1
    assert r.of(CompactionFinished)


FOUR = ("Session Intent", "Findings", "Moods: how people felt", "Open Questions")


async def test_sections_of_ones_own_go_from_the_setting_to_the_view(rig) -> None:
    """P7: four of them, in the request, in the summary and in the check of `/context check`."""
    reply = SUMMARY.replace("Files Modified", "Findings").replace("Current State", "Moods")
    r = await rig(chat=ScriptedChat(summaries=[say(reply)]), policy=Policy(sections=FOUR))
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "x" * 2400)
    prompt = r.chat.summary_requests[0].messages[0]["content"]
    assert "## Session Intent\n## Findings\n## Moods\n## Open Questions" in prompt
    assert "- Moods: how people felt" in prompt
    titles = [s.title for s in r.of(CompactionFinished)[0].entry.summary.sections]
    assert titles[:4] == ["Session Intent", "Findings", "Moods", "Open Questions"]
    assert "## Moods\n- tests pass (cycle 1)" in r.history()[0].text
    assert next(c for c in await r.engine.context_check() if c.name == "Sections").passed
    await fill(r, 2)
    r.engine.compact(offline=True)
    await r.until(lambda e: isinstance(e, CompactionFinished) and e.entry.cycle == 2)
    titles = [s.title for s in r.of(CompactionFinished)[1].entry.summary.sections]
    assert titles[:4] == ["Session Intent", "Findings", "Moods", "Open Questions"]


@pytest.mark.parametrize(("room", "most"), [(0, 0), (60, 240), (None, 1636)])
async def test_what_stands_beside_the_summary_has_a_room_of_its_own(rig, room: int | None, most: int) -> None:
    """Setting `beside_tokens`: 0 leaves it out, a figure caps it, without one it is 5 % of the window."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]), policy=Policy(beside_tokens=room))
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "Never touch src/lexer.py without a test. " + "x" * 2400)
    length = len(r.of(CompactionFinished)[0].entry.beside)
    assert length <= most
    assert (length > 0) == (room != 0)


@pytest.mark.parametrize(
    "reply",
    [
        [ModelError("server", "boom", status=500)],
        say(""),
        say("   \n "),
        say("x" * 39),
        [Accepted(), ReasoningChunk("thinking " * 20), Finished("stop", None)],
        [Accepted(), TextChunk("<think>" + "a" * 100 + "</think>"), Finished("length", None)],
        [Accepted(), ToolCallChunk(0, "c", "Read", "{}"), Finished("tool_calls", None)],
    ],
    ids=["error", "empty", "blank", "39 characters", "reasoning only", "think tags", "tool call"],
)
async def test_a_failed_summary_changes_nothing_and_the_turn_goes_on(rig, reply) -> None:
    """M15, M16: same messages as below the threshold, nothing in memory."""
    r = await rig(chat=ScriptedChat(summaries=[reply]))
    while not r.of(CompactionFailed):
        await r.ask(ABOUT + "x" * 2400)
    assert r.of(CompactionFinished) == []
    assert r.of(TurnFinished)[-1].end == "done"
    assert len(r.chat.turns[-1].messages) == 1 + 2 * len(r.of(TurnFinished)) - 1
    assert await r.memory.read() == ""
    assert not any(isinstance(x.entry, CompactionCommitted) for x in await r.records())


async def test_the_next_turn_tries_again_and_three_failures_stop(rig) -> None:
    """M17, case 13: once per turn; after three in a row only /compact tries, and success resets."""
    bad = [[ModelError("server", "boom")] for _ in range(3)]
    r = await rig(chat=ScriptedChat(summaries=[*bad, say(SUMMARY)]), policy=Policy(compact_at=0.5))
    await fill(r, 20, 800)
    assert len(r.chat.summary_requests) == 3
    assert "/compact" in r.of(CompactionFailed)[-1].reason
    status = await r.engine.status()
    assert "/compact" in status.why_no_compaction
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    assert (await r.engine.status()).last_failure == ""


async def test_the_gauge_says_before_the_mark_that_nothing_will_be_compacted(rig) -> None:
    """Case 13: three failures in a row hold below the threshold too; one does not."""
    r = await rig()
    await fill(r, 6, 100)
    state = r.engine.state
    assert not state.reading().over_threshold
    for failures, told in ((1, False), (3, True)):
        state.compactor.attempts = replace(state.compactor.attempts, outcome="failed", failures=failures)
        state.refresh_gauge()
        assert ("/compact tries again" in r.of(GaugeChanged)[-1].gauge.why_not) is told


async def test_unknown_window_sends_everything_and_never_compacts(rig) -> None:
    """M4; then the window is learned from an error and compaction runs."""
    r = await rig(window=Window(None, "unknown"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 8, 4000)
    assert len(r.chat.turns[-1].messages) == 16
    status = await r.engine.status()
    assert "unknown" in status.why_no_compaction
    assert status.gauge.budget is None
    r.chat.replies = [[ModelError("overflow", "too long", n_ctx=8192)], say("fine")]
    await r.ask("one more")
    assert r.engine.state.meter.window == Window(8192, "learned")
    assert r.of(CompactionFinished)
    assert r.of(TurnFinished)[-1].end == "done"


async def test_an_overflow_is_answered_once_by_something_smaller(rig) -> None:
    """B17, case 43: each retry differs; a second overflow ends the turn, the message stays."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 3, 2000)
    overflow = [ModelError("overflow", "The prompt is too long.")]
    r.chat.replies = [overflow, overflow]
    sent = len(r.chat.turns)
    done = await r.ask("last straw")
    assert done.end == "error"
    assert len(r.chat.turns) - sent <= 2
    assert r.history()[-1].text == "last straw"


async def test_switched_off_it_never_runs(rig) -> None:
    """M18: off and far over the threshold, no summary is asked for."""
    r = await rig(policy=Policy(auto_compress=False))
    await fill(r, 8, 2400)
    assert r.chat.summary_requests == []
    assert "auto_compress" in (await r.engine.status()).why_no_compaction


async def test_five_messages_are_too_few(rig) -> None:
    """M19: five huge messages never, the sixth makes it possible."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]), policy=Policy(compact_at=0.3))
    await fill(r, 3, 2800)
    assert r.chat.summary_requests == []
    await r.ask("seventh message")
    assert len(r.chat.summary_requests) == 1


async def test_compact_by_hand_ignores_the_threshold(rig) -> None:
    """M21: at a few percent of the budget a forced compaction sends one request and shortens the history."""
    r = await rig(window=Window(100_000, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5, 4000)
    before = len(r.history())
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    assert len(r.chat.summary_requests) == 1
    assert len(r.history()) < before
    assert r.of(CompactionFinished)[0].entry.trigger == "manual"


async def test_compact_by_hand_with_nothing_to_compact_says_so(rig) -> None:
    r = await rig()
    await r.ask("only this")
    r.engine.compact()
    failed = await r.until(lambda e: isinstance(e, CompactionFailed))
    assert failed.skipped
    assert r.chat.summary_requests == []


async def test_compact_offline_asks_no_model(rig) -> None:
    r = await rig(window=Window(100_000, "discovery"))
    await fill(r, 5, 4000)
    r.engine.compact(offline=True)
    finished = await r.until(lambda e: isinstance(e, CompactionFinished))
    assert finished.entry.summarizer == "offline"
    assert r.chat.summary_requests == []
    r.check_log()


async def test_compact_while_a_turn_runs_waits_for_its_end(rig) -> None:
    """M21, case 118: never concurrently."""
    hold = Hold()
    r = await rig(window=Window(100_000, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 4, 4000)
    r.chat.replies = [[hold, TextChunk("late"), Finished("stop", None)]]
    r.engine.submit("slow")
    await hold.reached.wait()
    r.engine.compact()
    assert r.chat.summary_requests == []
    hold.go.set()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    ends = [i for i, e in enumerate(r.events) if isinstance(e, TurnFinished)]
    start = next(i for i, e in enumerate(r.events) if isinstance(e, CompactionStarted))
    assert start > ends[-1]


async def test_cancelling_a_compaction_leaves_the_log_as_it_was(rig) -> None:
    """I5, cases 46, 121: Esc during the summary; the next message is answered."""
    hold = Hold()
    r = await rig(window=Window(100_000, "discovery"))
    await fill(r, 4, 4000)
    r.chat.summaries = [[hold]]
    before = await r.records()
    r.engine.compact()
    await hold.reached.wait()
    r.engine.submit("typed meanwhile")
    r.engine.interrupt()
    await r.until(lambda e: isinstance(e, Notice) and "cancelled" in e.text)
    await r.idle()
    assert await r.records() == before
    mark = len(r.events)
    r.engine.retry()
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    assert done.end == "done"
    assert r.history()[-2].text == "typed meanwhile"


async def test_a_long_turn_is_compacted_inside_with_its_request_kept(rig) -> None:
    """B13: the pending request stands verbatim before the tail, and the turn continues by itself (case 59)."""
    rounds = [call(("Look", "{}"), text="I think " + "hm " * 500, ids=[f"i{n}"]) for n in range(14)]
    r = await rig(
        chat=ScriptedChat([say("Right."), *rounds, say("finished")], summaries=[say(SUMMARY)] * 3),
        tools=ScriptedTools({"Look": ["y" * 1200 for _ in range(14)]}),
    )
    await r.ask(ABOUT)
    done = await r.ask("Please look fourteen times.")
    assert done.end == "done"
    assert r.of(CompactionFinished)
    last = texts(r.chat.turns[-1])
    assert last.count("Please look fourteen times.") == 1
    r.check_log()


async def test_memory_is_fed_once_per_successful_compaction(rig) -> None:
    """M32: one dated entry per compaction, in order."""
    r = await rig(window=Window(100_000, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5, 4000)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    report = await r.engine.memory()
    assert len(report.entries) == 1
    assert report.entries[0].conversation_id == r.engine.session.id
    assert any("keep the old API" in f for f in report.entries[0].facts)


async def test_memory_that_cannot_be_written_does_not_fail_the_compaction(rig, monkeypatch) -> None:
    r = await rig(window=Window(100_000, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5, 4000)

    async def full(entry) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(r.memory, "feed", full)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.until(lambda e: isinstance(e, Notice) and "No space left" in e.text)


async def test_usage_of_the_summary_is_reported_apart_and_never_triggers(rig) -> None:
    """Cases 11, 123."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY, Usage(9_000, 300))]))
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "x" * 2400)
    compact = [x for x in await r.usage_lines() if x["kind"] == "compact"]
    assert [(x["inp"], x["out"]) for x in compact] == [(9_000, 300)]
    assert r.of(TurnFinished)[-1].usage.inp is None
    await r.ask("short")
    assert len(r.chat.summary_requests) == 1


async def test_one_compaction_per_new_content(rig) -> None:
    """I4, cases 1 and 14: a poor summary does not start a loop."""
    fat = SUMMARY + "\n".join(f"\n- step {n} " + "z" * 60 for n in range(40))
    r = await rig(chat=ScriptedChat(summaries=[say(fat)] * 30))
    await fill(r, 10, 1600)
    assert len(r.chat.summary_requests) <= 10
    per_turn = [0]
    for e in r.events:
        if isinstance(e, CompactionStarted):
            per_turn[-1] += 1
        elif isinstance(e, TurnFinished):
            per_turn.append(0)
    assert max(per_turn) <= 1


async def test_resumed_it_sends_the_summary_at_once(rig, tmp_path: Path) -> None:
    """Case 122: one id for life; after a restart the next request carries the summary, not the old span."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    while not r.of(CompactionFinished):
        await r.ask(ABOUT + "x" * 2400)
    view = r.history()
    conversation = r.engine.session.id
    await r.engine.close()
    again = await rig(wanted=conversation, ids=RandomIds())
    assert again.engine.session.id == conversation
    assert again.history() == view
    await again.ask("go on")
    assert texts(again.chat.turns[0])[1].startswith(SUMMARY_MARK)


async def test_a_continuation_in_the_wrong_language_is_asked_for_again_by_transcript(tmp_path: Path) -> None:
    """I11, L21: two requests at most, the second told what was wrong."""
    chat = OneSlotChat(summaries=[say(ENGLISH), say(FRENCH)])
    r = await Rig(tmp_path, window=SMALL, chat=chat, policy=Policy(compact_continuation=True)).start()
    await compacted(r, ASKED_IN_FRENCH)
    first, second = r.chat.summary_requests
    assert len(first.messages) > 2
    assert len(second.messages) == 2
    assert "could not be used: The summary is in English; write it in French.\n" in second.messages[1]["content"]
    assert "- nous gardons l'ancienne interface" in r.history()[0].text
    await r.engine.close()
