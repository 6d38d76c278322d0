"""MemoryPage and Tracker: what needs permission, what it shows, what a model is told (issue 4 §3; L57)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marextui.context.project import Page, Tracker
from marextui.store.pages import PageStore
from marextui.store.trackers import TrackerStore
from marextui.tools import titles
from marextui.tools.box import Box, default_toolbox
from marextui.tools.memory_page import SCOPE, MemoryPage
from marextui.tools.tracker import Tracker as TrackerTool
from marextui.tools.types import ToolContext, ToolResult


@pytest.fixture
def pages(tmp_path: Path) -> PageStore:
    return PageStore(tmp_path / "pages")


@pytest.fixture
def trackers(root: Path) -> TrackerStore:
    return TrackerStore(root / ".marex", root)


@pytest.fixture
def box(root: Path, pages: PageStore, trackers: TrackerStore) -> Box:
    return default_toolbox(root, bash_timeout=60, more=(MemoryPage(pages), TrackerTool(trackers, lambda: "2026-10-02")))


async def run(box: Box, tool: str, **arguments: object) -> ToolResult:
    return await box.run(tool, json.dumps(arguments), ToolContext())


async def asks(box: Box, tool: str, **arguments: object):
    return await box.permission(tool, json.dumps(arguments))


def test_they_come_after_the_other_tools_and_stay_small(box: Box) -> None:
    """I7: the tools before them stand where they always stood. Under 1,050 characters together, about 250 tokens."""
    specs = box.specs()
    assert [s.name for s in specs][-3:] == ["Recall", "MemoryPage", "Tracker"]
    assert sum(len(json.dumps(s.wire(), ensure_ascii=False)) for s in specs[-2:]) <= 1_150


async def test_pages_are_written_listed_read_and_deleted(box: Box, pages: PageStore) -> None:
    written = await run(box, "MemoryPage", action="write", name="Build Steps", content="# Build\nRun make.")
    assert (written.is_error, written.text) == (False, "The page build-steps was written.")
    assert "+Run make." in written.diff
    assert (await run(box, "MemoryPage", action="list")).text == "- [Build](build-steps.md) – Run make."
    assert (await run(box, "MemoryPage", action="read", page="build-steps.md")).text == "# Build\nRun make.\n"
    assert not (await run(box, "MemoryPage", action="delete", name="build-steps")).is_error
    assert await pages.all() == ()


async def test_reading_needs_no_permission_and_a_change_shows_what_it_changes(box: Box, pages: PageStore) -> None:
    """What is written there reaches later conversations, so nobody but the person decides it (I13)."""
    await pages.write("a", "# A\nold")
    assert await asks(box, "MemoryPage", action="list") is None
    assert await asks(box, "MemoryPage", action="read", name="a") is None
    need = await asks(box, "MemoryPage", action="write", name="a", content="# A\nnew")
    assert (need.kind, need.scope) == ("memory", SCOPE)
    assert "-old" in need.diff
    assert "+new" in need.diff
    gone = await asks(box, "MemoryPage", action="delete", name="a")
    assert "delete" in gone.title
    assert "old" in gone.detail
    assert await asks(box, "MemoryPage", action="write", name="a", content=" ") is None
    assert await asks(box, "MemoryPage", action="delete", name="b") is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"action": "read", "name": "b"}, "there is no page 'b'. The pages are: a."),
        ({"action": "delete", "name": "b"}, "there is no page 'b'"),
        ({"action": "write", "name": "b"}, "write needs content"),
        ({"action": "write", "name": "index", "content": "x"}, "cannot be the name"),
        ({"action": "read"}, "read needs the name"),
        ({"action": "burn"}, "is no action; use list, read, write or delete"),
        ({}, "missing action"),
    ],
)
async def test_a_wrong_call_is_answered_with_what_to_do(box: Box, pages: PageStore, arguments: dict, told: str) -> None:
    await pages.write("a", "x")
    result = await run(box, "MemoryPage", **arguments)
    assert result.is_error
    assert told in result.text
    assert await pages.all() == (Page("a", "a", "x"),)


async def test_trackers_are_set_with_todays_date_and_keep_their_unit(box: Box, trackers: TrackerStore) -> None:
    await run(box, "Tracker", action="set", name="Weight", value=72.4, unit="kg", date="2026-10-01")
    result = await run(box, "Tracker", action="set", slug="weight", value="73")
    assert result.text == "Set: weight: 73 kg (2026-10-02)"
    assert await trackers.all() == (Tracker("weight", "73", "kg", "2026-10-02"),)
    assert (await run(box, "Tracker", action="list")).text == "- weight: 73 kg (2026-10-02)"
    assert not (await run(box, "Tracker", action="delete", name="weight")).is_error
    assert (await run(box, "Tracker", action="list")).text == "There are no trackers yet."


async def test_a_tracker_shows_the_value_it_replaces_before_it_is_set(box: Box, trackers: TrackerStore) -> None:
    await trackers.set(Tracker("weight", "72.4", "kg", "2026-10-01"))
    need = await asks(box, "Tracker", action="set", name="weight", value="73")
    assert (need.kind, need.detail) == ("memory", "weight: 72.4 kg (2026-10-01) → weight: 73 kg (2026-10-02)")
    assert await asks(box, "Tracker", action="list") is None
    assert await asks(box, "Tracker", action="delete", name="mood") is None
    assert (await run(box, "Tracker", action="delete", name="mood")).is_error
    assert "needs a value" in (await run(box, "Tracker", action="set", name="weight")).text


async def test_a_disk_that_refuses_is_said_and_not_raised(box: Box, pages: PageStore, trackers: TrackerStore) -> None:
    pages.folder.parent.mkdir(exist_ok=True)
    pages.folder.write_text("a file where the folder should be")
    result = await run(box, "MemoryPage", action="write", name="a", content="x")
    assert result.is_error
    assert "cannot be used" in result.text


def test_cards_say_what_a_call_does() -> None:
    assert titles.title("MemoryPage", '{"action": "write", "name": "build"}') == "MemoryPage write build"
    assert titles.title("Tracker", '{"action": "list"}') == "Tracker list"
    assert titles.subject("Tracker", '{"name": "weight", "value": "1"}') == "weight"
