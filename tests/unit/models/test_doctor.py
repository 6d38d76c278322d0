"""Examining a server (issue 4, section 6): each kind's shape, what its answers mean, and servers that mean no good."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from marextui.context.doctor_chart import Chart
from marextui.context.doctor_findings import advice, findings, kept
from marextui.context.doctor_requests import Script, bound
from marextui.models.doctor import Doctor, Patient
from marextui.models.types import ModelError
from tests.stubs.examined import (
    ALTERNATE,
    CUT,
    IDLE,
    Behaviour,
    Examined,
    answer_with,
    llama_cpp,
    lm_studio,
    ollama,
    plain,
    vllm,
)
from tests.stubs.fake_server import Cut, FakeServer, Gate, Reply, Request, delta, error_reply, json_reply

SECRET = "sk-a-key-that-must-stay-here"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        yield server


def doctor(server: FakeServer, *, timeout: float = 20.0, local: bool = True, **more: Any) -> Doctor:
    """A doctor whose clock goes on by 10 ms with each look, and who waits for nothing."""
    ticks = itertools.count()

    async def no_wait(_seconds: float) -> None:
        await asyncio.sleep(0)

    patient = Patient(server.base_url, local, **more)
    return Doctor(patient, Script("n0n", local), timeout=timeout, now=lambda: next(ticks) / 100, sleep=no_wait)


async def examine(server: FakeServer, **more: Any) -> Chart:
    asked = doctor(server, **more)
    try:
        return await asked.examine(lambda _: None)
    finally:
        await asked.aclose()


def verdicts(chart: Chart) -> dict[str, str]:
    return {f.id: f.verdict for f in findings(chart)}


async def test_llama_cpp_tells_everything(server: FakeServer) -> None:
    llama_cpp(server)
    chart = await examine(server)
    assert (chart.kind, chart.version, chart.model) == ("llama.cpp", "b11549-1a2b3c4", "qwen-7b")
    assert (chart.window, chart.window_from, chart.trained) == (8192, "/props (n_ctx)", False)
    assert chart.usable
    assert not chart.ended
    assert verdicts(chart) == {
        "server": "yes",
        "model": "yes",
        "window": "yes",
        "usage": "yes",
        "cached_tokens": "yes",
        "tools": "yes",
        "tool_choice_none": "yes",
        "two_users": "yes",
        "slots": "yes",
        "slot_save": "no",
        "progress": "yes",
        "timings": "yes",
        "cancel": "yes",
        "cache": "yes",
        "parked": "no",
    }
    assert server.hang_ups == 1  # the long answer, and only that


async def test_several_slots_and_a_save_path(server: FakeServer) -> None:
    """L38: four slots switch prewarming off. Nothing is saved to find out that slots can be."""
    llama_cpp(server, slots=4, save_path=True)
    chart = await examine(server)
    assert (chart.slots, chart.save_path) == (4, True)
    assert {a.key: a.value for a in advice(chart, {}, connect=False)}["prewarm"] == "off"
    [asked] = [r for r in server.requests if r.path == "/slots/0"]
    assert (asked.query, asked.json()) == ("action=save", {"filename": "/"})


async def test_ollama(server: FakeServer) -> None:
    """The loaded model is asked, not the first; its window is what is loaded, not what was trained."""
    ollama(server)
    chart = await examine(server)
    assert (chart.kind, chart.version, chart.model, chart.models) == ("Ollama", "0.11.4", "qwen2.5:7b", 3)
    assert (chart.window, chart.window_from, chart.trained) == (4096, "/api/ps (context_length)", False)
    assert (chart.cached_told, chart.progress, chart.timings, chart.slots) == (False, False, False, None)
    assert kept(chart, "continuation") is None  # tokens not told, and no time that says anything


async def test_lm_studio(server: FakeServer) -> None:
    lm_studio(server)
    chart = await examine(server)
    assert (chart.kind, chart.window, chart.window_from) == (
        "LM Studio",
        4096,
        "/api/v1/models (loaded context_length)",
    )
    assert chart.save_path is None


async def test_vllm_drops_the_tools(server: FakeServer) -> None:
    """D9: with tool_choice "none" the prompt changes at its head; the continuation is not recommended."""
    behaviour = vllm(server)
    behaviour.cached = True
    chart = await examine(server)
    assert (chart.kind, chart.version, chart.window) == ("vLLM", "0.27.1", 32768)
    assert chart.tools_kept is False
    assert verdicts(chart)["tool_choice_none"] == "no"
    assert {a.key: a.value for a in advice(chart, {}, connect=False)}["compact_continuation"] is False


async def test_an_unknown_server_keeps_its_unknowns(server: FakeServer) -> None:
    plain(server)
    chart = await examine(server)
    assert (chart.kind, chart.window, chart.window_from, chart.version) == ("OpenAI-compatible", None, "", "")
    assert chart.usable
    told = verdicts(chart)
    assert [told[k] for k in ("window", "slots", "slot_save", "cancel", "cache", "parked")] == ["unknown"] * 6


@pytest.mark.parametrize(
    ("does", "use", "none", "tools", "choice"),
    [
        pytest.param("calls", "called", "not called", "yes", "yes", id="calls"),
        pytest.param("text", "as text", "not called", "no", "yes", id="call-as-text"),
        pytest.param("words", "not called", "not called", "unknown", "yes", id="words"),
        pytest.param("refuses", "refused", "refused", "no", "no", id="refused"),
        pytest.param("ignores-none", "called", "called", "yes", "no", id="none-is-ignored"),
    ],
)
async def test_tools(server: FakeServer, does: str, use: str, none: str, tools: str, choice: str) -> None:
    """L14, L22."""
    llama_cpp(server).tools = does
    chart = await examine(server)
    assert (chart.tool_use, chart.tool_none) == (use, none)
    assert (verdicts(chart)["tools"], verdicts(chart)["tool_choice_none"]) == (tools, choice)
    if does == "refuses":
        assert "tools are not supported" in next(f.words for f in findings(chart) if f.id == "tools")


async def test_a_template_without_tools(server: FakeServer) -> None:
    """Servers drop the tools silently then (D9): words are no tool use."""
    llama_cpp(server, template_tools=False).tools = "words"
    assert verdicts(await examine(server))["tools"] == "no"


async def test_a_strict_template_refuses_two_users(server: FakeServer) -> None:
    """D7: HTTP 500 with the template's words; all else goes on."""
    llama_cpp(server).strict = True
    chart = await examine(server)
    assert chart.two_users is False
    assert ALTERNATE in chart.two_users_said
    assert chart.usable
    assert "prewarmed" in chart.measured


