"""The app: wiring only. Panes and screens draw, `commands` acts, the adapter listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from textual import events, work
from textual.binding import BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen

from marextui.context.sanitise import sanitise
from marextui.engine.api import CannotStart, EngineApi
from marextui.tui.action_types import bindings_for
from marextui.tui.actions import ACTIONS, keymap, slash_commands
from marextui.tui.adapter import Adapter
from marextui.tui.commands import CommandApp
from marextui.tui.glyphs import ASCII, ASCII_FILTER, UNICODE
from marextui.tui.history import PromptHistory
from marextui.tui.items import AssistantItem
from marextui.tui.keyrouting import KeyRouter
from marextui.tui.main_screen import MainScreen
from marextui.tui.panes.composer import Composer
from marextui.tui.panes.conversation import Conversation
from marextui.tui.panes.draft import Draft
from marextui.tui.panes.gauge import GaugePane
from marextui.tui.panes.memory import MemoryPane
from marextui.tui.panes.omissions import OmissionsPane
from marextui.tui.panes.statusline import KeyBar, StatusLine
from marextui.tui.ports import Ports, real_ports
from marextui.tui.screens.permission import PermissionDock
from marextui.tui.screens.search import SearchBar
from marextui.tui.text import line
from marextui.tui.themes import DEFAULT_THEME, load_themes
from marextui.tui.unsent import Unsent
from marextui.tui.viewmodel import ViewModel


class ScreenSettings(Protocol):
    """What the screen reads of `settings.Settings`."""

    @property
    def theme(self) -> str: ...
    @property
    def ascii(self) -> bool: ...
    @property
    def editor(self) -> str: ...
    @property
    def pager(self) -> str: ...
    @property
    def keys(self) -> Mapping[str, str]: ...


class MarexApp(CommandApp):
    """marextui on a terminal.

    `themes_dir` holds the person's own themes, `history_file` their earlier prompts; `problems` are sentences to show
    at the start (wrong settings); `remember(key, value)` saves a setting the person changed on the screen; `interval`
    is the time in seconds between two updates of a streaming answer; `driver_class` reads and writes the terminal;
    `unsent_dir` keeps queued messages and the draft of each conversation.
    """

    CSS_PATH = "app.tcss"
    TITLE = "marextui"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(ACTIONS, "app")]

    def __init__(
        self,
        engine: EngineApi,
        *,
        settings: ScreenSettings,
        ports: Ports | None = None,
        themes_dir: Path | None = None,
        history_file: Path | None = None,
        problems: Sequence[str] = (),
        remember: Callable[[str, str], None] | None = None,
        interval: float = 0.12,
        driver_class: type[Driver] | None = None,
        unsent_dir: Path | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.engine = engine
        self.ports = ports or real_ports(self, editor=settings.editor, pager=settings.pager)
        self.ascii = settings.ascii
        self.glyphs = ASCII if settings.ascii else UNICODE
        self.remember = remember
        self.animation_level = "none"
        self.keys, wrong_keys = keymap(settings.keys)
        self._problems = [*problems, *wrong_keys]
        themes, theme_problems = load_themes(themes_dir)
        self._problems += theme_problems
        for theme in themes:
            self.register_theme(theme)
        self._choose_theme(
            settings.theme, DEFAULT_THEME if any(t.name == DEFAULT_THEME for t in themes) else "textual-dark"
        )
        self.model = ViewModel()
        self.history = PromptHistory(history_file)
        clock = self.ports.clock
        self.main = MainScreen(
            self.model,
            Conversation(
                self.model,
                key_label=self.label,
                load_older=self._load_older,
                monotonic=clock.monotonic,
                interval=interval,
                id="conversation",
            ),
            Composer(self.history, slash_commands(), engine.project_files, id="composer"),
            StatusLine(clock.monotonic, self.label),
            PermissionDock(clock, write=self.write_draft, keys=self.keys, id="permission"),
            KeyBar(ACTIONS, self.keys),
            self.label,
        )
        self.router = KeyRouter(self.main, clock, self.keys, lambda key: self.call_later(self._let_go, key))
        self._early: list[events.Event] | None = []
        """Keys and pastes that came before there was a draft to write them in; None once there is one."""
        self.adapter = Adapter(engine, self.model, self.main)
        self.unsent = Unsent(unsent_dir)
        self.painted = asyncio.Event()
        """Set after the first paint: what is not on it waits for this."""
        self.failure: CannotStart | None = None
        """Why the app left by itself, to be said on the terminal it leaves behind."""

    def _choose_theme(self, wanted: str, fallback: str) -> None:
        if wanted in self.available_themes:
            self.theme = wanted
            return
        self.theme = fallback
        self._problems.append(f"There is no theme {wanted!r}; {fallback} is used. /theme lists them.")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """As Textual's; in ASCII mode what is drawn goes through one more."""
        filters = super().get_line_filters()
        return [*filters, ASCII_FILTER] if self.ascii else filters

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.set_keymap(self.keys)
        self.adapter.start()
        self.set_interval(1.0, self.keep_unsent)
        for problem in self._problems:
            self.notify(problem, severity="warning", timeout=15)
        self._start_engine()
        self._load_history()

    def on_ready(self) -> None:
        self.call_after_refresh(self.painted.set)

    @work(group="engine")
    async def _start_engine(self) -> None:
        try:
            await self.engine.start()
        except CannotStart as problem:
            self.failure = problem
            self.exit(return_code=1)

    @work(group="history")
    async def _load_history(self) -> None:
        await self.history.load()
        self._tell_history_problem()

    def _tell_history_problem(self) -> None:
        if self.history.problem:
            self.notify(self.history.problem, severity="warning")
            self.history.problem = ""

    async def _load_older(self) -> bool:
        return await self.adapter.load_older()

    def on_unmount(self) -> None:
        self.adapter.stop()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """As Textual's, with the text made harmless and never read as markup."""
        super().notify(sanitise(message), title=sanitise(title), severity=severity, timeout=timeout, markup=False)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """The terminal lost the focus: nothing here looks different then, so nothing is restyled (case 3)."""
        event.prevent_default()

    def on_app_focus(self, event: events.AppFocus) -> None:
        event.prevent_default()

    # --- keys, in the order of arrival -----------------------------------------------------------------------------
    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._early is not None:
                self._early.append(event)
                return
            if self.screen is self.main:
                for ready in self.router.take(event):
                    await super().on_event(ready)
                return
        await super().on_event(event)
        if isinstance(event, events.MouseDown) and self.screen is self.main:
            self.router.clicked()

    async def _let_go(self, key: events.Key) -> None:
        """A letter waited in vain for another one."""
        for ready in self.router.overdue(key) if self.screen is self.main else ():
            await super().on_event(ready)

    async def on_main_screen_ready(self) -> None:
        """What was typed before there was a draft is written now, before anything that is typed later."""
        early, self._early = self._early or [], None
        for event in early:
            await self.on_event(event)

    def write_draft(self, text: str) -> None:
        self.main.to_draft(text)

    # --- messages of the panes -------------------------------------------------------------------------------------
    async def on_main_screen_opened(self) -> None:
        await self.adapter.load_tail()
        self.unsent.move_on()
        left = await self.unsent.open(self.model.conversation_id)
        if left:
            self.main.composer.put_before("\n\n".join(left))
            self.notify("What was not sent when this conversation was left is in the draft.")

    def on_main_screen_queue_shown(self) -> None:
        self.keep_unsent()

    def keep_unsent(self) -> None:
        """Queued messages and the draft survive the end of the app, however it ends."""
        texts = [*(p.text for p in self.model.queue), self.main.composer.own_text]
        try:
            self.unsent.keep([t for t in texts if t.strip()])
        except OSError as error:
            self.unsent.close()
            problem = f"What is not sent yet is not kept on disk: {error.strerror or error}."
            self.notify(problem, severity="warning")

    def on_main_screen_model_needed(self) -> None:
        self.first_run()

    def on_main_screen_probes_answered(self, event: MainScreen.ProbesAnswered) -> None:
        self.show_probes(event.answers)

    def on_main_screen_server_examined(self, event: MainScreen.ServerExamined) -> None:
        self.show_examination(event.text)

    def on_draft_typed(self, event: Draft.Typed) -> None:
        self.main.dock.note_typing()

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.engine.submit(event.text)
        self.main.conversation.action_end()
        await self.history.add(event.text)
        self._tell_history_problem()

    async def on_composer_command_given(self, event: Composer.CommandGiven) -> None:
        await self.perform(event.command.action, event.command.argument)

    def on_composer_unknown_command(self, event: Composer.UnknownCommand) -> None:
        unknown = event.unknown
        near = ", ".join(f"/{n}" for n in unknown.near)
        if unknown.excess:
            ways = f" There are: /{unknown.name}, {near}." if near else ""
            what = f"/{unknown.name} takes no {line(unknown.excess, 40).plain!r} after it; nothing was done.{ways}"
        else:
            meant = f" Did you mean {near}?" if near else ""
            what = f"/{unknown.name} is no command; nothing was sent.{meant}"
        self.notify(f"{what} A blank before the slash sends it as text.", severity="warning")

    def on_composer_queued_edited(self, event: Composer.QueuedEdited) -> None:
        if not self.engine.edit_queued(event.prompt_id, event.text):
            self.main.composer.put_before(event.text)
            self.notify("That message was sent already; your change is in the draft.", severity="warning")

    def on_composer_editor_requested(self, event: Composer.EditorRequested) -> None:
        self.edit_draft(event.text)

    def on_conversation_open_requested(self, event: Conversation.OpenRequested) -> None:
        self.open_item(event.item, event.how)

    def on_conversation_copy_requested(self, event: Conversation.CopyRequested) -> None:
        answer = isinstance(event.item, AssistantItem) and event.item.text
        self.copy(event.item.source, "the answer" if answer else "the block")

    def on_conversation_link_clicked(self, event: Conversation.LinkClicked) -> None:
        self.open_link(event.href)

    def on_search_bar_changed(self, event: SearchBar.Changed) -> None:
        matches = self.model.find(event.query)
        self.main.search.show(matches, more=self.model.more)
        if matches:
            self.main.conversation.reveal(matches[-1])

    def on_search_bar_moved(self, event: SearchBar.Moved) -> None:
        self._search_move(event.by)

    def on_gauge_pane_status_requested(self, event: GaugePane.StatusRequested) -> None:
        self.action_status()

    def on_omissions_pane_opened(self, event: OmissionsPane.Opened) -> None:
        self.action_open_omission(event.omission_id)

    def on_memory_pane_edit_requested(self, event: MemoryPane.EditRequested) -> None:
        self.edit_memory(event.path)

    def on_memory_pane_notes_requested(self, event: MemoryPane.NotesRequested) -> None:
        self.action_page()

    def on_memory_pane_clear_requested(self, event: MemoryPane.ClearRequested) -> None:
        self.action_memory_clear()

    def on_permission_dock_answered(self, event: PermissionDock.Answered) -> None:
        self.engine.answer_permission(event.request_id, event.answer, event.reason)

    def on_permission_dock_released(self, event: PermissionDock.Released) -> None:
        self.main.composer.focus_draft()
