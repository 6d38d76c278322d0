"""A list to choose from, filtered as the person types; works with no row, one, or many, and with any key (case 27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS

Row = tuple[str, Content]
"""(id, what is shown)."""


class Picker(ModalScreen[str | None]):
    """Dismisses with the id of the chosen row, None when cancelled. The focus stays in the filter."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "picker")]
    AUTO_FOCUS = "Input"

    DEFAULT_CSS = """
    Picker { align: center middle; }
    Picker > Vertical {
        width: 90%; max-width: 100; height: auto; max-height: 90%;
        border: round $border; padding: 0 1; background: $surface;
    }
    Picker OptionList {
        height: auto; border: none; padding: 0; background: $surface;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Picker OptionList:focus { border: none; }
    Picker .picker--note { height: auto; color: $text-muted; }
    """

    def __init__(self, title: str, placeholder: str, empty: str) -> None:
        super().__init__()
        self._title = title
        self._placeholder = placeholder
        self._empty = empty

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(self._title)
            prompt = Input(placeholder=self._placeholder, select_on_focus=False, compact=True)
            prompt.cursor_blink = False
            yield prompt
            yield OptionList(markup=False)
            yield Static(markup=False, classes="picker--note")

    def on_resize(self) -> None:
        # the rows take what the frame, the filter and the note leave
        self.query_one(OptionList).styles.max_height = max(2, self.size.height * 9 // 10 - 5)

    def on_mount(self) -> None:
        self.set_rows(self.rows_for(""), current=self.current_id())

    def rows_for(self, query: str) -> Sequence[Row]:
        """The rows that match what was typed."""
        raise NotImplementedError

    def current_id(self) -> str:
        """The row to highlight at first, "" for the first one."""
        return ""

    def set_rows(self, rows: Sequence[Row], *, current: str = "", note: str = "") -> None:
        """Show these rows; a later one with the id of an earlier one is left out."""
        options = self.query_one(OptionList)
        options.clear_options()
        unique = dict(reversed([*rows]))
        options.add_options([Option(unique.pop(row_id), id=row_id) for row_id, _ in rows if row_id in unique])
        if options.option_count:
            ids = [option.id for option in options.options]
            options.highlighted = ids.index(current) if current in ids else 0
        text = note or ("" if options.option_count else self._nothing())
        self.query_one(".picker--note", Static).update(Content(text or "Enter chooses, Esc closes"))

    def _nothing(self) -> str:
        return "Nothing matches." if self.query_one(Input).value else self._empty

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self.typed(event.value)

    def typed(self, query: str) -> None:
        """The filter changed."""
        self.set_rows(self.rows_for(query))

    @on(Input.Submitted)
    def _choose_highlighted(self, event: Input.Submitted) -> None:
        event.stop()
        highlighted = self.query_one(OptionList).highlighted_option
        if highlighted is not None:
            self.dismiss(highlighted.id)

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_cursor_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_cursor_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()

    def action_page(self, pages: int) -> None:
        options = self.query_one(OptionList)
        if options.option_count:
            row = (options.highlighted or 0) + pages * max(1, options.size.height // 2)
            options.highlighted = max(0, min(row, options.option_count - 1))

    def action_cancel(self) -> None:
        self.dismiss(None)