async def test_a_cache_that_forgets(server: FakeServer) -> None:
    llama_cpp(server).caches = False
    chart = await examine(server)
    assert kept(chart, "continuation") is False
    assert {a.key: a.value for a in advice(chart, {}, connect=False)} == {
        "compact_continuation": False,
        "prewarm": "off",
        "proj_snapshot": False,
    }


async def test_a_cache_that_parks_the_conversation(server: FakeServer) -> None:
    llama_cpp(server).parks = True
    chart = await examine(server)
    assert kept(chart, "back") is True


async def test_what_is_measured(server: FakeServer) -> None:
    """L4, L33: going on and the prewarmed turn compute little, the separate request nearly all."""
    llama_cpp(server)
    measured = (await examine(server)).measured
    assert set(measured) == {"opening", "continuation", "separate", "back", "prewarmed"}
    computed = {name: m.computed or 0 for name, m in measured.items()}
    assert computed["opening"] > 1000
    assert computed["continuation"] < 150
    assert computed["separate"] > 1000
    assert computed["prewarmed"] < 150


@pytest.mark.parametrize("name", ["chat_template_kwargs", "tool_choice"])
async def test_refused_fields_are_no_refusal_of_tools(server: FakeServer, name: str) -> None:
    """A tool is called all the same; without tool_choice nothing forbids it, so that is not tried."""
    llama_cpp(server).refuses = (name,)
    chart = await examine(server)
    assert chart.tool_use == "called"
    assert chart.tool_none == ("refused" if name == "tool_choice" else "not called")
    assert sum(name in r.json() for r in server.chats) == 1


async def test_a_list_of_models_without_end(server: FakeServer) -> None:
    """The first one is taken, few are kept."""
    llama_cpp(server)
    many = [{"id": f"\x1b[31mmodel {n}"} for n in range(50_000)]
    server.routes["/v1/models"] = json_reply({"object": "list", "data": many})
    chart = await examine(server)
    assert chart.models == 2000
    assert chart.model == "\x1b[31mmodel 0"
    assert server.chats[0].json()["model"] == chart.model


@pytest.mark.parametrize("name", ["return_progress", "stream_options"])
async def test_refused_fields_are_left_out(server: FakeServer, name: str) -> None:
    behaviour = llama_cpp(server)
    behaviour.refuses = (name,)
    chart = await examine(server)
    assert chart.usable
    assert chart.progress is False
    assert chart.usage_stream is (name != "stream_options")
    refused = [r for r in server.chats if name in r.json()]
    assert len(refused) == 1


