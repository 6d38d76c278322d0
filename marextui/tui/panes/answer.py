"""A model's answer as a block of the conversation: reasoning, Markdown, and a word when it was cut short."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widgets import Static

from marextui.tui import formats
from marextui.tui.glyphs import glyphs_of, said
from marextui.tui.items import AssistantItem
from marextui.tui.panes.cards import DIM, Block, KeyLabel, fold_glyph
from marextui.tui.panes.markdown import MarkdownView
from marextui.tui.text import plain
from marextui.tui.windowing import is_long


class ReasoningLine(Static):
    """The model's thinking: one line until expanded."""

    def show(self, item: AssistantItem, expanded: bool) -> None:
        glyphs = glyphs_of(self.app)
        text = str(item.reasoning)
        mark = fold_glyph(self.app, expanded)
        count = formats.chars(len(text))
        state = "thinking" if item.streaming and not item.text else "reasoning"
        head = Content.styled(f"{mark} {state} {glyphs.dot} {count}", DIM)
        body = said(plain(text.strip()).stylize(DIM)) if expanded else None
        self.update(head if body is None else Content("\n").join([head, body]))


class CutShort(Static):
    """Says that the turn was interrupted while the answer came."""

    def __init__(self) -> None:
        super().__init__(Content.styled("(interrupted here)", DIM), classes="cut-short", markup=False)


class AnswerBlock(Vertical, Block):
    """A model's answer: reasoning line, Markdown, and a word when it was cut short."""

    virtual_size = Reactive(Size(0, 0), repaint=False)
    """No second layout after one that changed our size."""

    def __init__(self, item: AssistantItem, *, expanded: bool, key_label: KeyLabel) -> None:
        super().__init__()
        self.item: AssistantItem = item
        self.expanded = expanded
        self.key_label = key_label
        self.finished = not item.streaming

    @property
    def outgrown(self) -> bool:
        """Streamed, and ended too long for live Markdown: a `LongAnswerCard` takes its place."""
        return not self.finished and not self.item.streaming and is_long(self.item)

    def compose(self) -> ComposeResult:
        if self.item.reasoning:
            yield ReasoningLine(markup=False)
        yield MarkdownView(str(self.item.text) if self.finished else None)
        if self.item.stopped:
            yield CutShort()

    async def on_mount(self) -> None:
        await self.refresh_item()

    async def refresh_item(self) -> None:
        self.version = self.item.version
        if self.item.reasoning and not self.query(ReasoningLine):
            await self.mount(ReasoningLine(markup=False), before=0)
        if self.item.stopped and not self.query(CutShort):
            await self.mount(CutShort())
        self.redraw()
        if self.finished:
            return
        view = self.query_one(MarkdownView)
        if self.item.streaming:
            view.feed(str(self.item.text))
        else:
            self.finished = True
            view.show(str(self.item.text))

    def redraw(self) -> None:
        """The parts besides the text."""
        for line in self.query(ReasoningLine):
            line.show(self.item, self.expanded)
