"""One request of an examination, with every limit on it: time, bytes of the answer, tokens sent in all.

Not `OpenAIChat`: a turn is patient and leaves out refused fields by itself, here both are findings. The server is
whoever answered at an address a person typed; nothing of what it says is believed to be short, JSON or to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx

from marextui.context.doctor_requests import Asked, Bound, request_body
from marextui.models.endpoint import auth_headers, display_url, http_client, join
from marextui.models.errors import classify, network_error
from marextui.models.lenient import at, items, parse_json
from marextui.models.openai_chat import body_bytes, refused_field
from marextui.models.reply import Reply
from marextui.models.types import (
    Finished,
    ModelError,
    PromptProgress,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)

ANSWER_BYTES = 1 << 20
"""Most bytes of an answer that are read: none that was asked for is a hundredth of it."""


class OverBound(Exception):
    """The request would send more than was stated; it was not sent."""


@dataclass(slots=True)
class Answer:
    """What came back. `first` is seconds from sending to the first token, None when there was none."""

    text: str = ""
    reasoning: bool = False
    calls: bool = False
    progress: bool = False
    usage: Usage | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    first: float | None = None


class Sender:
    """Sends the requests of one examination to one server. `timeout` is seconds for a whole request."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str,
        bound: Bound,
        timeout: float,
        now: Callable[[], float],
    ) -> None:
        """Raises `ModelError` for a key that cannot stand in a header."""
        self.model = model
        self.requests = 0
        self.tokens = 0
        """What was sent, as `Asked.tokens` counts."""
        self.refused: set[str] = set()
        """Fields the server does not take; requests go without them from there on."""
        self._url = join(base_url, "chat/completions")
        self._shown = display_url(base_url)
        self._api_key = api_key
        self._headers = {"Content-Type": "application/json", "User-Agent": "marextui", **auth_headers(api_key)}
        self._bound = bound
        self._timeout = timeout
        self._now = now
        self._max_field = "max_tokens"
        self.http = http_client(base_url, silence_timeout=timeout)

    async def ask(self, asked: Asked, *, extra: Mapping[str, Any] | None = None, hang_up: bool = False) -> Answer:
        """Send `asked` and read its answer, with `hang_up` only to its first token.

        Fields the server refuses are left out, as far as `asked.tries` allows. Raises `ModelError`, `OverBound`.
        """
        for tries_left in range(asked.tries - 1, -1, -1):
            body = request_body(asked, self.model, max_field=self._max_field, dropped=self.refused, extra=extra or {})
            try:
                return await self._once(asked, body, hang_up)
            except _Refused as refused:
                if not tries_left:
                    raise refused.error from None
                if refused.field == "max_tokens":
                    self._max_field = "max_completion_tokens"
                else:
                    self.refused |= {refused.field, *(extra or ())}
        raise AssertionError("a request has at least one try")

    async def _once(self, asked: Asked, body: Mapping[str, Any], hang_up: bool) -> Answer:
        if self.requests + 1 > self._bound.requests or self.tokens + asked.tokens > self._bound.tokens:
            raise OverBound(asked.name)
        self.requests += 1
        self.tokens += asked.tokens
        answering, started = False, self._now()
        try:
            async with (
                asyncio.timeout(self._timeout),
                self.http.stream("POST", self._url, content=body_bytes(body), headers=self._headers) as response,
            ):
                if response.status_code != 200:
                    raise await self._refusal(response, body)
                answering = True
                return await self._read(response, started, hang_up)
        except TimeoutError:
            raise ModelError(
                "network",
                f"{self._shown} did not finish an answer of {asked.answer} tokens in {self._timeout:g} seconds.",
                hint="On a slow machine: marextui doctor --timeout SECONDS.",
            ) from None
        except httpx.RequestError as error:
            raise network_error(error, self._shown, silence=self._timeout, answering=answering) from error

    async def _refusal(self, response: httpx.Response, body: Mapping[str, Any]) -> Exception:
        raw = await _most(response, ANSWER_BYTES // 16)
        text = raw.decode("utf-8", errors="replace")
        status = response.status_code
        error = classify(status, text, api_key=self._api_key)
        refused = refused_field(status, text, body) if error.kind == "bad_request" else ""
        return _Refused(refused, error) if refused else error

    async def _read(self, response: httpx.Response, started: float, hang_up: bool) -> Answer:
        answer, reply = Answer(), Reply()
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind.endswith("json"):
            raw = await _most(response, ANSWER_BYTES)
            parsed = parse_json(raw)
            if at(parsed, "error"):
                raise classify(None, raw.decode("utf-8", "replace"), api_key=self._api_key)
            if not items(at(parsed, "choices")):
                raise _no_reply("JSON that holds no reply of a model")
            self._feed(parsed, reply, answer, started)
        else:
            seen = False
            async with aclosing(_events(response)) as events:
                async for data in events:
                    parsed = parse_json(data)
                    if not isinstance(parsed, dict):
                        raise _no_reply("an event that is not JSON")
                    if parsed.get("error"):
                        raise classify(None, data.decode("utf-8", "replace"), api_key=self._api_key, in_stream=True)
                    seen = True
                    self._feed(parsed, reply, answer, started)
                    if hang_up and answer.first is not None:
                        return answer
            if not seen:
                raise _no_reply(kind or "nothing")
        for chunk in reply.close():
            if isinstance(chunk, Finished):
                answer.usage, answer.timings = chunk.usage, chunk.timings
        return answer

    def _feed(self, parsed: Mapping[str, object], reply: Reply, answer: Answer, started: float) -> None:
        for chunk in reply.feed(parsed):
            if isinstance(chunk, PromptProgress):
                answer.progress = True
                continue
            if answer.first is None:
                answer.first = self._now() - started
            if isinstance(chunk, TextChunk):
                answer.text += chunk.text
            elif isinstance(chunk, ReasoningChunk):
                answer.reasoning = True
            elif isinstance(chunk, ToolCallChunk):
                answer.calls = True

    async def aclose(self) -> None:
        """Close the sockets."""
        await self.http.aclose()


class _Refused(Exception):
    def __init__(self, field: str, error: ModelError) -> None:
        super().__init__(field)
        self.field = field
        self.error = error


def _no_reply(what: str) -> ModelError:
    return ModelError(
        "protocol",
        f"The server answered with {what}, not with a reply of a model.",
        hint="Is the address the API root of the server (often ending in /v1)?",
    )


async def _parts(response: httpx.Response, limit: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > limit:
            raise ModelError(
                "protocol",
                "The server does not end its answer: more than "
                f"{limit >> 10} kB came, where a few words were asked for.",
                hint="Something else than a model's server seems to listen there.",
            )
        yield part


async def _most(response: httpx.Response, limit: int) -> bytes:
    return b"".join([part async for part in _parts(response, limit)])


async def _events(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The data of each server-sent event up to `[DONE]`; comments and other fields are left out."""
    held = b""
    async for part in _parts(response, ANSWER_BYTES):
        *lines, held = (held + part).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
            if data == b"[DONE]":
                return
            if data:
                yield data
    if held.startswith(b"data:") and (data := held.removeprefix(b"data:").strip()) != b"[DONE]":
        yield data
