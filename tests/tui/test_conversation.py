"""The conversation pane: a bounded window, following, cards, streaming. DOMs are kept small on purpose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from marextui.context.messages import Message
from marextui.engine import events as ev
from marextui.tui.items import ToolItem
from marextui.tui.panes.answer import AnswerBlock
from marextui.tui.panes.cards import Card, ToolCard, hidden, shorten
from marextui.tui.panes.conversation import Conversation
from marextui.tui.viewmodel import ViewModel
from marextui.tui.windowing import Limits
from tests.stubs.frames import frame
from tests.stubs.ports import FakeClock
from tests.tui.scenes import compaction, short_turn, streamed, tool_turn, usage


class PaneApp(App[None]):
    """Only the conversation, fed straight from its view-model."""

    CSS_PATH = "../../marextui/tui/app.tcss"

    def __init__(self, limits: Limits | None = None, load_older: Callable[[], Awaitable[bool]] | None = None) -> None:
        super().__init__()
        self.animation_level = "none"
        self.model = ViewModel()
        self.clock = FakeClock()
        self.opened: list[tuple[str, str]] = []

        async def nothing() -> bool:
            return False

        self.pane = Conversation(
            self.model,
            key_label=lambda action: {"conversation.open": "Enter"}.get(action, action),
            load_older=load_older or nothing,
            monotonic=self.clock.monotonic,
            interval=0.0,
            limits=limits,
        )

    def compose(self) -> ComposeResult:
        yield self.pane

    def play(self, *events: ev.Event) -> None:
        for event in events:
            if "items" in self.model.apply(event):
                self.pane.touch()

    def on_conversation_open_requested(self, event: Conversation.OpenRequested) -> None:
        self.opened.append((event.item.key, event.how))


@asynccontextmanager
async def running(app: PaneApp, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(size=size) as pilot:
        app.pane.focus()
        await pilot.pause()
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.pause()


SMALL = Limits(items=12, nodes=100, page=5)


# --- the window ------------------------------------------------------------------------------------------------------


async def test_400_turns_mount_no_more_than_the_window() -> None:
    """Cases 2 and 4: the number of widgets does not grow with the conversation."""
    app = PaneApp()
    async with running(app) as pilot:
        for n in range(1, 401):
            app.play(*short_turn(n))
            if n % 40 == 0:
                await settled(pilot)
                assert len(app.pane.mounted) <= 60
                assert app.pane.nodes <= 800
        assert len(app.model.items) == 1200
        assert app.pane.mounted[-1] == app.model.items[-1].key


async def test_many_events_are_one_reconcile() -> None:
    """Case 10: 100 tool cards updated at once."""
    app = PaneApp()
    async with running(app) as pilot:
        app.play(*(ev.ToolStarted(f"c{i}", "Read", "{}", f"Read {i}") for i in range(100)))
        await settled(pilot)
        before = app.pane.reconciles
        app.play(*(ev.ToolFinished(f"c{i}", False, "ok", 10, 0.1) for i in range(100)))
        await settled(pilot)
        assert app.pane.reconciles == before + 1
        assert "Read 99 · ok" in frame(app)


async def test_updates_wait_for_the_interval() -> None:
    app = PaneApp()
    app.pane._interval = 60.0
    async with running(app) as pilot:
        app.play(*short_turn(1))
        await settled(pilot)
        done = app.pane.reconciles
        app.play(*short_turn(2))
        await settled(pilot)
        assert app.pane.reconciles == done
        assert app.pane.mounted[-1] == app.model.items[2].key


async def test_going_up_mounts_older_items_and_keeps_the_place() -> None:
    app = PaneApp(SMALL)
    async with running(app) as pilot:
        for n in range(1, 31):
            app.play(*short_turn(n))
        await settled(pilot)
        newest = app.pane.mounted[-1]
        for _ in range(24):
            app.pane.scroll_by("page_up")
            await settled(pilot)
        assert "Question 1?" in frame(app)
        assert newest not in app.pane.mounted
        assert len(app.pane.mounted) <= 12
        for _ in range(40):
            app.pane.scroll_by("page_down")
            await settled(pilot)
        assert app.pane.mounted[-1] == newest
        assert app.pane.following


async def test_the_past_is_asked_for_at_the_top() -> None:
    asked: list[int] = []

    async def load() -> bool:
        asked.append(1)
        return False

    app = PaneApp(SMALL, load)
    async with running(app) as pilot:
        app.play(ev.ConversationOpened("c", "", True, 500), *short_turn(1))
        await settled(pilot)
        assert "earlier messages above" in frame(app)
        app.pane.scroll_by("up")
        await settled(pilot)
        assert asked


# --- following -------------------------------------------------------------------------------------------------------


async def test_reading_is_not_disturbed_by_new_text() -> None:
    """Case 11: scrolled up, 100 pieces arrive, the same lines stand still."""
    app = PaneApp()
    async with running(app) as pilot:
        for n in range(1, 16):
            app.play(*short_turn(n))
        await settled(pilot)
        for _ in range(10):
            app.pane.scroll_by("up")
        await settled(pilot)
        assert not app.pane.following
        before, place = frame(app).splitlines()[:20], app.pane.blocks.scroll_y
        for i in range(100):
            app.play(ev.TextStreamed("new", f"word{i} "))
            if i % 25 == 0:
                await settled(pilot)
        app.play(*short_turn(99))
        await settled(pilot)
        assert app.pane.blocks.scroll_y == place
        assert frame(app).splitlines()[:20] == before
        assert "4 new below" in frame(app)
        await pilot.press("end")
        await settled(pilot)
        assert app.pane.following
        assert "new below" not in frame(app)
        assert "Answer 99" in frame(app)


async def test_following_stays_at_the_newest_line() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        for n in range(1, 20):
            app.play(*short_turn(n))
            await pilot.pause()
        await settled(pilot)
        assert "Answer 19" in frame(app)
        assert app.pane.following


async def test_a_resize_keeps_the_block_that_is_read() -> None:
    """Case 16, scrolled up: the first block in view stays the first."""
    app = PaneApp()
    long = "A sentence that is long enough to be wrapped when the terminal gets narrow, and then some more of it. "
    async with running(app, (100, 24)) as pilot:
        for n in range(1, 15):
            app.play(ev.MessageAppended(Message(f"u{n}", "user", f"Q{n}: {long * 2}"), n))
        await settled(pilot)
        for _ in range(12):
            app.pane.scroll_by("up")
        await settled(pilot)
        first = app.pane._anchor
        assert first is not None
        await pilot.resize_terminal(50, 24)
        await settled(pilot)
        block = next(c for c in app.pane.query(Card) if c.item.key == first.key)
        top = app.pane.blocks.scroll_y
        assert block.virtual_region.y <= top < block.virtual_region.bottom


async def test_a_resize_while_following_keeps_following() -> None:
    """Case 16, at the bottom."""
    app = PaneApp()
    async with running(app, (100, 24)) as pilot:
        for n in range(1, 15):
            app.play(*short_turn(n))
        await settled(pilot)
        await pilot.resize_terminal(50, 12)
        await settled(pilot)
        assert app.pane.following
        assert "Answer 14" in frame(app)


async def test_a_conversation_that_no_longer_fits_after_a_resize_is_still_followed() -> None:
    """Case 16: the layout moved, the person did not."""
    app = PaneApp()
    async with running(app, (100, 40)) as pilot:
        app.play(*tool_turn())
        await settled(pilot)
        assert app.pane.blocks.max_scroll_y == 0
        await pilot.resize_terminal(60, 15)
        await settled(pilot)
        assert app.pane.following
        assert "inp" in frame(app)


# --- cards -----------------------------------------------------------------------------------------------------------


async def test_a_tool_card_is_one_line_until_expanded() -> None:
    """Cases 50 and 51."""
    app = PaneApp()
    async with running(app, (80, 40)) as pilot:
        app.play(*tool_turn())
        await settled(pilot)
        card = next(c for c in app.pane.query(ToolCard) if c.item.key == "call-1")
        assert card.size.height == 1
        app.pane.reveal(app.pane._position("call-1") or 0)
        await settled(pilot)
        await pilot.press("space")
        await settled(pilot)
        text = frame(app)
        assert "line 10" in text
        assert "line 11 " not in text
        assert "106 more lines, Enter to open" in text
        assert "line 120" in text
        await pilot.press("enter")
        await settled(pilot)
        assert app.opened == [("call-1", "viewer")]
        await pilot.press("space")
        await settled(pilot)
        assert card.size.height == 1


async def test_a_short_output_has_no_hint_and_enter_folds_it_again() -> None:
    """Case 52."""
    app = PaneApp()
    async with running(app, (80, 40)) as pilot:
        app.play(*tool_turn())
        await settled(pilot)
        card = next(c for c in app.pane.query(ToolCard) if c.item.key == "call-2")
        app.pane.reveal(app.pane._position("call-2") or 0)
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert card.size.height == 3
        assert "to open" not in frame(app)
        await pilot.press("enter")
        await settled(pilot)
        assert card.size.height == 1
        assert app.opened == []


def test_what_is_hidden() -> None:
    tool = ToolItem(key="t")
    assert hidden(tool) == 0
    tool.output.set("\n".join("x" * 3 for _ in range(50_000)))
    assert hidden(tool) == 49_986
    tool.output.set("y" * 10_000)
    assert hidden(tool) == 1
    tool.output.set("marker")
    tool.omission_id, tool.chars = "om-1", 90_000
    assert hidden(tool) == 1


@pytest.mark.parametrize("count", [0, 1, 14, 15, 16, 17, 100])
def test_shortening_loses_no_count(count: int) -> None:
    text = "\n".join(f"row {i}" for i in range(count))
    head, out, tail = shorten(text, 10, 4)
    assert len(head) + out + len(tail) == count
    assert out != 1


async def test_reasoning_is_one_line_until_expanded() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        app.play(ev.ReasoningStreamed("a", "secret plan"), *streamed("a", "Done."))
        app.play(ev.MessageAppended(Message("a", "assistant", "Done.", reasoning="secret plan"), 1))
        await settled(pilot)
        assert "reasoning · 11" in frame(app)
        assert "secret plan" not in frame(app)
        app.pane.reveal(0)
        await settled(pilot)
        await pilot.press("space")
        await settled(pilot)
        assert "secret plan" in frame(app)


async def test_reasoning_that_was_interrupted_stays_as_one_line() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        app.play(ev.ReasoningStreamed("a", "secret plan"))
        await settled(pilot)
        assert "thinking · 11" in frame(app)
        app.play(ev.StreamDropped("a"), ev.TurnFinished(1, "interrupted", usage()))
        await settled(pilot)
        assert "reasoning · 11" in frame(app)
        assert "(interrupted here)" in frame(app)
        app.pane.reveal(0)
        await settled(pilot)
        await pilot.press("space")
        await settled(pilot)
        assert "secret plan" in frame(app)


async def test_a_compaction_stands_in_its_place_with_its_numbers() -> None:
    app = PaneApp()
    async with running(app, (100, 30)) as pilot:
        app.play(*short_turn(1), ev.CompactionFinished(compaction()), *short_turn(2))
        await settled(pilot)
        text = frame(app).replace("\N{NO-BREAK SPACE}", " ")
        assert "12 340 → 3 210 tokens" in text
        assert "48 → 9 messages" in text
        assert text.index("Files Modified 1") < text.index("Decisions Made 2")
        assert text.index("Answer 1") < text.index("Compaction 1") < text.index("Answer 2")
        app.pane.reveal(3)
        await settled(pilot)
        await pilot.press("space")
        await settled(pilot)
        assert "Use splitlines" in frame(app)
        assert app.opened == []
        await pilot.press("space", "enter")
        await settled(pilot)
        assert app.opened == [(app.model.at(3).key, "viewer")]
        assert "Use splitlines" not in frame(app)


async def test_a_failed_compaction_has_nothing_to_open() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        app.play(ev.CompactionFailed("manual", "no usable cut", skipped=True))
        await settled(pilot)
        app.pane.reveal(0)
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert app.opened == []


async def test_a_huge_answer_is_shortened_and_opens_in_full() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        app.play(ev.MessageAppended(Message("a", "assistant", "- item\n" * 10_000), 1))
        await settled(pilot)
        assert app.pane.nodes < 10
        app.pane.reveal(0)
        await settled(pilot)
        assert "9 960 more lines" in frame(app).replace("\N{NO-BREAK SPACE}", " ")
        await pilot.press("enter")
        await settled(pilot)
        assert app.opened == [("a", "viewer")]


async def test_a_streamed_answer_that_grows_too_long_stays_bounded() -> None:
    app = PaneApp()
    async with running(app) as pilot:
        for part in range(30):
            app.play(ev.TextStreamed("a", "".join(f"- item {part}.{i}\n" for i in range(40))))
            await pilot.pause()
        await settled(pilot)
        assert app.pane.nodes <= 800
        app.play(ev.MessageAppended(Message("a", "assistant", "- item\n" * 1_200), 1))
        await settled(pilot)
        assert app.pane.nodes < 10


HOSTILE = [
    "[/]",
    "[a=b]",
    "[",
    "]",
    "[b]x[/b]",
    "x [/] y [/foo] z",
    "\x1b[2J\x1b]0;T\x07",
    "👩‍👩‍👧",
    "x" * 10_000,
    "$primary",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_only_text(text: str) -> None:
    """Case 26: no markup, no control byte, in every kind of block."""
    app = PaneApp()
    async with running(app) as pilot:
        app.play(
            ev.MessageAppended(Message("u", "user", text), 1),
            ev.ReasoningStreamed("a", text),
            ev.TextStreamed("a", text),
            ev.ToolStarted("c", text, text, text),
            ev.ToolFinished("c", False, text, 5, 0.1, text),
            ev.MessageAppended(Message("t", "tool", text, tool_call_id="c"), 3),
            ev.Notice("error", text, text),
            ev.CompactionFailed("manual", text),
        )
        await settled(pilot)
        for position in range(app.model.end):
            app.pane.reveal(position)
            await pilot.pause()
            app.pane.action_fold()
        await settled(pilot)
        shown = frame(app)
        assert not [c for c in shown if ord(c) < 0x20 and c != "\n"]
        assert "\x1b" not in shown
        if text in ("[/]", "[b]x[/b]", "$primary"):
            assert text in shown


# --- streaming -------------------------------------------------------------------------------------------------------


async def test_the_answer_is_whole_after_the_end() -> None:
    app = PaneApp()
    async with running(app, (80, 30)) as pilot:
        for event in streamed("a", "See [the page][1].\n\n```py\nx = 1\n```\n\n[1]: https://example.org\n", 5):
            app.play(event)
            await pilot.pause()
        await settled(pilot)
        block = app.pane.query_one(AnswerBlock)
        assert block.finished
        assert "See the page (https://example.org)." in frame(app)
        assert "x = 1" in frame(app)


async def test_streaming_under_a_full_conversation_lays_out_only_what_grows() -> None:
    """No layout for a few more words on the last row; one when a row is added; no widget more, whatever comes."""
    app = PaneApp()
    async with running(app) as pilot:
        for n in range(1, 61):
            app.play(*short_turn(n))
        app.play(ev.TextStreamed("new", "Some words"))
        await settled(pilot)
        layouts: list[int] = []
        real = app.screen._refresh_layout

        def counted(*args: object, **options: object) -> None:
            layouts.append(1)
            real(*args, **options)  # type: ignore[arg-type]

        app.screen._refresh_layout = counted  # type: ignore[method-assign, assignment]
        nodes = app.pane.nodes
        app.play(ev.TextStreamed("new", " and more"))
        await settled(pilot)
        assert layouts == []
        assert "Some words and more" in frame(app)
        for n in range(20):
            app.play(ev.TextStreamed("new", f"\n\n- item {n}\n\n```py\nx = {n}\n```\n"))
            await settled(pilot)
        assert len(layouts) <= 20
        assert app.pane.nodes == nodes
        assert "x = 19" in frame(app)
        assert app.pane.following
