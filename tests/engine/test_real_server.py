"""The real llama.cpp server on a scripted 1 MB model: what no fake can promise (issue 2, section 5)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from marextui.context.budget import Window
from marextui.models.connection import EmbeddedConnection
from marextui.models.embedded import EmbeddedChat, EmbeddedServer, template_path
from marextui.models.hub import Hub
from marextui.models.openai_chat import OpenAIChat
from marextui.models.types import (
    ChatRequest,
    Chunk,
    Finished,
    LoadProgress,
    ModelChoice,
    ModelError,
    PromptProgress,
    TextChunk,
    ToolCallChunk,
)
from tests.stubs.tiny_model import DEFAULT_REPLY, call_text, clean, ignore_progress, tiny_gguf, tiny_server

pytestmark = pytest.mark.server

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "Read",
            "description": "Read a file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    },
)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def ask(chat: EmbeddedChat | OpenAIChat, *messages: dict[str, str], **fields: Any) -> list[Chunk]:
    return [c async for c in chat.stream(ChatRequest(messages, **fields))]


def text_of(chunks: list[Chunk]) -> str:
    return clean("".join(c.text for c in chunks if isinstance(c, TextChunk)))


def end_of(chunks: list[Chunk]) -> Finished:
    assert isinstance(chunks[-1], Finished)
    assert sum(isinstance(c, Finished) for c in chunks) == 1
    return chunks[-1]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    says = {"tool": call_text("Read", '{"path": "a.py"}'), "endless": "on and on"}
    async with tiny_server(tmp_path, says=says, endless=("endless",)) as running:
        yield running


@pytest.fixture
async def chat(server: EmbeddedServer) -> AsyncIterator[EmbeddedChat]:
    model = EmbeddedChat(server, silence_timeout=30)
    yield model
    await model.aclose()


async def test_streams_with_usage_and_finds_its_prefix_in_the_cache_on_turn_two(chat: EmbeddedChat) -> None:
    first = [{"role": "system", "content": "You are a test."}, user("Hello. " + "filler " * 400)]
    one = await ask(chat, *first)
    assert text_of(one) == DEFAULT_REPLY
    usage = end_of(one).usage
    assert usage is not None
    assert usage.inp is not None
    assert usage.inp > 2800
    assert usage.cache_read == 0
    assert len([c for c in one if isinstance(c, TextChunk)]) > 3, "word by word"
    assert end_of(one).timings["prompt_n"] == usage.inp

    reply = "".join(c.text for c in one if isinstance(c, TextChunk))
    two = end_of(await ask(chat, *first, {"role": "assistant", "content": reply}, user("And now?"))).usage
    assert two is not None
    assert two.inp is not None
    assert two.cache_read is not None
    assert two.cache_read >= usage.inp, "the prefix is byte-stable, so only the new message is computed"
    assert two.inp - two.cache_read < 120


async def test_tool_calls_come_out_as_tool_calls(chat: EmbeddedChat) -> None:
    chunks = await ask(chat, user("read it #tool"), tools=TOOLS)
    calls = [c for c in chunks if isinstance(c, ToolCallChunk)]
    assert end_of(chunks).finish_reason == "tool_calls"
    assert [c.name for c in calls if c.name] == ["Read"]
    assert calls[0].id
    assert json.loads("".join(c.arguments for c in calls)) == {"path": "a.py"}


async def test_a_request_in_one_piece(chat: EmbeddedChat) -> None:
    chunks = await ask(chat, user("Hi"), stream=False, max_tokens=50, temperature=0.1)
    assert text_of(chunks) == DEFAULT_REPLY
    assert end_of(chunks).usage is not None


async def test_progress_of_the_prompt(chat: EmbeddedChat) -> None:
    chunks = await ask(chat, user("x" * 3000), extra={"return_progress": True})
    steps = [c for c in chunks if isinstance(c, PromptProgress)]
    assert steps
    assert steps[-1].done == steps[-1].total > 3000


async def test_an_overflow_says_how_much_there_is_and_how_much_there_was(chat: EmbeddedChat) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(chat, user("x" * 9000))
    assert caught.value.kind == "overflow"
    assert caught.value.n_ctx == 8192, "M4: the refusal names the window"
    assert caught.value.n_prompt is not None
    assert caught.value.n_prompt > 9000


async def test_a_wrong_key_is_refused_and_the_key_is_not_in_the_arguments(server: EmbeddedServer) -> None:
    for key in ("", "wrong-key"):
        chat = OpenAIChat(server.url, "local", api_key=key)
        with pytest.raises(ModelError) as caught:
            await ask(chat, user("Hi"))
        assert caught.value.kind == "auth"
        await chat.aclose()
    if sys.platform == "linux":
        assert server.api_key.encode() not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


async def test_closing_the_iterator_stops_the_server(server: EmbeddedServer, chat: EmbeddedChat) -> None:
    """An endless reply: after three words the reader goes away, and the only slot is free for the next request."""
    got = 0
    async with aclosing(chat.stream(ChatRequest((user("#endless"),)))) as chunks:
        async for chunk in chunks:
            got += isinstance(chunk, TextChunk)
            if got == 3:
                break
    assert text_of(await ask(chat, user("Hi"))) == DEFAULT_REPLY
    headers = {"Authorization": f"Bearer {server.api_key}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
        slots = (await http.get(f"{server.url}/slots")).json()
    assert [s["is_processing"] for s in slots] == [False]


async def test_a_killed_engine_is_an_error_with_a_retry_and_connecting_again_works(tmp_path: Path) -> None:
    steps: list[LoadProgress] = []
    hub = Hub(cache_dir=tmp_path, log_dir=tmp_path, home=tmp_path, env={}, local_window=2048, probe=False)
    choice = ModelChoice("gguf", str(tiny_gguf(tmp_path / "tiny.gguf")), "tiny")
    first = await hub.connect(choice, steps.append)
    assert isinstance(first, EmbeddedConnection)
    assert steps
    assert [first.alive] == [True]
    assert first.window == Window(2048, "discovery")
    assert first.supports_tools is True
    assert first.max_tool_rounds is None
    assert first.process.pid is not None
    os.kill(first.process.pid, signal.SIGKILL)
    with pytest.raises(ModelError) as caught:
        await asyncio.wait_for(_drain(first), 20)
    assert caught.value.kind == "server"
    assert "signal 9" in caught.value.message
    assert "Retry starts it again" in caught.value.hint
    assert not first.alive
    with pytest.raises(ModelError, match="signal 9"):
        await _drain(first)
    await first.aclose()

    second = await hub.connect(choice, steps.append)
    assert text_of(await _drain(second)) == DEFAULT_REPLY
    assert await second.refresh_window() == Window(2048, "discovery")
    await second.aclose()
    assert not second.alive
    with pytest.raises(ModelError):
        await _drain(second)


async def _drain(connection: Any) -> list[Chunk]:
    return [c async for c in connection.chat.stream(ChatRequest((user("Hi"),)))]


async def test_killed_in_the_middle_of_an_answer_keeps_what_came(server: EmbeddedServer, chat: EmbeddedChat) -> None:
    got: list[Chunk] = []

    async def read_until_it_dies() -> None:
        async for chunk in chat.stream(ChatRequest((user("#endless"),))):
            if isinstance(chunk, TextChunk) and not text_of(got) and server.pid is not None:
                os.kill(server.pid, signal.SIGKILL)
            got.append(chunk)

    with pytest.raises(ModelError) as caught:
        await read_until_it_dies()
    assert caught.value.kind == "server"
    assert text_of(got).startswith("on")


async def test_an_override_is_the_window_and_the_engine_is_started_with_it(tmp_path: Path) -> None:
    hub = Hub(cache_dir=tmp_path, log_dir=tmp_path, home=tmp_path, env={}, window_override=1024, probe=False)
    choice = ModelChoice("gguf", str(tiny_gguf(tmp_path / "tiny.gguf")), "tiny")
    connection = await hub.connect(choice, ignore_progress)
    try:
        assert connection.window == Window(1024, "override")
        with pytest.raises(ModelError) as caught:
            await ask(connection.chat, user("x" * 2000))  # type: ignore[arg-type]
        assert caught.value.n_ctx == 1024
    finally:
        await connection.aclose()


@pytest.mark.parametrize("content", [b"GGUF" + b"\x03\x00\x00\x00" + b"x" * 64, b"not a model", b""])
async def test_a_file_that_is_no_model_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(content)
    server = EmbeddedServer(bad, ctx=512, log_path=tmp_path / "log" / "local-engine-x.log")
    with pytest.raises(ModelError) as caught:
        await server.start(ignore_progress)
    assert caught.value.kind == "server"
    assert "bad.gguf" in caught.value.message
    assert "local-engine-x.log" in caught.value.hint
    assert not server.alive
    assert server.pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


async def test_a_start_that_takes_too_long_leaves_nothing_running(tmp_path: Path) -> None:
    server = EmbeddedServer(tiny_gguf(tmp_path / "tiny.gguf"), ctx=512, log_path=tmp_path / "x.log", start_timeout=0.0)
    with pytest.raises(ModelError, match="within 0 seconds"):
        await server.start(ignore_progress)
    assert server.pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


@pytest.fixture
async def coder(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A server with the chat template of the embedded Qwen model; the model always answers with a fenced call."""
    reply = 'Look:\n```json\n{"name": "Read", "arguments": {"path": "a.py"}}\n```'
    server = EmbeddedServer(
        tiny_gguf(tmp_path / "tiny.gguf", reply), ctx=4096, log_path=tmp_path / "x.log", template=template_path()
    )
    await server.start(ignore_progress)
    yield server
    await server.aclose()


