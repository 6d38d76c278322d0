"""Pictures of the side panes and screens, each looked at before it was accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from marextui.context.project import Page, Tracker
from marextui.engine.event_values import Gauge
from marextui.tui.glyphs import ASCII
from marextui.tui.panes.gauge import GaugeLine, GaugePane
from marextui.tui.panes.memory import MemoryPane
from marextui.tui.panes.omissions import OmissionsPane
from marextui.tui.screens.confirm import Confirm
from marextui.tui.screens.conversations import ConversationPicker
from marextui.tui.screens.form import Form
from marextui.tui.screens.help import HelpScreen
from marextui.tui.screens.models import ModelPicker
from marextui.tui.screens.notes import NotesScreen
from marextui.tui.screens.permission import GUARD, TYPING_PAUSE, PermissionDock
from marextui.tui.screens.setup import SetupScreen
from marextui.tui.screens.status import StatusScreen
from marextui.tui.screens.viewer import TextViewer
from tests.stubs.mini_app import MiniApp
from tests.tui.test_gauge import HALF, UNKNOWN
from tests.tui.test_memory import FULL
from tests.tui.test_omissions import omission
from tests.tui.test_permission import BASH, EDIT
from tests.tui.test_pickers import MODELS, conversation, nothing
from tests.tui.test_setup import FOUND, NOTHING, Checker
from tests.tui.test_status_screen import REPORT

FULL_GAUGE = replace(HALF, conversation=14_000, outputs=3_000)
OVER = replace(HALF, conversation=24_000, outputs=6_000, why_not="no usable cut", estimated=False)


class AsciiApp(MiniApp):
    glyphs = ASCII


def test_gauge(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(GaugePane(HALF)), terminal_size=(40, 18))


def test_gauge_at_the_mark_with_focus(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(GaugePane(FULL_GAUGE)), terminal_size=(40, 18), press=["tab"])


def test_gauge_over_and_stuck_light(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(GaugePane(OVER), theme="marex-light"), terminal_size=(60, 16))


def test_gauge_of_an_unknown_window(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(GaugePane(UNKNOWN)), terminal_size=(40, 13))


def test_gauge_ascii_in_terminal_colours(snap_compare: Any) -> None:
    assert snap_compare(AsciiApp(GaugePane(HALF), theme="terminal"), terminal_size=(50, 16))


@pytest.mark.parametrize("width", [40, 80, 140])
def test_gauge_line(snap_compare: Any, width: int) -> None:
    lines = [GaugeLine(g) for g in (HALF, FULL_GAUGE, OVER, UNKNOWN, Gauge(system=900, budget=5_000, threshold=3_250))]
    assert snap_compare(MiniApp(*lines), terminal_size=(width, 6))


def test_omissions(snap_compare: Any) -> None:
    pane = OmissionsPane([omission(i) for i in range(12)])
    assert snap_compare(MiniApp(pane), terminal_size=(40, 14), press=["tab", "tab", "down", "down"])


def test_omissions_empty(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(OmissionsPane()), terminal_size=(40, 10))


def test_memory(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(MemoryPane(FULL)), terminal_size=(44, 24), press=["tab"])


NOTES = replace(
    FULL,
    pages=(Page("build", "How to build", "Run make, then make check."), Page("db", "Database", "It runs on pg1.")),
    trackers=(Tracker("coverage", "87.5", "%", "2026-10-01"), Tracker("weight", "72.4", "kg", "2026-10-02")),
    project="x" * 812,
    project_limit=4_096,
)


def test_memory_with_pages_and_trackers(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(MemoryPane(NOTES)), terminal_size=(44, 30), press=["tab"])


def test_notes(snap_compare: Any) -> None:
    keys = "enter open · e edit · n new page · t new tracker · d delete · esc close"
    assert snap_compare(MiniApp(screen=NotesScreen(NOTES, keys=keys)), terminal_size=(80, 16), press=["down"])


def test_form(snap_compare: Any) -> None:
    form = Form("Tracker", [("Name", "weight"), ("Value", "72.4"), ("Unit, may be blank", "kg")], note="Dated today.")
    assert snap_compare(MiniApp(screen=form), terminal_size=(60, 14), press=["enter"])


def dock(*requests: Any, theme: str = "marex-dark", size: tuple[int, int] = (80, 18)) -> tuple[MiniApp, dict[str, Any]]:
    app = MiniApp(PermissionDock(), theme=theme)

    async def ready(pilot: Pilot[Any]) -> None:
        shown = app.query_one(PermissionDock)
        for request in requests:
            shown.ask(request)
        for seconds in (TYPING_PAUSE, GUARD):
            app.fakes.clock.advance(seconds)
            shown.tick()
        await pilot.pause()
        await pilot.press("down", "down")
        await pilot.pause()

    return app, {"run_before": ready, "terminal_size": size}


def test_permission_for_an_edit(snap_compare: Any) -> None:
    app, options = dock(EDIT, BASH)
    assert snap_compare(app, **options)


def test_permission_for_a_command_small_high_contrast(snap_compare: Any) -> None:
    app, options = dock(BASH, theme="high-contrast", size=(60, 12))
    assert snap_compare(app, **options)


LOG = "\n".join(
    f"2025-03-01 12:{i:02d} {'ERROR' if i == 12 else 'info '} worker {i}: " + "step " * (i * 2) for i in range(60)
)


def test_viewer_with_a_match(snap_compare: Any) -> None:
    press = ["slash", *"error", "enter", "v", "down"]
    assert snap_compare(MiniApp(screen=TextViewer("Bash make test", LOG)), terminal_size=(80, 20), press=press)


def test_viewer_of_a_diff_light(snap_compare: Any) -> None:
    app = MiniApp(screen=TextViewer("Edit a/app.py", EDIT.diff, language="diff"), theme="marex-light")
    assert snap_compare(app, terminal_size=(60, 14))


def test_viewer_asks_for_a_line(snap_compare: Any) -> None:
    app = MiniApp(screen=TextViewer("日本語 [/]", "日本語\tテスト\n" * 30 + "x" * 300), theme="high-contrast")
    assert snap_compare(app, terminal_size=(60, 14), press=["G", "colon"])


def test_model_picker(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(screen=ModelPicker(MODELS)), terminal_size=(80, 14))


def test_model_picker_empty(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(screen=ModelPicker([])), terminal_size=(60, 10))


def test_conversation_picker(snap_compare: Any) -> None:
    app = MiniApp(screen=ConversationPicker([conversation(i) for i in range(20)], nothing))
    assert snap_compare(app, terminal_size=(80, 18), press=["down", "down"])


def test_setup_with_findings(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(screen=SetupScreen(FOUND, Checker().check)), terminal_size=(80, 24))


def test_setup_refused_small(snap_compare: Any) -> None:
    screen = SetupScreen(NOTHING, Checker("the server refused the key: check it, then try again").check)
    press = [*"http://127.0.0.1:9/v1", "tab", *"secret", "enter"]
    assert snap_compare(MiniApp(screen=screen), terminal_size=(60, 20), press=press)


def test_help(snap_compare: Any) -> None:
    rows = [("", "Text viewer", ""), ("slash", "Search", "Find text as you type"), ("g,home", "Top", "First line")]
    rows += [("", "Everywhere", ""), ("f1", "Help", "Keys of the focused pane"), ("ctrl+p", "Palette", "All commands")]
    assert snap_compare(MiniApp(screen=HelpScreen("Help: text viewer", rows)), terminal_size=(70, 14))


def test_status(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(screen=StatusScreen(REPORT)), terminal_size=(80, 30))


def test_confirm(snap_compare: Any) -> None:
    screen = Confirm("Empty MEMORY.md?", "Its 3 entries cannot be brought back.", yes="Empty it", no="Keep it")
    assert snap_compare(MiniApp(screen=screen), terminal_size=(60, 12))
