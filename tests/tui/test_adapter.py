"""The adapter with recorded events and a screen that only records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marextui.context.entries import OmissionRef, ShortenedRef
from marextui.context.messages import Message
from marextui.engine import events as ev
from marextui.tui.adapter import PAGE, Adapter
from marextui.tui.viewmodel import ViewModel
from tests.stubs.fake_engine import FakeEngine
from tests.tui.scenes import log_turns, short_turn, tool_turn


class RecordingView:
    """Every call, by name, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: self.calls.append((name, *args))

    def names(self) -> list[str]:
        return [c[0] for c in self.calls]


def started(engine: FakeEngine) -> tuple[Adapter, ViewModel, RecordingView]:
    model, view = ViewModel(), RecordingView()
    adapter = Adapter(engine, model, view)
    adapter.start()
    return adapter, model, view


async def test_the_first_paint_has_a_gauge_a_model_and_a_conversation() -> None:
    """Case 43: the gauge is right before the first message."""
    engine = FakeEngine()
    _, model, view = started(engine)
    await engine.start()
    assert ("show_gauge", engine.gauge) in view.calls
    assert "opened" in view.names()
    assert model.status.model == "Qwen2.5-Coder 1.5B"


def test_a_streamed_turn_touches_the_conversation_and_nothing_it_should_not() -> None:
    engine = FakeEngine()
    _, _, view = started(engine)
    engine.emit(*tool_turn())
    assert set(view.names()) == {"conversation_changed", "show_status"}


def test_pane_events_go_to_their_pane() -> None:
    engine = FakeEngine()
    _, _, view = started(engine)
    asked = ev.PermissionAsked("p1", "c", "Bash", "bash", "Bash ls", "ls", "ls", "")
    engine.emit(
        ev.OmissionRead("om-1", 3),
        asked,
        ev.PermissionSettled("p1", "once"),
        ev.OutputsReplaced(2, (OmissionRef("t", -1, "om-9", 10),), 4),
        ev.ViewReduced(2, "texts", (ShortenedRef("t", -1, "om-8", 10, 4),), 2),
        ev.MemoryChanged(engine.memory_report),
        ev.ModelNeeded(),
        ev.ConversationRenamed("", "New"),
    )
    for call in (
        ("omission_read", "om-1", 3),
        ("ask_permission", asked),
        ("settle_permission", "p1"),
        ("outputs_omitted", ["om-9"]),
        ("outputs_omitted", ["om-8"]),
        ("show_memory", engine.memory_report),
        ("model_needed",),
        ("show_title", "New"),
    ):
        assert call in view.calls, call


async def test_a_long_conversation_is_loaded_from_its_end_a_page_at_a_time() -> None:
    """Case 4: resuming asks for one page, older ones only on demand."""
    engine = FakeEngine()
    log_turns(engine, 2_500)
    adapter, model, _ = started(engine)
    await engine.start()
    await adapter.load_tail()
    assert engine.said("page") == [(None, PAGE)]
    assert model.items[-1].key == "a2500"
    assert len(model.items) == PAGE
    assert await adapter.load_older()
    assert len(model.items) == 2 * PAGE
    assert model.items[0].key == "u2381"


async def test_there_is_an_end_to_the_past() -> None:
    engine = FakeEngine()
    log_turns(engine, 5)
    adapter, model, _ = started(engine)
    await engine.start()
    await adapter.load_tail()
    assert not model.more
    assert not await adapter.load_older()


async def test_a_page_of_another_conversation_is_dropped() -> None:
    engine = FakeEngine()
    log_turns(engine, 5)
    adapter, model, _ = started(engine)
    await engine.start()
    page = engine.page

    async def switching(before: int | None, limit: int) -> Any:
        found = await page(before, limit)
        engine.emit(ev.ConversationOpened("c-2", "Other", False, 0))
        return found

    engine.page = switching  # type: ignore[method-assign]
    await adapter.load_tail()
    assert model.items == []


def test_after_stop_nothing_arrives() -> None:
    engine = FakeEngine()
    adapter, model, _ = started(engine)
    adapter.stop()
    engine.emit(*short_turn(1))
    assert model.items == []
    engine.emit(ev.MessageAppended(Message("x", "user", "x"), 1))
    assert model.items == []
