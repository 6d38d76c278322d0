"""The prompt's prefix: what was sent once is sent again to the byte, whatever the clock, the disk or a count says.

Cases 106, 107 of the reported ones; I7. `tests/property/test_view_invariants.py` proves it of the fold alone.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from marextui.context.budget import Window
from marextui.context.fold import fold
from marextui.context.messages import canonical_json
from marextui.engine.assembly import wire_view
from marextui.engine.events import CompactionFinished, OutputsReplaced, ViewReduced
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, ReasoningChunk, TextChunk, Usage
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


def bodies(r: Rig) -> list[list[str]]:
    """Each request as bytes: its tools, then message by message."""
    return [[canonical_json(list(q.tools)), *(canonical_json(m) for m in q.messages)] for q in r.chat.turns]


def thinking(thought: str, text: str, usage: Usage) -> list[Any]:
    return [Accepted(), ReasoningChunk(thought), TextChunk(text), Finished("stop", usage)]


async def test_nothing_that_moves_by_itself_stands_in_the_prompt(rig: StartRig, tmp_path: Path) -> None:
    """Case 106: a day passes, counts differ, another process touches files, the disk is read: no byte of it changes."""
    replies: list[Any] = []
    for n in range(6):
        replies += [
            call(("Look", json.dumps({"n": n})), ids=[f"c{n}"], usage=Usage(3_000 + 900 * n, 30)),
            thinking(f"thought {n}", f"answer {n}", Usage(3_400 + 900 * n, 40, n * 100)),
        ]
    r = await rig(
        window=Window(200_000, "discovery"), chat=ScriptedChat(replies), tools=ScriptedTools({"Look": "seen " * 60})
    )
    for n in range(6):
        await r.ask(f"question {n}")
        r.clock.time += 90_000
        (tmp_path / "project" / f"new-{n}.txt").write_text("a new file")
        await r.engine.reload_memory()
        await r.engine.status()
        await r.engine.context()
    assert r.of(OutputsReplaced) == []
    sent = bodies(r)
    assert len(sent) == 12
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


async def test_the_prefix_breaks_only_where_an_event_says_so(rig: StartRig) -> None:
    """Case 107: decisions are frozen in the log; between two of them each request begins with the one before."""
    replies: list[Any] = []
    for n in range(10):
        replies += [call(("Look", json.dumps({"n": n})), ids=[f"c{n}"]), say(f"answer {n}")]
    r = await rig(
        window=Window(12_000, "discovery"), chat=ScriptedChat(replies), tools=ScriptedTools({"Look": "seen " * 300})
    )
    for n in range(10):
        await r.ask(f"question {n} " + "words " * 120)
    sent, broken = bodies(r), 0
    for before, after in pairwise(sent):
        broken += after[: len(before)] != before
    announced = len(r.of(OutputsReplaced)) + len(r.of(ViewReduced)) + len(r.of(CompactionFinished))
    assert 0 < broken <= announced


async def test_the_request_is_a_pure_function_of_the_log(rig: StartRig) -> None:
    """Case 107: folded anew from the disk, in another process at another time, it is the same to the byte."""
    chat = ScriptedChat([call(("Look", "{}"), ids=["a"]), say("1"), say("2"), say("3")])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "seen " * 300}))
    for n in range(3):
        await r.ask(f"question {n}")
    part = r.engine.state.system_part()
    live = wire_view(part, r.history(), echo_reasoning=False)
    entries = [x.entry for x in await r.records()]
    assert wire_view(part, fold(entries).history(), echo_reasoning=False) == live
    conversation = r.engine.session.id
    await r.engine.close()
    r.clock.time += 10**6
    again = await rig(wanted=conversation, ids=RandomIds(), tools=ScriptedTools({"Look": "x"}), clock=r.clock)
    state = again.engine.state
    assert wire_view(state.system_part(), again.history(), echo_reasoning=False) == live
