"""Text in columns that wraps under its value, not at the left edge: pure functions of a text and a width in cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual.content import Content

from marextui.tui.markdown.wrapping import word_breaks

_NAME = re.compile(r" *\S.*?(?P<gap> {2,})(?=\S)")
"""The first column of a line, and the blanks up to the next."""


def hanging(text: Content, width: int) -> Content:
    """`text` with lines of at most `width` cells. What does not fit goes on in the column in which its value began.

    Where that leaves too little room it goes on a little to the right of its line, and columns stand closer.
    """
    return Content("\n").join(row for line in text.split("\n", allow_blank=True) for row in _rows(line, width))


def _rows(line: Content, width: int) -> Iterator[Content]:
    if line.cell_length <= width or width < 1:
        yield line
        return
    indent = min(len(line.plain) - len(line.plain.lstrip(" ")) + 2, width // 2)
    name = _NAME.match(line.plain)
    if name is not None and name.end() <= width // 3:
        indent = name.end()
    elif name is not None:
        line = Content("  ").join([line[: name.start("gap")], line[name.end() :]])
    breaks = word_breaks(line.plain, width)
    if not breaks:
        yield line
        return
    yield line[: breaks[0]].rstrip()
    rest = line[breaks[0] :]
    for row in rest.divide(word_breaks(rest.plain, max(1, width - indent))):
        yield Content(" " * indent) + row.rstrip()
