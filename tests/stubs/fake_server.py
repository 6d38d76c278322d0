"""A scripted HTTP server on 127.0.0.1 that keeps the raw bytes of every request (the "fake engine" of the tests).

    async with FakeServer() as server:
        server.script(text_reply("Hello."), tool_reply(("Read", {"path": "a.py"})), error_reply(429, "slow down"))
        chat = OpenAIChat(server.base_url, "fake")
        ...
        assert server.chats[0].json()["model"] == "fake"

Chat requests take the next scripted reply (a `Reply`, or a function from `Request` to one); other paths are answered
from `server.routes`. Nothing waits for time: a `Gate` in a stream holds it until the test opens it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


class Gate:
    """A place in a stream: `await gate.reached.wait()`, then `gate.open()` lets the stream go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.reached.set()
        await self._open.wait()


class Cut:
    """Here the server drops the connection, in the middle of the body."""


Piece = Mapping[str, Any] | str | bytes | Gate | Cut
"""A mapping is sent as one `data:` event, a string as a line of the stream as it is, bytes untouched."""


@dataclass(frozen=True)
class Reply:
    """One answer; a body given as pieces is chunked and flushed piece by piece."""

    pieces: Sequence[Piece] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Gate | None = None
    """Holds the answer back before its status line."""


@dataclass(frozen=True)
class Request:
    """A recorded request; `body` is what went over the wire."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Script = Reply | Callable[[Request], Reply]


def delta(**fields: Any) -> dict[str, Any]:
    """A stream chunk with one delta."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def finish(reason: str = "stop") -> dict[str, Any]:
    """The chunk that ends a reply."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def usage_chunk(inp: int, out: int, cached: int | None = None, **more: Any) -> dict[str, Any]:
    """The last chunk, with OpenAI usage (`cached` None: not told)."""
    usage: dict[str, Any] = {"prompt_tokens": inp, "completion_tokens": out, "total_tokens": inp + out}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return {"choices": [], "usage": usage, **more}


DONE = "data: [DONE]"


def stream_reply(*pieces: Piece, **options: Any) -> Reply:
    """A stream of `pieces`, ended by `[DONE]`."""
    return Reply((*pieces, DONE), **options)


def text_reply(
    text: str,
    *,
    usage: tuple[int, int, int | None] | None = (100, 10, None),
    reasoning: str = "",
    words: bool = True,
    reason: str = "stop",
    before: Gate | None = None,
) -> Reply:
    """A streamed text answer, word by word; `usage` is (input, output, cached) in tokens, None: not told."""
    pieces: list[Piece] = [delta(role="assistant", content=None)]
    if reasoning:
        pieces.append(delta(reasoning_content=reasoning))
    parts = text.split(" ") if words else [text]
    pieces += [delta(content=p if i == 0 else " " + p) for i, p in enumerate(parts)]
    pieces.append(finish(reason))
    if usage is not None:
        pieces.append(usage_chunk(*usage))
    return stream_reply(*pieces, before=before)


def tool_reply(
    *calls: tuple[str, Mapping[str, Any] | str],
    text: str = "",
    usage: tuple[int, int, int | None] | None = (100, 10, None),
    ids: Iterable[str] = (),
) -> Reply:
    """A streamed answer that calls tools in parallel, arguments in two fragments; ids are c1, c2, … unless given."""
    pieces: list[Piece] = [delta(role="assistant", content=text or None)]
    named = list(ids) or [f"c{i + 1}" for i in range(len(calls))]
    for i, (name, arguments) in enumerate(calls):
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(raw) // 2
        head = {"index": i, "id": named[i], "type": "function", "function": {"name": name, "arguments": raw[:half]}}
        pieces.append(delta(tool_calls=[head]))
        pieces.append(delta(tool_calls=[{"index": i, "function": {"arguments": raw[half:]}}]))
    pieces.append(finish("tool_calls"))
    if usage is not None:
        pieces.append(usage_chunk(*usage))
    return stream_reply(*pieces)


def json_reply(body: Any, status: int = 200, **headers: str) -> Reply:
    """A JSON answer."""
    return Reply((json.dumps(body).encode(),), status, "application/json", headers)


def completion_reply(text: str, *, usage: tuple[int, int, int | None] | None = (100, 10, None)) -> Reply:
    """A non-streamed answer, as the summary call wants it."""
    body: dict[str, Any] = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    }
    if usage is not None:
        body["usage"] = usage_chunk(*usage)["usage"]
    return json_reply(body)


def any_reply(text: str, **options: Any) -> Callable[[Request], Reply]:
    """`text_reply` or `completion_reply`, as the request asks."""
    return lambda request: (
        text_reply(text, **options) if request.json().get("stream") else completion_reply(text, **options)
    )


def error_reply(status: int, message: str, **fields: Any) -> Reply:
    """An OpenAI-shaped error."""
    return json_reply({"error": {"message": message, "code": status, **fields}}, status)


def overflow_reply(n_prompt: int, n_ctx: int) -> Reply:
    """llama.cpp's refusal of a prompt that is too long."""
    return error_reply(
        400,
        f"request ({n_prompt} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it",
        type="exceed_context_size_error",
        n_prompt_tokens=n_prompt,
        n_ctx=n_ctx,
    )


