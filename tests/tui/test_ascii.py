"""ASCII mode: nothing the app draws is outside ASCII, on any screen; what was said stays as it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from marextui.context.entries import OmissionRef
from marextui.context.messages import Message, ToolCall
from marextui.engine import events as ev
from marextui.engine.event_values import QueuedPrompt
from marextui.tui.app import MarexApp
from marextui.tui.glyphs import TABLE, to_ascii
from marextui.tui.panes.cards import Card
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.stubs.ports import FakePorts
from tests.tui.scenes import compaction, make_app, streamed, tool_turn, usage

SAID = "naïve → “日本” … ├── src · 5 — 7 ▌"
"""What people, models and tools may say, drawn characters among it."""
ASKED = ev.PermissionAsked("p1", "c", "Edit", "edit", "Edit a.py", "", "a.py", "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n")

Walk = Callable[[MarexApp, FakeEngine, FakePorts, Pilot[None]], Awaitable[None]]


async def settled(pilot: Pilot[None], times: int = 4) -> None:
    for _ in range(times):
        await pilot.pause()


def keys(*pressed: str) -> Walk:
    async def walk(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
        await pilot.press(*pressed)

    return walk


def typed(command: str) -> Walk:
    return keys(*command, "escape", "enter")


async def asked(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    engine.emit(ASKED)
    for _ in range(2):
        ports.clock.advance(2)
        app.main.dock.tick()


async def busy(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    queue = tuple(QueuedPrompt(f"q{n}", f"message {n}") for n in range(5))
    engine.emit(ev.QueueChanged(queue), ev.PhaseChanged("prompt"), ev.PromptProcessed(900, 100, 400))


async def everything_open(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    for block in app.main.conversation.query(Card):
        block.expanded = True
        block.redraw()


async def toast(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    app.notify("A warning… — and “more”", severity="warning", timeout=1_000)


async def first_run(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    engine.emit(ev.ModelNeeded())


async def nothing(app: MarexApp, engine: FakeEngine, ports: FakePorts, pilot: Pilot[None]) -> None:
    pass


SCREENS: dict[str, Walk] = {
    "main": nothing,
    "conversation": keys("f2", "k", "k"),
    "omissions": keys("f3", "down"),
    "memory": keys("f4"),
    "gauge": keys("f5"),
    "busy": busy,
    "expanded": everything_open,
    "toast": toast,
    "search": keys("ctrl+f", *"line"),
    "completion": keys("/"),
    "files": keys("@"),
    "help": keys("f1"),
    "palette": keys("ctrl+p"),
    "jump": keys("ctrl+o"),
    "permission": asked,
    "status": typed("/status"),
    "context": typed("/context"),
    "check": typed("/context check"),
    "preview": typed("/compact preview"),
    "models": typed("/model"),
    "conversations": typed("/resume"),
    "theme": typed("/theme"),
    "clear memory": typed("/memory clear"),
    "viewer": keys("f2", "k", "v"),
    "viewer search": keys("f2", "k", "v", "/", *"li"),
    "first run": first_run,
}


def history() -> list[ev.Event]:
    refs = (OmissionRef("t-1", -1, "omitted-001", 1_900), OmissionRef("t-2", -1, "omitted-002", 8))
    answer = (
        "# Title\n\nText\n\n- a\n  - b\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\n```python\nx = 1\n```\n"
    )
    return [
        *tool_turn(),
        ev.OutputsReplaced(2, refs, 4_200),
        ev.CompactionStarted(1, "threshold", "u-9", 48, 12_340),
        ev.CompactionFinished(compaction()),
        ev.CompactionReverted(1, 3_210, 12_340, 48),
        ev.Notice("warning", "A notice → with — signs…", "A hint · too", "retry"),
        *streamed("a-9", answer),
        ev.TurnFinished(2, "done", usage(2)),
    ]


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_is_drawn_with_ascii_alone(name: str, size: tuple[int, int]) -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports, ascii=True)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settled(pilot)
        engine.emit(*history())
        await settled(pilot)
        before = frame(app)
        await SCREENS[name](app, engine, ports, pilot)
        await settled(pilot)
        text = frame(app)
        assert sorted({c for c in text if ord(c) > 127}) == []
        assert name in ("main", "expanded") or text != before, "the walk leads to that screen"


async def test_what_was_said_is_left_as_it_is() -> None:
    """In the message, the answer's text, table, code and reasoning, tool outputs, the draft, and in full."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports, ascii=True)
    call = ToolCall("c", "Bash", '{"command": "tree"}')
    async with app.run_test(size=(120, 60)) as pilot:
        await settled(pilot)
        engine.emit(
            ev.MessageAppended(Message("u", "user", f"U {SAID}", turn=1), 1),
            ev.MessageAppended(Message("a", "assistant", "", (call,), reasoning=f"R {SAID}"), 2),
            ev.MessageAppended(Message("t", "tool", f"T {SAID}", tool_call_id="c", name="Bash", origin="tool"), 3),
            *streamed(
                "a2", f"P {SAID}\n\n- L {SAID}\n\n```\nF {SAID}\n```\n\n| a |\n|---|\n| C {SAID} |\n\n> Q {SAID}\n"
            ),
        )
        await settled(pilot, 8)
        for key in ("a", "c"):
            app.main.conversation.reveal(next(p for p, i in app.model.positions() if i.key == key))
            await settled(pilot)
            app.main.conversation.action_fold()
        app.main.composer.set_text(f"D {SAID}")
        app.main.conversation.action_end()
        await settled(pilot, 8)
        text = frame(app).replace("\N{NO-BREAK SPACE}", " ")
        missing = [mark for mark in "URTPLFCQD" if f"{mark} {SAID}" not in text]
        assert missing == []
        app.main.conversation.reveal(app.model.first)
        await settled(pilot)
        await pilot.press("f2", "v")
        await settled(pilot)
        assert f"U {SAID}" in frame(app)


async def test_an_answer_keeps_its_words_while_it_streams() -> None:
    engine = FakeEngine()
    app = make_app(engine, ascii=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        engine.emit(ev.TextStreamed("a", f"P {SAID}\n\n```\nF {SAID}\n"))
        await settled(pilot, 6)
        assert f"P {SAID}" in frame(app)
        assert f"F {SAID}" in frame(app)


def test_one_sign_for_one_sign() -> None:
    assert [c for c, plain in TABLE.items() if len(plain) != 1 or not plain.isascii()] == []
    assert to_ascii("╭─ 12\u00a0k · é…") == "+- 12 k - é~"
