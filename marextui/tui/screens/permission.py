"""The permission dock: asks without ever stealing typing."""

from __future__ import annotations

from typing import Any

from textual.containers import Vertical
from textual.message import Message

from marextui.engine.api import Answer
from marextui.engine.events import PermissionAsked
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import Clock


class PermissionDock(Vertical):
    """Mounted above the composer, hidden while nothing is asked. Requests queue.

    The composer calls `note_typing()` for each key it gets; the dock appears after 1 s without one, and takes the focus
    (and answers keys) 0.5 s after it appeared. Typing in between sends it back to waiting.
    """

    BINDINGS = [*bindings_for(PANE_ACTIONS, "permission")]

    class Answered(Message):
        """Hand to `EngineApi.answer_permission`."""

        def __init__(self, request_id: str, answer: Answer, reason: str = "") -> None:
            super().__init__()
            self.request_id = request_id
            self.answer: Answer = answer
            self.reason = reason

    class Released(Message):
        """The dock had the focus and has nothing left to ask: give the focus back to the composer."""

    class Typed(Message):
        """A printable character was typed at the dock: it belongs to the composer's draft."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    def __init__(self, clock: Clock | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._clock = clock

    def ask(self, request: PermissionAsked) -> None:
        """Queue a request (`PermissionAsked`)."""

    def settle(self, request_id: str) -> None:
        """The request was answered or withdrawn (`PermissionSettled`); an unknown id is ignored."""

    def note_typing(self) -> None:
        """The person pressed a key somewhere else (in the composer)."""