class FakeServer:
    """Serves until the `async with` ends. `requests` holds everything, `chats` the chat requests only."""

    def __init__(self, *, n_ctx: int | None = 8192, model: str = "fake") -> None:
        self.requests: list[Request] = []
        self.script_left: deque[Script] = deque()
        self.fallback: Script | None = None
        """Answers chat requests when the script is used up; None: a 500 that says so."""
        self.hang_ups = 0
        """Connections the client closed in the middle of an answer."""
        self._hung_up = asyncio.Event()
        self.routes: dict[str, Script] = {
            "/health": json_reply({"status": "ok"}),
            "/v1/models": json_reply({"object": "list", "data": [{"id": model, "object": "model"}]}),
            "/slots": json_reply([{"id": 0, "is_processing": False, "n_ctx": n_ctx}]),
        }
        if n_ctx is not None:
            self.routes["/props"] = json_reply(
                {
                    "total_slots": 1,
                    "default_generation_settings": {"n_ctx": n_ctx},
                    "chat_template_caps": {"supports_tools": True, "supports_tool_calls": True},
                }
            )
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def chats(self) -> list[Request]:
        return [r for r in self.requests if r.path.endswith("/chat/completions")]

    def script(self, *replies: Script) -> None:
        """Queue answers for the next chat requests."""
        self.script_left.extend(replies)

    async def hung_up(self) -> None:
        """Wait until the client has closed a connection in the middle of an answer."""
        await self._hung_up.wait()

    async def __aenter__(self) -> FakeServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 20)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                if not await self._answer(self._reply_to(request), reader, writer):
                    return
        except _NotHttp:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def _reply_to(self, request: Request) -> Reply:
        if request.path.endswith("/chat/completions"):
            script = self.script_left.popleft() if self.script_left else self.fallback
            if script is None:
                script = error_reply(500, "the script of the fake server is used up")
        else:
            script = self.routes.get(request.path) or error_reply(404, f"no route {request.path}")
        return script if isinstance(script, Reply) else script(request)

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send `reply`; False: the connection is over. A client that hangs up while it is sent is noticed."""
        gone = asyncio.ensure_future(reader.read(1))
        sending = asyncio.ensure_future(self._send(reply, writer))
        try:
            await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                return sending.result()
            self.hang_ups += 1
            self._hung_up.set()
            return False
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.before is not None:
            await reply.before.pass_through()
        head = [f"HTTP/1.1 {reply.status} Scripted", f"Content-Type: {reply.content_type}", "Connection: close"]
        head += ["Transfer-Encoding: chunked"] + [f"{k.replace('_', '-')}: {v}" for k, v in reply.headers.items()]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        for piece in reply.pieces:
            if isinstance(piece, Gate):
                await writer.drain()
                await piece.pass_through()
                continue
            if isinstance(piece, Cut):
                await writer.drain()
                writer.transport.abort()
                return False
            data = _bytes(piece)
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return False


def _bytes(piece: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, str):
        return (piece + "\n\n").encode()
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


_TLS_HELLO = b"\x16"


class _NotHttp(Exception):
    """Something else than a request came; servers say so in HTTP."""


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """One HTTP/1.1 request with a Content-Length; None at the end of the connection."""
    try:
        begins = await reader.readexactly(1)
        if begins == _TLS_HELLO:
            raise _NotHttp
        head = begins + await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ", 2)
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, body)
