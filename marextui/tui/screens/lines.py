"""A line-API view of a long text: 200,000 lines open without a stall because only visible ones are worked on."""

from __future__ import annotations

from typing import Any

from textual.scroll_view import ScrollView


class LineView(ScrollView, can_focus=True):
    """See `TextViewer`."""

    def __init__(self, text: str, *, language: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text = text
