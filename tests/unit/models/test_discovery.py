"""Windows as servers tell them (M3, section C): what is loaded before what was trained; lenient; never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from marextui.context.budget import UNKNOWN_WINDOW, Window
from marextui.models.discovery import (
    Found,
    can_chat,
    discover_window,
    fetch_json,
    inspect,
    list_models,
    probe_loopback,
    server_kind,
)
from marextui.models.types import ModelError
from marextui.models.windows import known_window
from tests.stubs.fake_server import FakeServer, Gate, Reply, error_reply, json_reply

LLAMA = {"default_generation_settings": {"n_ctx": 8192}, "chat_template_caps": {"supports_tools": True}}


def client(routes: Mapping[str, Any], asked: list[str] | None = None) -> httpx.AsyncClient:
    """A server that knows `routes` and 404s the rest."""

    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(str(request.url))
        path = request.url.raw_path.decode()
        return httpx.Response(200, json=routes[path]) if path in routes else httpx.Response(404, json={"error": "no"})

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def listing(**fields: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", **fields}]}


@pytest.mark.parametrize(
    ("routes", "kind", "window", "trained"),
    [
        pytest.param(
            {"/props": LLAMA, "/v1/models": listing(owned_by="llamacpp", meta={"n_ctx_train": 131072})},
            "llama.cpp",
            8192,
            False,
            id="llama.cpp-runtime-before-trained",
        ),
        pytest.param(
            {"/v1/models": listing(owned_by="llamacpp", meta={"n_ctx_train": 131072})},
            "llama.cpp",
            131072,
            True,
            id="llama.cpp-trained-only",
        ),
        pytest.param(
            {
                "/props": {"default_generation_settings": {"n_ctx": 0}},
                "/props?model=m": LLAMA,
                "/v1/models": listing(),
            },
            "llama.cpp",
            8192,
            False,
            id="llama.cpp-router",
        ),
        pytest.param(
            {
                "/v1/models": listing(owned_by="library"),
                "/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]},
                "/api/show": {"parameters": "num_ctx 16384", "model_info": {"qwen2.context_length": 131072}},
            },
            "Ollama",
            4096,
            False,
            id="ollama-loaded",
        ),
        pytest.param(
            {
                "/v1/models": listing(owned_by="library"),
                "/api/ps": {"models": [{"name": "other", "context_length": 4096}]},
                "/api/show": {
                    "parameters": "stop x\nnum_ctx                        16384",
                    "model_info": {"qwen2.context_length": 131072},
                },
            },
            "Ollama",
            16384,
            False,
            id="ollama-modelfile",
        ),
        pytest.param(
            {
                "/v1/models": listing(owned_by="library"),
                "/api/ps": {"models": []},
                "/api/show": {"model_info": {"general.x": 1, "qwen2.context_length": 131072}},
            },
            "Ollama",
            131072,
            True,
            id="ollama-trained",
        ),
        pytest.param(
            {
                "/v1/models": listing(owned_by="organization_owner"),
                "/api/v1/models": {
                    "models": [
                        {"key": "other", "max_context_length": 1},
                        {
                            "key": "m",
                            "max_context_length": 262144,
                            "loaded_instances": [{"config": {"context_length": 4096}}],
                        },
                    ]
                },
            },
            "LM Studio",
            4096,
            False,
            id="lm-studio-loaded-is-not-max",
        ),
        pytest.param(
            {
                "/v1/models": listing(),
                "/api/v0/models": {
                    "data": [{"id": "m", "max_context_length": 262144, "loaded_context_length": "4096"}]
                },
            },
            "OpenAI-compatible",
            4096,
            False,
            id="lm-studio-older",
        ),
        pytest.param({"/v1/models": listing(max_model_len=32768.0)}, "vLLM", 32768, False, id="vllm-float"),
        pytest.param(
            {"/v1/models": listing(max_context_length="131,072")}, "OpenAI-compatible", 131072, True, id="text"
        ),
        pytest.param({"/v1/models": listing(context_length=True)}, "OpenAI-compatible", None, True, id="boolean"),
        pytest.param({"/v1/models": listing(context_length=-1)}, "OpenAI-compatible", None, True, id="negative"),
        pytest.param(
            {"/props": "odd", "/v1/models": [1], "/api/ps": {"models": 3}}, "OpenAI-compatible", None, True, id="odd"
        ),
        pytest.param({}, "OpenAI-compatible", None, True, id="nothing"),
    ],
)
async def test_a_local_server_is_asked_everything(
    routes: Mapping[str, Any], kind: str, window: int | None, trained: bool
) -> None:
    async with client(routes) as http:
        facts = await inspect(http, "http://127.0.0.1:1/v1", "m")
    assert (facts.kind, facts.window, facts.trained) == (kind, window, trained)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({"context_length": 1_000_000, "top_provider": {"context_length": 200_000}}, 200_000),
        ({"context_length": 131072}, 131072),
        ({"max_context_length": 32768}, 32768),
        ({"max_input_tokens": 200_000}, 200_000),
        ({}, None),
    ],
)
async def test_a_public_host_is_asked_for_its_models_only(fields: dict[str, Any], window: int | None) -> None:
    asked: list[str] = []
    routes = {"/api/v1/models": {"data": [{"id": "other", "context_length": 1}, {"id": "m", **fields}]}}
    async with client(routes, asked) as http:
        assert (await inspect(http, "https://openrouter.ai/api/v1", "m")).window == window
    assert asked == ["https://openrouter.ai/api/v1/models"]


async def test_order_of_sources_and_the_cache() -> None:
    asked: list[str] = []
    cache: dict[tuple[str, str], Window] = {}
    async with client({"/v1/models": listing()}, asked) as http:
        hosted = await discover_window(http, "https://api.openai.com/v1", "gpt-4o-mini", cache=cache)
        assert hosted == Window(128_000, "known default")
        before = len(asked)
        assert await discover_window(http, "https://api.openai.com/v1", "gpt-4o-mini", cache=cache) == hosted
        assert len(asked) == before, "M3: cached per (base URL, model)"
        local = await discover_window(http, "http://127.0.0.1:1/v1", "gpt-4o-mini", cache=cache)
        assert local == UNKNOWN_WINDOW, "case 7: a local model of that name is not the hosted one"
        assert await discover_window(http, "https://api.openai.com/v1", "foo", cache=cache) == UNKNOWN_WINDOW
    assert list(cache) == [("https://api.openai.com/v1", "gpt-4o-mini")], "what is unknown is asked again"
    async with client({"/props": LLAMA}) as http:
        assert await discover_window(http, "http://127.0.0.1:1/v1", "x") == Window(8192, "discovery")


async def test_tools_as_the_server_tells() -> None:
    for routes, tools in (
        ({"/props": LLAMA}, True),
        ({"/props": {**LLAMA, "chat_template_caps": {"supports_tools": False, "supports_tool_calls": False}}}, False),
        ({"/api/show": {"capabilities": ["completion"]}}, False),
        ({"/api/show": {"capabilities": ["completion", "tools"]}}, True),
        ({}, None),
    ):
        async with client(routes) as http:
            assert (await inspect(http, "http://127.0.0.1:1/v1", "m")).supports_tools is tools


def test_known_windows_and_chat_models() -> None:
    assert known_window("openai/gpt-4o-2024-08-06") == 128_000
    assert known_window("GPT-4.1-mini") == 1_047_576
    assert known_window("foo-local") is None
    assert can_chat("qwen3:8b")
    assert not can_chat("text-embedding-3-small")
    assert server_kind(listing(owned_by="someone")) == "OpenAI-compatible"


async def test_a_silent_server_holds_nobody_up() -> None:
    async with FakeServer() as server, httpx.AsyncClient(trust_env=False) as http:
        server.routes["/v1/models"] = Reply((Gate(),))
        assert await fetch_json(http, f"{server.base_url}/models", timeout=0.05) is None
        with pytest.raises(ModelError, match=r"within 0\.05 seconds"):
            await list_models(http, server.base_url, timeout=0.05)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error_reply(401, "no key"), "auth"),
        (error_reply(500, "boom"), "server"),
        (json_reply({"hello": "world"}), "protocol"),
        (Reply((b"<html>",), content_type="text/html"), "protocol"),
    ],
)
async def test_listing_models_says_what_is_wrong(reply: Reply, kind: str) -> None:
    async with FakeServer() as server, httpx.AsyncClient(trust_env=False) as http:
        server.routes["/v1/models"] = reply
        with pytest.raises(ModelError) as caught:
            await list_models(http, server.base_url, api_key="sk-secret-key")
        assert caught.value.kind == kind
        assert server.requests[0].headers["authorization"] == "Bearer sk-secret-key"


async def test_probing_loopback() -> None:
    async with FakeServer() as llama, FakeServer() as ollama, FakeServer() as locked, FakeServer() as web:
        llama.routes["/v1/models"] = json_reply(listing(owned_by="llamacpp"))
        ollama.routes["/v1/models"] = json_reply(
            {"object": "list", "data": [{"id": "nomic-embed-text", "owned_by": "library"}, {"id": "qwen3:8b"}]}
        )
        locked.routes["/v1/models"] = error_reply(401, "key please")
        web.routes["/v1/models"] = Reply((b"<html>Jenkins</html>",), content_type="text/html")
        async with FakeServer() as gone:
            pass
        ports = [("vLLM", llama.port), ("Ollama", ollama.port), ("X", locked.port), ("Y", web.port), ("Z", gone.port)]
        assert await probe_loopback(ports) == [
            Found("llama.cpp", llama.base_url, ("m",), True),
            Found("Ollama", ollama.base_url, ("qwen3:8b",), True),
            Found("X", locked.base_url, (), True),
            Found("Y", web.base_url, (), False),
            Found("Z", gone.base_url, (), False),
        ]
        assert "authorization" not in llama.requests[0].headers
