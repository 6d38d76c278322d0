"""A chat model behind an OpenAI-compatible `/chat/completions` (llama.cpp, Ollama, LM Studio, vLLM, hosted APIs)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import Any

import httpx
from httpx_sse import EventSource

from marextui.context.messages import canonical_json
from marextui.models.endpoint import auth_headers, display_url, http_client, join, normalise_base_url, timeouts
from marextui.models.errors import classify, network_error
from marextui.models.lenient import as_text, at, items, parse_json
from marextui.models.reply import Reply
from marextui.models.types import Accepted, ChatRequest, Chunk, ModelError

_ERROR_BYTES = 64 * 1024
"""Most bytes of an error body that are read."""

_WHOLE_FACTOR = 5
"""A non-streamed answer is silent until it is complete: the server gets this many times the silence timeout."""

_OPTIONAL = ("stream_options", "temperature", "parallel_tool_calls")
"""Fields a provider may refuse and the request can do without (M12); so can everything in `extra`."""


def request_body(request: ChatRequest, model: str, dropped: Collection[str] = ()) -> dict[str, Any]:
    """The body of `request` in a fixed key order; `messages` and `tools` come early so that prefixes stay equal (I7).

    Keys without a value are absent, never null or empty (M12). `dropped` names fields the provider refused;
    "max_tokens" in it means that the provider wants `max_completion_tokens`.
    """
    body: dict[str, Any] = {"model": model, "messages": list(request.messages)}
    if request.tools:
        body["tools"] = list(request.tools)
    if request.max_tokens is not None:
        body["max_completion_tokens" if "max_tokens" in dropped else "max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    body["stream"] = request.stream
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    body.update(request.extra)
    return {key: value for key, value in body.items() if key not in dropped}


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """Canonical JSON of `body` in UTF-8; lone surrogates (from odd file names) become "?"."""
    return canonical_json(body).encode("utf-8", errors="replace")


def refused_field(status: int, text: str, body: Mapping[str, Any]) -> str:
    """The optional field of `body` that a 400/422 complains about; "" when it complains about something else."""
    if status not in {400, 422}:
        return ""
    if "max_tokens" in body and "max_completion_tokens" in text:
        return "max_tokens"
    fixed = {"model", "messages", "tools", "max_tokens", "stream"}
    droppable = [k for k in (*_OPTIONAL, *body) if k in body and k not in fixed]
    return next((k for k in droppable if re.search(rf"(?<![\w]){re.escape(k)}(?![\w])", text)), "")


class OpenAIChat:
    """`ChatModel` over HTTP. `silence_timeout` is seconds without a byte, never a limit on the whole reply (case 41).

    One request is sent for each call of `stream`, plus one for each optional field that the provider refuses (then
    it is left out from there on). The API key is sent as a header only and never appears in messages.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str = "",
        silence_timeout: float = 120.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Raises `ModelError` for an unusable base URL or API key."""
        self.base_url = normalise_base_url(base_url)
        self.model = model
        self._api_key = api_key.strip()
        self._silence = silence_timeout
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "User-Agent": "marextui",
            **auth_headers(api_key),
        }
        self._dropped: set[str] = set()
        self._http = http_client(self.base_url, silence_timeout=silence_timeout, transport=transport)

    async def aclose(self) -> None:
        """Close the sockets."""
        await self._http.aclose()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """Chunks of one reply, ending in exactly one `Finished`; raises `ModelError`.

        A request with `stream=False` yields the same chunks from one JSON answer. Closing the iterator closes the
        connection, which is how a server is told to stop.
        """
        while True:
            body = request_body(request, self.model, self._dropped)
            try:
                async with aclosing(self._once(request, body)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except _Refused as refused:
                if request.kind == "prewarm":  # nothing is learned from one: turns are sent as they were (L43)
                    raise refused.error from None
                self._dropped.add(refused.field)

    async def _once(self, request: ChatRequest, body: Mapping[str, Any]) -> AsyncGenerator[Chunk, None]:
        answering = False
        silence = self._silence if request.stream else self._silence * _WHOLE_FACTOR
        try:
            async with self._http.stream(
                "POST",
                join(self.base_url, "chat/completions"),
                content=body_bytes(body),
                headers=self._headers,
                timeout=timeouts(silence),
            ) as response:
                if response.status_code != 200:
                    await self._refuse(response, body)
                answering = True
                yield Accepted()
                reply = Reply(_ids(request))
                if response.headers.get("content-type", "").partition(";")[0].strip().endswith("json"):
                    for chunk in reply.feed(self._completion(await response.aread())):
                        yield chunk
                else:
                    async with aclosing(self._events(response, reply)) as chunks:
                        async for chunk in chunks:
                            yield chunk
                for chunk in reply.close():
                    yield chunk
        except httpx.RequestError as error:
            raise network_error(error, display_url(self.base_url), silence=silence, answering=answering) from error

    async def _events(self, response: httpx.Response, reply: Reply) -> AsyncGenerator[Chunk, None]:
        """Chunks of a server-sent event stream; comment lines are pings. `[DONE]` may be missing."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        response.headers["content-type"] = "text/event-stream"  # some proxies say text/plain; httpx-sse insists
        seen = 0
        async with aclosing(EventSource(response).aiter_sse()) as events:
            async for event in events:
                data = event.data.strip()
                if not data:
                    continue
                if data == "[DONE]":
                    return
                seen += 1
                parsed = parse_json(data)
                if not isinstance(parsed, dict):
                    raise ModelError(
                        "protocol",
                        f"The server sent a piece of the answer that is not JSON: {data[:80]}",
                        hint="What arrived is kept. Retry; if it stays, the server or a proxy is broken.",
                    )
                if parsed.get("error") or event.event == "error":
                    raise classify(None, data, api_key=self._api_key, in_stream=True)
                for chunk in reply.feed(parsed):
                    yield chunk
        if not seen and kind == "text/event-stream":
            raise ModelError(
                "protocol",
                f"{display_url(self.base_url)} began an answer and ended it without a word.",
                hint="Retry; if it stays, look at the server's own log.",
            )
        if not seen:
            raise ModelError(
                "protocol",
                f"The server answered with {kind or 'nothing'}, not with a reply of a model.",
                hint="Is the base URL the API root of the server (often ending in /v1)?",
            )
        if not reply.ended:
            raise ModelError(
                "network",
                f"{display_url(self.base_url)} closed the connection in the middle of the answer.",
                hint="What arrived is kept. Retry asks again.",
            )

    def _completion(self, raw: bytes) -> dict[str, Any]:
        """The chat completion in a JSON answer; an error object or anything else raises."""
        parsed = parse_json(raw)
        if at(parsed, "error"):
            raise classify(None, canonical_json(parsed), api_key=self._api_key, in_stream=True)
        if not isinstance(parsed, dict) or not items(parsed.get("choices")):
            raise ModelError(
                "protocol",
                "The server answered with JSON that holds no reply of a model.",
                hint="Is the base URL the API root of the server (often ending in /v1)?",
            )
        return parsed

    async def _refuse(self, response: httpx.Response, body: Mapping[str, Any]) -> None:
        """Raise for an answer other than 200."""
        raw = bytearray()
        async for part in response.aiter_bytes():
            raw += part
            if len(raw) > _ERROR_BYTES:
                break
        text = raw[:_ERROR_BYTES].decode("utf-8", errors="replace")
        error = classify(
            response.status_code, text, api_key=self._api_key, retry_after=response.headers.get("retry-after", "")
        )
        if error.kind == "bad_request" and (field := refused_field(response.status_code, text, body)):
            raise _Refused(field, error)
        raise error


class _Refused(Exception):
    def __init__(self, field: str, error: ModelError) -> None:
        super().__init__(field)
        self.field = field
        self.error = error


def _ids(request: ChatRequest) -> set[str]:
    """Ids of the tool calls already in the conversation."""
    return {as_text(at(c, "id")) for m in request.messages for c in items(m.get("tool_calls"))}
