"""A model's answer as a block of the conversation: reasoning, Markdown, and a word when it was cut short."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from marextui.tui import formats
from marextui.tui.glyphs import ASCII, glyphs_of
from marextui.tui.items import AssistantItem
from marextui.tui.panes.cards import DIM, Block, KeyLabel, fold_glyph
from marextui.tui.panes.streaming import AnswerMarkdown, StreamingBody
from marextui.tui.text import plain, safe_markdown
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
        body = plain(text.strip()).stylize(DIM) if expanded else None
        self.update(head if body is None else Content("\n").join([head, body]))
        self.display = bool(text)


class AnswerBlock(Vertical, Block):
    """A model's answer: reasoning line, Markdown, and a word when it was cut short."""

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
        yield ReasoningLine(markup=False)
        if self.finished:
            yield AnswerMarkdown(safe_markdown(str(self.item.text)), ascii_only=glyphs_of(self.app) is ASCII)
        else:
            yield StreamingBody()
        yield Static("", classes="cut-short", markup=False)

    async def on_mount(self) -> None:
        await self.refresh_item()

    async def refresh_item(self) -> None:
        self.version = self.item.version
        self.redraw()
        if self.finished:
            return
        body = self.query_one(StreamingBody)
        if self.item.streaming:
            await body.feed(str(self.item.text))
        else:
            self.finished = True
            await body.finish(str(self.item.text))

    def redraw(self) -> None:
        """The parts besides the text."""
        self.query_one(ReasoningLine).show(self.item, self.expanded)
        cut = self.query_one(".cut-short", Static)
        cut.display = self.item.stopped
        if self.item.stopped:
            cut.update(Content.styled("(interrupted here)", DIM))
