"""Pictures of whole screens, each looked at before it was accepted. Fixed clock, ids and sizes; no animation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from marextui.context.messages import Message
from marextui.engine import events as ev
from marextui.engine.economy import CacheState
from marextui.engine.economy_switch import OFFER, OFFER_HINT
from marextui.engine.event_values import Gauge, UsageLine
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.tui.scenes import compaction, make_app, short_turn, tool_turn

WIDE, NARROW, SMALL = (120, 40), (80, 24), (60, 20)
Scene = Callable[[FakeEngine, Pilot[Any]], Awaitable[None]]


async def wait(pilot: Pilot[Any]) -> None:
    for _ in range(4):
        await pilot.pause()


async def empty(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    return


async def turn(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*tool_turn())


async def expanded(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*tool_turn())
    await wait(pilot)
    await pilot.press("f2")
    app = pilot.app
    assert isinstance(app, MarexApp)
    app.main.conversation.reveal(2)
    await wait(pilot)
    await pilot.press("space")


async def compacted(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*short_turn(1), ev.CompactionFinished(compaction()), *short_turn(2))
    await wait(pilot)
    await pilot.press("f2")
    app = pilot.app
    assert isinstance(app, MarexApp)
    app.main.conversation.reveal(3)
    await wait(pilot)
    await pilot.press("space")


async def streaming(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.busy = True
    engine.emit(
        ev.MessageAppended(Message("u", "user", "Write a loop, please.\nIn Python."), 1),
        ev.PhaseChanged("streaming"),
        ev.ReasoningStreamed("a", "They want a loop."),
        ev.TextStreamed("a", "Here it is:\n\n```python\nfor i in range(10):\n    print(i"),
    )
    await pilot.press(*"and a test", "enter", *"next ", "ctrl+j", *"draft")


async def trouble(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(
        ev.MessageAppended(Message("u", "user", "Hello [/] there"), 1),
        ev.TextStreamed("a", "I was about to"),
        ev.TurnFinished(1, "interrupted", UsageLine(1, None, None, None, "local", 1, 2.0, "m")),
        ev.CompactionFailed("manual", "there is nothing to compact yet", skipped=True),
        ev.Notice("warning", "The endpoint reported no usage.", "Token counts are estimates."),
        ev.ModelFailed("Qwen2.5-Coder 1.5B", "the local server ended (signal 9)", "Its log is in the data folder."),
    )


async def commands(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*short_turn(1))
    await pilot.press(*"/me")


async def palette(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*short_turn(1))
    await pilot.press("ctrl+p")
    await wait(pilot)
    await pilot.press(*"co")


async def prompt(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    """A long prompt is read; the cache of the request before."""
    engine.emit(
        ev.CacheChanged(CacheState(2_904, 1_180, "omission of turn 1", held=True)),
        *short_turn(1),
        ev.MessageAppended(Message("u", "user", "And where is the port set?"), 9),
        ev.PhaseChanged("prompt"),
        ev.PromptProcessed(4_120, 2_904, 3_160, 4.1),
    )


async def offered(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    """What a local engine could be saved, after the first answer; the draft is left alone."""
    await pilot.press(*"my next words")
    engine.emit(
        ev.CacheChanged(CacheState(0, 1_412)),
        ev.PrewarmChanged("ready", "", 96, 1_400),
        *short_turn(1),
        ev.Notice("info", OFFER, OFFER_HINT),
    )


async def loading(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(
        ev.GaugeChanged(Gauge(system=812, tools=1_403, loading=True)),
        ev.ModelLoading("Qwen2.5-Coder 1.5B", "Joining the parts", 400, 1_000),
    )


async def jump(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    engine.emit(*short_turn(1))
    await wait(pilot)
    await pilot.press("ctrl+o")


async def search(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    for n in range(1, 31):
        engine.emit(*short_turn(n))
    await wait(pilot)
    await pilot.press("ctrl+f", *"question 1")


async def reading(engine: FakeEngine, pilot: Pilot[Any]) -> None:
    for n in range(1, 31):
        engine.emit(*short_turn(n))
    await wait(pilot)
    await pilot.press(*["shift+up"] * 6)
    engine.emit(*short_turn(31))


SCENES: list[tuple[Scene, tuple[int, int], dict[str, Any]]] = [
    (empty, WIDE, {}),
    (turn, WIDE, {}),
    (expanded, WIDE, {}),
    (compacted, WIDE, {}),
    (streaming, WIDE, {}),
    (trouble, WIDE, {}),
    (palette, WIDE, {}),
    (jump, WIDE, {}),
    (prompt, WIDE, {}),
    (prompt, NARROW, {}),
    (offered, WIDE, {}),
    (offered, NARROW, {}),
    (loading, WIDE, {}),
    (loading, NARROW, {}),
    (turn, NARROW, {}),
    (search, NARROW, {}),
    (reading, NARROW, {}),
    (commands, SMALL, {}),
    (turn, NARROW, {"ascii": True}),
]


@pytest.mark.parametrize(
    ("scene", "size", "options"),
    [pytest.param(s, z, o, id=f"{s.__name__}-{z[0]}x{z[1]}{'-ascii' if o else ''}") for s, z, o in SCENES],
)
def test_screen(scene: Scene, size: tuple[int, int], options: dict[str, Any], snap_compare: Any) -> None:
    engine = FakeEngine()
    app = make_app(engine, **options)

    async def play(pilot: Pilot[Any]) -> None:
        await wait(pilot)
        await scene(engine, pilot)
        await wait(pilot)

    assert snap_compare(app, terminal_size=size, run_before=play)
