"""A line-API view of a long text: 200,000 lines open without a stall, because only visible ones are worked on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from marextui.tui.glyphs import glyphs_of, unfiltered
from marextui.tui.screens.line_index import LineIndex

SEARCH_SLICE = 500_000
"""Characters searched per turn of the event loop."""


@dataclass
class _Search:
    """A search on its way: where it goes on, and how many characters are left until it has seen all."""

    at: int
    left: int
    backwards: bool
    wrapped: bool = False


def pattern_of(needle: str) -> re.Pattern[str]:
    """Finds `needle` literally; ignores case unless it holds a capital letter."""
    return re.compile(re.escape(needle), 0 if needle != needle.lower() else re.IGNORECASE)


class LineView(ScrollView, can_focus=True, inherit_bindings=False):
    """Draws a `LineIndex`, with a line cursor, a selection of lines, and search. Bindings are its screen's."""

    DEFAULT_CSS = """
    LineView { height: 1fr; background: $surface; color: $foreground; overflow-x: auto; overflow-y: scroll; }
    LineView > .lines--number { color: $text-secondary; }
    LineView > .lines--cursor { background: $primary-muted; }
    LineView > .lines--selected { background: $secondary-muted; }
    LineView > .lines--match { text-style: reverse; }
    LineView > .lines--added { color: $text-success; }
    LineView > .lines--removed { color: $text-error; }
    LineView > .lines--hunk { color: $text-accent; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--number",
        "lines--cursor",
        "lines--selected",
        "lines--match",
        "lines--added",
        "lines--removed",
        "lines--hunk",
    }

    class Moved(Message):
        """The cursor, the selection or the layout changed."""

    class Searched(Message):
        """A search ended. `found` says whether; `wrapped` that it went past an end of the text."""

        def __init__(self, found: bool, wrapped: bool) -> None:
            super().__init__()
            self.found = found
            self.wrapped = wrapped

    def __init__(
        self, text: str = "", *, language: str = "", numbers: bool = True, cursor: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.index = LineIndex(text)
        self.language = language
        self.numbers = numbers
        self.wrapping = True
        self.show_cursor = cursor
        self.cursor = 0
        self.anchor_piece: int | None = None
        self.pattern: re.Pattern[str] | None = None
        self.match_at: int | None = None
        self.rendered = 0
        """Rows drawn so far (tests count this)."""
        self._search: _Search | None = None
        self._needle = 0

    # --- what is shown

    def set_text(self, text: str, *, language: str = "") -> None:
        """Show another text, from its start."""
        self.index = LineIndex(text)
        self.language = language
        self.cursor, self.anchor_piece, self.pattern, self.match_at, self._search = 0, None, None, None, None
        self._lay_out()
        self.scroll_to(0, 0, animate=False, immediate=True)

    @property
    def gutter_width(self) -> int:
        """Cells left of the text."""
        return (len(str(self.index.lines)) + 2 if self.numbers else 1) if self.show_cursor or self.numbers else 0

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        """Rows for the width at hand; the text at the top stays at the top."""
        room = max(1, self.scrollable_content_region.width - self.gutter_width)
        width = room if self.wrapping else 0
        if width != self.index.width:
            top = self.index.at(self.scroll_offset.y)
            self.index.set_width(width)
            self._fit()
            if top is not None:
                self.scroll_to(y=self.index.span(top[0])[0] + top[1], animate=False, immediate=True)
        self._fit()
        self.refresh()
        self.post_message(self.Moved())

    def _fit(self) -> None:
        """Tell the scrollbars how much there is."""
        width = 0 if self.wrapping else self.gutter_width + self.index.widest
        size = Size(width, self.index.height)
        if size != self.virtual_size:
            self.virtual_size = size

    def toggle_wrap(self) -> None:
        self.wrapping = not self.wrapping
        self.scroll_to(x=0, animate=False, immediate=True)
        self._lay_out()

    def toggle_numbers(self) -> None:
        self.numbers = not self.numbers
        self._lay_out()

    # --- drawing

    def get_line_filters(self) -> Sequence[LineFilter]:
        return unfiltered(super().get_line_filters())

    def render_line(self, y: int) -> Strip:
        self.rendered += 1
        width = self.scrollable_content_region.width
        before = (self.index.height, self.index.widest)
        at = self.index.at(self.scroll_offset.y + y)
        if (self.index.height, self.index.widest) != before:
            self.call_later(self._fit)
        base = self.rich_style
        if at is None:
            return Strip.blank(width, base)
        piece, sub = at
        rows = self.index.rows(piece)
        display, start, end = rows[min(sub, len(rows) - 1)]
        style = base + self._row_style(piece, display)
        gutter = self._gutter(piece, sub, base)
        body = self._row(display, start, end, style)
        room = max(0, width - self.gutter_width)
        shift = 0 if self.wrapping else self.scroll_offset.x
        return Strip([*gutter, *body.crop_extend(shift, shift + room, style)], width).simplify()

    def _row_style(self, piece: int, display: str) -> Style:
        style = Style()
        if self.language == "diff":
            if display.startswith("+"):
                style += self._component("lines--added")
            elif display.startswith("-"):
                style += self._component("lines--removed")
            elif display.startswith("@@"):
                style += self._component("lines--hunk")
        first, last = self.selected
        if self.anchor_piece is not None and first <= piece <= last:
            style += self._component("lines--selected")
        elif self.show_cursor and piece == self.cursor:
            style += self._component("lines--cursor")
        return style

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _gutter(self, piece: int, sub: int, base: Style) -> list[Segment]:
        """Cursor or selection sign and line number: the sign, not only a colour, tells where the cursor is."""
        if not self.gutter_width:
            return []
        glyphs = glyphs_of(self.app)
        first, last = self.selected
        sign = " "
        if self.show_cursor and piece == self.cursor and sub == 0:
            sign = glyphs.cursor
        elif self.anchor_piece is not None and first <= piece <= last:
            sign = glyphs.mark
        text = sign
        if self.numbers:
            number = self.index.numbers[piece]
            is_start = sub == 0 and (piece == 0 or self.index.numbers[piece - 1] != number)
            text += f"{number + 1 if is_start else glyphs.more:>{self.gutter_width - 2}} "
        return [Segment(text, base + self._component("lines--number"))]

    def _row(self, display: str, start: int, end: int, style: Style) -> Strip:
        segments = []
        at = start
        if self.pattern is not None:
            match_style = style + self._component("lines--match")
            for match in self.pattern.finditer(display):
                a, b = max(start, match.start()), min(end, match.end())
                if a < b:
                    segments += [Segment(display[at:a], style), Segment(display[a:b], match_style)]
                    at = b
        segments.append(Segment(display[at:end], style))
        return Strip(segments)

    # --- moving

    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height)

    def go_to_piece(self, piece: int) -> None:
        """Put the cursor on a piece and bring its first row into view, in the middle when it was out of view."""
        self.cursor = max(0, min(piece, len(self.index.pieces) - 1))
        first, after = self.index.span(self.cursor)
        self._fit()
        page, top = self._page(), self.scroll_offset.y
        if not top <= first < top + page:
            one_off = first in (top - 1, top + page)
            target = first - (page - 1 if first >= top + page else 0) if one_off else first - page // 2
            self.scroll_to(y=max(0, target), animate=False, immediate=True)
        elif after > top + page and after - first <= page:
            self.scroll_to(y=after - page, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved())

    def go_to_line(self, number: int) -> None:
        """Put the cursor on a line, counted from 1."""
        self.go_to_piece(self.index.first_of(number - 1))

    def move(self, rows: int) -> None:
        """One row down (1) or up (-1): the cursor goes to the next piece once the end of this one is in view."""
        first, after = self.index.span(self.cursor)
        top, page = self.scroll_offset.y, self._page()
        if (rows > 0 and after > top + page) or (rows < 0 and first < top):
            self.scroll_to(y=top + rows, animate=False, immediate=True)
            self.refresh()
        else:
            self.go_to_piece(self.cursor + rows)

    def move_page(self, pages: int) -> None:
        row = self.index.span(self.cursor)[0] + pages * self._page()
        target = self.index.at(max(0, min(row, self.index.height - 1)))
        self.scroll_to(y=self.scroll_offset.y + pages * self._page(), animate=False, immediate=True)
        self.go_to_piece(target[0] if target else 0)

    def move_sideways(self, cells: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + cells, animate=False, immediate=True)

    def toggle_selection(self) -> None:
        self.anchor_piece = self.cursor if self.anchor_piece is None else None
        self.refresh()
        self.post_message(self.Moved())

    @property
    def selected(self) -> tuple[int, int]:
        """First and last piece of the selection; the cursor's piece when nothing is selected."""
        anchor = self.cursor if self.anchor_piece is None else self.anchor_piece
        return min(anchor, self.cursor), max(anchor, self.cursor)

    def selected_text(self) -> str:
        """Raw text of the selected lines."""
        return self.index.line_text(*self.selected)

    # --- searching

    def search(self, needle: str, *, start: int | None = None) -> None:
        """Look for `needle` from the character `start` (None: the cursor's line) on, around the end if need be.

        At most `SEARCH_SLICE` characters are searched per turn of the loop; a newer search replaces a running one.
        """
        self.pattern = pattern_of(needle) if needle else None
        self._needle = len(needle)
        self._search = None
        self.refresh()
        if self.pattern is not None:
            self._begin(self.index.starts[self.cursor] if start is None else start, backwards=False)

    def search_again(self, *, backwards: bool = False) -> None:
        """The next or previous match of the last search."""
        if self.pattern is None:
            self.post_message(self.Searched(False, False))
            return
        here = self.match_at
        if here is None or self.index.piece_at(here) != self.cursor:
            here = self.index.starts[self.cursor]
            self._begin(here, backwards=backwards)
        else:
            self._begin(here if backwards else here + 1, backwards=backwards)

    def _begin(self, at: int, *, backwards: bool) -> None:
        self._search = _Search(at, len(self.index.text), backwards)
        self._search_on(self._search)

    def _search_on(self, task: _Search) -> None:
        """Search one slice, then leave the loop to others."""
        pattern, text = self.pattern, self.index.text
        if task is not self._search or pattern is None:
            return
        overlap = self._needle - 1
        if task.backwards:
            if task.at <= 0:
                task.at, task.wrapped = len(text), True
            low = max(0, task.at - SEARCH_SLICE)
            found = [m.start() for m in pattern.finditer(text, low, min(len(text), task.at + overlap))]
            hit = max((start for start in found if start < task.at), default=None)
            task.left -= task.at - low
            task.at = low
        else:
            if task.at >= len(text):
                task.at, task.wrapped = 0, True
            high = min(len(text), task.at + SEARCH_SLICE)
            match = pattern.search(text, task.at, min(len(text), high + overlap))
            hit = match.start() if match else None
            task.left -= high - task.at
            task.at = high
        if hit is not None:
            self._search = None
            self.match_at = hit
            self.go_to_piece(self.index.piece_at(hit))
            self.post_message(self.Searched(True, task.wrapped))
        elif task.left <= 0:
            self._search = None
            self.post_message(self.Searched(False, task.wrapped))
        else:
            self.call_next(self._search_on, task)
