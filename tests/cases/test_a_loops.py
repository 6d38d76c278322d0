"""Loops and thresholds: a compaction that cannot help is not tried, one that does not help is not repeated (1–15)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from marextui.context.budget import Window, budget_for, check_compact_at, check_window, reserve_for, threshold_for
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    Notice,
    StepRefused,
    StepStarted,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.models.types import ChatRequest, ModelError, Usage
from marextui.tools.box import default_toolbox
from marextui.tools.types import ToolContext, ToolResult
from tests.cases.agents import Agent, call, plain_summary, say, wire_text
from tests.cases.checks import all_holds
from tests.cases.conftest import Start
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Piece, ScriptedTools

WINDOWS = (4_096, 8_192, 16_384, 32_768, 200_000)


def summaries_of(tokens: int) -> Agent:
    """A model whose summaries want to take so many tokens."""
    lines = [f"item {n}: this part of the work goes on as agreed" for n in range(max(1, tokens // 14))]
    return Agent(summarise=lambda request: say(plain_summary(*lines)))


def by_model(r: Rig) -> list[CompactionFinished]:
    return [e for e in r.of(CompactionFinished) if e.entry.summarizer == "model"]


# -- a floor that no compaction moves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS[:4])
async def test_a_large_floor_and_a_poor_summary_make_no_chain_of_compactions(start: Start, window: int) -> None:
    """Case 1: S 60 % of the window, a message of 45 % of what is left, summaries of 40 %: one compaction at most."""
    r = await start(window, rules=int(0.5 * window * 4), chat=summaries_of(int(0.4 * window)))
    for n in range(4):
        await r.ask(f"question {n} " + "word " * (window // 60))
    before = len(r.of(CompactionFinished)) + len(r.of(CompactionFailed))
    await r.ask("word " * int(0.45 * (r.engine.state.reading().budget or 0) * 4 / 5))
    assert len(r.of(CompactionFinished)) + len(r.of(CompactionFailed)) - before <= 2
    assert len(r.of(CompactionFinished)) <= 1 + 4
    await all_holds(r)


@pytest.mark.parametrize(
    ("window", "rules", "prompt", "contributor", "largest"),
    [
        (32_768, 24_000, 130_000, "the system prompt", "the system prompt"),
        (8_192, 26_000, 0, "the rules (MAREX.md)", "rules"),
        (4_096, 12_500, 400, "the rules (MAREX.md)", "rules"),
        (2_048, 0, 8_000, "the system prompt", "the system prompt"),
    ],
)
async def test_a_floor_above_the_window_is_named_before_anything_is_tried(
    start: Start, window: int, rules: int, prompt: int, contributor: str, largest: str
) -> None:
    """Case 2: system, rules and tools are larger than what can be sent; three short messages, nothing is compacted."""
    r = await start(window, rules=rules, chat=Agent(), policy=Policy(base_prompt="obey. " * (prompt // 6)))
    for text in ("hello", "are you there", "please answer"):
        assert (await r.ask(text)).end == "refused"
    assert r.chat.requests == []
    assert all(f"the biggest contributor is {contributor}" in e.reason for e in r.of(StepRefused))
    assert r.of(StepRefused)[0].floor[0][0] == largest
    assert r.of(CompactionFinished) == []


async def test_forty_tools_on_a_small_window_are_named(start: Start) -> None:
    """Cases 2, 6: forty tool servers' schemas; what to take away is said."""
    tools = ScriptedTools({f"Tool{n}_" + "x" * 180: "ok" for n in range(40)})
    r = await start(4_096, tools=tools)
    assert (await r.ask("hello")).end == "refused"
    [refused] = r.of(StepRefused)
    assert "the biggest contributor is the tool descriptions" in refused.reason
    assert refused.floor[0][0] == "tools"


@pytest.mark.parametrize("reserve", [8_192, 9_000, 400_000])
async def test_a_reserve_that_takes_the_window_is_named_as_what_takes_it(start: Start, reserve: int) -> None:
    """Case 5's neighbour: a reserve somebody set too large; neither the message nor the tools are to blame."""
    r = await start(8_192, policy=Policy(reserve_override=reserve))
    await r.ask("hello")
    [refused] = r.of(StepRefused)
    assert "the biggest contributor is the room kept for the answer" in refused.reason
    assert refused.floor[0][0] == "room for the answer"