async def test_the_other_name_of_max_tokens(server: FakeServer) -> None:
    answers = Examined(Behaviour())
    plain(server)

    def newer(request: Request) -> Reply:
        if "max_tokens" in request.json():
            return error_reply(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return answers(request)

    server.fallback = newer
    assert (await examine(server, local=False)).usable
    assert sum("max_tokens" in r.json() for r in server.chats) == 1


async def test_too_small_a_window_to_measure(server: FakeServer) -> None:
    llama_cpp(server).n_ctx = 600
    chart = await examine(server)
    assert chart.usable
    assert not chart.measured
    assert "600" in next(f.words for f in findings(chart) if f.id == "cache")


@pytest.mark.parametrize(
    ("states", "cancels"),
    [([CUT], True), ([IDLE], None), ([{**CUT, "is_processing": True}], False), ([], None)],
)
async def test_hanging_up(server: FakeServer, states: list[dict[str, Any]], cancels: bool | None) -> None:
    """D8: an idle slot that had more to say was stopped."""
    llama_cpp(server)
    server.routes["/slots"] = json_reply(states)
    chart = await examine(server)
    assert chart.cancels is cancels


async def test_a_hosted_server_is_asked_little(server: FakeServer) -> None:
    """B25: no measurement, no field that hosted services refuse."""
    plain(server)
    chart = await examine(server, local=False)
    assert chart.usable
    assert len(server.chats) == 5
    assert not any("return_progress" in r.json() for r in server.chats)
    assert not chart.measured
    assert advice(chart, {}, connect=False) == ()


@pytest.mark.parametrize("kind", [llama_cpp, ollama, lm_studio, vllm, plain])
@pytest.mark.parametrize("reply", ["Yes.", "é" * 4000, '"\\\x00' * 500, "\U0001f600" * 1000, "\ud800"])
async def test_nothing_exceeds_what_was_stated(
    server: FakeServer, kind: Callable[[FakeServer], Behaviour], reply: str
) -> None:
    """Bytes of all prompts that arrived, and every answer asked for, whatever the replies that are sent back."""
    behaviour = kind(server)
    behaviour.reply = reply
    await examine(server)
    limit = bound(Script("n0n", True).plan())
    bodies = [r.json() for r in server.chats]
    sent = sum(len(m["content"].encode("utf-8", "replace")) for b in bodies for m in b["messages"])
    sent += sum(len(str(b["tools"])) for b in bodies if "tools" in b)
    assert sent <= limit.tokens
    assert len(bodies) <= limit.requests
    assert sum(b.get("max_tokens", 0) for b in bodies) <= limit.answers


async def test_more_than_was_stated_is_not_sent(server: FakeServer) -> None:
    """The promise does not rest on the plan being right."""
    llama_cpp(server)
    asked = doctor(server)
    asked._sender._bound = bound(Script("n0n", True).plan()[:4])
    chart = await asked.examine(lambda _: None)
    await asked.aclose()
    assert len(server.chats) < 6
    assert "more than was stated" in chart.ended


async def test_no_key_goes_to_another_host(server: FakeServer) -> None:
    async with FakeServer() as thief:
        sent_away = Reply((), 307, headers={"Location": f"{thief.base_url}/chat/completions"})
        server.routes = {"/v1/models": json_reply({"object": "list", "data": [{"id": "m"}]})}
        server.fallback = sent_away
        chart = await examine(server, api_key=SECRET)
        server.routes["/v1/models"] = sent_away
        second = await examine(server, api_key=SECRET)
        assert not thief.requests
    for told in (chart, second):
        assert not told.usable
        assert "elsewhere" in told.problem
        assert SECRET not in repr(told)
    assert server.chats[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("listing", "told"),
    [
        pytest.param(error_reply(401, "bad key"), "API key", id="401"),
        pytest.param(error_reply(404, "no"), "404", id="404"),
        pytest.param(Reply((b"<html><body>hello</body></html>",), 200, "text/html"), "list of models", id="html"),
        pytest.param(json_reply({"data": []}), "no model that can chat", id="no-model"),
        pytest.param(json_reply([1, 2]), "list of models", id="other-json"),
        pytest.param(Reply((b"[" * 100_000,), 200, "application/json"), "list of models", id="deep"),
        pytest.param(Reply((b"x" * 65536,) * 200, 200, "application/json"), "list of models", id="endless"),
        pytest.param(Reply((Cut(),), 200, "application/json"), "closed the connection", id="cut"),
    ],
)
async def test_no_list_of_models(server: FakeServer, listing: Reply, told: str) -> None:
    """A sentence, and no request to a model that is not there."""
    server.routes = {"/v1/models": listing}
    chart = await examine(server)
    assert told in chart.problem
    assert not chart.usable
    assert not server.chats


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        pytest.param(error_reply(401, f"bad key {SECRET}"), "API key", id="401"),
        pytest.param(error_reply(404, "no such model"), "404", id="404"),
        pytest.param(error_reply(503, "Loading model", type="unavailable_error"), "loading", id="loading"),
        pytest.param(Reply((b"<h1>Nginx</h1>",), 200, "text/html"), "text/html", id="html"),
        pytest.param(Reply((), 200, "application/json"), "no reply of a model", id="empty"),
        pytest.param(json_reply({"choices": 3}), "no reply of a model", id="odd-json"),
        pytest.param(json_reply({"error": {"message": "out of memory"}}), "out of memory", id="error-in-200"),
        pytest.param(Reply((b"x" * 65536,) * 40), "does not end", id="endless"),
        pytest.param(Reply((b"data: x\n\n",)), "not JSON", id="stream-of-words"),
        pytest.param(Reply((Cut(),)), "connection", id="cut"),
    ],
)
async def test_no_answer_to_the_first_question(server: FakeServer, reply: Reply, told: str) -> None:
    llama_cpp(server)
    server.fallback = reply
    chart = await examine(server, api_key=SECRET)
    assert told in chart.problem
    assert SECRET not in chart.problem
    assert len(server.chats) == 1
    assert findings(chart) == ()


