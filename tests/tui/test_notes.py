"""Pages and trackers on the screen: seen, opened, made, changed, deleted (issue 4 §3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marextui.context.entries import ContextUpdated, ProjectSnapshotTaken, Record
from marextui.context.project import Page, ProjectState, Tracker
from marextui.context.project_delta import ProjectDelta
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.tui.items import NoticeItem
from marextui.tui.panes.memory import NO_NOTES, SHOWN_NOTES, memory_text
from marextui.tui.screens.confirm import Confirm
from marextui.tui.screens.form import Form
from marextui.tui.screens.notes import NotesScreen
from marextui.tui.screens.viewer import TextViewer
from marextui.tui.viewmodel import ViewModel
from tests.stubs.fake_engine import MEMORY, FakeEngine
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp
from tests.stubs.ports import FakePorts
from tests.tui.scenes import make_app
from tests.tui.test_app import WIDE, toasts
from tests.tui.test_flows import settled

NOW = 1_700_000_000.0
FULL = replace(
    MEMORY,
    pages=(Page("build", "How to build", "Run make."), Page("db", "Database", "It runs on pg1.")),
    trackers=(Tracker("weight", "72.4", "kg", "2026-10-01"),),
    project="<project_context>…",
    project_limit=4_096,
)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(memory_report=FULL, page_texts={"build": "# How to build\n\nRun make.\n", "db": "# Database\n"})


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
@pytest.mark.parametrize("count", [0, 60])
async def test_the_keys_are_in_sight_and_every_page_can_be_reached(size: tuple[int, int], count: int) -> None:
    pages = tuple(Page(f"p{n}", f"Page {n}", "Text.") for n in range(count))
    app = MiniApp(screen=NotesScreen(replace(MEMORY, pages=pages), keys="enter opens, esc closes"))
    async with app.run_test(size=size) as pilot:
        await pilot.press("end")
        await pilot.pause()
        assert "enter opens" in frame(app)
        assert not count or "Page 59" in frame(app)


def test_the_memory_pane_lists_them_and_says_how_much_is_sent() -> None:
    text = memory_text(FULL, NOW).plain
    assert "Pages: 2, trackers: 1" in text
    assert "- How to build  Run make." in text
    assert "- weight  72.4 kg" in text
    assert "18 of at most 4" in text
    assert "sent as project context" in text
    assert NO_NOTES in memory_text(MEMORY, NOW).plain
    many = replace(FULL, pages=tuple(Page(f"p{n}", f"Page {n}", "") for n in range(60)))
    assert f"... and {60 - SHOWN_NOTES} more (p lists them)" in memory_text(many, NOW).plain


async def test_a_page_is_opened_from_the_list_and_the_list_comes_back(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page", "enter")
        await settled(pilot)
        assert isinstance(app.screen, NotesScreen)
        assert "How to build  Run make.  (build.md)" in frame(app)
        assert "weight  72.4 kg  (2026-10-01)" in frame(app)
        await pilot.press("down", "enter")
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert "Page db" in frame(app)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, NotesScreen)
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is app.main


async def test_the_memory_pane_leads_to_the_list(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await settled(pilot)
        await pilot.press("f4", "p")
        await settled(pilot)
        assert isinstance(app.screen, NotesScreen)


async def test_a_page_is_changed_in_the_editor(engine: FakeEngine) -> None:
    ports = FakePorts()
    ports.editor.result = "# How to build\n\nRun ninja.\n"
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page", "enter")
        await settled(pilot)
        await pilot.press("e")
        await settled(pilot, 6)
        assert ports.editor.edited == ["# How to build\n\nRun make.\n"]
        assert engine.said("save_page") == [("build", "# How to build\n\nRun ninja.\n")]
        assert "Run ninja." in frame(app)
        assert "The page build was saved." in toasts(app)


async def test_a_new_page_is_named_then_written(engine: FakeEngine) -> None:
    ports = FakePorts()
    ports.editor.result = "# CI\n\nNightly.\n"
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page", "enter")
        await settled(pilot)
        await pilot.press("n")
        await settled(pilot)
        assert isinstance(app.screen, Form)
        await pilot.press("enter")
        await settled(pilot)
        assert "Name must not be blank." in frame(app)
        await pilot.press(*"ci", "enter")
        await settled(pilot, 6)
        assert ports.editor.edited[0].startswith("# ci\n")
        assert engine.said("save_page") == [("ci", "# CI\n\nNightly.\n")]
        assert isinstance(app.screen, NotesScreen)


async def test_a_page_left_as_it_was_is_not_saved(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page new-one", "enter")
        await settled(pilot, 6)
        assert engine.said("save_page") == []
        assert "The page new-one was not changed." in toasts(app)


async def test_what_could_not_be_saved_is_said(engine: FakeEngine) -> None:
    ports = FakePorts()
    ports.editor.result = "x"
    engine.refusal = "there are 200 pages already; delete or join some first"
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page db", "enter")
        await settled(pilot, 6)
        assert "The page db was not saved: there are 200 pages already" in "\n".join(toasts(app))


async def test_an_editor_that_fails_changes_nothing(engine: FakeEngine) -> None:
    ports = FakePorts()
    ports.editor.problem = "vi is not there"
    app = make_app(engine, ports)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page db", "enter")
        await settled(pilot, 6)
        assert engine.said("save_page") == []
        assert "vi is not there" in "\n".join(toasts(app))


async def test_deleting_asks_first(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page", "enter")
        await settled(pilot)
        await pilot.press("d")
        await settled(pilot)
        assert isinstance(app.screen, Confirm)
        assert "Delete the page build?" in frame(app)
        await pilot.press("enter")  # the safe answer has the focus
        await settled(pilot)
        assert engine.said("delete_page") == []
        await pilot.press("d")
        await settled(pilot)
        await pilot.press("down", "enter")
        await settled(pilot, 6)
        assert engine.said("delete_page") == [("build",)]
        assert "How to build" not in frame(app)
        await pilot.press("down", "d")
        await settled(pilot)
        await pilot.press("down", "enter")
        await settled(pilot, 6)
        assert engine.said("delete_tracker") == [("weight",)]


async def test_a_tracker_is_set_in_a_form(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/tracker", "enter")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, Form)
        assert "72.4" in frame(app)
        await pilot.press("enter", "backspace", "backspace", "backspace", "backspace", *"73", "enter", "enter")
        await settled(pilot, 6)
        assert engine.said("set_tracker") == [("weight", "73", "kg")]
        assert "weight  73 kg" in frame(app)
        await pilot.press("t")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, NotesScreen)


async def test_a_tracker_is_set_in_one_line(engine: FakeEngine) -> None:
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/tracker weight 73 kg net", "enter")
        await settled(pilot, 6)
        assert engine.said("set_tracker") == [("weight", "73", "kg net")]
        assert "The tracker weight was set." in toasts(app)


async def test_an_empty_project_says_what_pages_and_trackers_are_for() -> None:
    app = make_app(FakeEngine())
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/page", "enter")
        await settled(pilot)
        assert "No pages and no trackers yet." in frame(app)
        assert "n new page" in frame(app)
        await pilot.press("d", "e", "enter")
        await settled(pilot)
        assert isinstance(app.screen, NotesScreen)


# -- what the model is told, in the conversation ----------------------------------------------------------------------

UPDATE = '<context_update from="loki"> now\n+ [Db](db.md)\n</context_update>'


def notices(model: ViewModel) -> list[NoticeItem]:
    return [i for i in model.items if isinstance(i, NoticeItem)]


def test_an_update_is_a_line_that_opens_the_whole_block() -> None:
    """L53: what is put at the head of a message is in sight."""
    model = ViewModel()
    model.apply(ev.ContextUpdatePlaced(2, "u2", UPDATE, "db.md"))
    model.apply(ev.ProjectCopied(1, "first request", 100, False))
    model.apply(ev.ProjectCopied(3, "a compaction", 1_234, True))
    first, second = notices(model)
    assert first.text == "The model is told what changed in the project: db.md."
    assert first.source == UPDATE
    assert second.text == "The project context is sent anew: a compaction. It takes about 1,234 tokens."


def test_a_resumed_conversation_shows_the_same_lines() -> None:
    """L59: from the log as from the events."""
    state = ProjectState(day="2026-10-02")
    entries = (
        ProjectSnapshotTaken(1, "first request", "x" * 400, state, ()),
        ContextUpdated(2, "u2", UPDATE, ProjectDelta(description="new")),
        ProjectSnapshotTaken(3, "the updates had grown too long", "x" * 400, state, ()),
    )
    model = ViewModel()
    records = tuple(Record(n, 0.0, e) for n, e in enumerate(entries, 1))
    model.prepend(HistoryPage(records, 1, False))
    assert [n.text for n in notices(model)] == [
        "The model is told what changed in the project: description.",
        "The project context is sent anew: the updates had grown too long. It takes about 100 tokens.",
    ]


async def test_what_is_typed_right_after_enter_goes_to_the_next_line(engine: FakeEngine) -> None:
    """Keys come faster than a field can answer; and a value left out is asked for, nothing is lost."""
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/tracker mood", "enter")
        await settled(pilot)
        await pilot.press("enter", "enter", "enter")
        await settled(pilot)
        assert "Value must not be blank." in frame(app)
        await pilot.press(*"good", "enter", "enter")
        await settled(pilot)
        assert engine.said("set_tracker") == [("mood", "good", "")]
