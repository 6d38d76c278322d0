"""Generated conversations through the real engine with a fake model: every invariant, at every window (I1–I8).

What a person, a model and its tools do is drawn: sizes from nothing to a third of a small window, scripts, broken
arguments, parallel and repeated calls, failing tools and summaries, pictures, compactions by hand, undo.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marextui.context.budget import Window
from marextui.context.messages import ImagePart, TextPart
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionReverted,
    Notice,
    StepRefused,
    TurnFinished,
)
from marextui.engine.policy import Policy
from marextui.tools.types import ToolResult
from tests.cases.agents import Agent, plain_summary
from tests.cases.checks import all_holds
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedTools, call, say

WINDOWS = st.sampled_from([4_096, 4_096, 6_000, 8_192, 16_384, 32_768, 65_536, 131_072, 200_000])
SHARES = st.sampled_from([0.0, 0.001, 0.01, 0.03, 0.1, 0.3])
"""Of the window, in characters of four to a token."""
MOST_CHARS = 16_000
SCRIPTS = st.sampled_from(["words and words\n", "源代码和测试", "{'key': 1},", "é🙂 ", "a" * 300, "QUJD/+" * 12 + "\n"])
ARGUMENTS = st.sampled_from(['{"path": "a.py"}', '{"path": "b.py", "limit": 3}', "{}", "", '{"path": "cut of', "[1]"])
AFTER = st.sampled_from(["", "", "", "compact", "undo", "picture"])


@dataclass(frozen=True)
class Turn:
    """What is said in a turn: texts as (script, share of the window)."""

    asked: tuple[str, float]
    rounds: tuple[tuple[tuple[str, ...], str, tuple[str, float], bool], ...]
    answer: tuple[str, float]
    after: str


TEXT = st.tuples(SCRIPTS, SHARES)
ROUNDS = st.tuples(
    st.lists(ARGUMENTS, min_size=1, max_size=2).map(tuple),
    st.sampled_from(["Look", "Read", "Bash"]),
    TEXT,
    st.booleans(),
)
TURNS = st.lists(st.builds(Turn, TEXT, st.lists(ROUNDS, max_size=3).map(tuple), TEXT, AFTER), min_size=1, max_size=6)
SUMMARIES = st.sampled_from(
    [plain_summary("the work goes on"), "", "<think>hm", plain_summary(*["a fact"] * 40), "no headings"]
)


def text(drawn: tuple[str, float], window: int) -> str:
    script, share = drawn
    size = min(int(share * window * 4), MOST_CHARS)
    return (script * (size // len(script) + 1))[:size]


async def play(turns: list[Turn], window: int, summary: str, policy: Policy, folder: Path) -> Rig:
    outputs = [ToolResult(text(o, window), is_error=bad) for t in turns for calls, _, o, bad in t.rounds for _ in calls]
    tools = ScriptedTools({name: list(outputs) or "ok" for name in ("Look", "Read", "Bash")})
    r = await Rig(
        folder,
        chat=Agent(summarise=lambda request: say(summary)),
        tools=tools,
        window=Window(window, "discovery"),
        policy=policy,
    ).start(connect=False)
    for n, t in enumerate(turns):
        r.chat.replies = [
            call(*((name, a) for a in calls), ids=[f"c{n}-{k}-{i}" for i in range(len(calls))], text="on it" * (k % 2))
            for k, (calls, name, _, _) in enumerate(t.rounds)
        ]
        r.chat.replies.append(say(text(t.answer, window) or "done"))
        mark = len(r.events)
        asked = text(t.asked, window) or "go on"
        if t.after == "picture":
            r.engine.submit_content((TextPart(asked), ImagePart("data:image/png;base64,iVBORw0KGgo=")))
        else:
            r.engine.submit(asked)
        await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
        await r.idle()
        r.chat.replies = []
        mark = len(r.events)
        if t.after == "compact":
            r.engine.compact()
            await r.until(lambda e: isinstance(e, CompactionFinished | CompactionFailed | Notice), after=mark)
        elif t.after == "undo":
            r.engine.undo_compaction()
            await r.until(lambda e: isinstance(e, CompactionReverted | Notice), after=mark)
        await r.idle()
    return r


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(TURNS, WINDOWS, SUMMARIES, st.booleans(), st.sampled_from([0.05, 0.3, 0.65]))
def test_every_invariant_holds_in_any_conversation(
    turns: list[Turn], window: int, summary: str, offline: bool, compact_at: float
) -> None:
    async def run() -> None:
        policy = Policy(offline_summaries=offline, compact_at=compact_at)
        with tempfile.TemporaryDirectory() as folder:
            r = await play(turns, window, summary, policy, Path(folder))
            try:
                await all_holds(r)
                ends = [e.end for e in r.of(TurnFinished)]
                assert len(ends) == len(turns)
                assert set(ends) <= ({"done", "refused"} if r.of(StepRefused) else {"done"}), [
                    n.text for n in r.of(Notice)
                ]
            finally:
                await r.engine.close()

    asyncio.run(run())
