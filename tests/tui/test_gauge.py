"""The gauge: the mark and the budget are always there, it never reads as a progress bar (M1–M6, cases 43–48)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from marextui.engine.economy import CacheState
from marextui.engine.event_values import Gauge
from marextui.engine.events import PrewarmChanged
from marextui.tui.glyphs import ASCII, UNICODE
from marextui.tui.panes import gauge_bar
from marextui.tui.panes.gauge import GaugeLine, GaugePane
from marextui.tui.panes.gauge_cache import Cache
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

N = "\u00a0"
HALF = Gauge(
    system=800,
    tools=1_300,
    memory=120,
    summary=1_200,
    conversation=8_000,
    outputs=2_280,
    window=32_768,
    window_source="/props of the local server",
    reserve=4_096,
    budget=26_452,
    threshold=17_194,
    tokens_per_turn=1_400,
)
CACHE = Cache(CacheState(9_000, 412, "omission of turn 12", held=True))
COLD = PrewarmChanged("idle", "no turn was run yet")
LOST = CacheState(held=False, lost="a prewarm was sent since")
UNKNOWN = Gauge(system=800, tools=1_300, conversation=500)

COUNTS = st.integers(0, 300_000)


@given(COUNTS, COUNTS, COUNTS, st.integers(1, 300_000), st.integers(3, 200))
def test_the_bar_always_has_its_width_and_every_part_that_holds_something(
    summary: int, conversation: int, outputs: int, budget: int, width: int
) -> None:
    g = Gauge(
        summary=summary, conversation=conversation, outputs=outputs, budget=budget, threshold=max(1, budget * 65 // 100)
    )
    cells = gauge_bar.cells(g, width)
    assert sum(cells) == width
    assert all(c >= 0 for c in cells)
    if width >= 4:
        assert all(c > 0 for c, n in zip(cells, (summary, conversation, outputs), strict=False) if n)
    assert gauge_bar.bar(g, width, ASCII).cell_length == width
    mark = gauge_bar.mark_cell(g, width)
    assert mark is not None
    assert gauge_bar.bar(g, width, ASCII).plain[mark] == "|"


def test_the_mark_stands_at_its_share_of_the_budget() -> None:
    g = Gauge(budget=10_000, threshold=6_500)
    assert gauge_bar.mark_cell(g, 40) == 26
    assert gauge_bar.bar(g, 40, UNICODE).plain == "░" * 26 + "┃" + "░" * 13


def test_an_overfull_budget_fills_the_bar_and_keeps_the_mark() -> None:
    g = Gauge(conversation=30_000, budget=20_000, threshold=13_000)
    assert gauge_bar.cells(g, 30) == [0, 30, 0, 0]
    assert gauge_bar.mark_cell(g, 30) == 13
    assert "150" in gauge_bar.title(g).plain
    assert "over" in gauge_bar.title(g).plain


@pytest.mark.parametrize("width", [20, 36, 40, 78, 120])
def test_the_body_says_everything_at_any_width(width: int) -> None:
    text = " ".join(gauge_bar.body(HALF, width, cache=CACHE).plain.split())
    for part in (
        f"~11{N}480 of 26{N}452 tokens",
        f"65{N}% = 17{N}194",
        f"~5{N}714 tokens until compaction, ~4 turns at the recent rate",
        f"System part ~2{N}220: system 800, tools 1{N}300, memory 120",
        f"Window 32{N}768 (/props of the local server), reserve 4{N}096",
        f"Last request: 95{N}% from the cache: 9{N}000 cached, 412 computed",
        "Computed anew because of: omission of turn 12",
        "The server holds this conversation",
    ):
        assert " ".join(part.split()) in text
    for line in gauge_bar.body(HALF, width, cache=CACHE).plain.split("\n"):
        assert len(line) <= max(width, 20) + 8


@pytest.mark.parametrize("width", range(40, 201, 4))
def test_one_row_always_shows_the_mark_the_budget_and_the_word(width: int) -> None:
    row = gauge_bar.one_row(HALF, width)
    assert row.cell_length <= width
    assert f"65{N}%" in row.plain
    assert f"26{N}452" in row.plain or "26k" in row.plain
    assert "ok" in row.plain
    assert "43" in row.plain


def test_one_row_says_more_when_there_is_room() -> None:
    assert "until compaction" in gauge_bar.one_row(HALF, 200).plain
    assert "┃" in gauge_bar.one_row(HALF, 120).plain
    assert gauge_bar.one_row(HALF, 5).cell_length <= 5


def test_unknown_window_counts_and_says_why_nothing_is_compacted() -> None:
    """M4: nothing is guessed."""
    assert f"~2{N}600 tokens" in gauge_bar.title(UNKNOWN).plain
    body = gauge_bar.body(UNKNOWN, 80).plain
    assert "nothing is guessed" in body
    assert "%" not in body
    assert "Window unknown" in body
    for width in (40, 80, 160):
        assert "window unknown" in gauge_bar.one_row(UNKNOWN, width).plain


def test_a_model_that_loads_has_a_window_to_come_and_none_that_is_unknown() -> None:
    """M4: nothing is guessed, and nothing is said of compaction before it can be known."""
    loading = Gauge(system=800, tools=1_300, loading=True)
    said = [gauge_bar.body(loading, 80).plain, gauge_bar.title(loading).plain, gauge_bar.subtitle(loading).plain]
    said += [gauge_bar.one_row(loading, width).plain for width in (20, 40, 80, 160)]
    assert not [text for text in said if "unknown" in text or "compact" in text]
    assert "loading model" in gauge_bar.title(loading, 24).plain
    assert "loading model" in gauge_bar.one_row(loading, 40).plain


@pytest.mark.parametrize(
    ("cache", "prewarm", "said"),
    [
        (CacheState(), COLD, []),
        (CacheState(0, 900), COLD, [f"Last request: 0{N}% from the cache: 0 cached, 900 computed"]),
        (CacheState(500, None), COLD, ["Last request: 500 cached, ? computed"]),
        (CacheState(broke="tool list changed"), COLD, ["Computed anew because of: tool list changed"]),
        (LOST, COLD, ["The server does not hold it: a prewarm was sent since"]),
        (LOST, PrewarmChanged("ready"), ["Next turn: its prompt is ready"]),
        (LOST, PrewarmChanged("ready", "", 412, 0), ["Next turn: its prompt is ready: 412 tokens computed ahead"]),
        (CacheState(), PrewarmChanged("warming"), ["Next turn: its prompt is being computed"]),
        (CacheState(), PrewarmChanged("refused", "it sleeps"), ["Next turn: not computed ahead, it sleeps"]),
    ],
)
def test_of_the_cache_nothing_is_said_that_is_not_known(
    cache: CacheState, prewarm: PrewarmChanged, said: list[str]
) -> None:
    """M38, I7: unknown is "?", never 0; a server that reports nothing has no line."""
    assert list(Cache(cache, prewarm).lines()) == said


def test_measured_figures_carry_no_tilde() -> None:
    measured = Gauge(conversation=100, budget=1_000, threshold=650, estimated=False)
    assert "~" not in gauge_bar.body(measured, 60).plain
    assert "~" not in gauge_bar.one_row(measured, 80).plain


def test_an_empty_session_already_counts_system_and_tools() -> None:
    """Case 43: 0 of history, but the system part stands there."""
    fresh = Gauge(system=900, tools=1_200, window=8_192, reserve=1_024, budget=5_068, threshold=3_295)
    body = gauge_bar.body(fresh, 60).plain
    assert f"System part ~2{N}100" in body
    assert f"5{N}068" in body


def test_the_reason_why_not_is_shown_below_and_past_the_mark() -> None:
    g = Gauge(conversation=700, budget=1_000, threshold=650, why_not="no usable cut [/]")
    assert "Not compacting: no usable cut [/]" in gauge_bar.body(g, 60).plain
    assert "past the mark" in gauge_bar.title(g).plain
    off = Gauge(conversation=100, budget=1_000, threshold=650, auto=False)
    assert "/compact works" in gauge_bar.body(off, 80).plain
    before = Gauge(conversation=600, budget=1_000, threshold=650, why_not="three failures")
    assert "to the compaction mark: nothing compacts there" in gauge_bar.body(before, 80).plain
    assert gauge_bar.title(before).plain.endswith("not compacting")
    for g in (off, before):
        assert "until compaction" not in gauge_bar.body(g, 80).plain + gauge_bar.one_row(g, 200).plain


@pytest.mark.parametrize("width", [14, 24, 34, 74])
def test_the_title_never_cuts_its_word(width: int) -> None:
    for g in (HALF, UNKNOWN, Gauge(conversation=18_000, budget=26_452, threshold=17_194)):
        title = gauge_bar.title(g, width)
        assert title.plain.endswith(("ok", "compacting next", "window unknown"))
        assert title.cell_length <= width or width < 24
    assert gauge_bar.title(HALF, 34).plain == f"Context 43{N}% of budget · ok"


async def test_right_from_the_first_paint_and_without_taking_the_focus() -> None:
    pane, row = GaugePane(HALF), GaugeLine(HALF)
    app = MiniApp(Input(), pane, row, watch=[GaugePane.StatusRequested])
    async with app.run_test(size=(40, 30)) as pilot:
        assert isinstance(app.focused, Input)
        first = frame(app)
        assert f"Context 43{N}% of budget · ok" in first
        assert f"65{N}% = 17{N}194" in first
        pane.show(Gauge(conversation=26_000, budget=26_452, threshold=17_194))
        row.show(pane.gauge)
        await pilot.pause()
        assert isinstance(app.focused, Input)
        assert "compacting next" in frame(app)
        assert len(list(pane.walk_children())) <= 4
        pane.focus()
        await pilot.press("enter")
        await pilot.pause()
        assert len(app.messages) == 1


async def test_mark_and_budget_stay_in_sight_when_there_is_no_room_for_rows() -> None:
    app = MiniApp(GaugePane(HALF), css="GaugePane { height: 3; }")
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.pause()
        assert f"mark 65{N}% = 17{N}194 of 26{N}452" in frame(app)
        await pilot.resize_terminal(28, 8)
        await pilot.pause()
        assert f"mark 65{N}% of 26k" in frame(app)
    assert gauge_bar.subtitle(UNKNOWN).plain == "no window, no compaction"


async def test_it_fits_when_the_width_changes() -> None:
    app = MiniApp(GaugePane(HALF))
    async with app.run_test(size=(40, 24)) as pilot:
        await pilot.resize_terminal(100, 24)
        await pilot.pause()
        bars = [r for r in frame(app).split("\n") if "┃" in r]
        assert len(bars) == 1
        assert len(bars[0]) == 100
