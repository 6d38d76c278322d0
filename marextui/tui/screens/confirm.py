"""A yes-or-no question whose safe answer has the focus."""

from __future__ import annotations

from textual.screen import ModalScreen

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class Confirm(ModalScreen[bool]):
    """Dismisses with True only when the person chose `yes`; Esc is False."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(self, question: str, detail: str = "", *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self.question = question
        self.detail = detail
        self.yes = yes
        self.no = no