async def test_the_qwen_template_makes_a_fence_a_tool_call(coder: EmbeddedServer) -> None:
    """Trap 4: with the model's own template the call would stay text."""
    chat = EmbeddedChat(coder, silence_timeout=30)
    chunks = await ask(chat, user("read it"), tools=TOOLS, max_tokens=80)
    calls = [c for c in chunks if isinstance(c, ToolCallChunk)]
    assert [c.name for c in calls if c.name] == ["Read"]
    assert json.loads("".join(c.arguments for c in calls)) == {"path": "a.py"}
    await chat.aclose()


async def test_the_qwen_template_keeps_its_prefix_from_step_to_step(coder: EmbeddedServer) -> None:
    """The newest result is followed by the question again; all before that reminder stays byte-equal (I7)."""
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"path": "a.py"}'}}
    turn: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        user("What is in a.py?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "print(1)"},
        {"role": "assistant", "content": "A print."},
        user("Thanks"),
    ]
    headers = {"Authorization": f"Bearer {coder.api_key}"}
    prompts = []
    async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
        for n in (2, 4, 6):
            body = {"messages": turn[:n], "tools": list(TOOLS)}
            answer = await http.post(f"{coder.url}/apply-template", json=body)
            prompts.append(answer.json()["prompt"].removesuffix("<|im_start|>assistant\n"))
    assert '"name":"Read"' in prompts[0].replace(" ", "")
    assert prompts[1].startswith(prompts[0])
    told, _, reminder = prompts[1].partition("\n\nNow answer")
    assert '{"name": "Read", "arguments": {"path": "a.py"}}' in told
    assert told.endswith("print(1)")
    assert "What is in a.py?" in reminder
    assert prompts[2].startswith(told), "only the reminder goes when the answer is there"
    assert "Now answer" not in prompts[2]


PARENT = """
import asyncio, sys
from pathlib import Path
from marextui.models.embedded import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]), ctx=512, log_path=Path(sys.argv[2]))
    await server.start(lambda step: None)
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="waits on a pidfd")
async def test_killing_the_parent_leaves_no_orphan(tmp_path: Path) -> None:
    model = tiny_gguf(tmp_path / "tiny.gguf")
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(model), str(tmp_path / "log"), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 30))
    child = os.pidfd_open(pid)
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(child, gone.set)
    try:
        assert not gone.is_set()
        parent.send_signal(signal.SIGKILL)
        await parent.wait()
        await asyncio.wait_for(gone.wait(), 20)
    finally:
        asyncio.get_running_loop().remove_reader(child)
        os.close(child)
