"""Help for the focused pane, and for everything."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import ModalScreen

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS

HelpRow = tuple[str, str, str]
"""(keys, title, help); a row with no keys and no help is a heading."""


class HelpScreen(ModalScreen[None]):
    """Keys and what they do, as scrollable text."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(self, title: str, rows: Sequence[HelpRow]) -> None:
        super().__init__()
        self.heading = title
        self.rows = tuple(rows)
