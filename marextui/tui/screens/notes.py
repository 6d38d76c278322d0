"""Pages and trackers of the project: look, open, make, change, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from marextui.engine.event_values import MemoryReport
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.text import line

Kind = Literal["page", "tracker"]

NOTHING = (
    "No pages and no trackers yet. A page holds what should be known in every conversation of this project: the model "
    "is told its title and reads it when needed. A tracker is one value, such as a weight or a version."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do, and with what; `name` "" for something new."""

    what: Literal["open", "edit", "delete"]
    kind: Kind
    name: str = ""

    @property
    def id(self) -> str:
        return f"{self.kind} {self.name}"


class NotesScreen(ModalScreen[Choice | None]):
    """Dismisses with a `Choice`, None when closed. `current` ("page build") is highlighted at first."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "notes")]
    AUTO_FOCUS = "OptionList"

    DEFAULT_CSS = """
    NotesScreen { align: center middle; }
    NotesScreen > Vertical {
        width: 90%; max-width: 100; height: auto; max-height: 90%;
        border: round $border; padding: 0 1; background: $surface;
    }
    NotesScreen OptionList {
        height: auto; border: none; padding: 0; background: $surface;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    NotesScreen OptionList:focus { border: none; }
    NotesScreen Static { height: auto; color: $text-muted; }
    """

    def __init__(self, report: MemoryReport, *, keys: str, current: str = "") -> None:
        super().__init__()
        self._report = report
        self._keys = keys
        self._current = current

    def compose(self) -> ComposeResult:
        pages, trackers = len(self._report.pages), len(self._report.trackers)
        with Vertical() as frame:
            frame.border_title = Content(f"Pages: {pages}   Trackers: {trackers}")
            yield OptionList(*self._options(), markup=False)
            empty = not (pages or trackers)
            yield Static(Content(f"{self._keys}\n{NOTHING}" if empty else self._keys), markup=False)

    def _options(self) -> list[Option]:
        pages = [
            Option(
                Content.assemble((line(p.title, 60).plain, "bold"), "  ", line(p.hook, 120), f"  ({p.name}.md)"),
                id=f"page {p.name}",
            )
            for p in self._report.pages
        ]
        trackers = [
            Option(
                Content.assemble(
                    (line(t.slug, 60).plain, "bold"),
                    "  ",
                    line(f"{t.value} {t.unit}".strip(), 100),
                    *(("  ", line(f"({t.date})", 30)) if t.date else ()),
                ),
                id=f"tracker {t.slug}",
            )
            for t in self._report.trackers
        ]
        return [*pages, *trackers]

    def on_resize(self) -> None:
        self.query_one(OptionList).styles.max_height = max(2, self.size.height * 9 // 10 - 6)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        if options.option_count:
            ids = [option.id for option in options.options]
            options.highlighted = ids.index(self._current) if self._current in ids else 0

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_choose("open")

    def action_choose(self, what: Literal["open", "edit", "delete"]) -> None:
        highlighted = self.query_one(OptionList).highlighted_option
        if highlighted is not None and highlighted.id:
            kind, _, name = highlighted.id.partition(" ")
            self.dismiss(Choice(what, "page" if kind == "page" else "tracker", name))

    def action_new(self, kind: Kind) -> None:
        self.dismiss(Choice("edit", kind))

    def action_cancel(self) -> None:
        self.dismiss(None)
