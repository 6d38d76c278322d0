"""Where a line breaks: pure functions of a text and a width in cells."""

from __future__ import annotations

import re

from rich.cells import cell_len

_WORD = re.compile(r"((?:\S|\u00a0)+)[^\S\u00a0]*|[^\S\u00a0]+")
"""A word and the blanks behind it; a no-break space is part of a word."""


def cells_of(text: str) -> int:
    """Width of `text` in cells."""
    return len(text) if text.isascii() else cell_len(text)


def word_breaks(text: str, width: int) -> list[int]:
    """Positions at which the second and further rows of `text` begin, broken at blanks, in a word only when it must be.

    A row without the blanks at its end takes at most `width` cells (a wider single character stands alone).
    """
    if width < 1 or len(text) <= width // 2:
        return []
    if cells_of(text) <= width:
        return []
    out: list[int] = []
    used = 0
    for match in _WORD.finditer(text):
        start, word = match.start(), match[1] or ""
        cells = cells_of(word)
        if used and used + cells > width:
            out.append(start)
            used = 0
        if cells > width:
            inside = [start + at for at in cell_breaks(word, width)]
            out += inside
            start = (inside or [start])[-1]
        used += cells_of(text[start : match.end()])
    return out


def cell_breaks(text: str, width: int) -> list[int]:
    """As `word_breaks`, for text whose blanks matter (code): rows are filled to the last cell."""
    if width < 1 or len(text) <= width // 2:
        return []
    if text.isascii():
        return list(range(width, len(text), width))
    out: list[int] = []
    used = 0
    for at, cells in enumerate(map(cell_len, text)):
        if used and used + cells > width:
            out.append(at)
            used = 0
        used += cells
    return out


def column_widths(natural: list[int], least: list[int], room: int) -> list[int]:
    """Widths of table columns that fit in `room` cells: `natural` ones if they do, else the widest ones give way.

    None gets less than its `least`, even if the table is wider than `room` then.
    """
    widths = list(natural)
    while sum(widths) > room:
        shrinkable = [i for i, w in enumerate(widths) if w > least[i]]
        if not shrinkable:
            break
        widest = max(widths[i] for i in shrinkable)
        columns = [i for i in shrinkable if widths[i] == widest]
        below = max([widths[i] for i in shrinkable if widths[i] < widest] + [least[i] for i in columns])
        step = max(1, min(widest - below, (sum(widths) - room) // len(columns)))
        for i in columns:
            if sum(widths) > room:
                widths[i] = max(least[i], widths[i] - step)
    return widths
