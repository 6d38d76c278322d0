"""The completion popup of the composer: commands, files, earlier prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from marextui.tui.text import line

ROWS = 8
ABOVE = 2
"""Rows at the top of the screen that it leaves free."""

Kind = Literal["", "slash", "file", "history"]


class CompletionPopup(OptionList):
    """Opens above the draft. What it offers belongs to one text of the draft: `fits` says whether it still does."""

    def __init__(self) -> None:
        super().__init__(id="popup", markup=False)
        self.can_focus = False
        self.kind: Kind = ""
        self.rows: list[str] = []
        self._offered_for = ""

    def on_mount(self) -> None:
        self.display = False

    def offer(self, kind: Kind, rows: Sequence[tuple[str, str]], draft: str, above: int) -> None:
        """Show (text, detail) rows for the text `draft`; `above` are the screen rows over the draft."""
        self.kind, self._offered_for = kind, draft
        self.rows = [r[0] for r in rows]
        self.clear_options()
        self.add_options(
            Option(Content.assemble(line(name, 100), "  ", line(more, 100).stylize("$foreground-muted")))
            for name, more in rows
        )
        self.highlighted = 0
        shown = max(1, min(len(rows), ROWS, above - ABOVE))
        self.styles.height = shown
        self.styles.offset = (0, -shown)
        self.display = True

    def close(self) -> bool:
        """Hide it; False when it was not open."""
        was = bool(self.kind)
        self.kind, self.rows = "", []
        if was:
            self.display = False
        return was

    def fits(self, draft: str) -> bool:
        """Open, and what it offers is for this very text."""
        return bool(self.kind) and draft == self._offered_for

    @property
    def chosen(self) -> str:
        """The highlighted row; "" when it is closed."""
        return self.rows[self.highlighted or 0] if self.rows else ""
