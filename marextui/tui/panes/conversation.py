"""The conversation: a window of mounted blocks over the complete view-model.

The DOM is a function of (model, window): `reconcile` brings it there, at most about eight times a second, however many
events arrive in between. The view follows the newest line only while it is at the bottom (case 11); otherwise the block
that is being read stays where it is, through new text, older pages and resizes (case 16).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.css.query import NoMatches
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Static

from marextui.tui import windowing
from marextui.tui.action_types import bindings_for
from marextui.tui.actions import OWN_ACTIONS
from marextui.tui.items import AssistantItem, Item, NoticeItem, TurnItem
from marextui.tui.panes.cards import Block, Card, KeyLabel, expandable, hidden, make_block, opens_at_once
from marextui.tui.viewmodel import ViewModel
from marextui.tui.windowing import Limits, Window

if TYPE_CHECKING:
    from marextui.tui.panes.markdown import MarkdownView

NEAR = 2
"""Rows from an edge of what is mounted at which the next page is mounted."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The block at the top of the view and how many rows of it are above."""

    key: str
    above: int


class Scroller(VerticalScroll, can_focus=False):
    """Holds the mounted blocks; reports scrolling and size to its conversation."""

    virtual_size = Reactive(Size(0, 0), repaint=False)
    """As Textual's, without its second layout of the screen after each layout that changed the height of the blocks."""

    def __init__(self, moved: Callable[[float], None], resized: Callable[[], None]) -> None:
        super().__init__(id="blocks")
        self._moved = moved
        self._resized = resized
        self.released = False
        """The person scrolled since the view was last put at its end; a layout alone never sets this."""

    def anchor(self, anchor: bool = True) -> None:
        super().anchor(anchor)
        self.released = False

    def release_anchor(self) -> None:
        super().release_anchor()
        self.released = True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._moved(new_value - old_value)

    def on_resize(self, event: events.Resize) -> None:
        self._resized()