@pytest.mark.parametrize("window", WINDOWS[:4])
async def test_one_turn_larger_than_the_threshold_is_cut_inside(start: Start, window: int) -> None:
    """Case 3: U, C1, R1 = 120 % of the threshold; the turn ends well, below its budget."""
    size = int(1.2 * 0.65 * window * 4)
    output = "".join(f"line {n} of the output\n" for n in range(size // 22))
    replies = [call(*((("Cat", "{}"),) * 1), ids=[f"c{n}"]) for n in range(8)]
    r = await start(window, chat=Agent([*replies, say("done")]), tools=ScriptedTools({"Cat": output}))
    assert (await r.ask("show me the output " * 5)).end == "done"
    await all_holds(r)


# -- reserves and windows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_output", [None, 0, 1, 128, 8_192, 32_000, 128_000, 2_000_000])
@pytest.mark.parametrize("window", [512, 1_024, 2_048, *WINDOWS, 400_000, 2_000_000])
def test_no_output_limit_takes_more_than_a_quarter_of_a_window(window: int, max_output: int | None) -> None:
    """I15, cases 5, 6, 15, 33: unset, zero, huge, larger than the window; usable is three quarters at least."""
    reserve = reserve_for(window, max_output)
    assert 0 <= reserve <= 4_096
    assert window - reserve >= 0.75 * window
    budget = budget_for(window, reserve, 0)
    assert budget is not None
    assert threshold_for(budget, 0.65) == pytest.approx(0.65 * budget)


@pytest.mark.parametrize("window", WINDOWS)
async def test_half_of_every_window_is_usable_with_the_tools_of_the_product(start: Start, window: int) -> None:
    """I15, cases 5, 6: an output limit of 0 and the product's own prompt and tools leave half to the conversation."""
    box = default_toolbox(Path.cwd(), bash_timeout=60)
    r = await start(window, policy=Policy(max_output=0), tools=box)
    await r.ask("hello")
    reading = r.engine.state.reading()
    assert reading.budget is not None
    assert reading.budget >= 0.5 * window
    assert r.chat.turns[0].max_tokens == reserve_for(window, None)


@pytest.mark.parametrize("value", ["8192", 8192, " 8192 "])
def test_a_window_in_words_is_a_number(value: object) -> None:
    """Case 7's neighbour: settings and environment give texts."""
    assert check_window(value) == 8_192


@pytest.mark.parametrize("value", [0, -1, 8192.5, "8k", "", None, True, [8192], float("nan"), float("inf"), "1e4"])
def test_what_is_no_window_is_refused_by_name_and_not_guessed(value: object) -> None:
    """Case 7: −13,000 tokens came of a guess; here nothing is computed from it."""
    with pytest.raises(ValueError, match="window must be a whole number of tokens above 0"):
        check_window(value)


@pytest.mark.parametrize("value", [0, 1, 65, -0.1, "65", "65%", None, True, float("nan"), float("inf"), [0.5]])
def test_what_is_no_share_is_refused_by_name(value: object) -> None:
    """Case 15: a percentage taken for a share fires never, or always."""
    with pytest.raises(ValueError, match="compact_at"):
        check_compact_at(value)


async def test_an_unknown_model_sends_everything_and_compacts_nothing(start: Start) -> None:
    """Case 7: model "foo-local", no window told; said once, not on every message."""
    r = await start(None, chat=Agent())
    for n in range(12):
        await r.ask(f"question {n} " + "word " * 800)
    assert r.chat.summary_requests == []
    assert len(r.chat.turns[-1].messages) == 24
    assert "unknown" in (await r.engine.status()).why_no_compaction
    assert len([e for e in r.of(Notice) if "window" in e.text]) <= 1


async def test_a_large_output_limit_does_not_bring_the_compaction_forward(start: Start) -> None:
    """Case 15: window 400k, limit 128k, 8k asked for; it fires where the gauge says, not at 11 to 65 %."""
    r = await start(400_000, policy=Policy(max_output=128_000), chat=Agent())
    used = 0
    while not r.chat.summary_requests:
        used = r.engine.state.reading().used
        await r.ask("word " * 16_000)
    gauge = (await r.engine.status()).gauge
    assert gauge.threshold is not None
    assert used < gauge.threshold <= used + 21_000
    assert gauge.threshold > 0.6 * 400_000
    assert gauge.window_source == "discovery"  # where the figure comes from is told


# -- progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
async def test_summaries_that_just_fit_do_not_trigger_again_at_once(start: Start, window: int) -> None:
    """Cases 1, 14: the summary wants 49 % of the window; what it leaves is at most 0.8 of the threshold."""
    r = await start(window, chat=summaries_of(int(0.49 * window)))
    for n in range(14):
        await r.ask(f"question {n} " + "word " * int(window * 0.08 * 4 / 5))
    assert by_model(r)
    await all_holds(r)
    starts = [n for n, e in enumerate(r.events) if isinstance(e, CompactionFinished)]
    turns = [n for n, e in enumerate(r.events) if isinstance(e, TurnFinished)]
    for first, second in pairwise(starts):
        assert sum(first < t < second for t in turns) >= 2, "two messages fit between two compactions"


@pytest.mark.parametrize("window", [2_048, 4_096, 8_192])
async def test_400_one_line_messages_are_compacted_or_left_alone_but_never_in_vain(start: Start, window: int) -> None:
    """Case 10: each compaction frees a tenth at least, and no message starts two."""
    r = await start(window, chat=Agent())
    for n in range(200):
        await r.ask(f"line {n}")
    for e in r.of(CompactionFinished):
        assert e.entry.tokens_after <= 0.9 * e.entry.tokens_before
    assert len(r.chat.summary_requests) <= 200 * 2 * 6 // (0.2 * 0.65 * window) + 1
    await all_holds(r)


async def test_compact_by_hand_on_small_change_says_what_it_did(start: Start) -> None:
    """Case 10, the reverse: a forced compaction that answers "already under target" and does nothing."""
    r = await start(200_000, chat=Agent())
    for n in range(60):
        await r.ask(f"line {n}, and a few words more than that to have something to say about it")
    r.engine.compact()
    finished = await r.until(lambda e: isinstance(e, CompactionFinished | CompactionFailed))
    assert isinstance(finished, CompactionFinished)
    assert finished.entry.tokens_after < finished.entry.tokens_before


async def test_growth_and_shrinkage_in_turn_do_not_confuse_the_trigger(start: Start) -> None:
    """Case 10's neighbour: large outputs come and leave as markers; a summary is asked for only when that is not
    enough, and never twice for the same."""
    outputs = ["x\n" * (1_200 if n % 2 else 10) for n in range(24)]
    replies: list[list[Piece]] = []
    for n in range(24):
        replies += [call(("Cat", json.dumps({"n": n})), ids=[f"c{n}"]), say("seen")]
    r = await start(8_192, chat=Agent(replies), tools=ScriptedTools({"Cat": outputs}))
    for n in range(24):
        await r.ask(f"show number {n}")
    assert len(r.chat.summary_requests) <= 1
    await all_holds(r)


async def test_what_internal_requests_cost_feeds_no_trigger(start: Start) -> None:
    """Case 11: the summary's own usage is 110 % of the threshold; probes and summaries count apart."""
    r = await start(8_192, chat=Agent(summarise=lambda q: say(plain_summary(), Usage(7_000, 700))))
    while not r.of(CompactionFinished):
        await r.ask("word " * 400)
    requests = len(r.chat.summary_requests)
    for _ in range(3):
        await r.ask("short")
    assert len(r.chat.summary_requests) == requests
    assert not any(t.end == "error" for t in r.of(TurnFinished))


@pytest.mark.parametrize("window", WINDOWS[:4])
async def test_a_summariser_that_always_fails_is_asked_three_times(start: Start, window: int) -> None:
    """Case 13: a stub that raises ten times; the conversation goes on without it, /compact may ask again."""
    bad = Agent(summaries=[[ModelError("server", "boom", status=500)] for _ in range(40)])
    r = await start(window, chat=bad)
    for n in range(30):
        assert (await r.ask(f"question {n} " + "word " * int(window * 0.06 * 4 / 5))).end == "done"
    assert len(r.chat.summary_requests) == 3
    assert [e.reason for e in r.of(CompactionFailed) if "only /compact tries again" in e.reason]
    bad.summaries = []
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished) and e.entry.trigger == "manual")
    assert len(r.chat.summary_requests) == 4
    await all_holds(r)


