"""Columns of a report that keep standing where the lines have to wrap."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from textual.content import Content

from marextui.tui.hanging import hanging
from marextui.tui.screens.status import StatusScreen
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp
from tests.tui.test_status_screen import REPORT


def test_a_value_goes_on_where_it_began() -> None:
    text = Content("Will compact   no: only three of the six messages\n\n  note without columns that is long")
    assert hanging(text, 46).plain == (
        "Will compact   no: only three of the six\n               messages\n\n  note without columns that is long"
    )


def test_a_narrow_place_keeps_the_columns_closer() -> None:
    assert hanging(Content("Window                 16 384  discovery"), 30).plain == "Window  16 384  discovery"
    assert hanging(Content("Model            http://127.0.0.1:8080/v1"), 30).plain == (
        "Model\n  http://127.0.0.1:8080/v1"
    )


def test_a_number_is_never_torn() -> None:
    assert hanging(Content("History  of it 12\u00a0480 tokens"), 18).plain == "History  of it\n  12\u00a0480 tokens"


@given(st.text(st.sampled_from("ab \n日.")), st.integers(4, 30))
@example("  aaa", 4)
def test_rows_fit_and_no_word_is_lost(text: str, width: int) -> None:
    shown = hanging(Content(text), width)
    assert "".join(shown.plain.split()) == "".join(text.split())
    assert all(len(row.rstrip()) <= width for row in shown.plain.split("\n"))


async def test_the_status_stays_in_its_columns_on_a_small_screen() -> None:
    app = MiniApp(screen=StatusScreen(REPORT))
    async with app.run_test(size=(80, 24)) as pilot:
        for width in (80, 40, 80):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
        inner = [row[row.index("│") + 2 :] for row in frame(app).splitlines() if row.count("│") > 1]
        assert all(row[:17].strip() in ("", *_NAMES) for row in inner), inner


_NAMES = {
    *("Model", "Server", "Conversation", "Length", "Window (W)", "Reserve (R)", "System part (S)", "Budget (B)"),
    *("Compact at", "Threshold", "History (H)", "of it", "State", "Last request", "Auto-compaction", "Will compact"),
    *("Last compaction", "Last failure", "Stored in", "Local engine"),
}
