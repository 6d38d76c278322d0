"""Help lists keys as people know them, from the one table of actions."""

from __future__ import annotations

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.panes.gauge import GaugePane
from marextui.tui.panes.memory import MemoryPane
from marextui.tui.panes.omissions import OmissionsPane
from marextui.tui.screens.form import Form
from marextui.tui.screens.help import HelpScreen, help_text
from marextui.tui.screens.notes import NotesScreen
from marextui.tui.screens.permission import PermissionDock
from marextui.tui.screens.picker import Picker
from marextui.tui.screens.setup import SetupScreen
from marextui.tui.screens.viewer import TextViewer
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

OWNERS = {
    "gauge": GaugePane,
    "omissions": OmissionsPane,
    "memory": MemoryPane,
    "notes": NotesScreen,
    "form": Form,
    "viewer": TextViewer,
    "permission": PermissionDock,
    "picker": Picker,
    "setup": SetupScreen,
}


def test_every_action_is_declared_once_and_can_be_run() -> None:
    ids = [a.id for a in PANE_ACTIONS]
    assert len(ids) == len(set(ids))
    assert {a.scope for a in PANE_ACTIONS} == set(OWNERS)
    for action in PANE_ACTIONS:
        assert action.id.startswith(action.scope + ".")
        assert action.title
        assert action.help
        name = action.method.partition("(")[0]
        assert callable(getattr(OWNERS[action.scope], f"action_{name}", None)), action.id


def test_no_key_means_two_things_in_one_scope() -> None:
    for scope in OWNERS:
        keys = [k.strip() for a in PANE_ACTIONS if a.scope == scope for k in a.keys.split(",") if k]
        assert len(keys) == len(set(keys)), scope
        assert len(bindings_for(PANE_ACTIONS, scope)) == len([a for a in PANE_ACTIONS if a.scope == scope and a.keys])  # type: ignore[arg-type]


def test_multiplexer_and_flow_control_keys_are_left_alone() -> None:
    """Case 39."""
    bad = {"ctrl+s", "ctrl+q", "ctrl+b", "ctrl+a", "ctrl+i", "ctrl+m", "ctrl+h", "ctrl+z"}
    assert not bad & {k.strip() for a in PANE_ACTIONS for k in a.keys.split(",")}


def test_the_text_of_help() -> None:
    text = help_text([("", "Viewer", ""), ("slash", "Search", "Find text"), ("G,end", "Bottom", "")]).plain
    assert text == "Viewer\n/      Search: Find text\nG End  Bottom"
    assert help_text([]).plain == "There is nothing to press here."


async def test_the_screen_scrolls_and_closes() -> None:
    rows = [("", "Viewer", "")] + [(a.keys, a.title, a.help) for a in PANE_ACTIONS if a.scope == "viewer"]
    app = MiniApp(screen=HelpScreen("Help [/]", rows))
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        assert "Help [/]" in frame(app)
        assert "Stop searching" not in frame(app)
        await pilot.press("end")
        await pilot.pause()
        assert "Stop searching" in frame(app)
        await pilot.press("escape")
        await pilot.pause()
    assert app.answers == [None]
