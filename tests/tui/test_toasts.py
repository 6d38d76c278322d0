"""Toasts never cover what asks or is written in, whatever the size of the screen."""

from __future__ import annotations

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from marextui.engine import events as ev
from marextui.engine.event_values import QueuedPrompt
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.stubs.ports import FakePorts
from tests.tui.scenes import make_app, tool_turn

SIZES = [(40, 12), (40, 24), (60, 20), (80, 24), (100, 12), (120, 40)]
LONG = "The settings file config.toml, line 3: compact_at must be between 0.1 and 0.95; the default is used, and on. "
ASKED = ev.PermissionAsked(
    "p1", "c", "Bash", "bash", "Bash make all", "make all " * 40 + "\nmake more\n" * 30, "make all", ""
)
ANSWERS = ("1  Allow once", "2  Allow for this conv", "3  Deny", "4  Deny with a reason", "Arrow or number")


async def settled(pilot: Pilot[None], times: int = 5) -> None:
    for _ in range(times):
        await pilot.pause()


async def scene(name: str, app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    engine.emit(*tool_turn())
    composer = app.main.composer
    if name == "asked":
        engine.emit(ASKED)
        for _ in range(2):
            ports.clock.advance(2)
            app.main.dock.tick()
    elif name == "popup":
        await pilot.press("/")
    elif name == "long draft":
        composer.set_text("line\n" * 20)
    elif name == "queue and search":
        engine.emit(ev.QueueChanged(tuple(QueuedPrompt(f"q{n}", f"message {n}") for n in range(5))))
        app.action_search()
    await settled(pilot)


def seen(app: MarexApp) -> list[Region]:
    """What of each toast is on the screen."""
    shown = [app.screen.find_widget(t).visible_region for t in app.screen.query("Toast")]
    return [r for r in shown if r.area]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["idle", "asked", "popup", "long draft", "queue and search"])
async def test_nothing_that_is_written_in_or_asked_is_covered(name: str, size: tuple[int, int]) -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settled(pilot)
        await scene(name, app, engine, ports, pilot)
        for n in range(3):
            app.notify(LONG * (n + 1), severity="warning", timeout=1_000)
        await settled(pilot)
        main = app.main
        for below in (main.dock, main.composer, main.composer.popup, main.search, main.queue):
            for toast in seen(app):
                assert not (below.display and toast.overlaps(below.region)), below
        assert main.composer.region.bottom <= size[1]
        if name in ("asked", "popup") or size[1] > 12:
            assert seen(app), "and it can be read"
        if name == "asked":
            text = frame(app)
            assert [a for a in ANSWERS if a not in text] == []


async def test_a_question_that_comes_while_toasts_are_shown_pushes_them_up() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        await settled(pilot)
        for _ in range(4):
            app.notify(LONG, timeout=1_000)
        await settled(pilot)
        before = max(r.bottom for r in seen(app))
        await scene("asked", app, engine, ports, pilot)
        assert max(r.bottom for r in seen(app)) <= app.main.dock.region.y < before


async def test_the_gauge_stays_free() -> None:
    for size in ((120, 40), (80, 24)):
        engine = FakeEngine()
        app = make_app(engine)
        async with app.run_test(size=size, notifications=True) as pilot:
            await settled(pilot)
            app.notify(LONG, timeout=1_000)
            await settled(pilot)
            gauge = app.main.gauge_line if app.main.narrow else app.main.gauge
            assert gauge.region.area
            assert not [r for r in seen(app) if r.overlaps(gauge.region)]


async def test_after_the_answer_everything_is_back() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(60, 14)) as pilot:
        await settled(pilot)
        calm = frame(app)
        engine.emit(ASKED)
        await settled(pilot)
        assert not app.main.keybar.display
        engine.emit(ev.PermissionSettled("p1", "once"))
        await settled(pilot)
        assert frame(app) == calm
