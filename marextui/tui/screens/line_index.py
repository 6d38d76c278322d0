"""Where the rows of a long text are, without working on the whole of it.

The text is cut into *pieces*: lines, and of a very long line slices of `PIECE` characters. Rows are counted in blocks:
the height of a block is estimated from lengths and measured when it comes into view, so that opening, resizing and
jumping cost the same whatever is in the text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len, chop_cells

from marextui.context.sanitise import sanitise

PIECE = 2000
"""Characters; a longer line is shown as several pieces."""

BLOCK = 256
"""Pieces measured together."""

CACHE = 512
"""Sanitised pieces remembered."""


class LineIndex:
    """Pieces of a text and where their rows are, for one width (cells; 0: not wrapped). Pure but for its caches."""

    def __init__(self, text: str, width: int = 0) -> None:
        self.text = text
        raw = text.split("\n")
        if len(raw) > 1 and not raw[-1]:
            raw.pop()  # a final newline ends the last line, it does not start another
        self._end = len(text) - (1 if text.endswith("\n") else 0)
        self.lines = len(raw)
        if max(map(len, raw)) <= PIECE:
            self.pieces: list[str] = raw
            self.numbers: Sequence[int] = range(self.lines)
            self.starts = list(accumulate((len(piece) + 1 for piece in raw[:-1]), initial=0))
        else:
            self._cut(raw)
        self.sanitised = 0
        """How many pieces were worked on so far (tests count this)."""
        self._shown: OrderedDict[int, list[str]] = OrderedDict()
        self.widest = 0
        self.set_width(width)

    def _cut(self, raw: list[str]) -> None:
        pieces: list[str] = []
        numbers: list[int] = []
        starts: list[int] = []
        at = 0
        for number, line in enumerate(raw):
            for k in range(0, max(1, len(line)), PIECE):
                pieces.append(line[k : k + PIECE])
                numbers.append(number)
                starts.append(at + k)
            at += len(line) + 1
        self.pieces, self.numbers, self.starts = pieces, numbers, starts

    def set_width(self, width: int) -> None:
        """Forget all rows and lay out for `width` cells, 0 for no wrapping."""
        self.width = width
        if width:
            rows = [1 if len(p) <= width else -(-len(p) // width) for p in self.pieces]
        else:
            rows = [1] * len(self.pieces)
        self._heights = [sum(rows[k : k + BLOCK]) for k in range(0, len(rows), BLOCK)]
        self._inside: dict[int, list[int]] = {}
        self._offsets = list(accumulate(self._heights, initial=0))

    @property
    def height(self) -> int:
        """Rows of the whole text: exact for the blocks seen so far, an estimate for the others."""
        return self._offsets[-1]

    def shown(self, piece: int) -> list[str]:
        """The display lines of a piece: sanitised, tabs expanded; more than one where it holds other line ends."""
        if piece in self._shown:
            self._shown.move_to_end(piece)
            return self._shown[piece]
        self.sanitised += 1
        display = sanitise(self.pieces[piece].rstrip("\r"), collapse_progress=False).split("\n")
        self._shown[piece] = display
        if len(self._shown) > CACHE:
            self._shown.popitem(last=False)
        return display

    def cuts(self, display: str) -> list[tuple[int, int]]:
        """Where a display line is wrapped: (start, end) of each row, in characters."""
        if not self.width or not display:
            return [(0, len(display))]
        if display.isascii():
            return [(k, min(k + self.width, len(display))) for k in range(0, len(display), self.width)]
        ends = list(accumulate(len(part) for part in chop_cells(display, max(2, self.width))))
        if not ends or ends[-1] < len(display):  # nothing but marks without a width
            ends = [*ends[:-1], len(display)]
        return list(zip([0, *ends[:-1]], ends, strict=True))

    def rows(self, piece: int) -> list[tuple[str, int, int]]:
        """(display line, start, end) of each row of a piece."""
        return [(display, start, end) for display in self.shown(piece) for start, end in self.cuts(display)]

    def _measure(self, block: int) -> list[int]:
        """Where each piece of the block begins in it, in rows; the first call makes the block's height exact."""
        if block in self._inside:
            return self._inside[block]
        heights = []
        for piece in range(block * BLOCK, min(len(self.pieces), (block + 1) * BLOCK)):
            raw = self.pieces[piece]
            if raw.isascii() and raw.isprintable():
                heights.append(1 if not self.width or len(raw) <= self.width else -(-len(raw) // self.width))
                self.widest = max(self.widest, len(raw))
            else:
                shown = self.shown(piece)
                self.widest = max(self.widest, *map(cell_len, shown))
                heights.append(sum(len(self.cuts(display)) for display in shown))
        inside = list(accumulate(heights, initial=0))
        self._inside[block] = inside
        if inside[-1] != self._heights[block]:
            self._heights[block] = inside[-1]
            self._offsets = list(accumulate(self._heights, initial=0))
        return inside

    def at(self, row: int) -> tuple[int, int] | None:
        """(piece, row in the piece) at a row of the whole text; None beyond its ends."""
        while 0 <= row < self.height:
            block = bisect_right(self._offsets, row) - 1
            inside = self._measure(block)
            local = row - self._offsets[block]
            if local < inside[-1]:
                at = bisect_right(inside, local) - 1
                return block * BLOCK + at, local - inside[at]
        return None

    def span(self, piece: int) -> tuple[int, int]:
        """(first row, row after the last) of a piece."""
        block, at = divmod(piece, BLOCK)
        inside = self._measure(block)
        return self._offsets[block] + inside[at], self._offsets[block] + inside[at + 1]

    def piece_at(self, offset: int) -> int:
        """The piece that holds the character `offset` of the text."""
        return max(0, bisect_right(self.starts, offset) - 1)

    def first_of(self, number: int) -> int:
        """The first piece of a line, counted from 0; the last line's when there are not so many."""
        number = max(0, min(number, self.lines - 1))
        return bisect_left(self.numbers, number)

    def line_text(self, first: int, last: int) -> str:
        """Raw text of the lines that the pieces `first`..`last` belong to."""
        begin = self.starts[self.first_of(self.numbers[first])]
        number = self.numbers[last] + 1
        end = self.starts[self.first_of(number)] - 1 if number < self.lines else self._end
        return self.text[begin:end]
