"""Hostile text in every field of every pane and screen: no crash, no markup, no control byte shown (case 26)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.screen import Screen
from textual.widget import Widget

from marextui.context.project import Page, Tracker
from marextui.engine.api import ConversationInfo, ModelOption, SetupReport, StatusReport
from marextui.engine.event_values import Gauge, MemoryEntryInfo, MemoryReport, OmissionInfo, UsageLine
from marextui.engine.events import PermissionAsked
from marextui.tui.panes.gauge import GaugeLine, GaugePane
from marextui.tui.panes.memory import MemoryPane
from marextui.tui.panes.omissions import OmissionsPane
from marextui.tui.screens.confirm import Confirm
from marextui.tui.screens.conversations import ConversationPicker
from marextui.tui.screens.form import Form
from marextui.tui.screens.help import HelpScreen
from marextui.tui.screens.models import ModelPicker
from marextui.tui.screens.notes import NotesScreen
from marextui.tui.screens.permission import GUARD, PermissionDock
from marextui.tui.screens.setup import SetupScreen
from marextui.tui.screens.status import StatusScreen
from marextui.tui.screens.viewer import TextViewer
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp

HOSTILE = {
    "closing tag": "[/]",
    "unknown tag": "x [/foo] z [a=b] [bold",
    "escapes": "a\x1b[2Jb\x1b]0;TITLE\x07c\x1b]52;c;AAAA\x1b\\d\x9b31me\x90q#0\x9cf",
    "bidi": "abc\u202egpj.exe\u2066\u200f",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\x9f\ud800",
    "long line": "x[/]" * 2_560,
    "variables": "$primary {x} %s \\[ [$text] [link=http://x]",
    "emoji": "👨‍👩‍👧 🇫🇷 e\u0301\u0301 日本語\u200b",
}


async def never(*_: Any) -> Any:
    return []


def gauge(t: str) -> Gauge:
    return Gauge(conversation=700, budget=1_000, threshold=650, window=2_000, window_source=t, why_not=t)


def omission(t: str) -> OmissionInfo:
    return OmissionInfo(t or "id", t, t, 10_000, 9_000, 0.0, 3.0, 2, t, t)


def memory(t: str) -> MemoryReport:
    entries = (MemoryEntryInfo(t, t, 1, (t, t)),)
    notes = (Page("p", t, t),), (Tracker("t", t, t, t),)
    return MemoryReport(t, t, True, t, 10, entries, t, 655, 1, 10, 1.0, 2.0, 30, *notes, t, 4_096)


def status(t: str) -> StatusReport:
    usage = (UsageLine(1, 1, 1, 1, t, 1, 1.0, t),)
    return StatusReport(t, t, t, t, 1, 1, gauge(t), True, t, t, t, usage, t)


def models(t: str) -> tuple[ModelOption, ...]:
    return (ModelOption("id", t, t, "gguf", True, True), ModelOption(t or "x", t, t, "endpoint", False))


def setup(t: str) -> SetupReport:
    return SetupReport(models(t), False, False, t, ((t, t, True), (t, t, False)))


def asked(dock: PermissionDock, t: str) -> PermissionDock:
    for kind in ("bash", "edit"):
        dock.ask(PermissionAsked(f"{kind}{t}", t, t, kind, t, t, t, t if kind == "edit" else ""))  # type: ignore[arg-type]
    return dock


WIDGETS: dict[str, Callable[[str], list[Widget]]] = {
    "gauge": lambda t: [GaugePane(gauge(t)), GaugeLine(gauge(t)), GaugeLine(Gauge(why_not=t))],
    "omissions": lambda t: [OmissionsPane([omission(t)])],
    "memory": lambda t: [MemoryPane(memory(t))],
    "permission": lambda t: [asked(PermissionDock(), t)],
}
SCREENS: dict[str, Callable[[str], Screen[Any]]] = {
    "viewer": lambda t: TextViewer(t, t),
    "viewer of a diff": lambda t: TextViewer(t, f"+{t}\n-{t}\n@@{t}", language="diff"),
    "models": lambda t: ModelPicker(models(t)),
    "conversations": lambda t: ConversationPicker([ConversationInfo("c", t, t, 0.0, 0.0, 1, 1)], never),
    "setup": lambda t: SetupScreen(setup(t), never),
    "help": lambda t: HelpScreen(t, [(t, "", ""), ("", t, ""), (t, t, t)]),
    "notes": lambda t: NotesScreen(memory(t), keys=""),
    "form": lambda t: Form(t, [(t, t)], note=t),
    "confirm": lambda t: Confirm(t, t, yes=t, no=t),
    "status": lambda t: StatusScreen(status(t)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", WIDGETS)
async def test_panes(name: str, text: str) -> None:
    app = MiniApp(*WIDGETS[name](text))
    async with app.run_test(size=(60, 30)) as pilot:
        await pilot.pause()
        for dock in app.query(PermissionDock):
            app.fakes.clock.advance(GUARD)
            dock.tick()
        for pane in app.query(OmissionsPane):
            pane.focus()
            await pilot.press("down", "slash", "x", "escape")
        await pilot.pause()
        check(frame(app), text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", SCREENS)
async def test_screens(name: str, text: str) -> None:
    app = MiniApp(screen=SCREENS[name](text))
    async with app.run_test(size=(60, 30)) as pilot:
        await pilot.pause()
        check(frame(app), text)
        await pilot.press("down", "end", "x")
        await pilot.pause()
        check(frame(app), "")  # filtered by now


def check(shown: str, text: str) -> None:
    assert shown.strip()
    assert control_bytes(shown) == []
    assert "TITLE" not in shown or "\u241b" in shown  # only the dock reveals what an escape sequence would hide
    if text == "[/]":
        assert "[/]" in shown


def test_the_check_can_fail() -> None:
    with pytest.raises(AssertionError):
        check("a\x1bb", "")
    with pytest.raises(AssertionError):
        check("no markup here", "[/]")