@pytest.mark.parametrize(("key", "hint"), [("", "--api-key-env"), (SECRET, "Check the key")])
async def test_a_server_that_wants_a_key(server: FakeServer, key: str, hint: str) -> None:
    server.routes["/v1/models"] = error_reply(401, "who are you?")
    assert hint in (await examine(server, api_key=key)).problem


async def test_an_answer_that_does_not_come(server: FakeServer) -> None:
    """A slow drip has an end: the request's time is limited as a whole, not only its silences."""
    llama_cpp(server)
    drip = Gate()
    server.fallback = Reply((delta(content="a"), drip, delta(content="b")))
    chart = await examine(server, timeout=0.2)
    assert "did not finish" in chart.problem
    assert len(server.chats) == 1


async def test_a_list_of_models_that_does_not_come(server: FakeServer) -> None:
    server.routes = {"/v1/models": Reply((b"{", Gate()), 200, "application/json")}
    chart = await examine(server, timeout=0.2)
    assert "did not answer within" in chart.problem
    assert not server.chats


async def test_a_server_that_dies_halfway(server: FakeServer) -> None:
    """What is known so far stays; nothing more is sent."""
    llama_cpp(server)
    working = server.fallback
    assert callable(working)

    def dying(request: Request) -> Reply:
        return Reply((Cut(),)) if "tools" in request.json() else working(request)

    server.fallback = dying
    chart = await examine(server)
    assert chart.usable
    assert chart.two_users is True
    assert "connection" in chart.ended
    assert "tools" in server.chats[-1].json()
    assert verdicts(chart)["tools"] == "unknown"


async def test_stopped_in_the_middle(server: FakeServer) -> None:
    """Ctrl+C: the chart holds what is known, the connection is closed."""
    llama_cpp(server)
    working, held = server.fallback, Gate()
    assert callable(working)

    def stuck(request: Request) -> Reply:
        return Reply((delta(content="a"), held)) if "tools" in request.json() else working(request)

    server.fallback = stuck
    asked = doctor(server)
    task = asyncio.ensure_future(asked.examine(lambda _: None))
    await held.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.hung_up()
    await asked.aclose()
    assert asked.chart.ended == "it was stopped"
    assert asked.chart.usable
    assert asked.chart.requests == len(server.chats)


async def test_a_key_that_is_none() -> None:
    with pytest.raises(ModelError):
        Doctor(
            Patient("http://127.0.0.1:1/v1", True, api_key="a\nb"),
            Script("n", True),
            timeout=1.0,
            now=lambda: 0.0,
            sleep=asyncio.sleep,
        )


async def test_a_named_model_needs_no_list(server: FakeServer) -> None:
    server.routes = {}
    answer_with(server, Behaviour())
    chart = await examine(server, model="mine")
    assert chart.usable
    assert server.chats[0].json()["model"] == "mine"
