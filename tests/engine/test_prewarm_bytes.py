"""Prewarms byte by byte on a recording server: what is asked of it, and what is not (L31–L44)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marextui.engine import prewarm as prewarming
from marextui.engine.events import Event, Notice, PrewarmChanged
from marextui.settings import Settings
from tests.stubs.fake_server import (
    Cut,
    FakeServer,
    Gate,
    Reply,
    Request,
    Script,
    completion_reply,
    error_reply,
    json_reply,
    text_reply,
)
from tests.stubs.live_engine import LiveEngine, live_engine


class Server:
    """Answers turns and prewarms; `on_prewarm` and `on_turn` may be scripted, everything is recorded."""

    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self.on_prewarm: list[Script] = []
        self.on_turn: list[Script] = []
        fake.fallback = self.answer

    def answer(self, request: Request) -> Reply:
        warm = is_prewarm(request)
        scripts = self.on_prewarm if warm else self.on_turn
        usual = completion_reply("!", usage=(120, 1, 100)) if warm else text_reply("Because of the loop.")
        script = scripts.pop(0) if scripts else usual
        return script if isinstance(script, Reply) else script(request)

    @property
    def turns(self) -> list[Request]:
        return [r for r in self.fake.chats if not is_prewarm(r)]

    @property
    def prewarms(self) -> list[Request]:
        return [r for r in self.fake.chats if is_prewarm(r)]

    def looks(self) -> list[str]:
        return [r.path for r in self.fake.requests if r.method == "GET"]


def is_prewarm(request: Request) -> bool:
    body = request.json()
    return bool(body["messages"][-1] == {"role": "user", "content": "."})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with FakeServer(n_ctx=16_384) as fake:
        yield Server(fake)


def settings(server: Server, mode: str = "on", **more: Any) -> Settings:
    return Settings(base_url=server.fake.base_url, model="fake", prewarm=mode, **more)  # type: ignore[arg-type]


async def settled(live: LiveEngine, mark: int) -> PrewarmChanged:
    def done(event: Event) -> bool:
        return isinstance(event, PrewarmChanged) and event.state in ("ready", "refused")

    async with asyncio.timeout(20):
        found = await live.until(done, after=mark)
    assert isinstance(found, PrewarmChanged)
    return found


async def ask(live: LiveEngine, text: str) -> PrewarmChanged:
    """A turn, and what became of the prewarm after it."""
    mark = len(live.events)
    assert (await live.ask(text)).end == "done"
    return await settled(live, mark)


async def warming(live: LiveEngine, gate: Gate, text: str) -> None:
    """A turn, and a prewarm after it that the server has begun to answer."""
    await live.ask(text)
    await gate.reached.wait()


def beginning(request: Request) -> bytes:
    """The body up to the last message."""
    last = json.dumps(request.json()["messages"][-1], ensure_ascii=False, separators=(",", ":")).encode()
    return request.body[: request.body.index(last + b'],"tools"')]


async def test_its_bytes_are_the_turns_up_to_the_last_message(server: Server, tmp_path: Path) -> None:
    """L32, L33: the same bytes, tools and fields, but one token, no stream, and so no options of one."""
    async with live_engine(settings(server, temperature=0.3), tmp_path / "p") as live:
        assert (await ask(live, "Why, « exactly »?")).computed == 20
        await live.ask("And then?")
    [ahead, *_] = server.prewarms
    turn = server.turns[1]
    assert beginning(ahead) == beginning(turn)
    sent, wanted = ahead.json(), turn.json()
    assert sent["messages"][-1] == {"role": "user", "content": "."}
    del wanted["stream_options"]
    assert sent == {**wanted, "messages": sent["messages"], "max_tokens": 1, "stream": False}
    assert list(sent) == [k for k in turn.json() if k != "stream_options"]


async def test_without_the_key_not_one_request_more(server: Server, tmp_path: Path) -> None:
    """L31: two turns are two requests; no /health, no /props, no /slots after connecting."""
    async with live_engine(settings(server, "off"), tmp_path / "p") as live:
        await live.ask("One?")
        looks = server.looks()
        await live.ask("Two?")
        assert server.looks() == looks
    assert len(server.fake.chats) == 2
    assert live.of(PrewarmChanged) == []


SLOTS: list[tuple[dict[str, Any] | None, int, str]] = [
    ({"total_slots": 1}, 1, ""),
    ({"total_slots": 2}, 0, "the server has 2 slots, and the next turn may land in another one"),
    ({"total_slots": 1, "is_sleeping": True}, 0, "the server sleeps, and is not woken for this"),
    (None, 0, "the server does not say how many slots it has"),
]


@pytest.mark.parametrize(("props", "sent", "why"), SLOTS)
async def test_the_server_says_how_many_slots_it_has(
    server: Server, tmp_path: Path, props: dict[str, Any] | None, sent: int, why: str
) -> None:
    """L38: from /props, asked each time: a server may have been started anew with others."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        await ask(live, "One?")
        body = None if props is None else json_reply({"default_generation_settings": {"n_ctx": 16_384}, **props})
        server.fake.routes["/props"] = body or error_reply(404, "no such route")
        assert (await ask(live, "Two?")).why == why
        line = next(x for x in (await live.engine.status()).economy if x.key == "prewarm")
    assert len(server.prewarms) == 1 + sent
    assert line.state == ("suspended" if why else "on")
    assert why in line.why


