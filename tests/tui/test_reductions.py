"""What the view no longer holds is one line in the conversation, where it happened, and leads to the whole (I6, I7)."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from marextui.context.entries import (
    Entry,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    ReasoningDropped,
    Record,
    ShortenedRef,
    TextsShortened,
)
from marextui.context.messages import Message, ToolCall
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.tui.items import Item, ReductionItem
from marextui.tui.panes.cards import ReductionCard
from marextui.tui.reductions import headline
from marextui.tui.screens.palette import Palette
from marextui.tui.screens.viewer import TextViewer
from marextui.tui.viewmodel import ViewModel
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.frames import frame
from tests.tui.scenes import make_app, tool_turn
from tests.tui.test_app import WIDE

OUTPUTS = (OmissionRef("t-1", -1, "omitted-001", 1_900), OmissionRef("t-2", -1, "omitted-002", 8))
INPUTS = (InputRef("a-1", 1, ("command",), "omitted-003", 900),)
TEXTS = (ShortenedRef("u-1", -1, "omitted-004", 9_000, 800, "message"),)

CASES: list[tuple[ev.Event, Entry, str, list[str]]] = [
    (
        ev.OutputsReplaced(2, OUTPUTS, 480),
        OutputsOmitted(2, OUTPUTS, "age", 480),
        "2 old outputs were put aside",
        ["Read src/parse.py", "Bash pytest -q"],
    ),
    (
        ev.OutputsReplaced(2, OUTPUTS[:1], 480, "repeat"),
        OutputsOmitted(2, OUTPUTS[:1], "repeat", 480),
        "1 output that was read again later was put aside",
        ["Read src/parse.py"],
    ),
    (
        ev.ViewReduced(2, "inputs", INPUTS, 480),
        InputsOmitted(2, INPUTS, 480),
        "1 long input of a tool call was put aside",
        ["Bash pytest -q"],
    ),
    (
        ev.ViewReduced(2, "texts", TEXTS, 480),
        TextsShortened(2, TEXTS, 480),
        "1 long text is sent as its beginning and end",
        ["your message"],
    ),
    (
        ev.ViewReduced(2, "reasoning", (), 480),
        ReasoningDropped(2, "a-2", 480),
        "Old reasoning is no longer sent",
        [],
    ),
]


def logged_turn() -> list[Entry]:
    """What `tool_turn` leaves in the log."""
    calls = (
        ToolCall("call-1", "Read", '{"path": "src/parse.py"}'),
        ToolCall("call-2", "Bash", '{"command": "pytest -q"}'),
    )
    return [
        MessageAdded(Message("u-1", "user", "Why?", turn=1)),
        MessageAdded(Message("a-1", "assistant", "", calls)),
        MessageAdded(Message("t-1", "tool", "line 1", tool_call_id="call-1", name="Read")),
        MessageAdded(Message("t-2", "tool", "..F", tool_call_id="call-2", name="Bash")),
        MessageAdded(Message("a-2", "assistant", "It drops it.")),
    ]


def told(item: Item) -> tuple[str, int, list[tuple[str, str]]]:
    assert isinstance(item, ReductionItem)
    return headline(item), item.freed, [(r.omission_id, r.title) for r in item.rows]


@pytest.mark.parametrize(("event", "entry", "says", "titles"), CASES)
def test_it_reads_the_same_live_and_after_a_restart(
    event: ev.Event, entry: Entry, says: str, titles: list[str]
) -> None:
    live, later = ViewModel(), ViewModel()
    for happened in (*tool_turn(), event):
        live.apply(happened)
    later.prepend(HistoryPage(tuple(Record(i, 0.0, e) for i, e in enumerate([*logged_turn(), entry], 1)), 1, False))
    assert told(live.items[-1]) == told(later.items[-1])
    assert told(live.items[-1])[:2] == (says, 480)
    assert [t for _, t in told(live.items[-1])[2]] == titles


def test_titles_come_with_the_page_that_holds_their_calls() -> None:
    model = ViewModel()
    model.prepend(HistoryPage((Record(6, 0.0, OutputsOmitted(2, OUTPUTS)),), 6, True))
    reduction = model.items[-1]
    assert told(reduction)[1:] == (0, [("omitted-001", ""), ("omitted-002", "")])
    before = reduction.version
    model.prepend(HistoryPage(tuple(Record(i, 0.0, e) for i, e in enumerate(logged_turn(), 1)), 1, False))
    assert [t for _, t in told(reduction)[2]] == ["Read src/parse.py", "Bash pytest -q"]
    assert reduction.version > before


def test_an_output_that_could_not_be_stored_was_never_put_aside() -> None:
    model = ViewModel()
    entry = TextsShortened(1, (ShortenedRef("t-1", -1, "", 9_000, 800),))
    model.prepend(HistoryPage((Record(1, 0.0, entry),), 1, False))
    assert model.items == []


async def settled(pilot: Pilot[None], times: int = 4) -> None:
    for _ in range(times):
        await pilot.pause()


async def shown(pilot: Pilot[None], app: Any, engine: FakeEngine) -> ReductionCard:
    engine.emit(*tool_turn(), ev.OutputsReplaced(2, OUTPUTS, 4_200))
    await settled(pilot)
    return app.main.conversation.query_one(ReductionCard)


@pytest.mark.parametrize(
    ("ascii_only", "line"),
    [(False, "▸ 2 old outputs were put aside: −4\u00a0200 tokens"), (True, "+ 2 old outputs were put aside: -4")],
)
async def test_one_line_then_a_list_and_from_it_the_whole_text(ascii_only: bool, line: str) -> None:
    engine = FakeEngine(texts={"omitted-002": "the whole output"})
    app = make_app(engine, ascii=ascii_only)
    async with app.run_test(size=WIDE) as pilot:
        card = await shown(pilot, app, engine)
        assert line in frame(app)
        assert card.size.height == 1
        app.main.conversation.reveal(app.model.end - 1)
        await pilot.press("f2", "enter")
        await settled(pilot)
        assert "omitted-001" in frame(app)
        assert "Bash pytest -q" in frame(app)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, Palette)
        await pilot.press("down", "enter")
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert app.screen.text == "the whole output"


async def test_a_click_on_an_id_opens_it_and_does_not_fold_the_list() -> None:
    engine = FakeEngine(texts={"omitted-001": "the first output"})
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        card = await shown(pilot, app, engine)
        await pilot.click(card, offset=(4, 0))
        await settled(pilot)
        assert card.expanded
        await pilot.click(card, offset=(8, 1))
        await settled(pilot)
        assert isinstance(app.screen, TextViewer)
        assert app.screen.text == "the first output"
        assert card.expanded


async def test_what_is_not_one_of_our_ids_is_no_link() -> None:
    """A damaged log cannot put an action behind a word."""
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        engine.emit(*tool_turn(), ev.OutputsReplaced(2, (OmissionRef("t-1", -1, "x'); app.quit('", 9),), 1))
        await settled(pilot)
        card = app.main.conversation.query_one(ReductionCard)
        card.expanded = True
        card.redraw()
        assert not [s for s in card.build().spans if getattr(s.style, "meta", {})]
