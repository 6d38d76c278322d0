"""A few lines to fill in: names and values that are too short for an editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.text import line, plain


class Form(ModalScreen[tuple[str, ...] | None]):
    """Dismisses with what the fields hold, in their order; None when cancelled. Enter goes on, and at the end is done.

    `fields` are (label, text to begin with); the first `required` of them must not be left blank.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "form")]
    AUTO_FOCUS = "Input"

    DEFAULT_CSS = """
    Form { align: center middle; }
    Form > Vertical {
        width: 90%; max-width: 70; height: auto; max-height: 90%;
        border: round $border; padding: 0 1; background: $surface;
    }
    Form Static { height: auto; }
    Form Input { background: $panel; }
    Form .form--note { color: $text-muted; }
    """

    def __init__(self, title: str, fields: Sequence[tuple[str, str]], *, required: int = 1, note: str = "") -> None:
        super().__init__()
        self._title = title
        self._fields = tuple(fields)
        self._required = required
        self._note = note or "Enter goes on, Esc closes"

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = line(self._title, 60)
            for label, text in self._fields:
                yield Static(line(label, 60), markup=False)
                field = Input(line(text, 500).plain, select_on_focus=False, compact=True)
                field.cursor_blink = False
                yield field
            yield Static(plain(self._note), markup=False, classes="form--note")

    def action_go_on(self) -> None:
        """A priority key, so that what is typed right after it already goes to the next field."""
        fields = list(self.query(Input))
        at = next((i for i, field in enumerate(fields) if field.has_focus), len(fields) - 1)
        if at + 1 < len(fields):
            fields[at + 1].focus()
            return
        values = tuple(field.value.strip() for field in fields)
        blank = next((i for i in range(self._required) if not values[i]), None)
        if blank is None:
            self.dismiss(values)
        else:
            self.query_one(".form--note", Static).update(Content(f"{self._fields[blank][0]} must not be blank."))
            fields[blank].focus()

    def action_cancel(self) -> None:
        self.dismiss(None)
