"""Summaries that go on with the conversation: when, what is sent, and the way back to the transcript (L1–L29)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.continuation import DEMAND_MARK
from marextui.context.entries import CompactionCommitted
from marextui.context.messages import to_wire
from marextui.engine.events import CompactionFailed, CompactionFinished, CompactionReverted, Notice
from marextui.engine.policy import Policy
from marextui.models.slots import SlotFacts
from marextui.models.types import Accepted, ChatRequest, Finished, ModelError, ReasoningChunk, ToolCallChunk
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.one_slot import OneSlotChat
from tests.stubs.scripted_model import CHOICE, Piece, ScriptedTools, call, say

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
ABOUT = "In src/parser.py and src/lexer.py, make the parser faster and keep the old API. "
SMALL = Window(8192, "discovery")


class Rigs:
    """Starts engines with the key on (unless told otherwise) on a model that counts like one slot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Rig] = []

    async def __call__(self, *summaries: list[Piece], key: bool = True, local: bool = True, **kw: Any) -> Rig:
        kw.setdefault("window", SMALL)
        kw.setdefault("chat", OneSlotChat())
        kw["chat"].summaries.extend(summaries)
        policy = replace(kw.pop("policy", Policy()), compact_continuation=key)
        folder = self.folder / f"rig-{len(self.made)}"
        folder.mkdir()
        rig = Rig(folder, policy=policy, **kw)
        if not local:
            rig.hub.connection.choice = replace(CHOICE, local=False, base_url="https://models.example/v1")
        self.made.append(await rig.start())
        return rig


@pytest.fixture
async def rigs(tmp_path: Path) -> AsyncIterator[Rigs]:
    rigs = Rigs(tmp_path)
    yield rigs
    for rig in rigs.made:
        await rig.engine.close()


async def fill(rig: Rig, compactions: int = 1, size: int = 2400) -> None:
    """Turns of about 600 tokens until that many compactions came to an end, well or not."""
    n = 0
    while len(rig.of(CompactionFinished)) + len(rig.of(CompactionFailed)) < compactions:
        n += 1
        assert n < 30
        await rig.ask(f"{ABOUT}question {n} " + "x" * size)


def ways(rig: Rig) -> list[str]:
    """How each summary was asked for."""
    return [way(r) for r in rig.chat.summary_requests if r.kind == "compact"]


def way(request: ChatRequest) -> str:
    return "continuation" if request.messages[-1]["content"].startswith(DEMAND_MARK) else "transcript"


def before(rig: Rig, request: ChatRequest) -> ChatRequest:
    """The request sent before `request`."""
    return rig.chat.requests[rig.chat.requests.index(request) - 1]


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_the_request_goes_on_with_the_turn_as_it_left(rigs: Rigs) -> None:
    """L3, L15: n messages sent, then n + 2: the n as they were, the stored reply, the demand; roles end a, u."""
    rig = await rigs(say(SUMMARY))
    await fill(rig)
    [asked] = rig.chat.summary_requests
    turn = before(rig, asked)
    assert turn.kind == "main"
    n = len(turn.messages)
    assert len(asked.messages) == n + 2
    assert asked.messages[:n] == turn.messages
    assert asked.messages[n] == {"role": "assistant", "content": "ok"}
    assert [m["role"] for m in asked.messages[-2:]] == ["assistant", "user"]
    assert (asked.tools, asked.tools != ()) == (turn.tools, True)
    assert ways(rig) == ["continuation"]


async def test_only_the_reply_and_the_demand_are_computed(rigs: Rigs) -> None:
    """L4: the rest is in the slot."""
    rig = await rigs(say(SUMMARY))
    await fill(rig)
    [line] = [x for x in await rig.usage_lines() if x["kind"] == "compact"]
    assert line["computed"] <= len(rig.chat.summary_requests[0].messages[-1]["content"]) // 4 + 64
    assert line["cache_read"] > 2000


