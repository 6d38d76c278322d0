"""The memory pane: rules, what was learned, and what of it the model is given now (M31–M37)."""

from __future__ import annotations

from typing import Any

from textual.containers import VerticalScroll
from textual.message import Message

from marextui.engine.events import MemoryReport
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class MemoryPane(VerticalScroll):
    """Rules, entries with their date and conversation, the injected excerpt, omissions in numbers."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "memory")]

    class EditRequested(Message):
        """Open this file (MAREX.md or MEMORY.md) in the editor, then `EngineApi.reload_memory`."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    class ClearRequested(Message):
        """Ask for confirmation (`screens.confirm.Confirm`), then `EngineApi.clear_memory` (M37)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def show(self, report: MemoryReport) -> None:
        """Replace what is shown (`MemoryChanged`, and once at the start)."""
