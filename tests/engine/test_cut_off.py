"""Replies that end at the limit on their length: half a call is not run, half an answer is told to be one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.engine.events import Notice, PermissionAsked
from marextui.engine.permissions import Decision
from marextui.models.types import Accepted, Finished, TextChunk, ToolCallChunk
from marextui.tools.box import default_toolbox
from marextui.tools.read_state import ReadState
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Piece, ScriptedChat, call, say

Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(*replies: list[Piece], allowed: bool = True) -> Rig:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        (project / "a.txt").write_text("first\nsecond\nthird\n")
        seen = ReadState()
        kinds = {kind: Decision("once") for kind in ("edit", "write", "bash")}
        r = Rig(
            tmp_path,
            chat=ScriptedChat([list(x) for x in replies]),
            tools=default_toolbox(project, bash_timeout=10, read_state=seen),
            seen=seen,
            window=Window(32_768, "discovery"),
            unattended=kinds if allowed else None,
        )
        made.append(await r.start(connect=False))
        return r

    yield start
    for one in made:
        await one.engine.close()


def cut_off(*calls: tuple[str, str]) -> list[Piece]:
    chunks = [ToolCallChunk(n, f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls)]
    return [Accepted(), *chunks, Finished("length", None)]


WHOLE = json.dumps({"file_path": "a.txt", "content": "first\nsec"})


@pytest.mark.parametrize(
    "arguments", [WHOLE, WHOLE[:-2], '{"file_path": "a.txt"', ""], ids=["closed", "cut", "early", "none"]
)
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_call_that_was_cut_off_is_neither_run_nor_asked_about(
    rig: Start, arguments: str, allowed: bool
) -> None:
    """Some servers close the JSON of a reply that ended at its limit: half a file would replace a whole one."""
    look = call(("Read", '{"file_path": "a.txt"}'), ids=["r"])
    r = await rig(look, cut_off(("Write", arguments)), say("In parts, then."), allowed=allowed)
    done = await r.ask("write it again")
    assert done.end == "done"
    assert (r.folder / "project" / "a.txt").read_text() == "first\nsecond\nthird\n"
    result = r.engine.session.conversation.messages[-2]
    assert result.is_error
    assert "cut off by the limit on its length" in result.text
    assert r.of(PermissionAsked) == []
    r.check_log()


async def test_the_calls_before_the_one_that_was_cut_off_are_run(rig: Start) -> None:
    r = await rig(cut_off(("Bash", '{"command": "echo one > b.txt"}'), ("Bash", '{"command": "echo two >')), say("ok"))
    await r.ask("go")
    assert (r.folder / "project" / "b.txt").read_text() == "one\n"
    assert [m.is_error for m in r.engine.session.conversation.messages if m.role == "tool"] == [False, True]
    r.check_log()


async def test_an_answer_that_was_cut_off_is_said_to_be_incomplete(rig: Start) -> None:
    reply: list[Piece] = [Accepted(), TextChunk("The first half of"), Finished("length", None)]
    r = await rig(reply, say("whole"))
    assert (await r.ask("tell me")).end == "done"
    (told,) = [n for n in r.of(Notice) if "cut off" in n.text]
    assert told.level == "warning"
    assert "max_output" in told.hint
    await r.ask("go on")
    assert len([n for n in r.of(Notice) if "cut off" in n.text]) == 1
    assert [m.text for m in r.history()] == ["tell me", "The first half of", "go on", "whole"]
