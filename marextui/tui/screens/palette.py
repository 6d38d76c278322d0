"""The palette: find any action by a few letters and run it. Also picks from any short list (themes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from marextui.tui.action_types import bindings_for
from marextui.tui.completion import score
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.text import line

Row = tuple[str, str, str]
"""(id, title, detail)."""


def _rate(query: str, row: Row) -> int | None:
    """Letters of the title in order, or the very words in the detail; the title counts more."""
    rated = score(query, row[1])
    if rated is None and query.casefold() in row[2].casefold():
        rated = -100
    return rated


class Palette(ModalScreen[str | None]):
    """Dismisses with the id of the chosen row, None when cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(self, title: str, rows: Sequence[Row], *, current: str = "") -> None:
        super().__init__()
        self._title = title
        self._rows = tuple(rows)
        self._current = current

    def compose(self) -> ComposeResult:
        with Vertical(id="palette"):
            yield Static(line(self._title, 60), id="palette-title", markup=False)
            field = Input(placeholder="Type to filter", id="palette-field", compact=True)
            field.cursor_blink = False
            yield field
            rows = OptionList(id="palette-rows", markup=False)
            rows.can_focus = False
            yield rows

    def on_mount(self) -> None:
        self._fill("")
        self.query_one(Input).focus()

    def _fill(self, query: str) -> None:
        rows = self.query_one("#palette-rows", OptionList)
        rated = [(s, i) for i, r in enumerate(self._rows) if (s := _rate(query, r)) is not None]
        if query:
            rated.sort(key=lambda pair: (-pair[0], pair[1]))
        rows.clear_options()
        rows.add_options(
            Option(
                Content.assemble(line(title, 60).stylize("bold"), "  ", line(detail, 100).stylize("$foreground-muted")),
                id=key,
            )
            for key, title, detail in (self._rows[i] for _, i in rated)
        )
        if rated:
            shown = [self._rows[i][0] for _, i in rated]
            rows.highlighted = shown.index(self._current) if not query and self._current in shown else 0

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(event.value.strip())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#palette-rows", OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option.id)

    def action_cursor_down(self) -> None:
        self.query_one("#palette-rows", OptionList).action_cursor_down()

    def action_cursor_up(self) -> None:
        self.query_one("#palette-rows", OptionList).action_cursor_up()

    def action_cancel(self) -> None:
        self.dismiss(None)
