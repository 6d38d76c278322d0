"""A yes-or-no question whose safe answer has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.text import line, plain


class Confirm(ModalScreen[bool]):
    """Dismisses with True only when the person chose `yes`; Esc is False."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "picker")]
    AUTO_FOCUS = "OptionList"

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm > Vertical {
        width: 90%; max-width: 70; height: auto; max-height: 90%;
        border: round $warning; padding: 0 1; background: $surface;
    }
    Confirm Static { height: auto; max-height: 12; }
    Confirm OptionList { height: auto; border: none; padding: 0; background: $surface; margin-top: 1; }
    Confirm OptionList:focus { border: none; }
    """

    def __init__(self, question: str, detail: str = "", *, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self.question = question
        self.detail = detail
        self.yes = yes
        self.no = no

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content("Please confirm")
            yield Static(plain(self.question).stylize("bold"), markup=False)
            if self.detail:
                yield Static(plain(self.detail), markup=False)
            yield OptionList(line(self.no, 60), line(self.yes, 60), markup=False)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index == 1)

    def action_cursor_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_cursor_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

    def action_page(self, pages: int) -> None:
        """Two rows have no pages."""

    def action_cancel(self) -> None:
        self.dismiss(False)
