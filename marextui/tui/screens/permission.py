"""The permission dock: asks without ever stealing typing.

A request waits for a pause in typing, then appears; keys count only some time after that, and nothing is highlighted
until an arrow key or a number is pressed, so no key meant for the draft can answer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static

from marextui.engine.api import Answer
from marextui.engine.events import PermissionAsked
from marextui.tui.action_types import bindings_for
from marextui.tui.glyphs import said
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import Clock, ports_of
from marextui.tui.screens.lines import LineView
from marextui.tui.text import line, reveal

TYPING_PAUSE = 1.0
"""Seconds without a key before a request appears."""

GUARD = 0.5
"""Seconds after it appeared during which no key answers."""

State = Literal["idle", "waiting", "appearing", "ready", "reason"]

_WANTS = {
    "edit": "wants to change a file",
    "write": "wants to write a file",
    "bash": "wants to run a command",
    "outside": "wants to reach outside the project",
    "memory": "wants to change what is remembered of this project",
}


def _keys_of(keys: Mapping[str, str], *starts: str) -> frozenset[str]:
    """The keys of the dock's actions whose name is one of `starts`, or begins with it where it ends with "_"."""
    found: set[str] = set()
    for action in PANE_ACTIONS:
        scope, _, name = action.id.partition(".")
        if scope == "permission" and any(name == s or (s.endswith("_") and name.startswith(s)) for s in starts):
            found.update(k.strip() for k in keys.get(action.id, action.keys).split(","))
    return frozenset(found)


_GAP = re.compile(r"(?:^[^\S\n]*\n){3,}", re.MULTILINE)


def _without_gaps(text: str) -> str:
    """Runs of blank lines as one line that says so: they must not push what follows out of sight."""
    return _GAP.sub(lambda m: f"· {m[0].count(chr(10))} blank lines ·\n", text)


class _Answers(OptionList, inherit_bindings=False):
    """The four answers; its keys are the dock's."""


