"""A server that is still loading its model is waited for; one that is not there is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.engine.events import ModelFailed, ModelLoading, ModelReady, QueueChanged, TurnFinished
from marextui.engine.modelctl import LONGEST_LOADING, SERVER_LOADS
from marextui.models.types import ModelError
from tests.stubs.engine_rig import ManualClock, Rig

Start = Callable[..., Awaitable[Rig]]


class GatedClock(ManualClock):
    """Waiting lasts until `go` is set; `waits` once somebody does."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.waits = asyncio.Event(), asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waits.set()
        await self.go.wait()
        await super().sleep(seconds)


def still_loading() -> ModelError:
    return ModelError("loading", "The server is still loading its model.", status=503)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(times: int, error: Callable[[], ModelError] = still_loading, **parts: Any) -> Rig:
        one = Rig(tmp_path, window=Window(8192, "discovery"), **parts)
        one.hub.failures = [error() for _ in range(times)]
        made.append(await one.start())
        return one

    yield start
    for one in made:
        await one.engine.close()


async def test_it_is_asked_every_two_seconds_until_it_is_ready(rig: Start) -> None:
    r = await rig(5)
    await r.until(lambda e: isinstance(e, ModelReady))
    assert r.clock.slept == [2.0] * 5
    assert r.hub.connects == 6
    assert not r.of(ModelFailed)
    stages = [e.stage for e in r.of(ModelLoading)]
    assert stages == ["connecting", "loading", *[SERVER_LOADS] * 5]


async def test_what_is_typed_meanwhile_waits_and_is_answered(rig: Start) -> None:
    clock = GatedClock()
    r = await rig(3, clock=clock)
    r.engine.submit("first")
    await clock.waits.wait()
    await r.until(lambda e: getattr(e, "phase", "") == "loading")
    r.engine.submit("second")
    assert [q.text for q in r.of(QueueChanged)[-1].items] == ["second"]
    assert r.engine.state.control.loading, "its window is still to come"
    clock.go.set()
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 2)
    assert [e.end for e in r.of(TurnFinished)] == ["done", "done"]
    assert r.hub.connects == 4
    await r.idle()


async def test_after_ten_minutes_it_is_a_failure(rig: Start) -> None:
    r = await rig(9_999)
    await r.until(lambda e: isinstance(e, ModelFailed))
    assert sum(r.clock.slept) == LONGEST_LOADING
    r.hub.failures.clear()
    assert (await r.ask("are you there?")).end == "done"


async def test_a_server_that_is_not_there_is_not_waited_for(rig: Start) -> None:
    r = await rig(1, lambda: ModelError("network", "refused"))
    await r.until(lambda e: isinstance(e, ModelFailed))
    assert (r.clock.slept, r.hub.connects) == ([], 1)


async def test_waiting_can_be_stopped_and_taken_up_again(rig: Start) -> None:
    clock = GatedClock()
    r = await rig(2, clock=clock)
    r.engine.submit("hello")
    await clock.waits.wait()
    await r.until(lambda e: getattr(e, "phase", "") == "loading")
    r.engine.interrupt()
    await r.until(lambda e: isinstance(e, TurnFinished))
    await r.idle()
    assert [e.end for e in r.of(TurnFinished)] == ["interrupted"]
    assert len(r.of(ModelFailed)) == 1
    assert r.hub.connects == 1, "nothing asks behind one's back"
    clock.go.set()
    assert (await r.ask("and now?")).end == "done"


async def test_waiting_can_be_stopped_when_nothing_was_asked(rig: Start) -> None:
    clock = GatedClock()
    r = await rig(9, clock=clock)
    await clock.waits.wait()
    r.engine.interrupt()
    assert len(r.of(ModelFailed)) == 1
    assert not r.engine.state.control.loading


async def test_another_conversation_goes_on_waiting_and_another_model_does_not(rig: Start) -> None:
    clock = GatedClock()
    r = await rig(1, clock=clock)
    await clock.waits.wait()
    await r.engine.open_conversation(None)
    assert r.engine.state.control.loading
    (option,) = await r.engine.models()
    await r.engine.select_model(option.id)
    await r.until(lambda e: isinstance(e, ModelReady))
    assert clock.slept == []


async def test_quitting_does_not_wait_for_it(rig: Start) -> None:
    clock = GatedClock()
    r = await rig(9, clock=clock)
    await clock.waits.wait()
    async with asyncio.timeout(5):
        await r.engine.close()
    assert r.hub.connects == 1
