"""What a check found, `/context check` and `/probe` on the screen (P17, P19, P20; case 27)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from marextui.context.checking import Aftermath, Graded
from marextui.context.doctor_findings import advice
from marextui.context.doctor_report import report
from marextui.context.entries import CompactionChecked
from marextui.context.probes import Check, Probe
from marextui.context.refetch import FetchReport, Refetch
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.engine.examining import WIDTH
from marextui.tui.app import MarexApp
from marextui.tui.compaction_text import check_text, diff_text, probe_text
from marextui.tui.items import CompactionItem
from marextui.tui.screens.status import status_text
from marextui.tui.screens.viewer import TextViewer
from marextui.tui.viewmodel import ViewModel
from tests.stubs.fake_engine import CHECKS, FakeEngine
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp
from tests.tui.scenes import compaction, make_app, short_turn
from tests.tui.test_app import WIDE, toasts
from tests.tui.test_compaction_screens import DIFF, HOSTILE, plain, settled
from tests.tui.test_status_screen import REPORT
from tests.unit.test_doctor_findings import chart as examined

CHECKED = CompactionChecked(2, 37, 2, ("config/redis.ts (artifact: Which file was changed?)",), 40)
ALL_KEPT = CompactionChecked(2, 38, 2, (), 40)
FETCHES = FetchReport(
    2,
    12,
    tuple(Refetch(f"src/f{n}.py", "m", "c", "m0") for n in range(3)),
    (Refetch("src/seen.py", "m", "c", "m0"),),
)
ANSWERS = ev.ProbesAnswered(
    2,
    (
        Graded(Probe("artifact", "Which file was created?", ("src/queue.py",), "m1"), "It was src/queue.py", True),
        Graded(
            Probe("decision", "What did the user forbid?", ("Never touch config/redis.ts",), "m2"), "unknown", False
        ),
        Graded(Probe("recall", "Which error did pytest end with?", ("TypeError: bad",), "m3"), "", False),
    ),
)


def test_the_diff_lists_what_was_lost_and_what_was_read_again() -> None:
    text = plain(diff_text(replace(DIFF, checked=CHECKED, fetches=FETCHES)))
    for part in (
        "37/40 in view, 2 by recall, 1 lost",
        "- config/redis.ts (artifact: Which file was changed?)",
        "3 of 12 reads fetched again (25 %), 1 of what was still in view",
        "- again: src/f2.py",
        "* needless, it was in view: src/seen.py",
    ):
        assert part in text, part
    bare = diff_text(replace(DIFF, fetches=FetchReport(2, 0)))
    assert "looked for" not in bare
    assert "fetched again" not in bare


def test_the_status_has_a_line_for_each_compaction() -> None:
    report = replace(REPORT, aftermaths=(Aftermath(1, False, ALL_KEPT, FETCHES), Aftermath(2, True, None, None)))
    text = plain(status_text(report))
    assert "  1: 38/40 in view, 2 by recall, 0 lost · 3 of 12 reads fetched again (25 %), 1 of what was" in text
    assert "  2 (undone): not checked" in text
    assert text.index("  2 (undone)") < text.index("  1: 38/40")
    assert "Compactions" not in status_text(REPORT)


def test_the_checklist_in_words() -> None:
    text = check_text(CHECKS)
    assert "ok    Trigger " in text
    assert "LOOK  Probes " in text
    assert len(text.splitlines()) == 7


def test_the_answers_in_words() -> None:
    text = probe_text(ANSWERS)
    assert "1 of 3 answers contain what was expected" in text
    assert "+ It was src/queue.py" in text
    assert "- unknown\n= Never touch config/redis.ts" in text
    assert "- no answer\n= TypeError: bad" in text


def test_hostile_texts_stay_in_their_row() -> None:
    """Case 27."""
    probe = Probe("recall", HOSTILE, (HOSTILE,), HOSTILE)
    fetched = (Refetch(HOSTILE, "m", "c", "m"),)
    texts = (
        probe_text(ev.ProbesAnswered(1, (Graded(probe, HOSTILE, False),))),
        check_text((Check("Trigger", False, HOSTILE),)),
        diff_text(
            replace(DIFF, checked=replace(CHECKED, lost=(HOSTILE,)), fetches=FetchReport(1, 1, fetched, fetched))
        ),
    )
    for text in texts:
        assert control_bytes(text) == []
        assert not any(row.startswith("second line") for row in text.splitlines())


def checks(model: ViewModel) -> list[CompactionChecked | None]:
    return [i.checked for i in model.items if isinstance(i, CompactionItem)]


@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_check_finds_its_card_whatever_the_pages(size: int) -> None:
    engine = FakeEngine()
    engine.log(compaction(1), compaction(2), replace(CHECKED, cycle=1), CHECKED, compaction(3))
    model, records = ViewModel(), engine.records
    for end in range(len(records), 0, -size):
        page = tuple(records[max(0, end - size) : end])
        model.prepend(HistoryPage(page, page[0].seq, end > size))
    assert checks(model) == [replace(CHECKED, cycle=1), CHECKED, None]


async def test_the_card_gains_a_line_when_the_check_is_done() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*short_turn(1), ev.CompactionFinished(compaction(2)))
        await settled(pilot)
        assert "Checked" not in frame(app)
        engine.emit(ev.CompactionProbed(ALL_KEPT))
        await settled(pilot)
        assert "Checked: 38/40 in view, 2 by recall, 0 lost" in frame(app)
        assert "see which" not in frame(app)
        engine.emit(ev.CompactionProbed(CHECKED))
        await settled(pilot)
        assert "1 lost; open to see which" in frame(app)


async def test_the_commands_reach_the_engine_and_show_what_comes() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/probe", "enter")
        await settled(pilot)
        assert engine.said("probe") == [()]
        engine.emit(ev.PhaseChanged("probing"))
        await settled(pilot)
        assert "asking what it remembers" in frame(app)
        engine.emit(ev.PhaseChanged("idle"), ANSWERS)
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert "1 of 3 answers" in frame(app)
        await pilot.press("escape")
        await pilot.press(*"/context check", "enter")
        await settled(pilot)
        assert "LOOK  Probes" in frame(app)
        assert engine.said("submit") == []
        assert not app.model.items


async def test_the_doctor_is_called_and_its_report_shown() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/doctor", "enter")
        await pilot.press(*"/doctor yes", "enter")
        await settled(pilot)
        assert engine.said("examine") == [(), ("agreed",)]
        await pilot.press(*"/doctor now", "enter")
        await settled(pilot)
        assert len(engine.said("examine")) == 2
        assert "takes no word but yes" in toasts(app)[-1]
        engine.emit(ev.PhaseChanged("examining", "offering a tool"))
        await settled(pilot)
        assert "examining the server · offering a tool" in frame(app)
        engine.emit(ev.PhaseChanged("idle"), ev.ServerExamined("✓ window  8 192 tokens"))
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert "✓ window  8 192 tokens" in frame(app)
        assert engine.said("submit") == []


# --- pictures -------------------------------------------------------------------------------------------------------


def test_picture_of_checked_and_undone_cards(snap_compare: Any) -> None:
    engine = FakeEngine()
    app = make_app(engine)

    async def scene(pilot: Pilot[Any]) -> None:
        assert isinstance(pilot.app, MarexApp)
        first, second = compaction(1), compaction(2)
        engine.emit(*short_turn(1), ev.CompactionFinished(first), ev.CompactionProbed(replace(ALL_KEPT, cycle=1)))
        engine.emit(*short_turn(2), ev.CompactionFinished(second), ev.CompactionProbed(CHECKED), *short_turn(3))
        engine.emit(ev.CompactionReverted(2, 3_210, 12_340, 48))
        await settled(pilot)
        await pilot.press("f2", "k", "k")
        await settled(pilot)

    assert snap_compare(app, terminal_size=(80, 36), run_before=scene)


def test_picture_of_the_answers(snap_compare: Any) -> None:
    screen = TextViewer("What the model remembers", probe_text(ANSWERS), language="diff")
    assert snap_compare(MiniApp(screen=screen), terminal_size=(80, 20))


def test_picture_of_an_examination(snap_compare: Any) -> None:
    """As it stands in the viewer of a small terminal: no line is broken but those of the settings."""
    made = examined(cancels=None, slots=4, two_users=False, two_users_said="roles must alternate")
    lines = report(made, advice(made, {"prewarm": "off"}, connect=False), config="~/.config/config.toml", width=WIDTH)
    screen = TextViewer("The model's server", "\n".join(x.text for x in lines))
    assert snap_compare(MiniApp(screen=screen), terminal_size=(80, 40))