# -- what is freed is read again --------------------------------------------------------------------------------------


class Reader(ScriptedTools):
    """Files of a project: the same text whenever they are read."""

    def __init__(self, files: Sequence[str], size: int) -> None:
        super().__init__({"Read": ""})
        self.texts = {f: "".join(f"BODY-{f} line {n}\n" for n in range(size))[:size] for f in files}

    async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult:
        self.ran.append((name, arguments))
        return ToolResult(self.texts[json.loads(arguments)["file_path"]])


def rereads(files: Sequence[str], *, a_turn: bool) -> Agent:
    """An agent that wants to see all files at once and reads those it does not see, for ever (or once a turn)."""
    asked = 0

    def reply(request: ChatRequest) -> list[Piece]:
        nonlocal asked
        seen = wire_text(request)
        missing = [f for f in files if f"BODY-{f} " not in seen]
        if not missing or (a_turn and request.messages[-1]["role"] == "tool"):
            return say("I have seen them.")
        asked += 1
        return call(
            *(("Read", json.dumps({"file_path": f})) for f in missing[:5]), ids=[f"r{asked}-{n}" for n in range(5)]
        )

    return Agent(reply=reply)


@pytest.mark.parametrize("window", WINDOWS[1:4])
async def test_an_agent_that_reads_all_again_after_each_compaction_is_stopped_after_three(
    start: Start, window: int
) -> None:
    """Case 9: 29 re-reads and 30 compactions in 15 minutes; here three compactions, and a sentence that says which."""
    files = [f"f{n}.py" for n in range(26)]
    r = await start(
        window,
        chat=rereads(files, a_turn=False),
        tools=Reader(files, int(window * 0.037 * 4)),
        policy=Policy(max_tool_rounds=500),
    )
    done = await r.ask("Compare all files.")
    assert done.end == "error"
    assert len(r.chat.summary_requests) <= 4
    assert len(r.of(CompactionFinished)) <= 4
    [told] = [e for e in r.of(Notice) if "goes round in circles" in e.text]
    assert "f0.py" in told.text
    assert "/model" in told.hint
    await all_holds(r)


