"""The text viewer: search, go to, wrap, copy, pager, editor, over a text of any length."""

from __future__ import annotations

from textual.screen import ModalScreen

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class TextViewer(ModalScreen[None]):
    """Shows `text` (raw; sanitised line by line as it is shown). Copies, pages and edits through `ports_of(app)`.

    `language` "diff" colours added and removed lines; "" and any other value show plain text.
    """

    BINDINGS = [*bindings_for(PANE_ACTIONS, "viewer")]

    def __init__(self, title: str, text: str, *, language: str = "") -> None:
        super().__init__()
        self.heading = title
        self.text = text
        self.language = language
