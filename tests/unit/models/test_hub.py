"""What the hub offers, picks and connects to (issue 2, section 1; M3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import UNKNOWN_WINDOW, Window
from marextui.models import hub as hub_module
from marextui.models.hub import EMBEDDED, EMBEDDED_SMALL, Hub, check_endpoint
from marextui.models.types import ChatRequest, Connection, LoadProgress, ModelChoice, ModelError, ModelHub
from tests.stubs.fake_server import FakeServer, error_reply, json_reply, text_reply
from tests.unit.models.test_gguf_files import write


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the extra `local`, whatever this one has."""
    monkeypatch.setattr(hub_module, "engine_installed", lambda: False)
    monkeypatch.setattr(hub_module, "installed", lambda name: False)


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer(model="served") as fake:
        yield fake


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(hub_module, "engine_installed", lambda: True)
    monkeypatch.setattr(hub_module, "installed", lambda name: name in names)


def make(tmp_path: Path, **options: Any) -> Hub:
    options.setdefault("probe_ports", ())
    env = {"OLLAMA_MODELS": str(tmp_path / "none")} | options.pop("env", {})
    home = tmp_path / "person"
    return Hub(cache_dir=tmp_path / "cache", log_dir=tmp_path / "log", home=home, env=env, **options)


def shape(choices: list[ModelChoice]) -> list[tuple[str, str]]:
    return [(c.kind, c.name) for c in choices]


async def test_nothing_at_all(tmp_path: Path) -> None:
    hub: ModelHub = make(tmp_path)
    assert await hub.choices() == []
    assert await hub.default() is None
    facts = await make(tmp_path).setup_report()
    assert (facts.engine_installed, facts.weights_installed, facts.probed) == (False, False, ())


async def test_order_of_choices(tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, EMBEDDED, EMBEDDED_SMALL)
    write(tmp_path / "person/.lmstudio/models/o/m/disk.gguf")
    async with FakeServer(model="other") as loopback:
        loopback.routes["/v1/models"] = json_reply({"object": "list", "data": [{"id": "other"}, {"id": "text-embed"}]})
        hub = make(
            tmp_path,
            base_url=server.url,
            api_key="sk-secret",
            model="wanted",
            probe_ports=[("llama.cpp", loopback.port), ("Ollama", server.port)],
        )
        choices = await hub.choices()
    assert shape(choices) == [
        ("endpoint", "wanted"),
        ("endpoint", "served"),
        ("embedded", EMBEDDED),
        ("embedded", EMBEDDED_SMALL),
        ("endpoint", "other"),
        ("gguf", str(tmp_path / "person/.lmstudio/models/o/m/disk.gguf")),
    ], "a loopback server that is the configured endpoint is not listed twice"
    assert choices[0].api_key == "sk-secret"
    assert "sk-secret" not in repr(choices)
    assert choices[4].detail.endswith("llama.cpp")
    assert all(c.label and c.detail for c in choices)