async def test_reading_the_same_again_turn_after_turn_stops_the_compactions_and_not_the_person(start: Start) -> None:
    """Case 9's neighbour: each turn is short, the chain of compactions runs across them."""
    files = [f"f{n}.py" for n in range(23)]
    r = await start(8_192, chat=rereads(files, a_turn=True), tools=Reader(files, 1_200))
    ends = [(await r.ask("Compare them once more.")).end for _ in range(30)]
    assert set(ends) == {"done"}
    assert len(r.chat.summary_requests) <= 4
    assert [e for e in r.of(Notice) if "was read again each time" in e.text]
    assert "was read again each time" in (await r.engine.status()).why_no_compaction
    await all_holds(r)


async def test_work_on_the_same_files_goes_on(start: Start) -> None:
    """Case 9, no false alarm: read, edit, read what was edited, test; through many compactions."""
    state = {"n": 0}

    class Workshop(ScriptedTools):
        async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult:
            self.ran.append((name, arguments))
            if name == "Edit":
                state["n"] += 1
                return ToolResult("edited")
            return ToolResult("".join(f"{name} {state['n']} line {n}\n" for n in range(60)))

    replies: list[list[Piece]] = []
    for n in range(24):
        path = f"src/part{n % 4}.py"
        edit = {"file_path": path, "old_string": f"old {n} " * 20, "new_string": f"new {n} " * 60}
        replies += [
            call(("Read", json.dumps({"file_path": path})), ids=[f"a{n}"]),
            call(("Edit", json.dumps(edit)), ids=[f"b{n}"]),
            call(("Bash", json.dumps({"command": "pytest -q"})), ids=[f"c{n}"]),
        ]
    r = await start(
        8_192,
        chat=Agent([*replies, say("all done")]),
        tools=Workshop({"Read": "", "Edit": "", "Bash": ""}),
        policy=Policy(max_tool_rounds=500),
    )
    assert (await r.ask("Port the four parts and keep the tests green.")).end == "done"
    assert len(r.of(CompactionFinished)) >= 3
    assert not [e for e in r.of(Notice) if "read again" in e.text and "compacted" in e.text]
    await all_holds(r)


async def test_the_gauge_and_the_trigger_share_one_figure(start: Start) -> None:
    """Case 10: one budget for both; a step over the threshold and a step under it are told apart by the same number."""
    r = await start(8_192, chat=Agent())
    while not r.of(CompactionFinished):
        await r.ask("word " * 300)
    steps = r.of(StepStarted)
    threshold = steps[-2].threshold  # that of the step before: memory has grown with the compaction
    assert steps[-2].used < threshold <= r.of(CompactionFinished)[0].entry.tokens_before
    assert r.engine.state.meter.window == Window(8_192, "discovery")
