"""The mounted blocks of the conversation: a scrolling list that knows its blocks by the keys of their items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget

from marextui.tui.items import Item
from marextui.tui.panes.cards import Block, KeyLabel, make_block


@dataclass(frozen=True, slots=True)
class Anchor:
    """The block at the top of the view and how many rows of it are above."""

    key: str
    above: int


class BlockList(VerticalScroll, can_focus=False):
    """Holds the mounted blocks; reports scrolling and size to its conversation. `expanded` are keys of open blocks."""

    virtual_size = Reactive(Size(0, 0), repaint=False)
    """As Textual's, without its second layout of the screen after each layout that changed the height of the blocks."""

    def __init__(self, key_label: KeyLabel, moved: Callable[[float], None], resized: Callable[[], None]) -> None:
        super().__init__(id="blocks")
        self._key_label = key_label
        self._moved = moved
        self._resized = resized
        self.blocks: dict[str, Block] = {}
        self.expanded: set[str] = set()
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

    async def show(self, wanted: Sequence[Item]) -> None:
        """Mount blocks for these items in this order, drawn as they are now, and no others."""
        with self.app.batch_update():
            await self._mount_wanted(wanted)
            for item in wanted:
                block = self.blocks[item.key]
                if block.version != item.version:
                    await block.refresh_item()

    async def _mount_wanted(self, wanted: Sequence[Item]) -> None:
        keys = {i.key for i in wanted}
        gone = [self.blocks.pop(k) for k in list(self.blocks) if k not in keys]
        for item in wanted:
            block = self.blocks.get(item.key)
            if block is not None and (block.item is not item or block.outgrown):
                gone.append(self.blocks.pop(item.key))
        if gone:
            await self.remove_children(gone)
        run: list[Block] = []
        after: Block | None = None
        places: list[Item | None] = [*wanted, None]
        for place in places:
            block = self.blocks.get(place.key) if place is not None else None
            if place is not None and block is None:
                run.append(make_block(place, expanded=place.key in self.expanded, key_label=self._key_label))
                continue
            if run:
                if after is not None:
                    await self.mount_all(run, after=after)
                elif block is not None:
                    await self.mount_all(run, before=block)
                else:
                    await self.mount_all(run)
                self.blocks.update({b.item.key: b for b in run})
                run = []
            after = block

    def mark(self, key: str | None) -> None:
        """Put the cursor on the block of `key` and on no other."""
        for name, block in self.blocks.items():
            if block.has_class("-cursor") != (name == key):
                block.set_class(name == key, "-cursor")

    def first_in_view(self) -> Anchor | None:
        """The block at the top of the view."""
        top = self.scroll_y
        for child in self.children:
            region = child.virtual_region
            if isinstance(child, Block) and region.bottom > top:
                return Anchor(child.item.key, round(top - region.y))
        return None

    def block_of(self, widget: Widget | None) -> Block | None:
        """The block that `widget` is a part of."""
        while widget is not None and widget is not self:
            if isinstance(widget, Block):
                return widget
            parent = widget.parent
            widget = parent if isinstance(parent, Widget) else None
        return None

    @property
    def mounted(self) -> list[str]:
        """Keys of the mounted blocks, top to bottom."""
        return [child.item.key for child in self.children if isinstance(child, Block)]
