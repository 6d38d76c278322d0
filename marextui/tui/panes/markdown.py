"""An answer as one widget: pieces of Markdown, laid out for the width, only the rows in sight drawn."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from rich.segment import Segment
from textual import events, work
from textual.content import Content
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from marextui.context.sanitise import StreamSanitiser, sanitise
from marextui.tui.glyphs import glyphs_of, unfiltered
from marextui.tui.markdown.highlighting import Highlighter, coloured
from marextui.tui.markdown.lines import Line, Piece
from marextui.tui.markdown.parsing import document, parse
from marextui.tui.markdown.stream import Change, MarkdownStream

_HIGHLIGHTER = Highlighter()
"""One for all answers: what scrolls back into view has its colours at once."""


class MarkdownView(Widget):
    """Shows Markdown. `show` takes the whole text; while it is still coming, `feed` takes it so far (both raw)."""

    DEFAULT_CSS = "MarkdownView { width: 1fr; height: auto; padding: 0 2; margin: 0 0 1 0; }"

    virtual_size = Reactive(Size(0, 0), repaint=False)
    """As Textual's, without its second layout of the screen after each layout that changed our size."""

    class LinkClicked(Message):
        """A link was clicked; nothing was opened."""

        def __init__(self, href: str) -> None:
            super().__init__()
            self.href = href

    def __init__(self, text: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.display = False
        self._text = text
        self._stream: MarkdownStream | None = None
        self._sanitiser = StreamSanitiser()
        self._taken = 0
        self._pieces: list[Piece] = []
        self._counts: list[int] = []
        """Lines of each piece at the present width."""
        self._lines: list[Line] = []
        self._breaks: list[list[int]] = []
        self._starts: list[int] = [0]
        """First row of each line, and the number of rows."""
        self._width = 0
        self._strips: dict[int, Strip] = {}
        self._styles: dict[str, Style] = {}
        self.laid_out = 0
        """Lines that were broken into rows so far: tests count work, not time."""

    # --- the text --------------------------------------------------------------------------------------------------
    def on_mount(self) -> None:
        if self._text is not None:
            self.show(self._text)

    def show(self, raw: str) -> None:
        """All of the text, parsed from the start: links defined late are right, what was streamed in parts is whole."""
        self._text, self._stream = raw, None
        pieces = document(parse(sanitise(raw), glyphs_of(self.app), _HIGHLIGHTER))
        self._change(Change(0, tuple(pieces)))
        self._colour()

    def feed(self, raw: str) -> None:
        """Show what is new in `raw` since the last call."""
        if self._stream is None:
            self._stream = MarkdownStream(glyphs_of(self.app), _HIGHLIGHTER)
        piece = self._sanitiser.feed(raw[self._taken :])
        self._taken = len(raw)
        if piece:
            self._change(self._stream.feed(piece))
            self._colour()

    @property
    def parsed(self) -> int:
        """Characters the parser was given while the text came."""
        return self._stream.parsed if self._stream is not None else 0

    def _colour(self) -> None:
        if _HIGHLIGHTER.wanted:
            self._find_colours()

    @work(group="colours", exclusive=True)
    async def _find_colours(self) -> None:
        """Of long code, away from the loop."""
        for key in list(_HIGHLIGHTER.wanted):
            _HIGHLIGHTER.add(key, await asyncio.to_thread(coloured, *key))
        if self._stream is not None:
            change = self._stream.colour()
            if change is not None:
                self._change(change)
        elif self._text is not None:
            pieces = document(parse(sanitise(self._text), glyphs_of(self.app), _HIGHLIGHTER))
            self._change(Change(0, tuple(pieces)))

    # --- layout ----------------------------------------------------------------------------------------------------
    def _change(self, change: Change) -> None:
        """Take in other pieces; what is kept is not laid out again."""
        self._lay_out(self.size.width or self._width)
        keep = change.keep
        line = sum(self._counts[:keep])
        row, rows = self._starts[min(line, len(self._lines))], self._starts[-1]
        self._pieces[keep:] = change.pieces
        self.display = bool(self._pieces)
        self._lay_out_from(keep, line)
        for y in [y for y in self._strips if y >= row]:
            del self._strips[y]
        if self._starts[-1] != rows:
            self.refresh(layout=True)
        elif self._starts[-1] > row:
            self.refresh(Region(0, row, self._width, self._starts[-1] - row))

    def _lay_out(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._lay_out_from(0, 0)
            self._strips.clear()

    def _lay_out_from(self, piece: int, line: int) -> None:
        """Break all lines from `line` on, the first of `piece`, into rows."""
        del self._counts[piece:], self._lines[line:], self._breaks[line:], self._starts[line + 1 :]
        if not self._width:
            return
        for part in self._pieces[piece:]:
            lines = part.lines(self._width)
            self._counts.append(len(lines))
            for text in lines:
                breaks = text.breaks(self._width)
                self._lines.append(text)
                self._breaks.append(breaks)
                self._starts.append(self._starts[-1] + len(breaks) + 1)
            self.laid_out += len(lines)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._lay_out(width)
        return self._starts[-1]

    def render_lines(self, crop: Region) -> list[Strip]:
        # the height for a width it had before may be known already: nobody asked for it then
        self._lay_out(self.size.width)
        return super().render_lines(crop)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What it draws besides the words is ASCII already where it has to be (`tui.markdown.parsing`)."""
        return unfiltered(super().get_line_filters())

    # --- drawing ---------------------------------------------------------------------------------------------------
    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._draw(y)
        return strip

    def _draw(self, y: int) -> Strip:
        base = self.visual_style
        if y >= self._starts[-1]:
            return Strip.blank(self.size.width, base.rich_style)
        number = bisect_right(self._starts, y) - 1
        line, row = self._lines[number], y - self._starts[number]
        cuts = [0, *self._breaks[number], len(line.text)]
        start, end = cuts[row], cuts[row + 1]
        prefix, text = (line.rest if row else line.first), line.text
        before = len(line.first)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(number)) is not None:
            style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            last = len(line.plain) if span[1] == -1 else span[1]
            text = text.stylize(style, max(0, span[0] - before), max(0, last - before))
            if not row:
                prefix = prefix.stylize(style, span[0], last)
        if line.fill:
            base += self._style(line.fill)
        shown = text[start:end]
        if end < len(line.text) and not line.code:
            shown = shown.rstrip()
        segments = self._segments(prefix, base, None if row else (0, number))
        segments += self._segments(shown, base, (before + start, number))
        return Strip(segments).adjust_cell_length(self.size.width, base.rich_style)

    def _style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        known = self._styles.get(style)
        if known is None:
            # the terminal's own 16 colours have no shades: text on a tint of its colour could not be read
            shown = style.partition(" on ")[0] if self.app.native_ansi_color else style
            known = self._styles[style] = Style.parse(shown, self.app.theme_variables)
        return known

    def _segments(self, content: Content, base: Style, offset: tuple[int, int] | None) -> list[Segment]:
        """Text as segments that know where they are in the source of the selection; None: not part of it."""
        out: list[Segment] = []
        x = offset[0] if offset is not None else 0
        for text, own in content.render(base, end="", parse_style=self._style):
            style = base + own
            out.append(Segment(text, style.rich_style_with_offset(x, offset[1]) if offset else style.rich_style))
            x += len(text)
        return out

    # --- selecting and clicking ------------------------------------------------------------------------------------
    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(line.plain for line in self._lines)), "\n"

    @property
    def lines(self) -> Sequence[str]:
        """What is shown, line by line, without soft breaks."""
        return [line.plain for line in self._lines]

    def on_click(self, event: events.Click) -> None:
        href = event.style.meta.get("href")
        if href:
            event.stop()
            self.post_message(self.LinkClicked(str(href)))