class Conversation(Vertical, can_focus=True):
    """The pane. It has the focus itself (its blocks never do): focus moves stay cheap with many blocks mounted."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(OWN_ACTIONS, "conversation")]

    class OpenRequested(Message):
        """Show this block in full: "viewer", "editor" or "pager"."""

        def __init__(self, item: Item, how: str) -> None:
            super().__init__()
            self.item = item
            self.how = how

    class CopyRequested(Message):
        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    class LinkClicked(Message):
        """A link in an answer was clicked; nothing was opened."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    def __init__(
        self,
        model: ViewModel,
        *,
        key_label: KeyLabel,
        load_older: Callable[[], Awaitable[bool]],
        monotonic: Callable[[], float],
        interval: float = 0.12,
        limits: Limits | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.model = model
        self.window = Window()
        self.following = True
        self.cursor: str | None = None
        """Key of the block that keys act on, None: none."""
        self.reconciles = 0
        self._limits = limits or Limits()
        self._key_label = key_label
        self._load_older = load_older
        self._monotonic = monotonic
        self._interval = interval
        self._next_at = 0.0
        self._scheduled = False
        self._moving = False
        self._seen = 0
        self._expanded: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self._weights: dict[str, tuple[int, int]] = {}
        self._anchor: Anchor | None = None
        self._reveal: str | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="older", markup=False)
        yield Static("", id="welcome", markup=False)
        yield Scroller(self._scrolled, self._resized)
        yield Static("", id="newer", markup=False)

    def on_mount(self) -> None:
        self.query_one("#newer").display = False
        self.query_one("#older").display = False
        self._edges()
        self.scroller.anchor()

    @property
    def scroller(self) -> Scroller:
        return self.query_one(Scroller)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Restyle the frame only: no block looks different when the pane has the focus."""
        self.app.stylesheet.update_nodes([self], animate=False)

    # --- keeping up with the model ---------------------------------------------------------------------------------
    def reset(self) -> None:
        """Another conversation is shown: start again at its end."""
        self.window = Window(self.model.end, self.model.end)
        self.following, self.cursor, self._anchor, self._reveal = True, None, None, None
        self._seen = self.model.end
        self._expanded.clear()
        self._weights.clear()
        self.touch()

    def touch(self) -> None:
        """The model changed: reconcile now, or after the interval when that was done just before."""
        if self._scheduled or not self.is_mounted:
            return
        self._scheduled = True
        wait = self._next_at - self._monotonic()
        if wait > 0:
            self.set_timer(wait, self.reconcile)
        else:
            self.call_later(self.reconcile)

    async def reconcile(self) -> None:
        """Make the mounted blocks those of the window, in their present state."""
        self._scheduled = False
        started = self._monotonic()
        self.reconciles += 1
        model = self.model
        if self.following:
            self.window = windowing.follow(self.window, model.first, model.end, self._weigh, self._limits)
        hi = min(self.window.hi, model.end)
        self.window = Window(max(model.first, min(self.window.lo, hi)), hi)
        wanted = [model.at(p) for p in range(self.window.lo, self.window.hi)]
        anchor = None if self.following else self._anchor
        with self.app.batch_update():
            await self._mount_wanted(wanted)
            for item in wanted:
                block = self._blocks[item.key]
                if block.version != item.version:
                    await block.refresh_item()
        self._mark_cursor()
        self._edges()
        if anchor is not None or self._reveal is not None:
            self._moving = True
            self.call_after_refresh(self._settle, anchor)
        self._pace(started)
        self.call_after_refresh(self._pace, started)

    def _pace(self, started: float) -> None:
        """The next update comes no sooner than three times what this one took, its layout and paint included."""
        now = self._monotonic()
        self._next_at = max(self._next_at, now + max(self._interval, 3 * (now - started)))

    async def _mount_wanted(self, wanted: list[Item]) -> None:
        scroller = self.scroller
        keys = {i.key for i in wanted}
        gone = [self._blocks.pop(k) for k in list(self._blocks) if k not in keys]
        for item in wanted:
            block = self._blocks.get(item.key)
            if block is not None and (block.item is not item or block.outgrown):
                gone.append(self._blocks.pop(item.key))
        if gone:
            await scroller.remove_children(gone)
        run: list[Block] = []
        after: Block | None = None
        places: list[Item | None] = [*wanted, None]
        for place in places:
            block = self._blocks.get(place.key) if place is not None else None
            if place is not None and block is None:
                run.append(make_block(place, expanded=place.key in self._expanded, key_label=self._key_label))
                continue
            if run:
                if after is not None:
                    await scroller.mount_all(run, after=after)
                elif block is not None:
                    await scroller.mount_all(run, before=block)
                else:
                    await scroller.mount_all(run)
                self._blocks.update({b.item.key: b for b in run})
                run = []
            after = block

    def _weigh(self, position: int) -> int:
        item = self.model.at(position)
        known = self._weights.get(item.key)
        if known is None or known[0] != item.version:
            known = self._weights[item.key] = (item.version, windowing.node_weight(item))
        return known[1]

    def _settle(self, anchor: Anchor | None) -> None:
        """After the layout: bring the anchor back to where it was, or the revealed block into view."""
        try:
            self._place(anchor)
        finally:
            self._moving = False
        if not self.following and self._at_end():
            self.following = True
            self.scroller.anchor()
            self._edges()

    def _place(self, anchor: Anchor | None) -> None:
        scroller = self.scroller
        if self._reveal is not None:
            block = self._blocks.get(self._reveal)
            self._reveal = None
            if block is not None:
                scroller.scroll_to_widget(block, animate=False, top=False, immediate=True)
                self._remember()
            return
        if anchor is None or self.following:
            return
        block = self._blocks.get(anchor.key)
        if block is not None:
            scroller.scroll_to(y=block.virtual_region.y + anchor.above, animate=False, immediate=True)

    def _edges(self) -> None:
        """The lines that say what is above and below the view."""
        model = self.model
        above = self.window.lo - model.first
        older = self.query_one("#older", Static)
        older.display = bool(above or model.more)
        if older.display:
            loaded = f"{above} earlier blocks" if above else "earlier messages"
            older.update(f"  {loaded} above, {self._key_label('conversation.top')} to go up")
        if self.following:
            self._seen = model.end
        welcome = self.query_one("#welcome", Static)
        welcome.display = not model.items and not model.more
        if welcome.display:
            key = self._key_label
            known = "Nothing was said yet. " if model.conversation_id else ""
            welcome.update(
                f"{known}Write a message below.\n\n{key('app.help')} shows the keys, "
                f"{key('app.palette')} finds any action, / lists the commands, @ names a file.\n"
                f"{key('app.resume')} opens an earlier conversation, {key('app.model')} another model."
            )
        newer = self.query_one("#newer", Static)
        fresh = model.end - self._seen
        newer.display = not self.following
        if newer.display:
            count = f"{fresh} new below" if fresh else "more below"
            newer.update(f"  {count}, {self._key_label('conversation.end')} to follow  ")

    # --- scrolling -------------------------------------------------------------------------------------------------
    def _at_end(self) -> bool:
        scroller = self.scroller
        return self.window.hi >= self.model.end and scroller.scroll_y >= scroller.max_scroll_y

    def _scrolled(self, by: float) -> None:
        """The person scrolled (`by` rows, down is positive); our own moves do not count."""
        if self._moving:
            return
        was = self.following
        if was and not self.scroller.released:
            return
        self.following = self._at_end()
        if self.following != was:
            self.scroller.anchor(self.following)
            self._edges()
        if not self.following:
            self._remember()
            scroller = self.scroller
            if by < 0 and scroller.scroll_y <= NEAR and self._can_go_up():
                self.call_later(self._page_up)
            elif by > 0 and scroller.scroll_y >= scroller.max_scroll_y - NEAR and self.window.hi < self.model.end:
                self.call_later(self._page_down)

    def _remember(self) -> None:
        """Take the first block in view as the anchor."""
        top = self.scroller.scroll_y
        for child in self.scroller.children:
            region = child.virtual_region
            if isinstance(child, Block) and region.bottom > top:
                self._anchor = Anchor(child.item.key, round(top - region.y))
                return

    def _resized(self) -> None:
        if not self.following and self._anchor is not None:
            self._moving = True
            self.call_after_refresh(self._settle, self._anchor)

    def _can_go_up(self) -> bool:
        return self.window.lo > self.model.first or self.model.more

    async def _page_up(self) -> None:
        if self._moving or self.following:
            return
        if self.window.lo <= self.model.first and not (self.model.more and await self._load_older()):
            return
        self._remember()
        self.window = windowing.up(self.window, self.model.first, self._weigh, self._limits)
        await self.reconcile()

    async def _page_down(self) -> None:
        if self._moving or self.following:
            return
        if self.window.hi >= self.model.end:
            self.action_end()
            return
        self._remember()
        self.window = windowing.down(self.window, self.model.end, self._weigh, self._limits)
        await self.reconcile()

    def scroll_by(self, how: str) -> None:
        """Scroll "up", "down", "page_up" or "page_down", whatever has the focus (case 14)."""
        scroller = self.scroller
        if how in ("up", "page_up") and scroller.scroll_y <= 0 and self._can_go_up():
            self.following = False
            scroller.anchor(False)
            self.call_later(self._page_up)
            return
        if how in ("down", "page_down") and scroller.scroll_y >= scroller.max_scroll_y and not self.following:
            self.call_later(self._page_down)
            return
        step = {"up": -1, "down": 1, "page_up": -scroller.size.height + 2, "page_down": scroller.size.height - 2}[how]
        scroller.release_anchor()
        scroller.scroll_relative(y=step, animate=False, immediate=True)

    def action_move(self, how: str) -> None:
        self.scroll_by(how)

    def action_end(self) -> None:
        self.following, self._reveal, self._anchor = True, None, None
        if self.window.hi < self.model.end:
            self.window = windowing.tail(self.model.first, self.model.end, self._weigh, self._limits)
        self.scroller.anchor()
        self._scheduled = True
        self.call_later(self.reconcile)

    async def action_top(self) -> None:
        """The oldest loaded block; from there, the page before it."""
        if self.window.lo <= self.model.first and self.scroller.scroll_y <= 0 and self.model.more:
            await self._load_older()
        if self.model.items:
            self.reveal(self.model.first)

    def reveal(self, position: int) -> None:
        """Bring the block at `position` into view and put the cursor on it."""
        item = self.model.at(position)
        self.cursor, self._reveal = item.key, item.key
        self.following = False
        self.scroller.anchor(False)
        if position not in self.window:
            self.window = windowing.around(position, self.model.first, self.model.end, self._weigh, self._limits)
        self._scheduled = True
        self.call_later(self.reconcile)

    def _stay_on(self, key: str) -> None:
        """After the next layout, have the block in view, whatever grew; follow again only if the end is in view."""
        self._reveal, self._moving = key, True
        self.following = False
        self.scroller.anchor(False)
        self._edges()
        self.call_after_refresh(self._settle, None)

    # --- the block cursor ------------------------------------------------------------------------------------------
    def _mark_cursor(self) -> None:
        for key, block in self._blocks.items():
            if block.has_class("-cursor") != (key == self.cursor):
                block.set_class(key == self.cursor, "-cursor")

    def current(self) -> Item | None:
        """The block under the cursor, None without one."""
        return self.model.get(self.cursor) if self.cursor is not None else None

    def _position(self, key: str) -> int | None:
        return next((p for p, item in self.model.positions() if item.key == key), None)

    def _step(self, by: int) -> None:
        here = self._position(self.cursor) if self.cursor is not None else None
        if here is None:
            here = self.model.end if by < 0 else self.window.lo - 1
        target = here + by
        while self.model.first <= target < self.model.end and isinstance(self.model.at(target), TurnItem):
            target += by
        if target < self.model.first and self.model.more:
            self.call_later(self.action_top)
        elif self.model.first <= target < self.model.end:
            self.reveal(target)

    def action_previous(self) -> None:
        self._step(-1)

    def action_next(self) -> None:
        self._step(1)

    def action_fold(self) -> None:
        """Expand or fold the block under the cursor."""
        item = self.current()
        if item is None or not expandable(item):
            return
        self._expanded ^= {item.key}
        block = self._blocks.get(item.key)
        if block is not None:
            block.expanded = item.key in self._expanded
            block.redraw()
            self._stay_on(item.key)

    def action_open(self) -> None:
        """Expand; an expanded block with something still hidden opens in full, any other folds.

        A compaction opens at once: its diff is what people want of it.
        """
        item = self.current()
        if item is None:
            self.action_previous()
        elif expandable(item) and not (hidden(item) and (item.key in self._expanded or opens_at_once(item))):
            self.action_fold()
        elif hidden(item):
            self.post_message(self.OpenRequested(item, "viewer"))

    def _request(self, how: str) -> None:
        item = self.current() or next((i for i in reversed(self.model.items) if i.source), None)
        if item is not None:
            self.post_message(self.OpenRequested(item, how))

    def action_view(self) -> None:
        self._request("viewer")

    def action_editor(self) -> None:
        self._request("editor")

    def action_pager(self) -> None:
        self._request("pager")

    def action_copy(self) -> None:
        item = self.current() or next((i for i in reversed(self.model.items) if isinstance(i, AssistantItem)), None)
        if item is not None:
            self.post_message(self.CopyRequested(item))

    # --- mouse -----------------------------------------------------------------------------------------------------
    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and event.widget.id == "newer":
            self.action_end()
            return
        if self.screen.get_selected_text():
            return
        block = self._block_of(event.widget)
        if block is not None:
            again = self.cursor == block.item.key
            self.cursor = block.item.key
            self._mark_cursor()
            if isinstance(block, Card) or event.y == 0:
                if again and hidden(block.item) and block.expanded:
                    self.action_open()
                else:
                    self.action_fold()

    def _block_of(self, widget: Widget | None) -> Block | None:
        while widget is not None and widget is not self:
            if isinstance(widget, Block):
                return widget
            parent = widget.parent
            widget = parent if isinstance(parent, Widget) else None
        return None

    def on_markdown_view_link_clicked(self, event: MarkdownView.LinkClicked) -> None:
        event.stop()
        self.post_message(self.LinkClicked(event.href))

    # --- what tests and the app ask --------------------------------------------------------------------------------
    @property
    def mounted(self) -> list[str]:
        """Keys of the mounted blocks, top to bottom."""
        return [c.item.key for c in self.scroller.children if isinstance(c, Block)]

    @property
    def nodes(self) -> int:
        """Mounted widgets in the list of blocks."""
        try:
            return sum(1 for _ in self.scroller.walk_children())
        except NoMatches:
            return 0

    def pending_action(self) -> str:
        """The follow-up ("retry") that the newest notice offers, "" when something else came after it."""
        last = next(reversed(self.model.items), None)
        return last.action if isinstance(last, NoticeItem) else ""
