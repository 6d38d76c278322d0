"""Help for the focused pane, and for everything."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from marextui.tui import formats
from marextui.tui.screens.reader import Reader
from marextui.tui.text import line

HelpRow = tuple[str, str, str]
"""(keys as declared or remapped, title, help); a row with no keys and no help is a heading."""


def help_text(rows: Sequence[HelpRow]) -> Content:
    """Headings, and rows with their keys in one column."""
    width = min(22, max((len(formats.keys(keys)) for keys, _, _ in rows), default=0))
    out = []
    for keys, title, text in rows:
        if not keys and not text:
            out += [Content(""), Content.styled(line(title, 80).plain, "bold $text-primary")]
            continue
        key = line(formats.keys(keys), 40).plain
        about = Content.assemble((line(title, 60).plain, "bold"), ": " if text else "", line(text, 300))
        out.append(Content.assemble((f"{key:<{width}}", "$text-accent"), "  ", about))
    if not out:
        return Content("There is nothing to press here.")
    return Content("\n").join(out[1:] if not out[0].plain else out)


class HelpScreen(Reader):
    """Keys and what they do, as scrollable text."""

    def __init__(self, title: str, rows: Sequence[HelpRow]) -> None:
        super().__init__(title)
        self.rows = tuple(rows)

    def content(self) -> Content:
        return help_text(self.rows)
