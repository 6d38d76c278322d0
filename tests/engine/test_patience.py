"""A server that is too busy, or hangs up before it answers, is asked again before a person has to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from marextui.engine.events import PhaseChanged, TurnFinished
from marextui.engine.policy import Policy
from marextui.models.errors import classify, network_error
from marextui.models.types import Accepted, ModelError, TextChunk
from tests.stubs.engine_rig import ManualClock, Rig
from tests.stubs.scripted_model import Piece, ScriptedChat, say

Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(**parts: Any) -> Rig:
        made.append(await Rig(tmp_path, **parts).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


def busy(status: int = 503, after: str = "") -> ModelError:
    return classify(status, '{"error": {"message": "try again"}}', retry_after=after)


def reset() -> ModelError:
    return network_error(httpx.ReadError("reset"), "http://x", silence=1, answering=False)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_busy_server_is_asked_again(rig: Start, status: int) -> None:
    r = await rig(chat=ScriptedChat([[busy(status)], [Accepted(), busy(status)], say("there you are")]))
    done = await r.ask("q")
    assert done.end == "done"
    assert r.clock.slept == [1.0, 2.0]
    assert len(r.hub.connection.script.turns) == 3
    told = [e.detail for e in r.of(PhaseChanged) if e.detail.startswith("retrying")]
    assert told[0].startswith(f"retrying in 1 s: {status} ")
    r.check_log()


async def test_a_connection_that_is_reset_before_the_answer_is_made_again(rig: Start) -> None:
    r = await rig(chat=ScriptedChat([[reset()], say("there")]))
    assert (await r.ask("q")).end == "done"


async def test_the_wait_a_server_asks_for_is_kept_up_to_a_minute(rig: Start) -> None:
    r = await rig(chat=ScriptedChat([[busy(429, "17")], say("there"), [busy(429, "86400")]]))
    assert (await r.ask("q")).end == "done"
    assert r.clock.slept == [17.0]
    assert (await r.ask("q")).end == "error"
    assert r.clock.slept == [17.0], "nobody waits for a day"


@pytest.mark.parametrize("retries", [0, 1, 2])
async def test_it_gives_up_after_as_many_tries_as_are_set(rig: Start, retries: int) -> None:
    r = await rig(chat=ScriptedChat([[busy()] for _ in range(9)]), policy=Policy(retries=retries))
    assert (await r.ask("q")).end == "error"
    assert len(r.hub.connection.script.turns) == retries + 1


@pytest.mark.parametrize(
    "script",
    [
        [TextChunk("half an ans"), reset()],
        [busy(400)],
        [busy(401)],
        [busy(403)],
        [busy(404)],
        [classify(500, "roles must alternate")],
        [classify(429, '{"error": {"code": "insufficient_quota", "message": "no credit"}}')],
        [network_error(httpx.ConnectError("refused"), "http://x", silence=1, answering=False)],
        [network_error(httpx.ReadTimeout("silent"), "http://x", silence=1, answering=False)],
    ],
)
async def test_what_will_not_pass_or_has_begun_is_never_sent_again(rig: Start, script: list[Piece]) -> None:
    r = await rig(chat=ScriptedChat([script, say("never asked for")]))
    assert (await r.ask("q")).end == "error"
    assert len(r.hub.connection.script.turns) == 1
    assert r.clock.slept == []


def test_a_request_that_is_too_long_does_not_pass() -> None:
    assert not classify(500, "the request exceeds the available context size (4096 tokens)").passing


class StoppedClock(ManualClock):
    """Waiting lasts until it is cancelled."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


async def test_waiting_for_a_busy_server_can_be_interrupted(rig: Start) -> None:
    r = await rig(chat=ScriptedChat([[busy()], say("never asked for")]), clock=StoppedClock())
    r.engine.submit("q")
    await r.until(lambda e: isinstance(e, PhaseChanged) and e.detail.startswith("retrying"))
    r.engine.interrupt()
    done = await r.until(lambda e: isinstance(e, TurnFinished))
    assert isinstance(done, TurnFinished)
    assert done.end == "interrupted"
    assert len(r.hub.connection.script.turns) == 1
