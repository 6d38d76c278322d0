"""Looks at the context for people: what a compaction would do, what one did, what fills a request. Never costs any.

Nothing here sends a request, writes to the log or changes a view (case 48).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from marextui.context.compaction_diff import CompactionDiff, compaction_diff
from marextui.context.memory import parse_memory
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

    async def diff(self, cycle: int) -> CompactionDiff | None:
        """What the compaction of `cycle` changed. Reads the whole log, off the loop."""
        session = self.state.session
        records = await self.state.archive.store.records(session.id)
        entries = [r.entry for r in records]
        found = await asyncio.to_thread(compaction_diff, entries, cycle, session.ledger.message)
        if found is None:
            return None
        notes = parse_memory(self.state.desk.notes)
        facts = (e.facts for e in notes if e.conversation_id == session.id and e.cycle == cycle)
        return replace(found, memory=tuple(f for each in facts for f in each))
