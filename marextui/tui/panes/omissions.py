"""The omissions browser: every tool output that is kept on disk, and whether it still stands in the view (M23–M29, M33)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from textual.containers import Vertical
from textual.message import Message

from marextui.engine.events import OmissionInfo
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class OmissionsPane(Vertical):
    """Filter above, rows below. Copying goes through `ports_of(app)`; opening is posted."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "omissions")]

    class Opened(Message):
        """Enter on a row: show the full text of this omission."""

        def __init__(self, omission_id: str) -> None:
            super().__init__()
            self.omission_id = omission_id

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def show(self, items: Sequence[OmissionInfo]) -> None:
        """Replace all rows; newest first."""

    def upsert(self, info: OmissionInfo) -> None:
        """Add a row or replace the one with the same id (`OmissionStored`)."""

    def mark_read(self, omission_id: str, reads: int) -> None:
        """The new count of reads (`OmissionRead`); an unknown id is ignored."""

    def mark_omitted(self, omission_ids: Iterable[str]) -> None:
        """These no longer stand in the view (`OutputsReplaced`)."""