def held(gate: Gate) -> Reply:
    """The usual answer to a prewarm, when `gate` opens."""
    usual = completion_reply("!", usage=(120, 1, 100))
    return Reply((gate, *usual.pieces), content_type=usual.content_type)


async def test_a_turn_that_goes_on_waits_until_it_is_through(server: Server, tmp_path: Path) -> None:
    """L37: nothing of the turn reaches the server before the prewarm's answer has come."""
    gate = Gate()
    server.on_prewarm.append(lambda _: held(gate))
    async with live_engine(settings(server), tmp_path / "p") as live:
        await warming(live, gate, "Why?")
        mark = len(live.events)
        live.engine.submit("And then?")
        await live.until(lambda e: getattr(e, "phase", "") == "connecting", after=mark)
        gate.open()
        await live.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "idle", after=mark)
        assert [e.state for e in live.of(PrewarmChanged, mark)] == ["ready", "idle"]
        assert (await live.ended(mark)).end == "done"
    assert len(server.turns) == 2
    assert server.fake.hang_ups == 0


async def test_other_work_closes_its_connection_first(server: Server, tmp_path: Path) -> None:
    """L36: a turn under other rules does not wait for it."""
    gate = Gate()
    server.on_prewarm.append(lambda _: Reply((gate,)))
    async with live_engine(settings(server), tmp_path / "p") as live:
        await warming(live, gate, "Why?")
        (tmp_path / "p" / "MAREX.md").write_text("Be brief.\n")
        assert (await live.ask("And then?")).end == "done"
        await server.fake.hung_up()
    assert len(server.turns) == 2


async def test_a_server_that_goes_on_computing_is_waited_for_as_ever(server: Server, tmp_path: Path) -> None:
    """D8: it has not noticed the closed connection, and answers the turn when it is through; nothing fails for it."""
    gate, through = Gate(), Gate()
    server.on_prewarm.append(lambda _: Reply((gate,)))
    async with live_engine(settings(server), tmp_path / "p") as live:
        await warming(live, gate, "Why?")
        server.on_turn.append(text_reply("In the end.", before=through))
        (tmp_path / "p" / "MAREX.md").write_text("Be brief.\n")
        mark = len(live.events)
        live.engine.submit("And then?")
        await through.reached.wait()
        through.open()
        assert (await live.ended(mark)).end == "done"
        assert live.last().text == "In the end."
        assert live.of(Notice) == []


PROBLEMS: dict[str, Reply] = {
    "a field it does not know": error_reply(400, "temperature is not supported", type="invalid_request_error"),
    "a template": error_reply(500, "Jinja Exception: roles must alternate", type="server_error"),
    "loading": error_reply(503, "Loading model", type="unavailable_error"),
    "a broken connection": Reply((Cut(),)),
    "half an answer": Reply((b'{"choices":[{"mess', Cut()), content_type="application/json"),
    "no JSON": Reply((b"<html>Bad gateway</html>",), 200, "text/html"),
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
async def test_a_refused_one_teaches_nothing(server: Server, tmp_path: Path, problem: Reply) -> None:
    """L43, L44: sent once, nothing told, and the next turn is sent as if it had never been."""
    async with live_engine(settings(server, temperature=0.3), tmp_path / "p") as live:
        server.on_prewarm.append(problem)
        assert (await ask(live, "Why?")).state == "refused"
        assert len(server.prewarms) == 1
        assert (await ask(live, "And then?")).state == "ready"
        assert live.of(Notice) == []
    first, second = (r.json() for r in server.turns)
    assert list(first) == list(second)
    assert second["temperature"] == 0.3


async def test_several_conversations_are_warmed_each_with_its_own(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L47: with full, going back to a conversation computes its prompt; what its next turn sends is that."""
    monkeypatch.setattr(prewarming, "SWITCH_PAUSE", 0.0)
    async with live_engine(settings(server, "full"), tmp_path / "p") as live:
        await ask(live, "About a?")
        first = live.engine.session.id
        await live.engine.open_conversation(None)
        await ask(live, "About b?")
        mark = len(live.events)
        await live.engine.open_conversation(first)
        assert (await settled(live, mark)).state == "ready"
        await live.ask("More of a?")
    assert "About a?" in str(server.prewarms[2].json()["messages"])
    assert beginning(server.prewarms[2]) == beginning(server.turns[2])
