"""The turn's request from one function: byte for byte what the former builder made, without effects (L34, L35)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.entry_codec import encode
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall, to_wire
from marextui.engine.assembly import Limits, turn_request
from marextui.engine.policy import Policy
from marextui.engine.prompt import SystemPart
from marextui.models.openai_chat import body_bytes, request_body
from marextui.models.types import ChatRequest
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, call, say

TOOLS: tuple[dict[str, Any], ...] = (
    {"type": "function", "function": {"name": "Read", "description": "Read", "parameters": {"type": "object"}}},
)
HISTORY = (
    Message("summary-1", "user", "[Earlier conversation summary]\n## Session Intent\n- go on", origin="summary"),
    Message("summary-1-ack", "assistant", "Noted.", origin="summary"),
    Message("m-1", "user", (TextPart("Look at « this »"), ImagePart("data:image/png;base64,AA==", "low")), turn=1),
    Message("m-2", "assistant", "", (ToolCall("c-1", "Read", '{"path": "a.py"}'),), reasoning="hm", origin="model"),
    Message("m-3", "tool", "x = 1", tool_call_id="c-1", name="Read", origin="tool"),
    Message("m-4", "assistant", "It sets x.", reasoning="easy", origin="model"),
    Message("m-5", "user", "And y?", turn=2),
)


def frozen_body(part: SystemPart, history: tuple[Message, ...], limits: Limits, may_call: bool, echo: bool) -> bytes:
    """A frozen copy of how a turn's body was made before the extraction. Never change it with the code."""
    wire = ({"role": "system", "content": part.text}, *(to_wire(m, echo_reasoning=echo) for m in history))
    extra: dict[str, Any] = {}
    if limits.local:
        extra["return_progress"] = True
    if not may_call:
        extra["tool_choice"] = "none"
    body: dict[str, Any] = {"model": "m", "messages": list(wire)}
    if part.tools:
        body["tools"] = list(part.tools)
    if limits.max_tokens is not None:
        body["max_tokens"] = limits.max_tokens
    if limits.temperature is not None:
        body["temperature"] = limits.temperature
    body["stream"] = True
    body["stream_options"] = {"include_usage": True}
    body.update(extra)
    return body_bytes(body)


MATRIX = list(
    itertools.product((True, False), (TOOLS, ()), (True, False), (True, False), (None, 0.3), (None, 1024), (0, 4, 7))
)


@pytest.mark.parametrize(("local", "tools", "may_call", "echo", "temperature", "max_tokens", "length"), MATRIX)
def test_the_body_is_byte_for_byte_what_it_was(
    local: bool,
    tools: tuple[dict[str, Any], ...],
    may_call: bool,
    echo: bool,
    temperature: float | None,
    max_tokens: int | None,
    length: int,
) -> None:
    """L35: local × tools × tool_choice none × reasoning echo × temperature × output × length of the view."""
    part = SystemPart("Base.", "# Rules\nbe brief", "", tools)
    limits = Limits(25, max_tokens, temperature, local, bool(tools))
    history = HISTORY[:length]
    request = turn_request(part, history, limits, echo_reasoning=echo, may_call=may_call, conversation="c")
    assert body_bytes(request_body(request, "m")) == frozen_body(part, history, limits, may_call, echo)
    assert request.message_ids == tuple(m.id for m in history)
    assert (request.kind, request.conversation) == ("main", "c")


async def logged(rig: Rig) -> list[Any]:
    return [(r.seq, encode(r.entry)) for r in await rig.records()]


@pytest.mark.parametrize("on", [False, True])
async def test_a_dry_look_gives_the_next_request_and_changes_nothing(tmp_path: Path, on: bool) -> None:
    """L34, with the keys on and off: the log is the same before and after, and the turn then sends exactly that."""
    chat = ScriptedChat(replies=[call(("Look", "{}")), say("Done."), say("Again.")])
    policy = Policy(compact_continuation=on, prewarm="on" if on else "off", proj_snapshot=on)
    rig = await Rig(tmp_path, chat=chat, window=Window(8192, "discovery"), policy=policy).start()
    await rig.ask("Look around.")
    state, connection = rig.engine.state, rig.hub.connection
    before, view = await logged(rig), rig.history()
    first, second = state.dry_request(connection), state.dry_request(connection)
    assert first == second
    assert await logged(rig) == before
    assert rig.history() == view
    assert len(chat.requests) == 2

    await rig.ask("And again?")
    sent = chat.requests[2]
    assert sent.messages[: len(first.messages)] == first.messages
    assert body_of(replace(sent, messages=first.messages)) == body_of(first)
    await rig.engine.close()


def body_of(request: ChatRequest) -> bytes:
    return body_bytes(request_body(request, "m"))