async def test_fields(rigs: Rigs) -> None:
    """L11–L14: same budget, 0.2, tools kept but not to be called, not streamed, thinking off."""
    rig = await rigs(say(SUMMARY))
    await fill(rig)
    [asked] = rig.chat.summary_requests
    assert (asked.max_tokens, asked.temperature, asked.stream) == (700, 0.2, False)
    assert asked.extra == {"tool_choice": "none", "chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize("window", [8_192, 32_768, 131_072])
async def test_both_ways_have_the_same_budget(rigs: Rigs, window: int) -> None:
    """L11."""
    budgets = []
    for key in (True, False):
        rig = await rigs(say(SUMMARY), key=key, window=Window(window, "discovery"))
        await fill(rig, size=window // 3)
        [asked] = rig.chat.summary_requests
        budgets.append((way(asked), asked.max_tokens))
    assert [b[0] for b in budgets] == ["continuation", "transcript"]
    assert budgets[0][1] == budgets[1][1]


async def test_the_boundary_named_is_the_cut(rigs: Rigs) -> None:
    """L7, L8: the demand counts the messages that stay, and names the first of them."""
    rig = await rigs(say(SUMMARY), window=Window(32_768, "discovery"))
    await fill(rig, size=8000)
    [asked] = rig.chat.summary_requests
    first = rig.engine.session.conversation.message(rig.of(CompactionFinished)[0].entry.cut)
    assert first is not None
    contents = [m["content"] for m in asked.messages[:-1]]
    kept = len(contents) - contents.index(first.text)
    assert kept > 1
    assert (
        f"({kept} from the end) is the user's message that begins “{first.text[:60]}" in asked.messages[-1]["content"]
    )


async def test_when_only_the_message_just_typed_stays_everything_is_summarised(rigs: Rigs) -> None:
    """L7, L15: the boundary is the end of what was sent."""
    rig = await rigs(say(SUMMARY))
    await fill(rig)
    [asked] = rig.chat.summary_requests
    cut = rig.engine.session.conversation.message(rig.of(CompactionFinished)[0].entry.cut)
    assert cut is not None
    assert cut.text not in texts(asked)
    assert "The material is everything above." in asked.messages[-1]["content"]


async def test_what_is_stored_does_not_depend_on_the_way(rigs: Rigs) -> None:
    """L5: the same history, the same scripted summary: the same stored entries, but for the time they took."""
    stored = []
    for key in (True, False):
        rig = await rigs(say(SUMMARY), say(SUMMARY.replace("parser.py", "lexer.py")), key=key)
        await fill(rig, 2)
        entries = [r.entry for r in await rig.records()]
        stored.append([replace(e, seconds=0.0) if isinstance(e, CompactionCommitted) else e for e in entries])
        assert ways(rig) == (["continuation"] * 2 if key else ["transcript"] * 2)
    assert [e for e in stored[0] if isinstance(e, CompactionCommitted)] == [
        e for e in stored[1] if isinstance(e, CompactionCommitted)
    ]


async def test_nothing_of_the_request_enters_the_history(rigs: Rigs) -> None:
    """L6: no system message, no demand; what was said is what was said."""
    rig = await rigs(say(SUMMARY))
    await fill(rig)
    messages = rig.engine.session.conversation.messages
    assert all(m.role != "system" and not m.text.startswith(DEMAND_MARK) for m in messages)
    assert all(DEMAND_MARK not in t for t in texts(rig.chat.turns[-1]))
    rig.check_log()


async def test_the_second_one_asks_only_for_what_came_since(rigs: Rigs) -> None:
    """B14, P5: the earlier notes stand at the head, stay, and are merged in code."""
    second = SUMMARY.replace("src/parser.py: loop unrolled", "src/lexer.py: split")
    rig = await rigs(say(SUMMARY), say(second))
    await fill(rig, 2)
    assert ways(rig) == ["continuation"] * 2
    asked = rig.chat.summary_requests[1]
    assert asked.messages[1]["content"].startswith("[Earlier conversation summary]")
    assert "stay as they are" in asked.messages[-1]["content"]
    block = rig.history()[0].text
    assert "src/parser.py" in block
    assert "src/lexer.py" in block


async def test_it_also_goes_on_in_the_middle_of_a_turn(rigs: Rigs) -> None:
    """L15, B13: between steps the view ends with tool results; the cut may lie inside the turn."""
    rounds = [call(("Look", f'{{"n": {n}}}'), ids=[f"c-{n}"]) for n in range(16)]
    chat = OneSlotChat(replies=[*rounds, say("Done.")])
    tools = ScriptedTools(results={"Look": [f"result {n} " + "y" * 2000 for n in range(16)]})
    rig = await rigs(say(SUMMARY), say(SUMMARY), chat=chat, tools=tools)
    await rig.ask(ABOUT)
    asked = rig.chat.summary_requests[0]
    assert way(asked) == "continuation"
    turn = before(rig, asked)
    assert asked.messages[: len(turn.messages)] == turn.messages
    assert [m["role"] for m in asked.messages[-3:]] == ["assistant", "tool", "user"]
    rig.check_log()


async def test_outputs_omitted_since_are_sent_as_they_were(rigs: Rigs) -> None:
    """L3, L7: the omission step of the turn start has rewritten the view; the server still holds the former one."""
    chat = OneSlotChat(replies=[call(("Look", "{}")), say("Seen.")])
    tools = ScriptedTools(results={"Look": ["z" * 1200]})
    rig = await rigs(say(SUMMARY), chat=chat, tools=tools, policy=Policy(omit_after_turns=0))
    await rig.ask(ABOUT)
    await fill(rig)
    [asked] = rig.chat.summary_requests
    assert way(asked) == "continuation"
    assert asked.messages[: len(before(rig, asked).messages)] == before(rig, asked).messages


# -- the slot ----------------------------------------------------------------------------------------------------------


async def nearly(rigs: Rigs, *summaries: list[Piece], **kw: Any) -> tuple[Rig, int]:
    """An engine one turn before its first compaction, and how many turns that took."""
    trial = await rigs(say(SUMMARY), **kw)
    await fill(trial)
    turns = len(trial.chat.turns) - 1
    rig = await rigs(*summaries, **kw)
    for n in range(1, turns + 1):
        await rig.ask(f"{ABOUT}question {n} " + "x" * 2400)
    assert not rig.chat.summary_requests
    return rig, turns


async def step(rig: Rig, n: int) -> None:
    await rig.ask(f"{ABOUT}question {n} " + "x" * 2400)


@pytest.mark.parametrize("kind", ["verify", "subagent", "task", "prewarm", "compact", "bench", "foreign", "main"])
async def test_any_other_request_in_between_leads_to_the_transcript(rigs: Rigs, kind: Any) -> None:
    """L17, L21: [transcript], and the compaction succeeds."""
    rig, n = await nearly(rigs, say("fine"), say(SUMMARY))
    other = ChatRequest(({"role": "user", "content": "x"},), kind=kind, conversation="another", stream=False)
    async for _ in rig.hub.connection.chat.stream(other):
        pass
    await step(rig, n + 1)
    assert ways(rig)[-1:] == ["transcript"]
    assert "continuation" not in ways(rig)
    assert len(rig.of(CompactionFinished)) == 1


async def test_the_stamp_is_read_again_when_the_request_is_about_to_leave(rigs: Rigs) -> None:
    """L19: the view is made, another request leaves, then the summary: no continuation is sent."""
    rig, n = await nearly(rigs, say("fine"), say(SUMMARY))
    connection = rig.hub.connection

    async def meanwhile() -> SlotFacts:
        other = ChatRequest(({"role": "user", "content": "x"},), kind="verify", stream=False)
        async for _ in connection.chat.stream(other):
            pass
        return SlotFacts()

    connection.read_slots = meanwhile  # type: ignore[method-assign]
    await step(rig, n + 1)
    assert ways(rig) == ["transcript"]
    assert len(rig.of(CompactionFinished)) == 1


async def test_a_change_of_the_window_loses_the_stamp(rigs: Rigs) -> None:
    """L18."""
    rig, n = await nearly(rigs, say(SUMMARY))
    rig.hub.connection.window = Window(8000, "discovery")
    await step(rig, n + 1)
    assert ways(rig) == ["transcript"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (SlotFacts(), "continuation"),
        (SlotFacts(total=1, busy=False), "continuation"),
        (SlotFacts(total=1, busy=True), "transcript"),
        (SlotFacts(total=4, busy=True), "continuation"),
        (SlotFacts(total=1, busy=False, prompts=(31,)), "transcript"),
        (SlotFacts(total=1, sleeping=False, prompts=()), "transcript"),
    ],
)
async def test_the_server_is_asked_what_it_holds(rigs: Rigs, facts: SlotFacts, expected: str) -> None:
    """L17, B26: another program or a restart is not in our books; the server may know."""
    rig, n = await nearly(rigs, say(SUMMARY))
    rig.hub.connection.facts = facts
    await step(rig, n + 1)
    assert ways(rig) == [expected]
    assert rig.hub.connection.looked == 1


async def test_a_server_swapped_under_its_address_is_noticed_before_going_on(rigs: Rigs) -> None:
    """L18: another window: the budget follows it, the slot holds nothing of ours, and one notice says so."""
    rig, n = await nearly(rigs, say(SUMMARY))
    before = rig.hub.connection.window.tokens
    rig.hub.connection.facts = SlotFacts(total=1, busy=False, window=9_000)
    await step(rig, n + 1)
    assert ways(rig) == ["transcript"]
    assert rig.hub.connection.looked == 1
    assert rig.engine.state.meter.window == Window(9_000, "discovery")
    gauge = (await rig.engine.status()).gauge
    assert (gauge.window, gauge.window_source) == (9_000, "discovery")
    told = [e.text for e in rig.of(Notice) if "window" in e.text]
    assert told == [f"The server was started anew. Its window is 9000 tokens now; it was {before} tokens."]


async def test_a_window_that_is_set_is_not_replaced_by_what_the_slots_tell(rigs: Rigs) -> None:
    rig, n = await nearly(rigs, say(SUMMARY))
    rig.hub.connection.window = replace(rig.hub.connection.window, source="override")
    rig.hub.connection.facts = SlotFacts(total=1, busy=False, window=9_000)
    await step(rig, n + 1)
    assert ways(rig) == ["continuation"]


async def test_a_prompt_of_the_size_we_sent_is_taken_for_ours(rigs: Rigs) -> None:
    """A slot counts its prompt, or what it holds after the answer."""
    rig, n = await nearly(rigs, say(SUMMARY))
    step_sent = rig.hub.connection.slots.held(rig.engine.session.id)
    assert step_sent is not None
    assert step_sent.usage is not None
    assert step_sent.usage.inp is not None
    rig.hub.connection.facts = SlotFacts(total=2, prompts=(7, step_sent.usage.inp + (step_sent.usage.out or 0)))
    await step(rig, n + 1)
    assert ways(rig) == ["continuation"]


async def test_a_view_rewritten_since_is_not_what_the_slot_holds(rigs: Rigs) -> None:
    """L7, L21: a compaction undone: nothing else was sent, so the stamp stands, but the view is another one."""
    rig = await rigs(say(SUMMARY), say(SUMMARY))
    await fill(rig)
    rig.engine.undo_compaction()
    await rig.until(lambda e: isinstance(e, CompactionReverted))
    await rig.idle()
    assert rig.hub.connection.slots.held(rig.engine.session.id) is not None
    await rig.ask("And now?")
    assert ways(rig) == ["continuation", "transcript"]
    line = (await rig.engine.status()).economy[0]
    assert "the view was rewritten since" in line.why


# -- room --------------------------------------------------------------------------------------------------------------


async def test_a_server_that_does_not_count_is_asked_by_transcript(rigs: Rigs) -> None:
    """L20: the margin is in real tokens, never in guesses."""
    rig = await rigs(say(SUMMARY), chat=OneSlotChat(counts=False))
    await fill(rig)
    assert ways(rig) == ["transcript"]


async def test_above_85_percent_a_clean_context_is_used(rigs: Rigs) -> None:
    """B15, L20: a late trigger leaves no room to go on."""
    rig = await rigs(say(SUMMARY), policy=Policy(compact_at=0.97, max_output=256))
    await fill(rig, size=1200)
    assert ways(rig) == ["transcript"]


# -- the way back ------------------------------------------------------------------------------------------------------

TEMPLATE = ModelError("template", "Jinja Exception: roles must alternate", status=500)
CALLED: list[Piece] = [Accepted(), ToolCallChunk(0, "c", "Look", "{}"), Finished("tool_calls", None)]
WRITTEN = say('<tool_call>\n{"name": "Look", "arguments": {}}\n</tool_call>')
THOUGHT: list[Piece] = [Accepted(), ReasoningChunk("thinking " * 30), Finished("stop", None)]


@pytest.mark.parametrize(
    "reply",
    [
        [TEMPLATE],
        [ModelError("bad_request", "no", status=400)],
        [ModelError("overflow", "too long", status=400, n_ctx=8192, n_prompt=9000)],
        [ModelError("loading", "Loading model", status=503)],
        [ModelError("rate_limit", "slow down", status=429)],
        [ModelError("network", "gone")],
        [Accepted(), ModelError("network", "gone in the middle")],
        CALLED,
        WRITTEN,
        THOUGHT,
        say(""),
        say("too short"),
    ],
    ids=[
        "template", "400", "overflow", "503", "429", "network", "cut", "call", "written call", "thinking", "empty",
        "short",
    ],
)  # fmt: skip
async def test_every_failure_leads_to_the_transcript_in_the_same_compaction(rigs: Rigs, reply: list[Piece]) -> None:
    """L21: [continuation, transcript], the compaction succeeds, and the turn goes on."""
    rig = await rigs(reply, say(SUMMARY))
    await fill(rig)
    assert ways(rig) == ["continuation", "transcript"]
    assert len(rig.of(CompactionFinished)) == 1
    assert rig.of(CompactionFailed) == []
    assert rig.history()[-1].text == "ok"
    rig.check_log()


async def test_when_both_fail_nothing_changes(rigs: Rigs) -> None:
    """B17, M15, L21: two requests at most; the outcome is that of the transcript."""
    rig = await rigs([TEMPLATE], [ModelError("server", "boom", status=500)])
    await fill(rig)
    assert ways(rig) == ["continuation", "transcript"]
    assert rig.of(CompactionFinished) == []
    assert rig.history()[-1].text == "ok"


@pytest.mark.parametrize("reply", [[TEMPLATE], CALLED], ids=["template", "call"])
async def test_a_refusal_or_a_call_suspends_it(rigs: Rigs, reply: list[Piece]) -> None:
    """L23: the next compaction goes straight to the transcript; another model is tried; so is a restart."""
    rig = await rigs(reply, say(SUMMARY), say(SUMMARY), say(SUMMARY))
    await fill(rig, 2)
    assert ways(rig) == ["continuation", "transcript", "transcript"]
    line = (await rig.engine.status()).economy[0]
    assert line.state == "suspended"
    assert "until the next start" in line.why
    rig.hub.connection.choice = replace(CHOICE, name="another")
    await rig.engine.state.control.use(rig.hub.connection.choice)
    await fill(rig, 3)
    assert ways(rig)[-1] == "continuation"


@pytest.mark.parametrize(
    "reply",
    [
        [ModelError("overflow", "too long", status=400)],
        [ModelError("loading", "Loading model", status=503)],
        [ModelError("network", "gone")],
    ],
    ids=["overflow", "loading", "network"],
)
async def test_what_says_nothing_about_the_model_does_not_suspend(rigs: Rigs, reply: list[Piece]) -> None:
    """L23."""
    rig = await rigs(reply, say(SUMMARY), say(SUMMARY))
    await fill(rig, 2)
    assert ways(rig) == ["continuation", "transcript", "continuation"]


@pytest.mark.parametrize(
    ("replies", "fourth"),
    [(["bad", "good", "bad"], "continuation"), (["bad", "bad"], "transcript")],
)
async def test_two_soft_failures_in_a_row_suspend_it(rigs: Rigs, replies: list[str], fourth: str) -> None:
    """L24: fail, ok, fail → active; fail, fail → suspended."""
    script: list[list[Piece]] = []
    for reply in replies:
        script += [say(""), say(SUMMARY)] if reply == "bad" else [say(SUMMARY)]
    rig = await rigs(*script, say(SUMMARY))
    await fill(rig, len(replies) + 1)
    assert ways(rig)[-1] == fourth


# -- where it never runs -----------------------------------------------------------------------------------------------


async def test_without_the_key_nothing_is_asked_or_remembered(rigs: Rigs) -> None:
    """L2: no look at the server, no stamp, the transcript."""
    rig = await rigs(say(SUMMARY), key=False)
    await fill(rig)
    assert ways(rig) == ["transcript"]
    assert rig.hub.connection.looked == 0
    assert rig.hub.connection.slots.ledger.stamp is None


async def test_never_with_an_external_model(rigs: Rigs) -> None:
    """L1, L28, B25."""
    rig = await rigs(say(SUMMARY), local=False)
    await fill(rig)
    assert ways(rig) == ["transcript"]
    assert rig.hub.connection.looked == 0
    assert rig.hub.connection.slots.ledger.stamp is None
    assert rig.engine.state.compactor.summariser.continuation.last == ""  # it was not even considered
    line = (await rig.engine.status()).economy[0]
    assert (line.state, "not a local engine" in line.why) == ("off", True)


async def test_never_by_hand(rigs: Rigs) -> None:
    """L28, B18."""
    rig, _ = await nearly(rigs, say(SUMMARY))
    assert rig.hub.connection.slots.held(rig.engine.session.id) is not None
    rig.engine.compact()
    await rig.until(lambda e: isinstance(e, CompactionFinished))
    assert ways(rig) == ["transcript"]


async def test_never_after_the_server_refused_a_prompt(rigs: Rigs) -> None:
    """L28, B17: reactive compactions take the former path."""
    rig, n = await nearly(rigs, say(SUMMARY))
    rig.chat.replies.append([ModelError("overflow", "too long", status=400, n_ctx=4096, n_prompt=5000)])
    await rig.ask("short")
    assert ways(rig)[:1] == ["transcript"]
    assert rig.of(CompactionFinished)[0].entry.trigger == "overflow"
    assert n > 3


# -- what is told ------------------------------------------------------------------------------------------------------


async def test_telemetry_tells_each_request(rigs: Rigs) -> None:
    """L29: kind compact, the conversation, total, cached or null, computed, times; one line a request."""
    rig = await rigs(say(SUMMARY), say(""), say(SUMMARY))
    await fill(rig, 2)
    lines = [x for x in await rig.usage_lines() if x["kind"] == "compact"]
    assert [x["how"] for x in lines] == ["continuation", "continuation", "transcript"]
    assert {x["conv"] for x in lines} == {rig.engine.session.id}
    for line in lines:
        assert line["inp"] == line["cache_read"] + line["computed"]
        assert {"out", "ms", "prompt_ms", "predicted_ms"} <= set(line)
    quiet = await rigs(say(SUMMARY), chat=OneSlotChat(counts=False))
    await fill(quiet)
    [line] = [x for x in await quiet.usage_lines() if x["kind"] == "compact"]
    assert (line["inp"], line["cache_read"], line["computed"]) == (None, None, None)


async def test_a_compaction_by_hand_is_in_the_telemetry_too(rigs: Rigs) -> None:
    """L29, M44."""
    rig, _ = await nearly(rigs, say(SUMMARY))
    rig.engine.compact()
    await rig.until(lambda e: isinstance(e, CompactionFinished))
    await rig.idle()
    [line] = [x for x in await rig.usage_lines() if x["kind"] == "compact"]
    assert line["how"] == "transcript"


async def test_status_says_in_words_how_things_stand(rigs: Rigs) -> None:
    """Issue 4, section 5: off, on and held, on and lost, how the last one went."""
    off = await rigs(key=False)
    line = (await off.engine.status()).economy[0]
    assert (line.key, line.state) == ("compact_continuation", "off")
    rig, n = await nearly(rigs, say(SUMMARY))
    line = (await rig.engine.status()).economy[0]
    assert (line.state, "The server holds this conversation" in line.why) == ("on", True)
    await step(rig, n + 1)
    line = (await rig.engine.status()).economy[0]
    assert "went on with the conversation:" in line.why
    assert "from the cache" in line.why
    rig.engine.probe()
    await rig.idle()
    rig.hub.connection.slots.forget("the server went to sleep and dropped its cache")
    line = (await rig.engine.status()).economy[0]
    assert "A summary now would be a request of its own: the server went to sleep" in line.why


async def test_secrets_the_model_repeats_do_not_reach_the_notes(rigs: Rigs) -> None:
    """Case 137: a transcript is redacted before it is sent; a continuation has seen the raw text."""
    secret = "ghp_" + "a1B2c3D4e5" * 4
    rig = await rigs(say(SUMMARY.replace("keep the old API", f"the token is {secret}")))
    await fill(rig)
    assert ways(rig) == ["continuation"]
    assert secret not in rig.history()[0].text
    assert [to_wire(m) for m in rig.history()]


# -- refusals for lack of reduction ------------------------------------------------------------------------------------


async def test_no_summary_is_asked_for_when_even_an_empty_one_would_not_help(rigs: Rigs) -> None:
    """L25: three tiny messages and a huge one that stays: no request, nothing archived."""
    rig = await rigs(say(SUMMARY), window=Window(16_384, "discovery"))
    for n in range(3):
        await rig.ask(f"tiny {n}")
    await rig.ask("word " * 8_000)
    assert rig.engine.state.reading().over_threshold
    assert rig.engine.state.compactor.attempts.outcome == "refused"
    assert rig.chat.summary_requests == []
    assert rig.of(CompactionFinished) == []
    assert await rig.engine.omissions() == []


async def test_a_refusal_is_remembered_for_its_conversation_and_window(rigs: Rigs) -> None:
    """L26, L27: not tried again in vain, also after a visit elsewhere; another window is another question."""
    rig = await rigs(say(SUMMARY), window=Window(16_384, "discovery"))
    for n in range(3):
        await rig.ask(f"tiny {n}")
    await rig.ask("word " * 8_000)
    compactor, first = rig.engine.state.compactor, rig.engine.session.id
    refused = compactor.attempts
    assert refused.outcome == "refused"
    await rig.engine.open_conversation(None)
    assert compactor.attempts.outcome is None
    await rig.engine.open_conversation(first)
    assert compactor.attempts == refused
    rig.hub.connection.window = Window(16_000, "discovery")
    await rig.engine.state.connected()
    assert compactor.attempts.outcome is None

    compactor.attempts = refused
    await rig.engine.open_conversation(None)
    rig.hub.connection.window = Window(15_000, "discovery")
    await rig.engine.state.connected()
    await rig.engine.open_conversation(first)
    assert compactor.attempts.outcome is None
