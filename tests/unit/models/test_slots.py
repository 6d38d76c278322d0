"""The slot ledger on a connection: every request passes it, whoever sends it (L2, L16–L19, L36)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from marextui.models.connection import EndpointConnection
from marextui.models.types import Accepted, ChatRequest, ModelChoice, ModelError, TextChunk, Usage
from tests.stubs.fake_server import Cut, FakeServer, Gate, Reply, delta, error_reply, json_reply, text_reply

STEP = ChatRequest(({"role": "user", "content": "Hi"},), kind="main", conversation="c", message_ids=("m-1",))
OTHER = ChatRequest(({"role": "user", "content": "Check"},), kind="verify")


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def connection(server: FakeServer) -> AsyncIterator[EndpointConnection]:
    choice = ModelChoice("endpoint", "fake", "fake", server.base_url)
    made = EndpointConnection(choice, server.base_url, override=None, silence_timeout=10.0)
    made.slots.stamping = True
    made.slots.settle("fake", 8192)
    yield made
    await made.aclose()


async def send(connection: EndpointConnection, request: ChatRequest) -> None:
    async for _ in connection.chat.stream(request):
        pass


async def test_an_accepted_step_is_kept_as_it_left(connection: EndpointConnection, server: FakeServer) -> None:
    """L3, L16: the very request, and what the server counted."""
    server.script(text_reply("Hello there.", usage=(90, 7, 3)))
    await send(connection, STEP)
    held = connection.slots.held("c")
    assert held is not None
    assert held.request is STEP
    assert held.usage == Usage(inp=90, out=7, cache_read=3)
    assert connection.slots.held("d") is None
    assert connection.slots.idle


async def test_books_are_not_sent(connection: EndpointConnection, server: FakeServer) -> None:
    """L2: kind, conversation and ids change no byte of the body."""
    server.script(text_reply("a"), text_reply("b"))
    await send(connection, STEP)
    await send(connection, replace(STEP, kind="verify", conversation="", message_ids=()))
    assert server.chats[0].body == server.chats[1].body


async def test_without_the_key_nothing_is_stamped(connection: EndpointConnection, server: FakeServer) -> None:
    """L2."""
    connection.slots.stamping = False
    server.script(text_reply("Hello."))
    await send(connection, STEP)
    assert connection.slots.held("c") is None
    assert connection.slots.ledger.stamp is None
    assert connection.slots.last_step is not None
    assert connection.slots.last_step.request is STEP


async def test_reads_do_not_count(connection: EndpointConnection, server: FakeServer) -> None:
    """L17: health, props, slots and models leave the stamp alone."""
    server.script(text_reply("Hello."))
    await send(connection, STEP)
    facts = await connection.read_slots()
    await connection.refresh_window()
    assert (facts.total, facts.sleeping, facts.busy) == (1, False, False)
    assert connection.slots.held("c") is not None


async def test_another_request_takes_the_stamp_when_it_leaves(
    connection: EndpointConnection, server: FakeServer
) -> None:
    """L17: at departure, not at the answer; also when it is refused."""
    gate = Gate()
    server.script(text_reply("Hello."), text_reply("late", before=gate), text_reply("Hello."), error_reply(400, "no"))
    await send(connection, STEP)
    async with aclosing(connection.chat.stream(OTHER)) as chunks:
        assert connection.slots.held("c") is not None  # nothing has left yet
        task = asyncio.ensure_future(anext(chunks))
        await gate.reached.wait()
        assert connection.slots.held("c") is None
        assert not connection.slots.idle
        gate.open()
        assert await task == Accepted()
    await send(connection, STEP)
    assert connection.slots.held("c") is not None
    with pytest.raises(ModelError):
        await send(connection, OTHER)
    assert connection.slots.held("c") is None
    assert connection.slots.idle


async def test_a_step_that_is_left_early_is_no_longer_in_flight(
    connection: EndpointConnection, server: FakeServer
) -> None:
    """L16: interrupted after acceptance, the stamp stands; the request is over."""
    gate = Gate()
    server.script(Reply((delta(content="Hel"), gate, delta(content="lo"))))
    async with aclosing(connection.chat.stream(STEP)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                break
    assert connection.slots.idle
    held = connection.slots.held("c")
    assert held is not None
    assert held.usage is None
    gate.open()


@pytest.mark.parametrize(
    "reply", [Reply((delta(content="Hel"), Cut())), error_reply(503, "Loading model", type="unavailable_error")]
)
async def test_a_server_that_broke_off_holds_nothing(
    connection: EndpointConnection, server: FakeServer, reply: Reply
) -> None:
    """L18: killed in the middle of an answer, or loading anew."""
    server.script(reply)
    with pytest.raises(ModelError):
        await send(connection, STEP)
    assert connection.slots.held("c") is None
    assert connection.slots.idle


async def test_a_sleeping_server_holds_nothing(connection: EndpointConnection, server: FakeServer) -> None:
    """L18, D9."""
    server.script(text_reply("Hello."))
    await send(connection, STEP)
    props: dict[str, Any] = {"total_slots": 1, "is_sleeping": True, "default_generation_settings": {"n_ctx": 8192}}
    server.routes["/props"] = json_reply(props)
    assert (await connection.read_slots()).sleeping
    assert connection.slots.held("c") is None
    assert "sleep" in connection.slots.why_not("c")


@pytest.mark.parametrize(
    ("told", "name"),
    [({"model_alias": "tiny"}, "tiny"), ({"model_path": "/models/b.gguf"}, "b.gguf"), ({"model_path": 3}, "")],
)
async def test_the_window_and_the_models_own_name_are_told_with_the_slots(
    connection: EndpointConnection, server: FakeServer, told: dict[str, Any], name: str
) -> None:
    server.routes["/props"] = json_reply({"total_slots": 1, "default_generation_settings": {"n_ctx": 4096}, **told})
    facts = await connection.read_slots()
    assert (facts.window, facts.model) == (4096, name)


async def test_slots_of_servers_that_tell_less(connection: EndpointConnection, server: FakeServer) -> None:
    """D1: slots may be switched off (501), and other servers have none of it."""
    server.routes["/slots"] = error_reply(501, "This server does not support slots endpoint.")
    del server.routes["/props"]
    facts = await connection.read_slots()
    assert (facts.total, facts.sleeping, facts.busy, facts.prompts) == (None, False, None, None)
    server.routes["/slots"] = json_reply([{"id": 0, "is_processing": True, "n_prompt_tokens": 41}, {"id": 1}, "?"])
    facts = await connection.read_slots()
    assert (facts.busy, facts.prompts) == (True, (41,))


async def test_way_is_made_before_the_first_byte(connection: EndpointConnection, server: FakeServer) -> None:
    """L36: what waits for a departure is through before the server sees anything of the request."""
    seen: list[tuple[str, int]] = []

    async def make_way(request: ChatRequest) -> None:
        seen.append((request.kind, len(server.chats)))

    connection.slots.before_departure.append(make_way)
    server.script(text_reply("Hello."))
    await send(connection, STEP)
    assert seen == [("main", 0)]
    assert connection.slots.held("c") is not None


async def test_what_a_step_followed_is_known(connection: EndpointConnection, server: FakeServer) -> None:
    """I7: the prompt the server took before, its count, what may have replaced it since; what it refused has not."""
    server.script(text_reply("a", usage=(90, 7, 3)), error_reply(400, "no"), text_reply("b"), text_reply("c"))
    await send(connection, STEP)
    assert connection.slots.before is None
    with pytest.raises(ModelError):
        await send(connection, replace(OTHER, kind="bench"))
    await send(connection, OTHER)
    await send(connection, STEP)
    before = connection.slots.before
    assert before is not None
    assert (before.request, before.usage) == (STEP, Usage(inp=90, out=7, cache_read=3))
    assert before.since == "a verification was sent in between"


async def test_a_prewarm_is_what_the_next_step_follows(connection: EndpointConnection, server: FakeServer) -> None:
    """L34: a step is compared with what was computed for it; a server that is gone has kept none of it."""
    server.script(text_reply("a"), text_reply("."), text_reply("b"))
    await send(connection, STEP)
    warm = replace(STEP, kind="prewarm")
    await send(connection, warm)
    connection.slots.forget("the server went to sleep")
    await send(connection, STEP)
    before = connection.slots.before
    assert before is not None
    assert before.request is warm
    assert before.since == "the server went to sleep"


async def test_requests_that_do_not_pass_here_occupy_the_slots_all_the_same(
    connection: EndpointConnection, server: FakeServer
) -> None:
    """L17, L36: while the server is examined nothing is prewarmed, and afterwards nothing is held."""
    server.script(text_reply("Hello."))
    await send(connection, STEP)
    slots, asked = connection.slots, []

    async def make_way(request: ChatRequest) -> None:
        asked.append(request.kind)

    slots.before_departure.append(make_way)
    async with slots.occupied("doctor"):
        assert asked == ["doctor"]
        assert not slots.idle
    assert slots.idle
    assert slots.held("c") is None
    assert "a check of the server" in slots.why_not("c")
