"""Preview, diff and undo of a compaction on the screen (cases 12, 27, 48)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from marextui.context.compaction_diff import CompactionDiff, ItemChange
from marextui.context.entries import CompactionUndone, SummaryItem
from marextui.context.fates import FateRow
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.tui.compaction_text import diff_text, preview_text
from marextui.tui.items import CompactionItem, NoticeItem
from marextui.tui.screens.viewer import TextViewer
from marextui.tui.viewmodel import ViewModel
from tests.stubs.fake_engine import PREVIEW, FakeEngine
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp
from tests.tui.scenes import compaction, make_app, short_turn
from tests.tui.test_app import WIDE, toasts

HOSTILE = "[red]\x1b[2J\u202eevil\r\nsecond line"

ENTRY = compaction(2)
DIFF = CompactionDiff(
    entry=ENTRY,
    rows=PREVIEW.rows,
    items=(
        ItemChange("Intent", SummaryItem("Fix the parser", "", 1, 2), "carried"),
        ItemChange("Decisions Made", SummaryItem("Split by hand", "k", 1, 1), "superseded", "Use splitlines"),
        ItemChange("Decisions Made", SummaryItem("Use splitlines", "k", 2, 2), "new"),
        ItemChange("Decisions Made", SummaryItem("Keep the public name", "", 1, 1), "carried"),
        ItemChange("Files Modified", SummaryItem("src/parse.py: splitlines", "src/parse.py", 2, 2), "new"),
        ItemChange("Intent", SummaryItem("Look at the log", "", 1, 1), "gone"),
    ),
    memory=("Decision: use splitlines",),
)


async def settled(pilot: Pilot[Any], times: int = 5) -> None:
    for _ in range(times):
        await pilot.pause()


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


# --- texts ----------------------------------------------------------------------------------------------------------


def test_a_preview_in_words() -> None:
    text = plain(preview_text(PREVIEW))
    for part in (
        "Nothing is sent or changed.",
        "By itself one begins:\n- from 9 turns in view on (now 3), when that makes room; 6 stay\n- at the latest",
        "~2 558 tokens",
        "852 tokens      4 messages  at most",
        "1 706 tokens  at least 66 %",
        "summary: up to 700 tokens",
        "Kept word for word from u-9: Please change it",
        "condensed       3 messages      196 tokens",
        "[omitted-003] Read: 1 def",
        "superseded  user           310",
    ):
        assert part in text, part


def test_a_preview_without_a_cut_says_why_and_offers_nothing() -> None:
    rows = tuple(replace(r, fate="kept") for r in PREVIEW.rows)
    text = plain(preview_text(replace(PREVIEW, cut="", reason="no usable cut", tokens_after=2_558, rows=rows)))
    assert "Nothing can be compacted: no usable cut." in text
    assert "/compact does it" not in text
    assert "None begins by itself: auto_compress = false." in preview_text(replace(PREVIEW, triggers=()))
    assert "Saved" not in text


def test_a_diff_in_words() -> None:
    """The two sections that people check first stand first (P18); + is new, - no longer stands."""
    text = plain(diff_text(DIFF))
    assert text.index("Files Modified") < text.index("Decisions Made") < text.index("Intent\n")
    for part in (
        "+ Use splitlines (cycle 2)",
        '- Split by hand (cycle 1), superseded by "Use splitlines"',
        "= Keep the public name (cycle 1)",
        "No longer in the summary",
        "- Look at the log (cycle 1)",
        "MEMORY.md",
        "* Decision: use splitlines",
        "kept            2 messages      152 tokens",
    ):
        assert part in text, part
    assert "undone" not in text
    assert "It was undone" in diff_text(replace(DIFF, undone=True))


@pytest.mark.parametrize("text", [preview_text(PREVIEW), diff_text(DIFF)], ids=["preview", "diff"])
def test_rows_fit_80_columns(text: str) -> None:
    assert max(len(row) for row in text.splitlines()) <= 72


def test_hostile_texts_stay_in_their_row() -> None:
    """Case 27: messages, items and ids are untrusted."""
    row = FateRow(HOSTILE, "tool", HOSTILE, 5, "kept", HOSTILE)
    entry = replace(ENTRY, summarizer=HOSTILE)
    items = tuple(ItemChange(i.section, SummaryItem(HOSTILE), i.change, HOSTILE) for i in DIFF.items)
    texts = (
        preview_text(replace(PREVIEW, rows=(row,), cut=HOSTILE)),
        preview_text(replace(PREVIEW, rows=(row,), reason=HOSTILE)),
        diff_text(CompactionDiff(entry, (row,), items, memory=(HOSTILE,))),
    )
    for text in texts:
        assert control_bytes(text) == []
        assert not any(line.startswith("second line") for line in text.splitlines())


# --- the view-model -------------------------------------------------------------------------------------------------


def cards(model: ViewModel) -> list[tuple[int, bool]]:
    return [(i.entry.cycle, i.undone) for i in model.items if isinstance(i, CompactionItem) and i.entry]


def test_an_undo_marks_its_card_and_says_so() -> None:
    model = ViewModel()
    for event in (ev.CompactionFinished(compaction(1)), ev.CompactionFinished(compaction(2))):
        model.apply(event)
    before = [i.version for i in model.items]
    assert model.apply(ev.CompactionReverted(2, 3_210, 12_340, 48)) == {"items"}
    assert cards(model) == [(1, False), (2, True)]
    assert [i.version for i in model.items[:2]] == [before[0], before[1] + 1]
    note = model.items[-1]
    assert isinstance(note, NoticeItem)
    assert "12,340 tokens" in note.text


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_undone_compactions_of_the_log_are_marked_whatever_the_pages(size: int) -> None:
    """An undo in a newer page marks the card of an older one; a compaction after the undo is not marked."""
    engine = FakeEngine()
    engine.log(compaction(1), compaction(2), CompactionUndone(2), compaction(3), compaction(4), CompactionUndone(4))
    engine.log(CompactionUndone(3), compaction(5))
    model = ViewModel()
    records = engine.records
    for end in range(len(records), 0, -size):
        page = tuple(records[max(0, end - size) : end])
        model.prepend(HistoryPage(page, page[0].seq, end > size))
    assert cards(model) == [(1, False), (2, True), (3, True), (4, True), (5, False)]


def test_a_live_undo_marks_what_is_loaded_later() -> None:
    engine = FakeEngine()
    engine.log(compaction(1), compaction(2))
    model = ViewModel()
    model.apply(ev.CompactionReverted(2, 1, 2, 3))
    model.prepend(HistoryPage(tuple(engine.records), 1, False))
    assert cards(model) == [(1, False), (2, True)]


# --- on the screen --------------------------------------------------------------------------------------------------


async def test_the_commands_reach_the_engine() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for text in ("/compact", "/compact offline", "/compact undo", "/compact undo force"):
            await pilot.press(*text, "enter")
            await settled(pilot)
        assert [c for c in engine.commands if c[0] in ("compact", "undo_compaction")] == [
            ("compact",),
            ("compact", "offline"),
            ("undo_compaction",),
            ("undo_compaction", "force"),
        ]
        assert engine.said("submit") == []


async def test_a_phase_is_begun_by_its_name() -> None:
    """P14: without a name nothing begins, and people are told how."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for text in ("/phase implement the parser", "/phase"):
            await pilot.press(*text, "enter")
            await settled(pilot)
        assert [c for c in engine.commands if c[0] in ("begin_phase", "submit")] == [
            ("begin_phase", "implement the parser")
        ]
        assert "/phase implement" in toasts(app)[-1]


