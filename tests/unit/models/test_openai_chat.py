"""`OpenAIChat` on the wire: recorded bytes, cuts, silence, cancelling, refused fields (M12, cases 41, 105)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from marextui.models.openai_chat import OpenAIChat, body_bytes, refused_field, request_body
from marextui.models.types import (
    Accepted,
    ChatRequest,
    Chunk,
    Finished,
    ModelError,
    PromptProgress,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from tests.stubs.fake_server import (
    Cut,
    FakeServer,
    Gate,
    Reply,
    completion_reply,
    delta,
    error_reply,
    finish,
    json_reply,
    overflow_reply,
    stream_reply,
    text_reply,
    tool_reply,
    usage_chunk,
)

ASK = ChatRequest(({"role": "user", "content": "Hi é\n"},))
SECRET = "sk-very-secret-key"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as fake:
        yield fake


async def ask(server: FakeServer, request: ChatRequest = ASK, **options: Any) -> list[Chunk]:
    chat = OpenAIChat(server.base_url, "fake", **options)
    try:
        return [chunk async for chunk in chat.stream(request)]
    finally:
        await chat.aclose()


async def failure(server: FakeServer, request: ChatRequest = ASK, **options: Any) -> tuple[list[Chunk], ModelError]:
    """What arrived before the error, and the error."""
    chat = OpenAIChat(server.base_url, "fake", **options)
    got: list[Chunk] = []
    try:
        async for chunk in chat.stream(request):
            got.append(chunk)
    except ModelError as error:
        return got, error
    finally:
        await chat.aclose()
    raise AssertionError(f"no ModelError; got {got}")


async def test_text_reasoning_usage_and_the_bytes_of_the_request(server: FakeServer) -> None:
    server.script(text_reply("Hello there.", reasoning="hm", usage=(900, 40, 870)))
    got = await ask(server, api_key=SECRET)
    assert got == [
        Accepted(),
        ReasoningChunk("hm"),
        TextChunk("Hello"),
        TextChunk(" there."),
        Finished("stop", Usage(900, 40, 870)),
    ]
    (request,) = server.chats
    assert (
        request.body
        == (
            '{"model":"fake","messages":[{"role":"user","content":"Hi é\\n"}],"stream":true,'
            '"stream_options":{"include_usage":true}}'
        ).encode()
    )
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["content-type"] == "application/json"


async def test_without_a_key_no_authorization_is_sent(server: FakeServer) -> None:
    server.script(text_reply("x"))
    await ask(server)
    assert "authorization" not in server.chats[0].headers


async def test_parallel_tool_calls(server: FakeServer) -> None:
    server.script(tool_reply(("Read", {"path": "a.py"}), ("Ls", {"path": "."})))
    got = await ask(server)
    arguments = {0: "", 1: ""}
    for chunk in got:
        if isinstance(chunk, ToolCallChunk):
            arguments[chunk.index] += chunk.arguments
    assert [json.loads(a) for a in arguments.values()] == [{"path": "a.py"}, {"path": "."}]
    assert [(c.id, c.name) for c in got if isinstance(c, ToolCallChunk) and c.name] == [("c1", "Read"), ("c2", "Ls")]
    assert got[-1] == Finished("tool_calls", Usage(100, 10))


async def test_pings_progress_and_a_missing_done(server: FakeServer) -> None:
    server.script(
        Reply(
            (
                ": ping",
                {"choices": [], "prompt_progress": {"total": 8, "cache": 0, "processed": 4}},
                ":",
                delta(content="Hi"),
                finish(),
            )
        )
    )
    assert await ask(server) == [Accepted(), PromptProgress(8, 0, 4), TextChunk("Hi"), Finished("stop", None)]


async def test_events_split_anywhere_and_crlf(server: FakeServer) -> None:
    whole = b"".join(b"data: " + json.dumps(d).encode() + b"\r\n\r\n" for d in (delta(content="é漢😀"), finish()))
    server.script(Reply(tuple(bytes([b]) for b in whole)))
    assert await ask(server) == [Accepted(), TextChunk("é漢😀"), Finished("stop", None)]


async def test_sse_under_a_wrong_content_type(server: FakeServer) -> None:
    server.script(stream_reply(delta(content="Hi"), finish(), content_type="text/plain"))
    assert (await ask(server))[1] == TextChunk("Hi")


async def test_a_json_answer_to_a_stream_request(server: FakeServer) -> None:
    server.script(completion_reply("Whole."))
    assert await ask(server) == [Accepted(), TextChunk("Whole."), Finished("stop", Usage(100, 10))]


async def test_a_request_that_is_not_streamed(server: FakeServer) -> None:
    server.script(completion_reply("## Summary", usage=(50, 5, 40)))
    request = ChatRequest(ASK.messages, max_tokens=1200, temperature=0.1, stream=False)
    assert await ask(server, request) == [Accepted(), TextChunk("## Summary"), Finished("stop", Usage(50, 5, 40))]
    body = server.chats[0].json()
    assert body == {
        "model": "fake",
        "messages": [{"role": "user", "content": "Hi é\n"}],
        "max_tokens": 1200,
        "temperature": 0.1,
        "stream": False,
    }, "M12: no tools, no tool_choice"


async def test_a_stream_cut_in_the_middle_keeps_what_came(server: FakeServer) -> None:
    server.script(Reply((delta(content="Half"), Cut())))
    got, error = await failure(server)
    assert got == [Accepted(), TextChunk("Half")]
    assert error.kind == "network"
    assert "kept" in error.hint


async def test_a_stream_that_just_ends_is_not_a_reply(server: FakeServer) -> None:
    server.script(Reply((delta(content="Half"),)))
    got, error = await failure(server)
    assert got == [Accepted(), TextChunk("Half")]
    assert error.kind == "network"
    assert "middle" in error.message


async def test_silence_is_an_error_with_the_seconds_in_it(server: FakeServer) -> None:
    server.script(Reply((delta(content="Half"), Gate())))
    got, error = await failure(server, silence_timeout=0.05)
    assert got == [Accepted(), TextChunk("Half")]
    assert error.kind == "network"
    assert "0.05 seconds" in error.message


async def test_the_silence_limit_is_per_byte_and_there_is_no_total_limit() -> None:
    """Case 41: a stream of a token a second may last for ever; only the gap between bytes is limited."""
    seen: list[dict[str, float]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return httpx.Response(200, json={"choices": [{"index": 0, "message": {"content": "x"}}]})

    chat = OpenAIChat("http://h/v1", "m", silence_timeout=60, transport=httpx.MockTransport(answer))
    for stream in (True, False):
        assert len([c async for c in chat.stream(ChatRequest((), stream=stream))]) == 3
    await chat.aclose()
    assert [t["read"] for t in seen] == [60, 300], "an answer in one piece is silent until it is complete"
    assert all(set(t) == {"connect", "read", "write", "pool"} for t in seen)


async def test_closing_the_iterator_closes_the_connection(server: FakeServer) -> None:
    server.script(Reply((delta(content="Half"), gate := Gate())))
    chat = OpenAIChat(server.base_url, "fake")
    async with aclosing(chat.stream(ASK)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                break
        await gate.reached.wait()
        assert server.hang_ups == 0
    await server.hung_up()
    assert server.hang_ups == 1
    await chat.aclose()


async def test_an_error_object_inside_the_stream(server: FakeServer) -> None:
    server.script(Reply((delta(content="Half"), {"error": {"message": f"CUDA error {SECRET}", "code": 500}})))
    got, error = await failure(server, api_key=SECRET)
    assert got == [Accepted(), TextChunk("Half")]
    assert error.kind == "server"
    assert "CUDA error" in error.message
    assert SECRET not in error.message


async def test_an_error_object_in_a_200_json(server: FakeServer) -> None:
    server.script(json_reply({"error": "model crashed"}), json_reply({"object": "list"}))
    assert (await failure(server))[1].kind == "server"
    assert (await failure(server))[1].kind == "protocol"


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b"<html>hello</html>",), content_type="text/html"),
        Reply(()),
        Reply(("data: {not json",)),
        Reply(("data: [1]",)),
    ],
)
async def test_what_is_no_reply_is_a_protocol_error(server: FakeServer, reply: Reply) -> None:
    server.script(reply)
    assert (await failure(server))[1].kind == "protocol"


async def test_overflow_names_the_window(server: FakeServer) -> None:
    server.script(overflow_reply(9031, 8192))
    got, error = await failure(server)
    assert got == []
    assert (error.kind, error.status, error.n_prompt, error.n_ctx) == ("overflow", 400, 9031, 8192)
    assert len(server.chats) == 1


async def test_a_body_too_large_is_not_overflow_and_not_sent_again(server: FakeServer) -> None:
    server.script(Reply((b"<html>" + b"Request Entity Too Large" * 100_000,), 413, "text/html"))
    _, error = await failure(server)
    assert error.kind == "bad_request"
    assert "bytes" in error.message
    assert len(error.message) < 600
    assert len(server.chats) == 1, "case 105"


async def test_nothing_listens() -> None:
    async with FakeServer() as gone:
        pass
    _, error = await failure(gone)
    assert error.kind == "network"
    assert "nothing listens" in error.message
    assert error.hint


async def test_a_redirect_is_not_followed(server: FakeServer) -> None:
    server.script(Reply((), 307, headers={"Location": f"{server.url}/elsewhere"}))
    assert (await failure(server, api_key=SECRET))[1].kind == "bad_request"
    assert [r.path for r in server.requests] == ["/v1/chat/completions"]


async def test_refused_fields_are_dropped_and_the_request_sent_again(server: FakeServer) -> None:
    """M12: a provider that refuses `temperature` gets the same request without it, and is not asked again."""
    server.script(
        error_reply(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        error_reply(400, "Unsupported value: 'temperature' does not support 0.1 with this model."),
        error_reply(422, "extra fields not permitted: stream_options"),
        error_reply(400, "return_progress: unknown field"),
        text_reply("ok"),
        text_reply("ok"),
    )
    chat = OpenAIChat(server.base_url, "fake")
    request = ChatRequest(ASK.messages, max_tokens=9, temperature=0.1, extra={"return_progress": True})
    for _ in range(2):
        assert [c async for c in chat.stream(request)][-1] == Finished("stop", Usage(100, 10))
    await chat.aclose()
    keys = [list(r.json()) for r in server.chats]
    assert keys == [
        ["model", "messages", "max_tokens", "temperature", "stream", "stream_options", "return_progress"],
        ["model", "messages", "max_completion_tokens", "temperature", "stream", "stream_options", "return_progress"],
        ["model", "messages", "max_completion_tokens", "stream", "stream_options", "return_progress"],
        ["model", "messages", "max_completion_tokens", "stream", "return_progress"],
        ["model", "messages", "max_completion_tokens", "stream"],
        ["model", "messages", "max_completion_tokens", "stream"],
    ]


async def test_a_field_refused_twice_is_an_error(server: FakeServer) -> None:
    server.script(error_reply(400, "bad stream_options"), error_reply(400, "bad stream_options"))
    assert (await failure(server))[1].kind == "bad_request"
    assert len(server.chats) == 2


def test_only_optional_fields_are_dropped() -> None:
    body = request_body(ChatRequest(ASK.messages, ({"type": "function"},), 5, 0.1, extra={"id_slot": 0}), "m")
    assert refused_field(400, "bad tools in messages, stream wrong", body) == ""
    assert refused_field(400, "the temperatures are high", body) == ""
    assert refused_field(500, "temperature", body) == ""
    assert refused_field(400, "`id_slot` unknown", body) == "id_slot"


def test_the_body_has_one_key_order_and_survives_odd_file_names() -> None:
    request = ChatRequest(({"role": "user", "content": "a\udc80b"},), ({"type": "function"},), 5, 0.0)
    assert body_bytes(request_body(request, "m")) == (
        b'{"model":"m","messages":[{"role":"user","content":"a?b"}],"tools":[{"type":"function"}],"max_tokens":5,'
        b'"temperature":0.0,"stream":true,"stream_options":{"include_usage":true}}'
    )


async def test_usage_in_every_chunk_takes_the_last(server: FakeServer) -> None:
    server.script(stream_reply({**delta(content="x"), "usage": {"prompt_tokens": 5}}, usage_chunk(9, 2), finish()))
    assert (await ask(server))[-1] == Finished("stop", Usage(9, 2))


async def test_the_key_is_in_no_repr(server: FakeServer) -> None:
    chat = OpenAIChat(server.base_url, "fake", api_key=SECRET)
    assert SECRET not in repr(chat) + str(chat)
    await chat.aclose()
