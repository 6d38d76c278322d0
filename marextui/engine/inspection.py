"""Looks at the context for people: what a compaction would do, what one did, what fills a request. Never costs any.

Nothing here sends a request, writes to the log or changes a view (case 48).
"""

from __future__ import annotations

from dataclasses import dataclass

from marextui.context.preview import CompactionPreview, preview
from marextui.engine.state import EngineState


@dataclass(slots=True)
class Inspection:
    """Reports about the open conversation of `state`."""

    state: EngineState

    def preview(self) -> CompactionPreview:
        """What `/compact` would do now."""
        session = self.state.session
        reading = self.state.reading()
        return preview(
            session.conversation,
            session.ledger.message,
            used=reading.used,
            estimated=reading.estimated,
            threshold=reading.threshold,
            window=reading.window.tokens,
        )
