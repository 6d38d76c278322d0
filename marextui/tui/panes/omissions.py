"""The omissions browser: every tool output kept on disk, and whether it still stands in the view (M23–M29, M33)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option, OptionDoesNotExist

from marextui.engine.event_values import OmissionInfo
from marextui.tui import formats
from marextui.tui.action_types import bindings_for
from marextui.tui.glyphs import UNICODE, Glyphs, glyphs_of
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import copy_and_tell, ports_of
from marextui.tui.text import line, plain

CHUNK = 100
"""Rows added per turn of the event loop."""

EMPTY = (
    "Nothing stored yet. Long tool outputs are kept here in full. When they grow old, the model sees a short marker "
    "instead, and both you and the model can read the whole text back at any time."
)


WIDE = 66
"""Cells from which the second line of a row is written out in words."""


def row(info: OmissionInfo, now: float, glyphs: Glyphs = UNICODE, *, wide: bool = False) -> Content:
    """Two lines for one omission; `now` in seconds since the epoch. The short form fits 36 cells."""
    # no colours: on the highlighted row they would be hard to read
    where = "in view" if info.in_view else "omitted"
    age = formats.age(now - info.created_at)
    if wide:
        facts = [f" {glyphs.dot} {formats.chars(info.chars)}"]
        if info.stored_chars < info.chars:
            facts.append(f"{formats.chars(info.stored_chars)} of them stored")
        facts += [age if age == "now" else f"{age} old", formats.days(info.days_left)]
        facts.append(f"read back {formats.tokens(info.reads)} time{'' if info.reads == 1 else 's'}")
    else:
        facts = [f" {formats.tokens(info.chars, compact=True)}", age, formats.days(info.days_left, compact=True)]
        facts.append(f"{formats.tokens(info.reads)}{glyphs.times}")
    return Content.assemble(
        line(info.id, 40),
        " ",
        (line(info.tool, 20).plain, "bold"),
        " ",
        line(info.what, 160),
        "\n",
        where,
        f" {glyphs.dot} ".join(facts),
    )


def matches(info: OmissionInfo, query: str) -> bool:
    """Whether every word of `query` stands in the id, tool, request, preview or place; case does not count."""
    where = "in view" if info.in_view else "omitted"
    hay = f"{info.id}\n{info.tool}\n{info.what}\n{info.preview}\n{where}".casefold()
    return all(word in hay for word in query.casefold().split())


class _Rows(OptionList):
    """The rows; one line each never wraps."""

    DEFAULT_CSS = """
    _Rows {
        border: none; padding: 0; height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; scrollbar-size-vertical: 1;
    }
    _Rows:focus { border: none; }
    """


class OmissionsPane(Vertical, can_focus=True):
    """Filter above, rows below, newest first. Copying goes through `ports_of(app)`; opening is posted."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "omissions")]

    DEFAULT_CSS = """
    OmissionsPane {
        height: 1fr; border: round $border-blurred; padding: 0; background: $surface;
        border-title-color: $foreground; border-title-style: bold;
        &:focus, &:focus-within { border: round $border; }
        Input { background: $panel; dock: top; }
        .omissions--empty { height: auto; color: $text-muted; display: none; }
        &.-empty .omissions--empty { display: block; }
        &.-empty _Rows { display: none; }
        &.-none Input { display: none; }
    }
    """

    class Opened(Message):
        """Enter on a row: show the full text of this omission."""

        def __init__(self, omission_id: str) -> None:
            super().__init__()
            self.omission_id = omission_id

    def __init__(self, items: Sequence[OmissionInfo] = (), **kwargs: Any) -> None:
        super().__init__(classes="" if items else "-empty -none", **kwargs)
        self._items: dict[str, OmissionInfo] = {}
        self._pending: list[OmissionInfo] = []
        self._rebuild_due = False
        self._keep = ""
        self._wide = False
        self._take(items)

    def _take(self, items: Sequence[OmissionInfo]) -> None:
        self._items = {i.id: i for i in sorted(items, key=lambda i: i.created_at)}

    def compose(self) -> ComposeResult:
        prompt = Input(placeholder="/ filter", select_on_focus=False, compact=True)
        prompt.cursor_blink = False
        yield _Rows(markup=False)  # first, so that focusing the pane means its rows; the filter is docked above them
        yield prompt
        yield Static(markup=False, classes="omissions--empty")

    def on_mount(self) -> None:
        self._rebuild()

    def on_resize(self) -> None:
        if self._wide != (self.size.width >= WIDE):
            self._wide = not self._wide
            self._rebuild_soon()

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the rows; the pane itself only while it has none."""
        if self.is_mounted and self._rows.option_count:
            self._rows.focus(scroll_visible)
        else:
            super().focus(scroll_visible)
        return self

    # --- what the app calls

    def show(self, items: Sequence[OmissionInfo]) -> None:
        """Replace all rows; newest first."""
        self._take(items)
        self._rebuild_soon()

    def upsert(self, info: OmissionInfo) -> None:
        """Add a row or replace the one with the same id (`OmissionStored`)."""
        known = info.id in self._items
        self._items[info.id] = info
        if known:
            self._pending = [info if p.id == info.id else p for p in self._pending]
            self._redraw(info)
            self._write_title()
        else:
            self._rebuild_soon()

    def mark_read(self, omission_id: str, reads: int) -> None:
        """The new count of reads (`OmissionRead`); an unknown id is ignored."""
        if omission_id in self._items:
            self.upsert(replace(self._items[omission_id], reads=reads))

    def mark_omitted(self, omission_ids: Iterable[str]) -> None:
        """These no longer stand in the view (`OutputsReplaced`)."""
        for omission_id in omission_ids:
            if omission_id in self._items:
                self.upsert(replace(self._items[omission_id], in_view=False))

    # --- rows

    @property
    def _rows(self) -> _Rows:
        return self.query_one(_Rows)

    def _option(self, info: OmissionInfo) -> Option:
        now, wide = ports_of(self.app).clock.now(), self.size.width >= WIDE
        return Option(row(info, now, glyphs_of(self.app), wide=wide), id=info.id)

    def _redraw(self, info: OmissionInfo) -> None:
        if not self.is_mounted:
            return
        try:
            self._rows.replace_option_prompt(info.id, self._option(info).prompt)
        except OptionDoesNotExist:
            pass  # filtered out, or in a chunk still to come

    def _rebuild_soon(self) -> None:
        """Once for a burst of changes."""
        if self.is_mounted and not self._rebuild_due:
            self._rebuild_due = True
            self.call_later(self._rebuild)

    def _rebuild(self) -> None:
        self._rebuild_due = False
        rows = self._rows
        highlighted = rows.highlighted_option
        self._keep = (highlighted.id or "") if highlighted else self._keep
        query = self.query_one(Input).value
        self._pending = [i for i in self._items.values() if matches(i, query)]  # newest last: taken from the end
        shown = len(self._pending)
        rows.clear_options()
        self._write_state(shown, query)
        self._add_chunk()

    def _add_chunk(self) -> None:
        """The next rows; the rest comes after other messages had their turn."""
        rows = self._rows
        chunk, self._pending = self._pending[-CHUNK:], self._pending[:-CHUNK]
        rows.add_options([self._option(info) for info in reversed(chunk)])
        if self._keep and rows.highlighted is None and any(info.id == self._keep for info in chunk):
            rows.highlighted = rows.get_option_index(self._keep)
        if self._pending:
            self.call_later(self._add_chunk)

    def _write_state(self, shown: int, query: str) -> None:
        total = len(self._items)
        self.set_class(shown == 0, "-empty")
        self.set_class(total == 0, "-none")
        self.can_focus = total == 0
        why = EMPTY if total == 0 else "Nothing matches "
        self.query_one(".omissions--empty", Static).update(
            Content(why) if total == 0 else Content.assemble(why, line(query, 60), ". Esc clears the filter.")
        )
        self._write_title(shown if query else None)

    def _write_title(self, shown: int | None = None) -> None:
        total = len(self._items)
        if shown is None and self.is_mounted and self.query_one(Input).value:
            shown = self._rows.option_count + len(self._pending)
        omitted = sum(not i.in_view for i in self._items.values())
        count = f"{total}" if shown is None else f"{shown} of {total}"
        self.border_title = plain(f"Omissions: {count}, {omitted} omitted" if total else "Omissions: none")

    # --- actions

    def on_descendant_focus(self) -> None:
        rows = self._rows
        if rows.has_focus and rows.highlighted is None and rows.option_count:
            rows.highlighted = 0

    @on(Input.Changed)
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self._rebuild_soon()

    @on(Input.Submitted)
    def _go_to_rows(self, event: Input.Submitted) -> None:
        event.stop()
        self._focus_rows()

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id:
            self.post_message(self.Opened(event.option_id))

    def _focus_rows(self) -> None:
        self._rows.focus()

    def action_filter(self) -> None:
        if self._items:
            self.query_one(Input).focus()

    def action_leave_filter(self) -> None:
        self.query_one(Input).value = ""
        self._focus_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc is the pane's only while there is a filter to leave; else it goes up to the app."""
        if action == "leave_filter":
            prompt = self.query_one(Input)
            return bool(prompt.value) or prompt.has_focus
        return True

    async def action_copy_id(self) -> None:
        highlighted = self._rows.highlighted_option
        if highlighted is not None and highlighted.id:
            await copy_and_tell(self.app, highlighted.id, "the id")
