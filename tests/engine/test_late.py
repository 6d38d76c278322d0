"""The screen is there before the engine: what is asked meanwhile is kept in order, shown, and carried out."""

from __future__ import annotations

import asyncio

import pytest

from marextui.engine import events as ev
from marextui.engine.api import CannotStart, EngineApi
from marextui.engine.late import LateEngine
from marextui.engine.ports import CountingIds
from tests.stubs.fake_engine import FakeEngine


class Late:
    """A late engine whose making is held until `painted` and `loaded` are set."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.real = FakeEngine()
        self.painted, self.loaded = asyncio.Event(), asyncio.Event()
        self.problem = problem
        self.built = 0
        self.engine = LateEngine(self._build, CountingIds(), after=self.painted.wait)
        self.heard: list[ev.Event] = []
        self.engine.subscribe(self.heard.append)

    async def _build(self) -> EngineApi:
        self.built += 1
        await self.loaded.wait()
        if self.problem is not None:
            raise self.problem
        return self.real

    @property
    def queue(self) -> list[str]:
        """The queue as last announced."""
        changes = [e for e in self.heard if isinstance(e, ev.QueueChanged)]
        return [p.text for p in changes[-1].items] if changes else []

    def release(self) -> None:
        self.painted.set()
        self.loaded.set()


async def turns(n: int = 5) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


async def test_nothing_is_made_before_the_first_paint() -> None:
    late = Late()
    starting = asyncio.create_task(late.engine.start())
    await turns()
    assert late.built == 0
    late.painted.set()
    await turns()
    assert late.built == 1
    late.loaded.set()
    await starting


async def test_a_listener_is_told_that_it_starts_then_hears_the_engine() -> None:
    late = Late()
    assert late.heard == [ev.PhaseChanged("starting")]
    late.release()
    await late.engine.start()
    assert any(isinstance(e, ev.ConversationOpened) for e in late.heard)
    assert [type(e) for e in late.heard].count(ev.GaugeChanged) == 1
    late.real.emit(ev.Notice("info", "hello"))
    assert late.heard[-1] == ev.Notice("info", "hello")


async def test_messages_sent_early_are_queued_in_sight_and_then_sent_in_order() -> None:
    late = Late()
    for text in ("one", "two", "three", "  "):
        late.engine.submit(text)
    assert late.queue == ["one", "two", "three"]
    waiting = [e for e in late.heard if isinstance(e, ev.QueueChanged)][-1].items
    assert late.engine.edit_queued(waiting[1].id, "second")
    dropped = late.engine.drop_queued(waiting[2].id)
    assert dropped is not None
    assert dropped.text == "three"
    assert late.queue == ["one", "second"]
    assert late.real.said("submit") == []
    late.release()
    await late.engine.start()
    assert late.real.said("submit") == [("one",), ("second",)]
    assert late.queue == []
    late.engine.submit("now")
    assert late.real.said("submit")[-1] == ("now",)


async def test_orders_wait_and_keep_their_order() -> None:
    late = Late()
    late.engine.undo_compaction(force=True)
    late.engine.compact(offline=True)
    late.engine.interrupt()
    assert late.real.commands == []
    late.release()
    await late.engine.start()
    assert late.real.commands == [("start",), ("undo_compaction", "force"), ("compact", "offline")]
    late.engine.interrupt()
    assert late.real.commands[-1] == ("interrupt",)


async def test_a_question_is_answered_when_there_is_somebody_to_answer() -> None:
    late = Late()
    asked = asyncio.create_task(late.engine.project_files())
    await turns()
    assert not asked.done()
    late.release()
    await late.engine.start()
    assert await asked == late.real.files


async def test_what_keeps_the_engine_from_starting_is_raised_and_leaving_still_works() -> None:
    late = Late(CannotStart("The log is damaged."))
    late.release()
    with pytest.raises(CannotStart, match="damaged"):
        await late.engine.start()
    await late.engine.close()
    assert late.real.commands == []


async def test_leaving_before_the_first_paint_makes_no_engine() -> None:
    late = Late()
    starting = asyncio.create_task(late.engine.start())
    await turns()
    starting.cancel()
    await asyncio.wait({starting})
    await late.engine.close()
    assert late.built == 0


async def test_leaving_while_the_engine_is_made_closes_it_when_it_is_there() -> None:
    """Its log is open by then: left so, the log's thread would keep the process."""
    late = Late()
    late.painted.set()
    starting = asyncio.create_task(late.engine.start())
    await turns()
    starting.cancel()
    closing = asyncio.create_task(late.engine.close())
    await turns()
    assert not closing.done()
    late.loaded.set()
    await closing
    assert late.real.commands == [("close",)]
