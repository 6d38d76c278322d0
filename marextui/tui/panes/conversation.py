"""The conversation: a window of mounted blocks over the complete view-model.

The DOM is a function of (model, window): `reconcile` brings it there, at most about eight times a second, however many
events arrive in between. The view follows the newest line only while it is at the bottom (case 11); otherwise the block
that is being read stays where it is, through new text, older pages and resizes (case 16).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from marextui.tui import windowing
from marextui.tui.action_types import bindings_for
from marextui.tui.actions import OWN_ACTIONS
from marextui.tui.items import NoticeItem
from marextui.tui.panes.block_cursor import BlockCursor
from marextui.tui.panes.block_list import Anchor, BlockList
from marextui.tui.panes.cards import KeyLabel
from marextui.tui.viewmodel import ViewModel
from marextui.tui.windowing import Limits, Window

NEAR = 2
"""Rows from an edge of what is mounted at which the next page is mounted."""


class Note(Static):
    """A text that is only there while it has something to say; to say it again costs no layout."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self.display = False
        self._said = ""

    def say(self, text: str) -> None:
        """Show `text`; "": go away."""
        if text != self._said:
            self._said = text
            self.display = bool(text)
            self.update(text)


class Conversation(BlockCursor, can_focus=True):
    """The pane. It has the focus itself (its blocks never do): focus moves stay cheap with many blocks mounted."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(OWN_ACTIONS, "conversation")]

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
        self.blocks = BlockList(key_label, self._scrolled, self._resized)
        self.window = Window()
        self.following = True
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
        self._weights: dict[str, tuple[int, int]] = {}
        self._anchor: Anchor | None = None
        self._reveal: str | None = None

    def compose(self) -> ComposeResult:
        yield Note(id="older")
        yield Note(id="welcome")
        yield self.blocks
        yield Note(id="newer")

    def on_mount(self) -> None:
        self._edges()
        self.blocks.anchor()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Restyle the frame only: no block looks different when the pane has the focus."""
        self.app.stylesheet.update_nodes([self], animate=False)

    # --- keeping up with the model ---------------------------------------------------------------------------------
    def reset(self) -> None:
        """Another conversation is shown: start again at its end."""
        self.window = Window(self.model.end, self.model.end)
        self.following, self.cursor, self._anchor, self._reveal = True, None, None, None
        self._seen = self.model.end
        self.blocks.expanded.clear()
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
        await self.blocks.show(wanted)
        self.blocks.mark(self.cursor)
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
            self.blocks.anchor()
            self._edges()

    def _place(self, anchor: Anchor | None) -> None:
        blocks = self.blocks
        if self._reveal is not None:
            block = self.blocks.blocks.get(self._reveal)
            self._reveal = None
            if block is not None:
                blocks.scroll_to_widget(block, animate=False, top=False, immediate=True)
                self._remember()
            return
        if anchor is None or self.following:
            return
        block = self.blocks.blocks.get(anchor.key)
        if block is not None:
            blocks.scroll_to(y=block.virtual_region.y + anchor.above, animate=False, immediate=True)

    def _edges(self) -> None:
        """The lines that say what is above and below the view."""
        model, key = self.model, self._key_label
        above = self.window.lo - model.first
        loaded = f"{above} earlier blocks" if above else "earlier messages" if model.more else ""
        self.query_one("#older", Note).say(loaded and f"  {loaded} above, {key('conversation.top')} to go up")
        if self.following:
            self._seen = model.end
        empty = not model.items and not model.more
        self.query_one("#welcome", Note).say(self._welcome() if empty else "")
        fresh = model.end - self._seen
        below = "" if self.following else f"{fresh} new below" if fresh else "more below"
        self.query_one("#newer", Note).say(below and f"  {below}, {key('conversation.end')} to follow  ")

    def _welcome(self) -> str:
        key = self._key_label
        known = "Nothing was said yet. " if self.model.conversation_id else ""
        return (
            f"{known}Write a message below.\n\n{key('app.help')} shows the keys, "
            f"{key('app.palette')} finds any action, / lists the commands, @ names a file.\n"
            f"{key('app.resume')} opens an earlier conversation, {key('app.model')} another model."
        )

    # --- scrolling -------------------------------------------------------------------------------------------------
    def _at_end(self) -> bool:
        blocks = self.blocks
        return self.window.hi >= self.model.end and blocks.scroll_y >= blocks.max_scroll_y

    def _scrolled(self, by: float) -> None:
        """The person scrolled (`by` rows, down is positive); our own moves do not count."""
        if self._moving:
            return
        was = self.following
        if was and not self.blocks.released:
            return
        self.following = self._at_end()
        if self.following != was:
            self.blocks.anchor(self.following)
            self._edges()
        if not self.following:
            self._remember()
            blocks = self.blocks
            if by < 0 and blocks.scroll_y <= NEAR and self._can_go_up():
                self.call_later(self._page_up)
            elif by > 0 and blocks.scroll_y >= blocks.max_scroll_y - NEAR and self.window.hi < self.model.end:
                self.call_later(self._page_down)

    def _remember(self) -> None:
        """Take the first block in view as the anchor."""
        self._anchor = self.blocks.first_in_view() or self._anchor

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
        blocks = self.blocks
        if how in ("up", "page_up") and blocks.scroll_y <= 0 and self._can_go_up():
            self.following = False
            blocks.anchor(False)
            self.call_later(self._page_up)
            return
        if how in ("down", "page_down") and blocks.scroll_y >= blocks.max_scroll_y and not self.following:
            self.call_later(self._page_down)
            return
        step = {"up": -1, "down": 1, "page_up": -blocks.size.height + 2, "page_down": blocks.size.height - 2}[how]
        blocks.release_anchor()
        blocks.scroll_relative(y=step, animate=False, immediate=True)

    def action_move(self, how: str) -> None:
        self.scroll_by(how)

    def action_end(self) -> None:
        self.following, self._reveal, self._anchor = True, None, None
        if self.window.hi < self.model.end:
            self.window = windowing.tail(self.model.first, self.model.end, self._weigh, self._limits)
        self.blocks.anchor()
        self._scheduled = True
        self.call_later(self.reconcile)

    async def action_top(self) -> None:
        """The oldest loaded block; from there, the page before it."""
        if self.window.lo <= self.model.first and self.blocks.scroll_y <= 0 and self.model.more:
            await self._load_older()
        if self.model.items:
            self.reveal(self.model.first)

    def reveal(self, position: int) -> None:
        """Bring the block at `position` into view and put the cursor on it."""
        item = self.model.at(position)
        self.cursor, self._reveal = item.key, item.key
        self.following = False
        self.blocks.anchor(False)
        if position not in self.window:
            self.window = windowing.around(position, self.model.first, self.model.end, self._weigh, self._limits)
        self._scheduled = True
        self.call_later(self.reconcile)

    def stay_on(self, key: str) -> None:
        """After the next layout, have the block in view, whatever grew; follow again only if the end is in view."""
        self._reveal, self._moving = key, True
        self.following = False
        self.blocks.anchor(False)
        self._edges()
        self.call_after_refresh(self._settle, None)

    # --- what tests and the app ask --------------------------------------------------------------------------------
    @property
    def mounted(self) -> list[str]:
        """Keys of the mounted blocks, top to bottom."""
        return self.blocks.mounted

    @property
    def nodes(self) -> int:
        """Mounted widgets in the list of blocks."""
        return sum(1 for _ in self.blocks.walk_children())

    def pending_action(self) -> str:
        """The follow-up ("retry") that the newest notice offers, "" when something else came after it."""
        last = next(reversed(self.model.items), None)
        return last.action if isinstance(last, NoticeItem) else ""