async def test_a_mistyped_word_after_compact_does_nothing() -> None:
    """Not a compaction by accident, and not a message either."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        for text in ("/compact now", "/compact undo all"):
            app.main.composer.clear()
            await pilot.press(*text, "enter")
            await settled(pilot)
        assert not [c for c in engine.commands if c[0] in ("compact", "undo_compaction", "submit")]
        assert "/compact undo" in toasts(app)[0]
        assert "force" in toasts(app)[1]


async def test_the_preview_opens_and_closes_without_a_trace() -> None:
    """Case 48."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"/compact preview", "enter")
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert "at least 66" in frame(app)
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is app.main
        assert engine.said("submit") == engine.said("compact") == []
        assert not app.model.items


async def test_enter_on_the_card_opens_the_diff() -> None:
    engine = FakeEngine(diffs={2: DIFF})
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*short_turn(1), ev.CompactionFinished(ENTRY), *short_turn(2))
        await settled(pilot)
        await pilot.press("f2")
        app.main.conversation.reveal(3)
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert app.screen.view.language == "diff"
        assert "+ Use splitlines (cycle 2)" in frame(app)
        assert engine.said("compaction_diff") == [(2,)]


async def test_a_diff_the_engine_cannot_give_falls_back_to_the_summary() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(ev.CompactionFinished(ENTRY))
        await settled(pilot)
        await pilot.press("f2")
        app.main.conversation.reveal(0)
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "## Decisions Made" in frame(app)


async def test_an_undone_compaction_keeps_its_card() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*short_turn(1), ev.CompactionFinished(ENTRY), ev.CompactionReverted(2, 3_210, 12_340, 48))
        await settled(pilot)
        text = frame(app)
        assert "Compaction 2 · undone" in text
        assert "sent again" in text


# --- pictures -------------------------------------------------------------------------------------------------------


def test_picture_of_a_preview(snap_compare: Any) -> None:
    screen = TextViewer("Preview of a compaction", preview_text(PREVIEW))
    assert snap_compare(MiniApp(screen=screen), terminal_size=(80, 30))


def test_picture_of_a_diff(snap_compare: Any) -> None:
    screen = TextViewer("Compaction 2", diff_text(DIFF), language="diff")
    assert snap_compare(MiniApp(screen=screen, theme="marex-light"), terminal_size=(80, 44))