class PermissionDock(Vertical):
    """Mounted above the composer, hidden while nothing is asked. Requests queue.

    The composer calls `note_typing()` for each key it gets; the dock appears after 1 s without one, and takes the focus
    (and answers keys) 0.5 s after it appeared. Typing in between sends it back to waiting. It takes the focus once a
    request: who leaves it to write on comes back with Tab or a click.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "permission")]

    DEFAULT_CSS = """
    PermissionDock {
        height: auto; max-height: 90%; display: none; border: round $warning; padding: 0 1; background: $surface;
        &.-asking { display: block; }
        &.-tight { border: none; }
        .permission--head { height: auto; max-height: 2; }
        .permission--hint { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        LineView { height: 3; background: $panel; overflow-x: hidden; overflow-y: auto; display: none; }
        _Answers {
            height: auto; border: none; padding: 0; background: $surface; display: none;
            text-wrap: nowrap; text-overflow: ellipsis;
            &:focus { border: none; }
        }
        Input { display: none; }
        &.-shown LineView { display: block; }
        &.-shown _Answers { display: block; }
        &.-reason Input { display: block; }
        &.-reason _Answers { display: none; }
    }
    """

    class Answered(Message):
        """Hand to `EngineApi.answer_permission`."""

        def __init__(self, request_id: str, answer: Answer, reason: str = "") -> None:
            super().__init__()
            self.request_id = request_id
            self.answer: Answer = answer
            self.reason = reason

    class Released(Message):
        """The dock had the focus and has nothing left to ask: give the focus back to the composer."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        write: Callable[[str], None] = lambda text: None,
        keys: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """`write(text)` puts text into the draft and the focus there, at once; `keys` is the person's remapping."""
        super().__init__(**kwargs)
        self._clock = clock
        self._write = write
        self._choose_keys = _keys_of(keys or {}, "choose")
        self._answer_keys = _keys_of(keys or {}, "choose_")
        self._move_keys = _keys_of(keys or {}, "up", "down")
        self._held = ""
        """Answer keys pressed that may yet turn out to be the beginning of a text."""
        self._moving = False
        """The latest key chose among the answers."""
        self._queue: deque[PermissionAsked] = deque()
        self._typed_at = float("-inf")
        self._appeared_at = 0.0
        self._took_focus = False
        self._built = False
        self._timer: Timer | None = None
        self.state: State = "idle"
        """idle: nothing asked · waiting: for a pause in typing · appearing: shown, keys ignored · ready · reason."""

    # --- what the app calls

    @property
    def pending(self) -> int:
        """Requests not answered yet."""
        return len(self._queue)

    @property
    def current(self) -> PermissionAsked | None:
        """The request that is shown or about to be."""
        return self._queue[0] if self._queue else None

    def ask(self, request: PermissionAsked) -> None:
        """Queue a request (`PermissionAsked`); the same id twice is one request."""
        if any(r.request_id == request.request_id for r in self._queue):
            return
        self._queue.append(request)
        if len(self._queue) == 1:
            self._next()
        else:
            self._write_head()

    def settle(self, request_id: str) -> None:
        """The request was answered or withdrawn (`PermissionSettled`); an unknown id is ignored."""
        for request in list(self._queue):
            if request.request_id == request_id:
                was_first = request is self._queue[0]
                self._queue.remove(request)
                if was_first:
                    self._next()
                else:
                    self._write_head()

    def note_typing(self) -> None:
        """The person pressed a key somewhere else (in the composer)."""
        self._typed_at = self._now()
        if self.state == "appearing":
            self.state = "waiting"
            self._write_head()
            self._schedule()

    def tick(self) -> None:
        """Go on to the next state if its time has come. A timer calls this; tests do after moving the clock."""
        now = self._now()
        if self.state == "waiting" and now >= self._typed_at + TYPING_PAUSE:
            self.state, self._appeared_at = "appearing", now
            self.add_class("-shown")
            self._write_head()
        elif self.state == "appearing" and now >= self._appeared_at + GUARD:
            self.state = "ready"
            self._write_head()
            if not self._took_focus:
                self._took_focus = True
                self.screen.set_focus(self.query_one(_Answers), scroll_visible=False)
        self._schedule()

    # --- inside

    def compose(self) -> ComposeResult:
        yield Static(markup=False, classes="permission--head", id="permission-head")
        view = LineView(numbers=False, cursor=False)
        view.can_focus = False
        yield view
        yield _Answers(markup=False)
        reason = Input(
            placeholder="Why not? Enter sends the denial, Esc goes back", select_on_focus=False, compact=True
        )
        reason.cursor_blink = False
        yield reason
        yield Static(markup=False, classes="permission--hint", id="permission-hint")

    def on_mount(self) -> None:
        self._built = True
        if self._queue:
            self._next()

    def _now(self) -> float:
        if self._clock is None:
            self._clock = ports_of(self.app).clock
        return self._clock.monotonic()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        due = {"waiting": self._typed_at + TYPING_PAUSE, "appearing": self._appeared_at + GUARD}.get(self.state)
        if due is not None:
            self._timer = self.set_timer(max(0.02, due - self._now()), self.tick)

    def _next(self) -> None:
        """Show the first request of the queue, or nothing."""
        if not self._built:
            return
        focused = self._holds_focus()
        request = self.current
        self.remove_class("-shown", "-reason")
        self.set_class(request is not None, "-asking")
        self._took_focus = False
        if request is None:
            self.state = "idle"
            self._schedule()
            if focused:
                self.post_message(self.Released())
            return
        self.state = "waiting"
        view = self.query_one(LineView)
        shown = "\n\n".join(part for part in (request.detail, request.diff) if part) or request.title
        view.set_text(_without_gaps(reveal(shown)), language="diff" if request.diff else "")
        answers = self.query_one(_Answers)
        answers.clear_options()
        scope = Content.assemble(": ", said(line(reveal(request.scope), 160))) if request.scope else Content("")
        answers.add_options(
            [
                Content("1  Allow once"),
                Content.assemble("2  Allow for this conversation", scope),
                Content("3  Deny"),
                Content("4  Deny with a reason"),
            ]
        )
        answers.highlighted = None
        self.query_one(Input).value = ""
        self._write_head()
        self.tick()

    def _holds_focus(self) -> bool:
        focused = self.screen.focused
        return focused is not None and self in focused.ancestors_with_self

    def _write_head(self) -> None:
        request = self.current
        if request is None or not self._built:
            return
        count = f" (1 of {self.pending})" if self.pending > 1 else ""
        head = Content.assemble(
            ("Permission needed", "bold $text-warning"),
            f"{count}: ",
            line(request.tool, 40),
            f" {_WANTS[request.kind]}: ",
            said(line(reveal(request.title), 200)),
        )
        self.query_one("#permission-head", Static).update(head)
        lines = self.query_one(LineView).index.lines
        hidden = lines - self._room()
        scroll = f" · PgDn: {hidden} more lines" if hidden > 0 else ""
        hint = {
            "waiting": "Waits until you pause typing",
            "appearing": "Waits until you pause typing",
            "reason": "Enter sends the denial with your reason · Esc goes back",
        }.get(self.state, f"Arrow or number, then Enter · Esc stops the turn{scroll}")
        self.query_one("#permission-hint", Static).update(Content(hint))

    def _room(self) -> int:
        """Rows for the command or change: a quarter of the screen."""
        return max(2, self.screen.size.height // 4)

    def on_line_view_moved(self, event: LineView.Moved) -> None:
        event.stop()
        view = self.query_one(LineView)
        view.styles.height = min(self._room(), view.index.height)

    def admit(self, event: events.Key, *, quiet: bool) -> bool:
        """For each key while the dock has the focus, in the order of arrival: whether it goes to the focus.

        A letter makes the draft the focus before the next key is looked at. An answer key counts only when it is
        `quiet`: no other key arrived shortly before it. What turns out to be a text goes to the draft in full.
        """
        if self.state == "reason":
            return True
        text = event.character if event.is_printable and event.character else ""
        key, ready, moving = event.key, self.state == "ready", self._moving
        self._moving = False
        if key in self._answer_keys and ready and quiet:
            self._held, self._moving = text, True
            return True
        if key in self._move_keys:
            self._moving = ready and (quiet or moving)
            self._held = ""
            return self._moving
        if key in self._choose_keys:
            return ready and quiet
        if text:
            held, self._held = self._held, ""
            self.query_one(_Answers).highlighted = None
            self._write(held)
        return True

    # --- answering

    def action_highlight(self, index: int) -> None:
        if self.state == "ready":
            self.query_one(_Answers).highlighted = index

    def action_cursor_down(self) -> None:
        self.query_one(_Answers).action_cursor_down()

    def action_cursor_up(self) -> None:
        self.query_one(_Answers).action_cursor_up()

    def action_choose(self) -> None:
        answers = self.query_one(_Answers)
        if self.state == "ready" and answers.highlighted is not None:
            self._choose(answers.highlighted)

    @property
    def scrolls(self) -> bool:
        """A question is shown, and more of it than there is room for."""
        return self.has_class("-shown") and self.query_one(LineView).index.height > self._room()

    def action_scroll_detail(self, rows: int) -> None:
        view = self.query_one(LineView)
        view.scroll_to(y=view.scroll_offset.y + rows, animate=False, immediate=True)

    def action_leave_reason(self) -> None:
        self.remove_class("-reason")
        self.state = "ready"
        self.screen.set_focus(self.query_one(_Answers))
        self._write_head()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc is the dock's only while a reason is written; else it goes up to the app, which stops the turn."""
        if action == "leave_reason":
            return self.state == "reason"
        return self.state != "reason"

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.state == "ready":
            self._choose(event.option_index)

    def _choose(self, index: int) -> None:
        if index == 3:
            self.state = "reason"
            self.add_class("-reason")
            self.screen.set_focus(self.query_one(Input))
            self._write_head()
        else:
            answers: tuple[Answer, ...] = ("once", "conversation", "deny")
            self._answer(answers[index])

    @on(Input.Submitted)
    def _reason_given(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer("deny", event.value.strip())

    def _answer(self, answer: Answer, reason: str = "") -> None:
        request = self._queue.popleft()
        self.post_message(self.Answered(request.request_id, answer, reason))
        self._next()
