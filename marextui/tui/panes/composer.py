"""The composer: where a message is written. The draft survives everything (cases 34 to 36).

What reads a draft (commands, file names) is imported when there is one: nobody waits for it at the start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea

from marextui.engine.event_values import QueuedPrompt
from marextui.tui.action_types import Action
from marextui.tui.history import PromptHistory
from marextui.tui.panes.draft import Draft
from marextui.tui.panes.popup import CompletionPopup, Kind
from marextui.tui.pastes import Pastes

if TYPE_CHECKING:
    from marextui.tui import slash

HEIGHTS = (3, 6, 10)
"""Rows of the draft: it grows in steps, so that most new lines do not lay out the conversation anew (case 2)."""


class Composer(Vertical):
    """Draft, completion popup, and the line that says what is being edited."""

    class Submitted(Message):
        """Send this text (placeholders expanded)."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class CommandGiven(Message):
        def __init__(self, command: slash.Command) -> None:
            super().__init__()
            self.command = command

    class QueuedEdited(Message):
        """A queued prompt was rewritten."""

        def __init__(self, prompt_id: str, text: str) -> None:
            super().__init__()
            self.prompt_id = prompt_id
            self.text = text

    class EditorRequested(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class UnknownCommand(Message):
        """Looked like a command, is none; nothing was sent, the draft stays."""

        def __init__(self, unknown: slash.Unknown) -> None:
            super().__init__()
            self.unknown = unknown

    def __init__(
        self,
        history: PromptHistory,
        commands: Mapping[str, Action],
        files: Callable[[], Awaitable[tuple[str, ...]]],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.history = history
        self._commands = commands
        self._load_files = files
        self._files: tuple[str, ...] = ()
        self._naming = False
        """The cursor stands in an `@` word; the files were looked for when it was begun."""
        self._pastes = Pastes()
        self._put: str | None = None
        """What the composer itself put into the draft last: no typing, so nothing is offered for it."""
        self.queued: QueuedPrompt | None = None
        self._stash = ""
        self._tight = False
        self.draft = Draft(self)
        self.popup = CompletionPopup()

    def compose(self) -> ComposeResult:
        yield Static("", id="composer-note", markup=False)
        yield self.popup
        yield self.draft

    def on_mount(self) -> None:
        self.query_one("#composer-note").display = False
        self.draft.styles.height = HEIGHTS[0]

    # --- the text --------------------------------------------------------------------------------------------------
    @property
    def text(self) -> str:
        """The draft as shown, placeholders included."""
        return self.draft.text

    @property
    def full_text(self) -> str:
        """The draft with its pastes expanded."""
        return self._pastes.expanded(self.draft.text)

    @property
    def own_text(self) -> str:
        """What is written and not sent, also while a queued message stands in its place."""
        return self.full_text if self.queued is None else self._pastes.expanded(self._stash)

    def set_text(self, text: str) -> None:
        """Replace the draft, a very long text by a placeholder; undo brings the old one back."""
        self.draft.replace_all(self._pastes.held(text))

    def put_before(self, text: str) -> None:
        """Put `text` before the draft: nothing that was written is lost."""
        text = self._pastes.held(text)
        self.draft.replace_all(f"{text}\n{self.draft.text}" if self.draft.text else text)

    def clear(self) -> bool:
        """Empty the draft, with undo; False when it was empty."""
        if not self.draft.text:
            return False
        self.set_text("")
        return True

    def insert(self, text: str) -> None:
        self.draft.insert(text)

    def focus_draft(self) -> None:
        self.draft.focus(scroll_visible=False)

    def paste(self, text: str) -> None:
        """Put pasted text at the cursor, a long one as a placeholder (case 36)."""
        start, end = self.draft.selection
        self.draft.replace(self._pastes.shown(text), start, end, maintain_selection_offset=False)

    # --- keys ------------------------------------------------------------------------------------------------------
    def enter(self) -> None:
        """Enter: take the chosen completion when it changes the line, else send.

        What was typed on since the popup opened is not what it offers for: then the text is sent as it stands.
        """
        popup, typed = self.popup, self.text.strip()
        if not popup.fits(self.draft.text):
            popup.close()
        if popup.kind == "file" and self._completed(popup.chosen).rstrip() == self.draft.before_cursor:
            popup.close()  # typed to its end: nothing to complete
        if popup.kind in ("file", "history"):
            self.take_completion()
            return
        if popup.kind == "slash" and popup.chosen != typed:
            takes_argument = bool(self._commands[popup.chosen.removeprefix("/")].args)
            if takes_argument and not typed.startswith(popup.chosen):
                self.take_completion()
                return
            if not takes_argument:
                self._own_set(popup.chosen)
        popup.close()
        self._send()

    def _send(self) -> None:
        from marextui.tui import slash

        text = self.full_text.rstrip()
        if not text.strip():
            return
        if self.queued is not None:
            self.post_message(self.QueuedEdited(self.queued.id, text))
            self.stop_editing_queued()
            return
        parsed = slash.parse(text, self._commands)
        if isinstance(parsed, slash.Unknown):
            self.post_message(self.UnknownCommand(parsed))
            return
        if text.lstrip().startswith("/"):
            text = text.lstrip()
        self.history.reset()
        self._own_set("")
        if isinstance(parsed, slash.Command):
            self.post_message(self.CommandGiven(parsed))
        else:
            self.post_message(self.Submitted(text))

    def tab(self) -> None:
        """Take the chosen completion, else go to the next pane."""
        if not self.take_completion():
            self.screen.focus_next()

    def ask_for_editor(self) -> None:
        self.post_message(self.EditorRequested(self.full_text))

    def vertical(self, by: int) -> None:
        """Up and down: in the popup, in the text, and past its first or last line through earlier prompts."""
        draft = self.draft
        if self.popup.kind:
            if by < 0:
                self.popup.action_cursor_up()
            else:
                self.popup.action_cursor_down()
        elif by < 0 and draft.on_first_line:
            if self.queued is None:
                self._show_earlier(self.history.older(draft.text))
        elif by > 0 and draft.on_last_line:
            if self.queued is None:
                self._show_earlier(self.history.newer())
        elif by < 0:
            draft.action_cursor_up()
        else:
            draft.action_cursor_down()

    def _show_earlier(self, text: str | None) -> None:
        if text is not None:
            self._own_set(text)

    def _own_set(self, text: str) -> None:
        self.set_text(text)
        self._put = self.draft.text

    # --- completion ------------------------------------------------------------------------------------------------
    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """The draft is not what it was. Several changes may be told at once: only what it is now counts."""
        event.stop()
        self._grow()
        if self.draft.text == self._put:
            self._naming = False
            self.popup.close()
            return
        self._put = None
        if self.popup.kind == "history":
            self._offer_history()
            return
        self.history.reset()
        self._offer()

    def _offer(self) -> None:
        from marextui.tui import completion, slash

        typed = self.draft.text
        commands = slash.completions(typed, self._commands) if len(typed) < 200 else []
        if commands:
            self._open("slash", [(f"/{a.slash}", f"{a.args}  {a.help}".strip()) for a in commands])
            return
        before = self.draft.before_cursor[-300:]
        query = completion.file_query(before) if "@" in before else None
        if query is not None and not self._naming:
            self.run_worker(self._look_for_files(), group="files", exclusive=True)
        self._naming = query is not None
        found = completion.fuzzy(query, self._files) if query is not None else []
        if found:
            self._open("file", [(path, "") for path in found])
        else:
            self.popup.close()

    async def _look_for_files(self) -> None:
        """A project may be large: beside everything else, so that neither typing nor Enter waits for it."""
        from marextui.tui import completion

        files = tuple(f for f in await self._load_files() if completion.offered(f))
        if files != self._files:
            self._files = files
            if self._naming and not self.popup.highlighted:
                self._offer()

    def search_history(self) -> None:
        """Reverse search: earlier prompts that hold the text of the draft; again: the one before."""
        if self.popup.kind == "history":
            self.vertical(1)
        elif not self._offer_history():
            self.notify("No earlier prompt holds that." if self.text.strip() else "There is no earlier prompt yet.")

    def _offer_history(self) -> bool:
        found = self.history.search(self.draft.text.strip())[:50]
        if found:
            self._open("history", [(text, "") for text in found])
        else:
            self.popup.close()
        return bool(found)

    def _open(self, kind: Kind, rows: list[tuple[str, str]]) -> None:
        self.popup.offer(kind, rows, self.draft.text, self.draft.region.y)

    def close_popup(self) -> bool:
        """Close the popup; False when none was open."""
        return self.popup.close()

    @property
    def popup_rows(self) -> list[str]:
        """What the popup offers, [] when it is closed."""
        return list(self.popup.rows)

    def _completed(self, path: str) -> str:
        """The line up to the cursor with its `@` word completed to `path`."""
        from marextui.tui import completion

        return completion.with_file(self.draft.before_cursor, path)

    def take_completion(self) -> bool:
        """Put the chosen completion into the draft; False without an open popup."""
        choice, kind = self.popup.chosen, self.popup.kind
        if not choice:
            return False
        if kind == "slash":
            self._own_set(f"{choice} " if self._commands[choice.removeprefix("/")].args else choice)
        elif kind == "history":
            self._own_set(choice)
        else:
            self.draft.replace_before_cursor(self._completed(choice))
            self._put = self.draft.text
        self.popup.close()
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.take_completion()
        self.focus_draft()

    # --- size ------------------------------------------------------------------------------------------------------
    def tighten(self, tight: bool) -> None:
        """One row only, or as many as the draft needs again."""
        self._tight = tight
        self._grow()

    def _grow(self) -> None:
        rows = self.draft.wrapped_document.height
        room = 1 if self._tight else max(HEIGHTS[0], self.screen.size.height // 2)
        wanted = next((h for h in HEIGHTS if rows <= h), HEIGHTS[-1])
        wanted = min(wanted, room)
        current = self.draft.styles.height
        if current is None or current.value != wanted:
            self.draft.styles.height = wanted

    # --- queued prompts --------------------------------------------------------------------------------------------
    def edit_queued(self, prompt: QueuedPrompt) -> None:
        """Edit a queued prompt in the draft; the draft is put aside and comes back afterwards."""
        if self.queued is None:
            self._stash = self.draft.text
        self.queued = prompt
        self._own_set(prompt.text)
        note = self.query_one("#composer-note", Static)
        note.update("  Editing a queued message: Enter keeps the change, Esc leaves it as it was")
        note.display = True

    def stop_editing_queued(self) -> bool:
        """Back to the draft; False when no queued prompt was being edited."""
        if self.queued is None:
            return False
        self.queued = None
        self.query_one("#composer-note").display = False
        self._own_set(self._stash)
        self._stash = ""
        return True