async def test_default_order(tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [("llama.cpp", server.port)]

    async def pick(**options: Any) -> tuple[str, str] | None:
        choice = await make(tmp_path, **options).default()
        return (choice.kind, choice.name) if choice else None

    assert await pick(probe_ports=ports) == ("endpoint", "served")
    assert await pick(probe_ports=ports, probe=False) is None
    install(monkeypatch, EMBEDDED_SMALL)
    assert await pick(probe_ports=ports) == ("embedded", EMBEDDED_SMALL)
    install(monkeypatch, EMBEDDED, EMBEDDED_SMALL)
    assert await pick(probe_ports=ports) == ("embedded", EMBEDDED)
    assert await pick(probe_ports=ports, model="served") == ("endpoint", "served"), "named, and served on loopback"
    assert await pick(model="embedded-small") == ("embedded", EMBEDDED_SMALL)
    assert await pick(model="embedded", base_url=server.url) == ("embedded", EMBEDDED), "what is named wins"
    assert await pick(model="~/x.gguf") == ("gguf", str(tmp_path / "person/x.gguf"))
    assert await pick(base_url=server.url, model="m") == ("endpoint", "m")
    assert await pick(base_url=server.url, model="m.gguf") == ("endpoint", "m.gguf"), "llama.cpp names it by its file"
    here = write(tmp_path / "here.gguf")
    assert await pick(base_url=server.url, model=str(here)) == ("gguf", str(here))
    assert await pick(base_url=server.url) == ("endpoint", "")


async def test_probing_finds_ollama_where_its_variable_says(tmp_path: Path, server: FakeServer) -> None:
    for host in (f"127.0.0.1:{server.port}", f"http://0.0.0.0:{server.port}"):
        hub = make(tmp_path, env={"OLLAMA_HOST": host})
        assert [f.answered for f in (await hub.setup_report()).probed] == [True]
    for host in ("192.168.1.9:11434", "nonsense:port", ""):
        assert (await make(tmp_path, env={"OLLAMA_HOST": host}).setup_report()).probed == ()


async def connect(hub: Hub, choice: ModelChoice) -> tuple[Connection, list[LoadProgress]]:
    steps: list[LoadProgress] = []
    return await hub.connect(choice, steps.append), steps


LOADING = error_reply(503, "Loading model", type="unavailable_error")


@pytest.mark.parametrize("model", ["served", ""])
@pytest.mark.parametrize("routes", [("/v1/models", "/props"), ("/props",)])
async def test_a_server_that_loads_its_model_says_so(
    tmp_path: Path, server: FakeServer, model: str, routes: tuple[str, ...]
) -> None:
    """llama.cpp answers everything with 503 meanwhile; later versions give the list of models already."""
    hub = make(tmp_path, base_url=server.url, model=model)
    choice = await hub.default()
    assert choice is not None
    kept = dict(server.routes)
    server.routes |= dict.fromkeys(routes, LOADING)
    with pytest.raises(ModelError) as raised:
        await connect(hub, choice)
    assert raised.value.kind == "loading"
    server.routes = kept
    connection, _ = await connect(hub, choice)
    assert connection.window == Window(8192, "discovery")
    await connection.aclose()


async def test_a_server_that_is_busy_is_not_one_that_loads(tmp_path: Path, server: FakeServer) -> None:
    server.routes["/props"] = error_reply(503, "try again later")
    hub = make(tmp_path, base_url=server.url, model="served")
    choice = await hub.default()
    assert choice is not None
    connection, _ = await connect(hub, choice)
    assert connection.window.tokens is None
    await connection.aclose()


async def test_an_endpoint_without_a_model_takes_its_first(tmp_path: Path, server: FakeServer) -> None:
    hub = make(tmp_path, base_url=server.url, api_key="k-123")
    choice = await hub.default()
    assert choice is not None
    connection, steps = await connect(hub, choice)
    assert connection.choice.name == "served"
    assert connection.window == Window(8192, "discovery")
    assert connection.supports_tools
    assert connection.max_tool_rounds is None
    assert connection.alive
    assert steps
    server.script(text_reply("ok"))
    assert [c async for c in connection.chat.stream(ChatRequest(({"role": "user", "content": "Hi"},)))]
    assert server.chats[0].json()["model"] == "served"
    assert {r.headers.get("authorization") for r in server.requests} == {"Bearer k-123"}
    await connection.aclose()


async def test_override_beats_discovery_and_refresh_asks_again(tmp_path: Path, server: FakeServer) -> None:
    choice = ModelChoice("endpoint", "served", "served", server.base_url)
    plain, _ = await connect(make(tmp_path), choice)
    assert plain.window == Window(8192, "discovery")
    server.routes["/props"] = json_reply({"default_generation_settings": {"n_ctx": 4096}})
    assert await plain.refresh_window() == Window(4096, "discovery") == plain.window
    del server.routes["/props"]
    assert await plain.refresh_window() == UNKNOWN_WINDOW, "M4: no guess"
    forced, _ = await connect(make(tmp_path, window_override=16000), choice)
    assert forced.window == await forced.refresh_window() == Window(16000, "override")
    await plain.aclose()
    await forced.aclose()


async def test_ollama_loads_the_model_before_its_window_is_believed(tmp_path: Path, server: FakeServer) -> None:
    """Cases 93 and 94: the trained window is not what Ollama gives."""
    server.routes.pop("/props")
    server.routes["/v1/models"] = json_reply({"object": "list", "data": [{"id": "q:8b", "owned_by": "library"}]})
    server.routes["/api/show"] = json_reply({"model_info": {"qwen2.context_length": 131072}, "capabilities": []})
    server.routes["/api/ps"] = json_reply({"models": []})

    def load(request: Any) -> Any:
        server.routes["/api/ps"] = json_reply({"models": [{"name": "q:8b", "context_length": 4096}]})
        return json_reply({"done": True})

    server.routes["/api/generate"] = load
    connection, _ = await connect(make(tmp_path), ModelChoice("endpoint", "q:8b", "q", server.base_url))
    assert connection.window == Window(4096, "discovery")
    assert not connection.supports_tools
    await connection.aclose()


async def test_connecting_says_what_is_wrong(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wrong(choice: ModelChoice) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await connect(make(tmp_path), choice)
        assert caught.value.message
        assert caught.value.hint
        return caught.value

    server.routes["/v1/models"] = json_reply({"object": "list", "data": []})
    assert "no model that can chat" in (await wrong(ModelChoice("endpoint", "", "x", server.base_url))).message
    server.routes["/v1/models"] = error_reply(401, "no")
    assert (await wrong(ModelChoice("endpoint", "", "x", server.base_url))).kind == "auth"
    assert (await wrong(ModelChoice("endpoint", "m", "x", "nonsense://"))).kind == "bad_request"
    assert (await wrong(ModelChoice("endpoint", "m", "x", server.base_url, "ключ"))).kind == "auth"
    assert (await wrong(ModelChoice("gguf", str(tmp_path / "no.gguf"), "x"))).kind == "bad_request"
    here = write(tmp_path / "here.gguf")
    assert "marextui[local]" in (await wrong(ModelChoice("gguf", str(here), "x"))).hint
    assert "marextui[local]" in (await wrong(ModelChoice("embedded", EMBEDDED_SMALL, "x"))).hint


async def test_configure_changes_the_endpoint(tmp_path: Path, server: FakeServer) -> None:
    hub = make(tmp_path)
    assert await hub.default() is None
    hub.configure(base_url=server.url, api_key="", model="served")
    choice = await hub.default()
    assert choice is not None
    assert (choice.name, choice.base_url) == ("served", server.base_url)


async def test_check_endpoint(server: FakeServer) -> None:
    assert await check_endpoint(server.url, "", "") == ("", ["served"])
    assert await check_endpoint(server.url, "", "served") == ("", ["served"])
    sentence, ids = await check_endpoint(server.url, "", "nope")
    assert "no model “nope”" in sentence
    assert ids == ["served"]
    assert "not a base URL" in (await check_endpoint("::", "", ""))[0]
    server.routes["/v1/models"] = error_reply(401, "bad key")
    assert "API key" in (await check_endpoint(server.url, "k-123456", ""))[0]
    server.routes["/v1/models"] = json_reply({"object": "list", "data": []})
    assert (await check_endpoint(server.url, "", ""))[0]
    assert (await check_endpoint(server.url, "", "given"))[0] == ""
    async with FakeServer() as gone:
        pass
    assert "nothing listens" in (await check_endpoint(gone.url, "", ""))[0]
