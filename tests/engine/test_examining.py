"""`/doctor` in the engine: outside the conversation, one thing at a time, and nothing is sent that costs unasked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marextui.engine import doctor as engine_doctor
from marextui.engine.events import Notice, PhaseChanged, ServerExamined
from marextui.models import connection as connections
from marextui.models import doctor as models_doctor
from marextui.settings import Settings
from tests.stubs.examined import llama_cpp
from tests.stubs.fake_server import FakeServer, Gate, Reply, delta, text_reply
from tests.stubs.live_engine import LiveEngine, live_engine


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeServer]:
    monkeypatch.setattr(models_doctor, "FREE_AFTER", 0.0)
    async with FakeServer() as server:
        llama_cpp(server)
        yield server


def settings(server: FakeServer, **more: Any) -> Settings:
    return Settings(base_url=server.base_url, model="qwen-7b", **more)


async def examined(live: LiveEngine) -> str:
    mark = len(live.events)
    live.engine.examine()
    found = await live.until(lambda e: isinstance(e, ServerExamined), after=mark)
    await live.until(lambda e: isinstance(e, PhaseChanged) and e.phase == "idle", after=live.events.index(found, mark))
    assert isinstance(found, ServerExamined)
    return found.text


async def test_the_report_and_nothing_in_the_conversation(server: FakeServer, tmp_path: Path) -> None:
    async with live_engine(settings(server, compact_continuation=True), tmp_path / "p") as live:
        server.script(text_reply("Hello."))
        await live.ask("hi")
        before = live.history()
        text = await examined(live)
        assert live.history() == before
        steps = [e.detail for e in live.of(PhaseChanged) if e.phase == "examining"]
        stated = next(n.text for n in live.of(Notice) if n.text.startswith("Sends "))
    assert "can be used." in text
    assert "compact_continuation = true  # " in text
    assert "(set already)" in text
    assert "base_url" not in text
    assert "offering a tool" in steps
    assert "never more than" in stated
    lines = [json.loads(x) for x in (tmp_path / "p" / ".marex" / "usage.jsonl").read_text().splitlines()]
    [line] = [x for x in lines if x["kind"] == "doctor"]
    assert line["inp"] > 1000


async def test_the_cache_is_known_to_be_lost(server: FakeServer, tmp_path: Path) -> None:
    """L17: a summary must not go on with what the examination has driven out."""
    async with live_engine(settings(server, compact_continuation=True), tmp_path / "p") as live:
        await live.ask("hi")
        connection = live.engine.state.control.connection
        assert connection is not None
        conversation = live.engine.session.id
        assert connection.slots.held(conversation) is not None
        await examined(live)
        assert connection.slots.held(conversation) is None
        assert "a check of the server" in connection.slots.why_not(conversation)
        assert connection.slots.idle


async def test_it_is_refused_while_a_turn_runs(server: FakeServer, tmp_path: Path) -> None:
    async with live_engine(settings(server), tmp_path / "p") as live:
        await examined(live)
        gate = Gate()
        server.script(Reply((delta(content="a"), gate, delta(content="b"))))
        mark = len(live.events)
        live.engine.submit("slow")
        await gate.reached.wait()
        live.engine.examine()
        assert any("while something else runs" in n.text for n in live.of(Notice, mark))
        sent = len(server.chats)
        gate.open()
        await live.ended(mark)
        assert len(server.chats) == sent
        assert not live.of(ServerExamined, mark)


async def test_it_can_be_stopped(server: FakeServer, tmp_path: Path) -> None:
    """Esc: what is known so far is shown, and the next turn runs."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        working, held = server.fallback, Gate()
        assert callable(working)

        def stuck(request: Any) -> Reply:
            # the doctor offers one tool, a turn many
            one = len(request.json().get("tools", ())) == 1
            return Reply((delta(content="a"), held)) if one else working(request)

        server.fallback = stuck
        mark = len(live.events)
        live.engine.examine()
        await held.reached.wait()
        live.engine.interrupt()
        found = await live.until(lambda e: isinstance(e, ServerExamined), after=mark)
        assert isinstance(found, ServerExamined)
        assert "it was stopped" in found.text
        assert (await live.ask("hi")).end == "done"


async def test_a_hosted_server_is_not_examined_unasked(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marextui.models.hub.is_local", lambda _url: False)
    monkeypatch.setattr(connections, "is_local", lambda _url: False, raising=False)
    async with live_engine(settings(server), tmp_path / "p") as live:
        live.engine.examine()
        told = await live.until(lambda e: isinstance(e, Notice) and "may cost money" in e.text)
        assert isinstance(told, Notice)
        assert told.hint == "/doctor yes sends it."
        await live.until(lambda e: isinstance(e, PhaseChanged) and e.phase == "idle")
        assert not server.chats
        mark = len(live.events)
        live.engine.examine(agreed=True)
        await live.until(lambda e: isinstance(e, ServerExamined), after=mark)
        assert len(server.chats) == 5


async def test_no_server_behind_the_model() -> None:
    with pytest.raises(engine_doctor.NothingToExamine):
        engine_doctor.address_in_use(object())  # type: ignore[arg-type]
