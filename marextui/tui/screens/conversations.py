"""The conversation picker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual.screen import ModalScreen

from marextui.engine.api import ConversationInfo
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class ConversationPicker(ModalScreen[str | None]):
    """Dismisses with the chosen conversation id, None when cancelled. `search` is asked as the person types."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(
        self, rows: Sequence[ConversationInfo], search: Callable[[str], Awaitable[list[ConversationInfo]]]
    ) -> None:
        super().__init__()
        self.rows = tuple(rows)
        self.search = search
