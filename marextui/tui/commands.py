"""What each action of the app does. `tui.app` wires; here commands go to the engine, dialogs come and go.

A dialog is imported when it is opened: nobody waits for it at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from textual import work
from textual.widgets import Input, TextArea

from marextui.tui.action_types import Action
from marextui.tui.actions import ACTIONS, all_key_labels, help_rows, key_label
from marextui.tui.adapter import Adapter
from marextui.tui.context_commands import ContextCommands
from marextui.tui.glyphs import Glyphs
from marextui.tui.main_screen import PANES, MainScreen, Pane
from marextui.tui.open_commands import OpenCommands
from marextui.tui.ports import Ports, copy_and_tell
from marextui.tui.project_commands import ProjectCommands
from marextui.tui.text import line
from marextui.tui.unsent import Unsent
from marextui.tui.viewmodel import ViewModel

KEYS_ONLY = frozenset(
    (
        *("app.palette", "app.escape", "app.copy_or_quit", "search.next", "search.previous", "app.follow"),
        *("app.scroll_up", "app.scroll_down", "app.scroll_page_up", "app.scroll_page_down"),
        *("composer.submit", "composer.newline", "composer.up", "composer.down", "composer.tab"),
        *("conversation.up", "conversation.down"),
    )
)
"""Actions that are nothing without their key; the palette leaves them out."""
QUIT_WINDOW = 3.0
"""Seconds in which the second ctrl+c quits."""


class CommandApp(ContextCommands, OpenCommands, ProjectCommands, inherit_bindings=False):
    """The actions of scope "app". The attributes are set by `tui.app.MarexApp`."""

    main: MainScreen
    unsent: Unsent
    model: ViewModel
    adapter: Adapter
    ports: Ports
    glyphs: Glyphs
    keys: dict[str, str]
    remember: Callable[[str, str], None] | None
    _quit_armed_at: float = -QUIT_WINDOW

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that work whatever has the focus leave dialogs alone; scrolling leaves the side panes their own keys."""
        if action in ("search_next", "search_previous", "queue_edit", "queue_drop"):
            return self.screen is self.main
        if action == "scroll":
            return self.screen is self.main and self.main.scope() in ("composer", "conversation", "app")
        if action == "follow":
            draft = self.main.composer.draft
            away = self.screen is self.main and not self.main.conversation.following
            return away and self.main.scope() == "composer" and draft.cursor_at_end_of_line
        return True

    # --- finding things --------------------------------------------------------------------------------------------
    def label(self, action_id: str) -> str:
        """The key that runs an action now, "/name" or "palette" for one without a key."""
        action = next(a for a in ACTIONS if a.id == action_id)
        return key_label(action, self.keys, ascii_only=self.ascii) or (
            f"/{action.slash}" if action.slash else "palette"
        )

    ascii: bool = False

    def action_help(self) -> None:
        from marextui.tui.screens.help import HelpScreen

        scope = self.main.scope()
        self.push_screen(HelpScreen("Keys and commands", help_rows(scope, self.keys)))

    @work(group="dialog")
    async def action_palette(self) -> None:
        from marextui.tui.screens.palette import Palette

        rows = [(a.id, a.title, "  ".join(w for w in (self._ways(a), a.help) if w)) for a in self._runnable()]
        chosen = await self.push_screen_wait(Palette("Run an action", rows))
        action = next((a for a in ACTIONS if a.id == chosen), None)
        if action is not None:
            await self.perform(action)

    def _runnable(self) -> Iterator[Action]:
        """What makes sense to pick from a list: not the keys that move a cursor or scroll a line."""
        scopes = ("app", "conversation", self.main.scope())
        return (a for a in ACTIONS if a.scope in scopes and a.id not in KEYS_ONLY)

    def _ways(self, action: Action) -> str:
        slash = f"/{action.slash}" if action.slash else ""
        return "  ".join(w for w in (all_key_labels(action, self.keys), slash) if w)

    async def perform(self, action: Action, argument: str = "") -> None:
        """Run an action of the registry, as its key or its slash command would."""
        if action.args and action.scope == "app":
            getattr(self, f"action_{action.method}")(argument)
        elif action.scope == "app":
            await self.run_action(action.method)
        elif action.scope == "composer":
            await self.run_action(action.method, default_namespace=self.main.composer.draft)
        else:
            await self.run_action(action.method, default_namespace=self.main.pane(action.scope))

    @work(group="dialog")
    async def action_jump(self) -> None:
        from marextui.tui.screens.jump import JumpScreen, Target

        targets: list[Target] = []
        places = [*((name, self.main.pane(name)) for name in PANES), ("composer", self.main.composer)]
        for letter, (name, widget) in zip("asdfg", places, strict=True):
            if widget.display and widget.region.area and all(w.display for w in widget.ancestors_with_self[:-1]):
                targets.append((letter, name, widget.region.offset))
            elif self.main.narrow and name in PANES:
                targets.append((letter, name, self.main.tabs.offset_of(name)))
        chosen = await self.push_screen_wait(JumpScreen(targets))
        if chosen == "composer":
            self.main.composer.focus_draft()
        for pane in PANES:
            if chosen == pane:
                self.main.go_to(pane)

    def action_pane(self, name: Pane) -> None:
        self.main.go_to(name)

    def keep_unsent(self) -> None:
        raise NotImplementedError

    def action_compose(self) -> None:
        self.main.to_draft()

    def action_search(self) -> None:
        if self.main.narrow:
            self.main.go_to("conversation")
        self.main.search.open()

    def _search_move(self, by: int) -> None:
        position = self.main.search.move(by)
        if position is not None:
            self.main.conversation.reveal(position)

    def action_search_next(self) -> None:
        self._search_move(1)

    def action_search_previous(self) -> None:
        self._search_move(-1)

    def action_scroll(self, how: str) -> None:
        if how.startswith("page") and self.main.dock.is_attached and self.main.dock.scrolls:
            self.main.dock.action_scroll_detail(5 if how == "page_down" else -5)
            return
        self.main.conversation.scroll_by(how)

    def action_follow(self) -> None:
        self.main.conversation.action_end()

    # --- stopping, copying, leaving --------------------------------------------------------------------------------
    @property
    def busy(self) -> bool:
        return self.engine.busy or self.model.status.phase not in ("idle", "starting", "loading")

    def action_escape(self) -> None:
        """The ladder: popup, search, queued edit; then the selection; then the turn. Idle: back to the composer."""
        main, composer = self.main, self.main.composer
        if composer.close_popup() or composer.stop_editing_queued():
            return
        if main.search.close():
            composer.focus_draft()
        elif main.get_selected_text():
            main.clear_selection()
        elif self._field_selection():
            draft = composer.draft
            draft.move_cursor(draft.cursor_location)
        elif self.busy:
            self.engine.interrupt()
        else:
            if self.model.status.phase == "loading":
                self.engine.interrupt()  # no longer wait for a server that is loading its model
            main.conversation.cursor = None
            main.conversation.touch()
            composer.focus_draft()

    def _field_selection(self) -> str:
        focused = self.screen.focused
        return focused.selected_text if isinstance(focused, Input | TextArea) else ""

    def action_copy_or_quit(self) -> None:
        selected = self.screen.get_selected_text() or self._field_selection()
        if selected:
            self.copy(selected, "the selection")
            self.screen.clear_selection()
            return
        if self.screen is self.main and self.main.composer.clear():
            self.notify(f"The draft is cleared; {self.label('composer.undo')} brings it back.")
            return
        now = self.ports.clock.monotonic()
        if now - self._quit_armed_at < QUIT_WINDOW:
            self.action_leave()
            return
        self._quit_armed_at = now
        self.notify(f"Press {self.label('app.copy_or_quit')} again to quit.", timeout=QUIT_WINDOW)

    @work(group="leave")
    async def action_leave(self) -> None:
        self.keep_unsent()
        self.unsent.close()
        await self.engine.close()
        self.exit()

    @work(group="copy")
    async def copy(self, text: str, what: str) -> None:
        await copy_and_tell(self, text, what)

    def action_copy_last(self) -> None:
        answer = self.model.last_answer()
        if answer:
            self.copy(answer, "the answer")
        else:
            self.notify("There is no answer to copy yet.")

    # --- the engine ------------------------------------------------------------------------------------------------
    def action_retry(self) -> None:
        if self.main.conversation.pending_action() == "compact":
            self.engine.compact()
        else:
            self.engine.retry()

    @work(group="dialog")
    async def action_status(self) -> None:
        from marextui.tui.screens.status import StatusScreen

        await self.push_screen(StatusScreen(await self.engine.status()))

    def action_economy(self, argument: str = "") -> None:
        word = argument.strip().lower()
        if word in ("on", "off"):
            self.engine.switch_economy(word == "on")
        elif word:
            self.notify(f"Nothing was switched: /economy takes on or off, not {word!r}.", severity="warning")
        else:
            self.action_status()

    @work(group="dialog")
    async def action_model(self) -> None:
        from marextui.tui.screens.models import ModelPicker

        chosen = await self.push_screen_wait(ModelPicker(await self.engine.models()))
        if chosen is not None:
            await self.engine.select_model(chosen)

    @work(group="dialog")
    async def action_new(self) -> None:
        await self._go_to(None)

    @work(group="dialog")
    async def action_resume(self, argument: str = "") -> None:
        from marextui.tui.screens.conversations import ConversationPicker

        chosen: str | None = argument.strip()
        if not chosen:
            rows = await self.engine.conversations()
            chosen = await self.push_screen_wait(ConversationPicker(rows, self.engine.conversations))
        if chosen:
            await self._go_to(chosen)

    async def _go_to(self, conversation_id: str | None) -> None:
        """Open another conversation; what was queued for the one that is left goes back into the draft."""
        left = self.model.conversation_id
        await self.engine.open_conversation(conversation_id)
        if self.model.conversation_id == left:
            return
        dropped = [d.text for q in self.model.queue if (d := self.engine.drop_queued(q.id)) is not None]
        if dropped:
            self.main.composer.put_before("\n\n".join(dropped))
            self.notify("What was queued in the other conversation is in the draft; it was not sent.")

    @work(group="dialog")
    async def action_rename(self, argument: str = "") -> None:
        if argument.strip():
            before = self.model.title
            await self.engine.rename(argument.strip())
            if self.model.title != before:  # else the conversation says why not
                self.notify(f"This conversation is now called: {line(self.model.title, 200).plain}")
        else:
            self.main.composer.set_text(f"/rename {line(self.model.title, 100).plain}")
            self.main.composer.focus_draft()

    @work(group="dialog")
    async def action_export(self, argument: str = "") -> None:
        given = argument.strip()
        replace = not given or given.endswith(" --replace")  # the name we choose is our own file of before
        path = given.removesuffix(" --replace").strip() or f"conversation-{self.model.conversation_id}.md"
        try:
            fmt: Literal["markdown", "json"] = "json" if path.endswith(".json") else "markdown"
            where = await self.engine.export(path, fmt=fmt, replace=replace)
        except FileExistsError:
            self.notify(f"{path} exists and was left as it is. /export {path} --replace writes over it.")
        except OSError as error:
            self.notify(f"Could not write {path}: {error.strerror or error}", severity="error")
        else:
            self.notify(f"Written to {where}")

    @work(group="dialog")
    async def action_theme(self, argument: str = "") -> None:
        from marextui.tui.screens.palette import Palette

        names = sorted(self.available_themes)
        chosen: str | None = argument.strip()
        if not chosen:
            rows = [(n, n, "dark" if self.available_themes[n].dark else "light") for n in names]
            chosen = await self.push_screen_wait(Palette("Theme", rows, current=self.theme))
        if not chosen:
            return
        if chosen not in names:
            self.notify(f"There is no theme {chosen!r}; /theme lists them.", severity="warning")
            return
        self.theme = chosen
        if self.remember is not None:
            self.remember("theme", chosen)

    @work(group="dialog")
    async def action_memory_clear(self) -> None:
        from marextui.tui.screens.confirm import Confirm

        question = "Empty MEMORY.md?"
        if await self.push_screen_wait(Confirm(question, "What was learned in earlier conversations is deleted.")):
            await self.engine.clear_memory()

    @work(group="setup", exclusive=True)
    async def first_run(self) -> None:
        """Until there is a model, or the person leaves."""
        from marextui.tui.screens.setup import SetupChoice, SetupScreen

        choice: SetupChoice | None = None
        while True:
            report = await self.engine.setup()
            choice = await self.push_screen_wait(SetupScreen(report, self.engine.configure_endpoint, choice))
            if choice.kind == "option":
                await self.engine.select_model(choice.option_id)
            elif choice.kind == "quit":
                self.action_leave()
            if choice.kind != "rescan":
                return

    # --- queued messages -------------------------------------------------------------------------------------------
    def action_queue_edit(self) -> None:
        if self.model.queue:
            self.main.composer.edit_queued(self.model.queue[-1])
            self.main.composer.focus_draft()
        else:
            self.notify("Nothing is queued.")

    def action_queue_drop(self) -> None:
        """The newest queued message leaves the queue; its text comes back, put before the draft: nothing is lost."""
        dropped = self.engine.drop_queued(self.model.queue[-1].id) if self.model.queue else None
        if dropped is None:
            self.notify("Nothing is queued.")
            return
        self.main.composer.put_before(dropped.text)
        self.main.composer.focus_draft()
