"""A model's server for the doctor to examine: a `FakeServer` with a cache, in the shape of each kind of server.

Answers and routes are as llama.cpp, Ollama, LM Studio and vLLM give them; a character of a prompt is a token here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any

from tests.stubs.fake_server import (
    FakeServer,
    Gate,
    Piece,
    Reply,
    Request,
    delta,
    error_reply,
    finish,
    json_reply,
    stream_reply,
    usage_chunk,
)

ALTERNATE = "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
CALL = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


@dataclass
class Behaviour:
    """What the server does; a test changes what it is about."""

    tools: str = "calls"
    """calls, text, words, refuses, ignores-none"""
    drops_tools: bool = False
    """With tool_choice "none" they leave the prompt."""
    strict: bool = False
    caches: bool = True
    parks: bool = False
    """Another request does not cost the conversation its cache."""
    usage: bool = True
    cached: bool = True
    progress: bool = True
    timings: bool = True
    refuses: Sequence[str] = ()
    """Fields of the body it does not take."""
    n_ctx: int | None = None
    """Longer prompts are refused."""
    reply: str = "Yes."
    endless: Gate = field(default_factory=Gate)
    """Holds the long answer back until the client hangs up."""


class Examined:
    """`fallback` of a `FakeServer`: answers like a model with one slot."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.does = behaviour
        self._slots: list[str] = []
        self.prompt_tokens = 0

    def __call__(self, request: Request) -> Reply:
        body, does = request.json(), self.does
        messages = body["messages"]
        for name in does.refuses:
            if name in body:
                return error_reply(400, f"Unrecognized request argument supplied: {name}")
        roles = [m["role"] for m in messages if m["role"] != "system"]
        if does.strict and any(a == b for a, b in pairwise(roles)):
            return error_reply(500, ALTERNATE, type="server_error")
        prompt = self._prompt(body)
        if does.n_ctx is not None and len(prompt) >= does.n_ctx:
            return error_reply(
                400,
                f"request ({len(prompt)} tokens) exceeds the available context size ({does.n_ctx} tokens)",
                type="exceed_context_size_error",
                n_prompt_tokens=len(prompt),
                n_ctx=does.n_ctx,
            )
        cached = self._cached(prompt)
        self.prompt_tokens += len(prompt)
        message = self._message(body)
        if message is None:
            return error_reply(400, "tools are not supported by this model")
        return self._streamed(body, prompt, cached, message) if body["stream"] else self._whole(prompt, cached, message)

    def _prompt(self, body: Mapping[str, Any]) -> str:
        kept = body.get("tools") and not (self.does.drops_tools and body.get("tool_choice") == "none")
        return ("TOOLS " if kept else "") + "".join(f"<{m['role']}>{m['content']}" for m in body["messages"])

    def _cached(self, prompt: str) -> int:
        held = max((_shared(s, prompt) for s in self._slots), default=0)
        self._slots = [*self._slots, prompt] if self.does.parks else [prompt]
        return min(held, len(prompt) - 1) if self.does.caches else 0

    def _message(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        tools, how = body.get("tools"), self.does.tools
        if not tools or len(tools) > 1 or how == "words":  # several: a turn of ours, not the doctor
            return {"content": self.does.reply}
        if how == "refuses":
            return None
        if body.get("tool_choice") == "none" and how != "ignores-none":
            return {"content": self.does.reply}
        if how == "text":
            return {"content": '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'}
        return {"content": None, "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": CALL}]}

    def _counts(self, prompt: str, cached: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self.does.usage:
            out |= usage_chunk(len(prompt), 1, cached if self.does.cached else None)
        if self.does.timings:
            out["timings"] = {"cache_n": cached, "prompt_n": len(prompt) - cached, "prompt_ms": 1.0}
        return out

    def _whole(self, prompt: str, cached: int, message: Mapping[str, Any]) -> Reply:
        counts = self._counts(prompt, cached)
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return json_reply({**counts, "choices": [choice]})

    def _streamed(self, body: Mapping[str, Any], prompt: str, cached: int, message: Mapping[str, Any]) -> Reply:
        pieces: list[Piece] = [delta(role="assistant", content=None)]
        if self.does.progress and body.get("return_progress"):
            told = {"total": len(prompt), "cache": cached, "processed": cached, "time_ms": 0}
            pieces.append({**delta(role="assistant"), "prompt_progress": told})
        pieces.append(delta(**message))
        if "Count from 1" in prompt:
            pieces.append(self.does.endless)
        pieces.append(finish())
        counts = self._counts(prompt, cached)
        if counts and "stream_options" in body:
            pieces.append({"choices": [], **counts})
        return stream_reply(*pieces)


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


LLAMA_ENTRY = {
    "id": "qwen-7b",
    "object": "model",
    "owned_by": "llamacpp",
    "meta": {"n_ctx_train": 131072, "n_ctx": 8192},
}
IDLE = {"id": 0, "n_ctx": 8192, "is_processing": False}
CUT = {**IDLE, "id_task": 9, "next_token": [{"has_next_token": True, "n_remain": 150, "n_decoded": 3}]}


def llama_cpp(server: FakeServer, *, slots: int = 1, save_path: bool = False, template_tools: bool = True) -> Behaviour:
    """llama.cpp b11549, as it answered."""
    server.routes = {
        "/v1/models": json_reply({"object": "list", "data": [LLAMA_ENTRY]}),
        "/props": json_reply(
            {
                "total_slots": slots,
                "default_generation_settings": {"n_ctx": 8192},
                "chat_template_caps": {"supports_tools": template_tools, "supports_tool_calls": template_tools},
                "build_info": "b11549-1a2b3c4",
                "is_sleeping": False,
            }
        ),
        "/slots": json_reply([CUT, *[IDLE] * (slots - 1)]),
        "/slots/0": error_reply(400, "Invalid filename", type="invalid_request_error")
        if save_path
        else error_reply(
            501,
            "This server does not support slots action. Start it with `--slot-save-path`",
            type="not_supported_error",
        ),
    }
    return answer_with(server, Behaviour())


def ollama(server: FakeServer) -> Behaviour:
    """Ollama 0.11 with two models, one of them loaded; it tells no cached tokens."""
    server.routes = {
        "/v1/models": json_reply(
            {
                "object": "list",
                "data": [
                    {"id": "nomic-embed-text:latest", "object": "model", "owned_by": "library"},
                    {"id": "llama3.2:latest", "object": "model", "owned_by": "library"},
                    {"id": "qwen2.5:7b", "object": "model", "owned_by": "library"},
                ],
            }
        ),
        "/api/ps": json_reply({"models": [{"name": "qwen2.5:7b", "model": "qwen2.5:7b", "context_length": 4096}]}),
        "/api/show": json_reply(
            {"capabilities": ["completion", "tools"], "model_info": {"qwen2.context_length": 32768}}
        ),
        "/api/version": json_reply({"version": "0.11.4"}),
    }
    return answer_with(server, Behaviour(cached=False, progress=False, timings=False))


def lm_studio(server: FakeServer) -> Behaviour:
    """LM Studio with a loaded model, its two routes."""
    server.routes = {
        "/v1/models": json_reply(
            {"object": "list", "data": [{"id": "qwen3-4b", "object": "model", "owned_by": "organization_owner"}]}
        ),
        "/api/v0/models": json_reply({"data": [{"id": "qwen3-4b", "state": "loaded", "max_context_length": 262144}]}),
        "/api/v1/models": json_reply(
            {
                "models": [
                    {
                        "key": "qwen3-4b",
                        "max_context_length": 262144,
                        "loaded_instances": [{"config": {"context_length": 4096}}],
                    }
                ]
            }
        ),
    }
    return answer_with(server, Behaviour(cached=False, progress=False, timings=False))


def vllm(server: FakeServer) -> Behaviour:
    """vLLM 0.27; it drops the tools when none may be called."""
    entry = {"id": "Qwen/Qwen3-8B", "object": "model", "owned_by": "vllm", "max_model_len": 32768}
    server.routes = {
        "/v1/models": json_reply({"object": "list", "data": [entry]}),
        "/version": json_reply({"version": "0.27.1"}),
    }
    return answer_with(server, Behaviour(cached=False, progress=False, timings=False, drops_tools=True))


def plain(server: FakeServer) -> Behaviour:
    """Some other server: a list of models and nothing else."""
    server.routes = {"/v1/models": json_reply({"object": "list", "data": [{"id": "some-model"}]})}
    return answer_with(server, Behaviour(cached=False, progress=False, timings=False))


def answer_with(server: FakeServer, behaviour: Behaviour) -> Behaviour:
    server.fallback = Examined(behaviour)
    return behaviour
