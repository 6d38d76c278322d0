"""What an answer is made of: lines that know their indentation, tables and rules that become lines for a width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

from textual.content import Content

from marextui.tui.markdown.wrapping import cell_breaks, column_widths, word_breaks

EMPTY = Content("")
Align = Literal["left", "center", "right"]


class Piece(Protocol):
    """A part of a document that is laid out by itself."""

    def within(self, first: Content, rest: Content) -> Self:
        """The piece behind `first` on its first row and behind `rest` (as wide) on the others."""
        ...

    def lines(self, width: int) -> Sequence[Line]: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text that may wrap. `first` stands before its first row (a bullet), `rest` before the others.

    `code` breaks anywhere and has the style `fill` over its whole width.
    """

    text: Content
    first: Content = EMPTY
    rest: Content = EMPTY
    code: bool = False
    fill: str = ""

    def within(self, first: Content, rest: Content) -> Self:
        return replace(self, first=first + self.first, rest=rest + self.rest)

    def lines(self, width: int) -> Sequence[Line]:
        return (self,)

    def breaks(self, width: int) -> list[int]:
        """Positions in `text` at which its further rows begin."""
        room = max(1, width - self.first.cell_length)
        return (cell_breaks if self.code else word_breaks)(self.text.plain, room)

    @property
    def plain(self) -> str:
        """The line as it is copied."""
        return self.first.plain + self.text.plain


BLANK = Line(EMPTY)


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal line from edge to edge."""

    glyph: str
    first: Content = EMPTY
    rest: Content = EMPTY

    def within(self, first: Content, rest: Content) -> Self:
        return replace(self, first=first + self.first, rest=rest + self.rest)

    def lines(self, width: int) -> Sequence[Line]:
        room = max(1, width - self.first.cell_length)
        return (Line(Content.styled(self.glyph * room, "$secondary"), self.first, self.rest),)


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose columns share the width; cells wrap. `rows[0]` is the header; `across` and `between` are glyphs."""

    rows: tuple[tuple[Content, ...], ...]
    aligns: tuple[Align, ...]
    across: str
    between: str
    crossing: str
    first: Content = EMPTY
    rest: Content = EMPTY

    def within(self, first: Content, rest: Content) -> Self:
        return replace(self, first=first + self.first, rest=rest + self.rest)

    def lines(self, width: int) -> Sequence[Line]:
        count = len(self.aligns)
        room = max(1, width - self.first.cell_length) - 3 * (count - 1)
        cells = [[row[i] if i < len(row) else EMPTY for row in self.rows] for i in range(count)]
        natural = [max([1, *(c.cell_length for c in column)]) for column in cells]
        least = [min(n, 4) for n in natural]
        widths = column_widths(natural, least, room)
        out: list[Line] = []
        for number, row in enumerate(zip(*cells, strict=True)):
            for text in self._row(row, widths):
                out.append(Line(text, self.rest if out else self.first, self.rest))
            if number == 0:
                between = f"{self.across}{self.crossing}{self.across}".join(self.across * w for w in widths)
                out.append(Line(Content.styled(between, "$foreground 30%"), self.rest, self.rest))
        return out

    def _row(self, cells: Sequence[Content], widths: list[int]) -> Iterator[Content]:
        wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
        separator = Content.styled(f" {self.between} ", "$foreground 30%")
        for n in range(max(map(len, wrapped))):
            parts = [
                _aligned(rows[n] if n < len(rows) else EMPTY, width, align)
                for rows, width, align in zip(wrapped, widths, self.aligns, strict=True)
            ]
            yield separator.join(parts).rstrip()


def _wrapped(cell: Content, width: int) -> list[Content]:
    breaks = word_breaks(cell.plain, width)
    return [row.rstrip() for row in cell.divide(breaks)] if breaks else [cell]


def _aligned(cell: Content, width: int, align: Align) -> Content:
    room = max(0, width - cell.cell_length)
    left = {"left": 0, "center": room // 2, "right": room}[align]
    return Content(" " * left) + cell + Content(" " * (room - left))
