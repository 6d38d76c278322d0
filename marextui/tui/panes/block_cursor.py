"""The cursor of the conversation: the block that keys and clicks act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.containers import Vertical
from textual.message import Message

from marextui.tui.items import AssistantItem, Item, TurnItem
from marextui.tui.panes.block_list import BlockList
from marextui.tui.panes.cards import Card, expandable, hidden, opens_at_once
from marextui.tui.viewmodel import ViewModel
from marextui.tui.windowing import Window

if TYPE_CHECKING:
    from marextui.tui.panes.markdown import MarkdownView


class BlockCursor(Vertical):
    """What of `panes.conversation.Conversation`, which is one, concerns single blocks."""

    model: ViewModel
    window: Window
    blocks: BlockList
    cursor: str | None = None
    """Key of the block that keys act on, None: none."""

    class OpenRequested(Message, namespace="conversation"):
        """Show this block in full: "viewer", "editor" or "pager"."""

        def __init__(self, item: Item, how: str) -> None:
            super().__init__()
            self.item = item
            self.how = how

    class CopyRequested(Message, namespace="conversation"):
        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    class LinkClicked(Message, namespace="conversation"):
        """A link in an answer was clicked; nothing was opened."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    # --- what the conversation does --------------------------------------------------------------------------------
    async def action_top(self) -> None:
        raise NotImplementedError

    def action_end(self) -> None:
        raise NotImplementedError

    def reveal(self, position: int) -> None:
        """Bring the block at `position` into view and put the cursor on it."""
        raise NotImplementedError

    def stay_on(self, key: str) -> None:
        """Keep the block in view, whatever grew."""
        raise NotImplementedError

    # --- keys ------------------------------------------------------------------------------------------------------
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
        self.blocks.expanded ^= {item.key}
        block = self.blocks.blocks.get(item.key)
        if block is not None:
            block.expanded = item.key in self.blocks.expanded
            block.redraw()
            self.stay_on(item.key)

    def action_open(self) -> None:
        """Expand; an expanded block with something still hidden opens in full, any other folds.

        A compaction opens at once: its diff is what people want of it.
        """
        item = self.current()
        if item is None:
            self.action_previous()
        elif expandable(item) and not (hidden(item) and (item.key in self.blocks.expanded or opens_at_once(item))):
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
        block = self.blocks.block_of(event.widget)
        if block is not None:
            again = self.cursor == block.item.key
            self.cursor = block.item.key
            self.blocks.mark(self.cursor)
            if isinstance(block, Card) or event.y == 0:
                if again and hidden(block.item) and block.expanded:
                    self.action_open()
                else:
                    self.action_fold()

    def on_markdown_view_link_clicked(self, event: MarkdownView.LinkClicked) -> None:
        event.stop()
        self.post_message(self.LinkClicked(event.href))
