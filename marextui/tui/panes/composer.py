"""The composer: where a message is written. The draft survives everything (cases 34 to 36)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from marextui.engine.events import QueuedPrompt
from marextui.tui import completion, slash
from marextui.tui.action_types import Action, bindings_for
from marextui.tui.actions import OWN_ACTIONS
from marextui.tui.history import PromptHistory
from marextui.tui.text import line

PASTE_LINES, PASTE_CHARS = 5, 1_000
"""A paste of more lines or characters than these is shown as a placeholder."""
HEIGHTS = (3, 6, 10)
"""Rows of the draft: it grows in steps, so that most new lines do not lay out the conversation anew (case 2)."""
POPUP_ROWS = 8

_PLACEHOLDER = re.compile(r"\[Pasted #(\d+): [^\]\n]*\]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Draft(TextArea):
    """The text area. Keys come from the action registry; they are asked before the text area's own.

    Such keys reach the app before characters typed ahead of them have reached the draft, so what they do waits its turn
    in the draft's own queue: else Enter on a busy machine would send half of a line.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(OWN_ACTIONS, "composer")]

    class Typed(Message):
        """A key reached the draft."""

    def __init__(self, owner: Composer) -> None:
        super().__init__(
            "",
            soft_wrap=True,
            tab_behavior="focus",
            show_line_numbers=False,
            highlight_cursor_line=False,
            placeholder="Write a message. / for commands, @ for files",
            id="draft",
        )
        self.cursor_blink = False
        self._owner = owner

    async def _on_key(self, event: events.Key) -> None:
        self.post_message(self.Typed())
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._owner.paste(event.text)

    @property
    def on_first_line(self) -> bool:
        """The cursor stands on the first line as wrapped."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def on_last_line(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y >= self.wrapped_document.height - 1

    def action_submit(self) -> None:
        self.call_later(self._owner.enter)

    def action_newline(self) -> None:
        self.call_later(self.insert, "\n")

    def action_up(self) -> None:
        self.call_later(self._owner.vertical, -1)

    def action_down(self) -> None:
        self.call_later(self._owner.vertical, 1)

    def action_tab(self) -> None:
        self.call_later(self._owner.tab)

    def action_editor(self) -> None:
        self.call_later(self._owner.ask_for_editor)

    def action_history(self) -> None:
        self.call_later(self._owner.search_history)


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
        self._files: tuple[str, ...] | None = None
        self._pastes: dict[int, str] = {}
        self._popup_kind = ""
        self._offered_for = ""
        self._choices: list[str] = []
        self._own_change = False
        self._quiet_for: str | None = None
        self.queued: QueuedPrompt | None = None
        self._stash = ""
        self.draft = Draft(self)

    def compose(self) -> ComposeResult:
        yield Static("", id="composer-note", markup=False)
        yield OptionList(id="popup", markup=False)
        yield self.draft

    def on_mount(self) -> None:
        self.popup.display = False
        self.popup.can_focus = False
        self.query_one("#composer-note").display = False
        self.draft.styles.height = HEIGHTS[0]

    @property
    def popup(self) -> OptionList:
        return self.query_one("#popup", OptionList)

    # --- the text --------------------------------------------------------------------------------------------------
    @property
    def text(self) -> str:
        """The draft as shown, placeholders included."""
        return self.draft.text

    @property
    def full_text(self) -> str:
        """The draft with its pastes expanded."""
        return _PLACEHOLDER.sub(lambda m: self._pastes.get(int(m[1]), m[0]), self.draft.text)

    def set_text(self, text: str) -> None:
        """Replace the draft; undo brings the old one back."""
        draft = self.draft
        draft.history.checkpoint()
        draft.replace(text, (0, 0), draft.document.end, maintain_selection_offset=False)
        draft.move_cursor(draft.document.end)
        draft.history.checkpoint()

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
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        rows = text.count("\n") + 1
        if rows > PASTE_LINES or len(text) > PASTE_CHARS:
            number = len(self._pastes) + 1
            self._pastes[number] = text
            size = f"{rows:,} lines" if rows > 1 else f"{len(text):,} characters"
            text = f"[Pasted #{number}: {size}]"
        else:
            text = _CONTROLS.sub("", text)
        start, end = self.draft.selection
        self.draft.replace(text, start, end, maintain_selection_offset=False)

    # --- keys ------------------------------------------------------------------------------------------------------
    def enter(self) -> None:
        """Enter: take the chosen completion when it changes the line, else send."""
        if self._popup_kind and self.draft.text != self._offered_for:
            self.close_popup()  # typed on since: what it offers is not for this line
        if self._popup_kind in ("file", "history") and self.take_completion():
            return
        if self._popup_kind == "slash" and self._choices[self._chosen()] != self.text.strip():
            name = self._choices[self._chosen()].removeprefix("/")
            if self._commands[name].args == "" and self.text.strip() != f"/{name}":
                self._own_set(f"/{name}")
            elif not self.text.strip().startswith(f"/{name}"):
                self.take_completion()
                return
        self.close_popup()
        self._send()

    def _send(self) -> None:
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
        self.set_text("")
        self._pastes.clear()
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
        if self._popup_kind:
            popup = self.popup
            if by < 0:
                popup.action_cursor_up()
            else:
                popup.action_cursor_down()
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
        self._own_change = True
        self.set_text(text)

    # --- completion ------------------------------------------------------------------------------------------------
    async def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._grow()
        if self._own_change:
            self._own_change = False
            self.close_popup()
            return
        if self._popup_kind == "history":
            self._offer_history()
            return
        self.history.reset()
        await self._offer()

    def _before_cursor(self) -> str:
        row, column = self.draft.cursor_location
        return self.draft.document.get_line(row)[:column]

    async def _offer(self) -> None:
        text = self.draft.text if len(self.draft.text) < 200 else ""
        commands = slash.completions(text, self._commands)
        if commands:
            rows = [(f"/{a.slash}", f"{a.args}  {a.help}".strip()) for a in commands]
            self._open("slash", rows)
            return
        before = self._before_cursor()
        query = completion.file_query(before[-300:]) if "@" in before[-300:] else None
        if query is None:
            self.close_popup()
            return
        if self._files is None or self._popup_kind != "file":
            self._files = await self._load_files()
        found = completion.fuzzy(query, self._files)
        if found:
            self._open("file", [(path, "") for path in found])
        else:
            self.close_popup()

    def search_history(self) -> None:
        """Reverse search: earlier prompts that hold the text of the draft; again: the one before."""
        if self._popup_kind == "history":
            self.vertical(1)
            return
        self._popup_kind = "history"
        self._offer_history()

    def _offer_history(self) -> None:
        found = self.history.search(self.draft.text.strip())[:50]
        if found:
            self._open("history", [(text, "") for text in found])
        else:
            self.close_popup()

    def _open(self, kind: str, rows: list[tuple[str, str]]) -> None:
        popup = self.popup
        self._popup_kind, self._offered_for = kind, self.draft.text
        self._choices = [r[0] for r in rows]
        popup.clear_options()
        popup.add_options(
            Option(Content.assemble(line(name, 100), "  ", line(more, 100).stylize("$foreground-muted")))
            for name, more in rows
        )
        popup.highlighted = 0
        shown = min(len(rows), POPUP_ROWS)
        popup.styles.height = shown
        popup.styles.offset = (0, -shown)
        popup.display = True

    def close_popup(self) -> bool:
        """Close the popup; False when none was open."""
        was = bool(self._popup_kind)
        self._popup_kind, self._choices = "", []
        if was:
            self.popup.display = False
        return was

    @property
    def popup_rows(self) -> list[str]:
        """What the popup offers, [] when it is closed."""
        return list(self._choices)

    def _chosen(self) -> int:
        return self.popup.highlighted or 0

    def take_completion(self) -> bool:
        """Put the chosen completion into the draft; False without an open popup."""
        if not self._popup_kind or not self._choices:
            return False
        choice, kind = self._choices[self._chosen()], self._popup_kind
        if kind == "slash":
            self._own_set(f"{choice} " if self._commands[choice.removeprefix("/")].args else choice)
        elif kind == "history":
            self._own_set(choice)
        else:
            row, column = self.draft.cursor_location
            before = self._before_cursor()
            self._own_change = True
            self.draft.replace(
                completion.with_file(before, choice), (row, 0), (row, column), maintain_selection_offset=False
            )
        self.close_popup()
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.take_completion()
        self.focus_draft()

    # --- size ------------------------------------------------------------------------------------------------------
    def _grow(self) -> None:
        rows = self.draft.wrapped_document.height
        room = max(HEIGHTS[0], self.screen.size.height // 2)
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
