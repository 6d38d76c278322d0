"""`/status` (M22): every number about the context, as text."""

from __future__ import annotations

from textual.screen import ModalScreen

from marextui.engine.api import StatusReport
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


def status_text(report: StatusReport) -> str:
    """The report as plain lines; also what the command line prints."""
    raise NotImplementedError


class StatusScreen(ModalScreen[None]):
    """The report, scrollable. Viewing it never enters the conversation (case 48)."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(self, report: StatusReport) -> None:
        super().__init__()
        self.report = report
