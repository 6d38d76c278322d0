"""The text viewer: search, go to, wrap, copy, pager, editor, over a text of any length."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from marextui.tui import formats
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import copy_and_tell, ports_of
from marextui.tui.screens.lines import LineView
from marextui.tui.text import copyable, line


class TextViewer(ModalScreen[None]):
    """Shows `text` (raw; sanitised line by line as it is shown). Copies, pages and edits through `ports_of(app)`.

    `language` "diff" colours added and removed lines; any other value shows plain text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "viewer")]
    AUTO_FOCUS = "LineView"

    DEFAULT_CSS = """
    TextViewer { align: center middle; }
    TextViewer > Vertical { width: 100%; height: 100%; border: round $border; padding: 0; background: $surface; }
    TextViewer .viewer--status {
        height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis;
    }
    TextViewer Input { padding: 0 1; display: none; }
    TextViewer Input.-asking { display: block; }
    """

    def __init__(self, title: str, text: str, *, language: str = "") -> None:
        super().__init__()
        self.heading = title
        self.text = text
        self.view = LineView(text, language=language)
        self._asking: Literal["", "search", "goto"] = ""
        self._origin = 0
        self._note = ""

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = line(self.heading, 120)
            yield self.view
            yield Static(markup=False, classes="viewer--status", id="viewer-status")
            prompt = Input(id="viewer-prompt", select_on_focus=False, compact=True)
            prompt.cursor_blink = False
            yield prompt
            yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._tell()

    # --- the status row

    def _tell(self, note: str | None = None) -> None:
        if note is not None:
            self._note = note
        index, view = self.view.index, self.view
        parts = [f"line {formats.tokens(index.numbers[view.cursor] + 1)} of {formats.tokens(index.lines)}"]
        parts.append(formats.chars(len(self.text)))
        if view.anchor_piece is not None:
            first, last = (index.numbers[p] for p in view.selected)
            parts.append(f"{formats.tokens(last - first + 1)} selected")
        parts.append("wrapped" if view.wrapping else "not wrapped")
        if not self.text:
            parts = ["empty text"]
        if self._note:
            parts.append(self._note)
        self.query_one("#viewer-status", Static).update(Content(" · ".join(parts)))

    def on_line_view_moved(self) -> None:
        self._tell()

    def on_line_view_searched(self, event: LineView.Searched) -> None:
        if not event.found:
            self._tell("not found" if self.view.pattern is not None else "press / to search first")
        else:
            self._tell("found, search went around the end" if event.wrapped else "found")

    # --- the prompt

    def _ask(self, kind: Literal["search", "goto"]) -> None:
        self._asking = kind
        self._origin = self.view.index.starts[self.view.cursor]
        prompt = self.query_one(Input)
        with prompt.prevent(Input.Changed):
            prompt.value = ""
        prompt.placeholder = "Find (a capital letter makes case count)" if kind == "search" else "Line number"
        prompt.add_class("-asking")
        prompt.focus()

    def _stop_asking(self) -> None:
        self._asking = ""
        self.query_one(Input).remove_class("-asking")
        self.view.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._asking == "search":
            self._tell("")
            self.view.search(event.value, start=self._origin)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._asking == "goto":
            number = event.value.strip().lstrip(":")
            if number.isdecimal() and len(number) < 12:
                self.view.go_to_line(int(number))
                self._tell("")
            elif number:
                self._tell("that is not a line number")
        self._stop_asking()

    # --- actions

    def action_search(self) -> None:
        self._ask("search")

    def action_goto(self) -> None:
        self._ask("goto")

    def action_next_match(self) -> None:
        self.view.search_again()

    def action_previous_match(self) -> None:
        self.view.search_again(backwards=True)

    def action_top(self) -> None:
        self.view.go_to_piece(0)

    def action_bottom(self) -> None:
        self.view.go_to_piece(len(self.view.index.pieces) - 1)

    def action_move(self, rows: int) -> None:
        self.view.move(rows)

    def action_page(self, pages: int) -> None:
        self.view.move_page(pages)

    def action_sideways(self, cells: int) -> None:
        self.view.move_sideways(cells)

    def action_select_move(self, rows: int) -> None:
        if self.view.anchor_piece is None:
            self.view.toggle_selection()
        self.view.move(rows)

    def action_toggle_wrap(self) -> None:
        self.view.toggle_wrap()

    def action_toggle_numbers(self) -> None:
        self.view.toggle_numbers()

    def action_toggle_selection(self) -> None:
        self.view.toggle_selection()

    async def action_copy(self) -> None:
        first, last = (self.view.index.numbers[p] for p in self.view.selected)
        what = f"{last - first + 1} lines" if last > first else f"line {first + 1}"
        await copy_and_tell(self.app, copyable(self.view.selected_text()), what)

    async def action_copy_all(self) -> None:
        await copy_and_tell(self.app, copyable(self.text), "the whole text")

    async def action_pager(self) -> None:
        self._complain(await ports_of(self.app).pager.show(self.text, title=self.heading))

    async def action_editor(self) -> None:
        outcome = await ports_of(self.app).editor.edit(copyable(self.text), suffix=".txt")
        if not outcome.problem and outcome.text is not None and outcome.text != copyable(self.text):
            self.notify("The stored text does not change: only your copy in the editor did.", markup=False)
        self._complain(outcome.problem)

    def _complain(self, problem: str) -> None:
        if problem:
            self.notify(problem, severity="error", markup=False)

    def action_close(self) -> None:
        if self._asking:
            self._stop_asking()
        elif self.view.anchor_piece is not None:
            self.view.toggle_selection()
        else:
            self.dismiss(None)
