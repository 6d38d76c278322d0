"""The main screen: panes side by side when it is wide, one at a time when it is narrow. The adapter draws on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from marextui.engine import events as ev
from marextui.engine.economy import CacheState
from marextui.engine.event_values import Gauge, MemoryReport, OmissionInfo, QueuedPrompt
from marextui.tui.action_types import Scope
from marextui.tui.glyphs import ASCII, glyphs_of
from marextui.tui.panes.composer import Composer
from marextui.tui.panes.conversation import Conversation
from marextui.tui.panes.gauge import GaugeLine, GaugePane
from marextui.tui.panes.memory import MemoryPane
from marextui.tui.panes.omissions import OmissionsPane
from marextui.tui.panes.queue import QueuePane
from marextui.tui.panes.statusline import KeyBar, StatusLine
from marextui.tui.screens.permission import PermissionDock
from marextui.tui.screens.search import SearchBar
from marextui.tui.status import Status
from marextui.tui.viewmodel import ViewModel

WIDE = 100
"""Columns from which the panes stand side by side."""

SHORT = 20
"""Rows below which a question takes all the room it can get."""

Pane = Literal["conversation", "gauge", "omissions", "memory"]
PANES: tuple[Pane, ...] = ("conversation", "omissions", "memory", "gauge")


class TabLine(Static):
    """The panes of a narrow screen, with their keys; the shown one stands in brackets."""

    class Chosen(Message):
        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane: Pane = pane

    def __init__(self, key_label: Callable[[str], str]) -> None:
        super().__init__("", id="tabs", markup=False)
        self._key_label = key_label
        self._starts: list[tuple[int, Pane]] = []

    def show(self, shown: Pane) -> None:
        parts: list[Content] = []
        self._starts, at = [], 0
        for pane in PANES:
            name = pane.capitalize()
            label = f"[{name}]" if pane == shown else f" {name} "
            key = f" {self._key_label(f'app.focus_{pane}')}"
            part = Content.assemble((key, "$foreground-muted"), (label, "bold" if pane == shown else ""))
            self._starts.append((at, pane))
            at += part.cell_length
            parts.append(part)
        self.update(Content("").join(parts))

    def offset_of(self, pane: str) -> Offset:
        """Where the name of a pane stands on the screen."""
        start = next((s for s, name in self._starts if name == pane), 0)
        return Offset(self.region.x + start, self.region.y)

    def on_click(self, event: events.Click) -> None:
        hit = [pane for start, pane in self._starts if event.x >= start]
        if hit:
            self.post_message(self.Chosen(hit[-1]))


class MainScreen(Screen[None]):
    """Holds the panes and does what the adapter says; asks the app for everything that needs the engine."""

    class ModelNeeded(Message):
        """Nothing to chat with: show the first-run screen."""

    class Opened(Message):
        """A conversation was opened: load its newest page."""

    class Ready(Message):
        """The draft can be written in."""

    class QueueShown(Message):
        """The queued messages changed."""

    class ProbesAnswered(Message):
        """The model answered `/probe`: show it."""

        def __init__(self, answers: ev.ProbesAnswered) -> None:
            super().__init__()
            self.answers = answers

    class ServerExamined(Message):
        """`/doctor` is through: show what was found."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self,
        model: ViewModel,
        conversation: Conversation,
        composer: Composer,
        status: StatusLine,
        dock: PermissionDock,
        keybar: KeyBar,
        key_label: Callable[[str], str],
    ) -> None:
        super().__init__()
        self.model = model
        self.conversation = conversation
        self.composer = composer
        self.status = status
        self.dock = dock
        self.keybar = keybar
        self.search = SearchBar(key_label, id="search")
        self.queue = QueuePane(key_label)
        self.gauge = GaugePane(id="gauge")
        self.gauge_line = GaugeLine(id="gauge-line")
        self.omissions = OmissionsPane(id="omissions")
        self.memory = MemoryPane(id="memory")
        self.tabs = TabLine(key_label)
        self.side = Vertical(id="side")
        self.narrow: bool | None = None
        self.tight = False
        """The screen is short and something is asked: only what it takes to answer and to write is shown."""
        self.shown: Pane = "conversation"

    def compose(self) -> ComposeResult:
        self.set_class(glyphs_of(self.app) is ASCII, "-ascii")
        yield self.tabs
        yield self.gauge_line
        with Horizontal(id="body"):
            yield self.conversation
            with self.side:
                yield self.gauge
                yield self.omissions
                yield self.memory
        yield self.queue
        yield self.composer
        yield self.status
        yield self.keybar

    def on_mount(self) -> None:
        self._lay_out(self.app.size.width)
        self.to_draft()
        self.post_message(self.Ready())
        self.call_after_refresh(self._mount_hidden)

    async def _mount_hidden(self) -> None:
        """What is not seen at first is made behind the first paint."""
        if not self.is_attached:  # left before it was whole
            return
        from marextui.tui.toasts import ToastRoom

        searching = self.mount(self.search, before=self.queue)
        asking = self.mount(self.dock, after=self.queue)
        below = (self.search, self.queue, self.dock, self.composer, self.composer.popup)
        ToastRoom(self, below, (self.tabs, self.gauge_line), lambda: 0 if self.narrow else self.side.size.width)
        await searching
        await asking

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width)
        self._tighten(event.size.height)

    # --- layout ----------------------------------------------------------------------------------------------------
    def _lay_out(self, width: int) -> None:
        narrow = width < WIDE
        if narrow != self.narrow:
            self.narrow = narrow
            self._arrange()
        if not narrow:
            self.side.styles.width = min(46, max(38, width // 3))

    def _tighten(self, height: int) -> None:
        tight = height < SHORT and self.dock.current is not None
        if tight != self.tight:
            self.tight = tight
            self.keybar.display = not tight
            self.queue.styles.max_height = 0 if tight else None
            self.composer.tighten(tight)
            self.dock.set_class(tight, "-tight")
            self._arrange()

    def _arrange(self) -> None:
        """Show what the size allows; widgets are hidden by themselves, so nothing else is restyled."""
        narrow = bool(self.narrow)
        self.tabs.display = self.gauge_line.display = narrow and not self.tight
        self.conversation.display = not narrow or self.shown == "conversation"
        self.side.display = not narrow or self.shown != "conversation"
        for pane in ("gauge", "omissions", "memory"):
            self.pane(pane).display = not narrow or self.shown == pane
        self.side.set_class(narrow, "-narrow")
        if narrow:
            self.side.styles.width = "1fr"
            self.tabs.show(self.shown)

    def pane(self, name: str) -> Widget:
        """The widget of a pane."""
        widgets: dict[str, Widget] = {
            "conversation": self.conversation,
            "gauge": self.gauge,
            "omissions": self.omissions,
            "memory": self.memory,
        }
        return widgets[name]

    def go_to(self, name: Pane) -> None:
        """Show and focus a pane."""
        self.shown = name
        if self.narrow:
            self._arrange()
        pane = self.pane(name)
        target = pane if pane.can_focus else next((w for w in pane.query("*") if w.focusable), None)
        if target is not None:
            target.focus(scroll_visible=False)

    def to_draft(self, text: str = "") -> None:
        """Make the draft the focus at once, so that the very next key is written there, and put `text` into it."""
        self.set_focus(self.composer.draft, scroll_visible=False)
        if text:
            self.composer.insert(text)

    def on_tab_line_chosen(self, event: TabLine.Chosen) -> None:
        self.go_to(event.pane)

    def scope(self) -> Scope:
        """The scope whose keys work now."""
        scopes: tuple[tuple[Widget, Scope], ...] = (
            (self.composer, "composer"),
            (self.conversation, "conversation"),
            (self.gauge, "gauge"),
            (self.omissions, "omissions"),
            (self.memory, "memory"),
            (self.dock, "permission"),
        )
        ancestors = self.focused.ancestors_with_self if self.focused is not None else ()
        return next((scope for widget, scope in scopes if widget in ancestors), "app")

    def on_descendant_focus(self) -> None:
        scope = self.scope()
        if scope != self.keybar.scope:
            self.keybar.show(scope)
        if scope == "composer" and self.narrow and self.shown != "conversation":
            self.shown = "conversation"
            self._arrange()

    # --- ScreenView ------------------------------------------------------------------------------------------------
    def conversation_reset(self) -> None:
        self.conversation.reset()

    def conversation_changed(self) -> None:
        self.conversation.touch()

    def show_title(self, title: str) -> None:
        self.app.sub_title = title

    def show_status(self, status: Status) -> None:
        self.status.show(status)

    def show_queue(self, items: tuple[QueuedPrompt, ...]) -> None:
        self.queue.show(items)
        self.post_message(self.QueueShown())

    def show_gauge(self, gauge: Gauge) -> None:
        self.gauge.show(gauge)
        self.gauge_line.show(gauge)

    def show_cache(self, cache: CacheState) -> None:
        self.gauge.show_cache(cache)

    def show_prewarm(self, prewarm: ev.PrewarmChanged) -> None:
        self.gauge.show_prewarm(prewarm)

    def show_memory(self, report: MemoryReport) -> None:
        self.memory.show(report)

    def show_omissions(self, items: Sequence[OmissionInfo]) -> None:
        self.omissions.show(items)

    def omission_stored(self, info: OmissionInfo) -> None:
        self.omissions.upsert(info)

    def omission_read(self, omission_id: str, reads: int) -> None:
        self.omissions.mark_read(omission_id, reads)

    def outputs_omitted(self, omission_ids: Sequence[str]) -> None:
        self.omissions.mark_omitted(omission_ids)

    def ask_permission(self, request: ev.PermissionAsked) -> None:
        self.dock.ask(request)
        self._tighten(self.size.height)

    def settle_permission(self, request_id: str) -> None:
        self.dock.settle(request_id)
        self._tighten(self.size.height)

    def probes_answered(self, answers: ev.ProbesAnswered) -> None:
        self.post_message(self.ProbesAnswered(answers))

    def server_examined(self, text: str) -> None:
        self.post_message(self.ServerExamined(text))

    def model_needed(self) -> None:
        self.post_message(self.ModelNeeded())

    def opened(self) -> None:
        self.post_message(self.Opened())
