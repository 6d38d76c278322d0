"""Looks at the context for people: what a compaction would do, what one did, what fills a request. Never costs any.

Nothing here sends a request, writes to the log or changes a view (case 48).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from marextui.context.breakdown import breakdown
from marextui.context.compaction_diff import CompactionDiff, compaction_diff
from marextui.context.memory import parse_memory
from marextui.context.preview import CompactionPreview, preview
from marextui.engine.api import ContextReport
from marextui.engine.state import EngineState


@dataclass(slots=True)
class Inspection:
    """Reports about the open conversation of `state`."""

    state: EngineState

    def preview(self) -> CompactionPreview:
        """What `/compact` would do now."""
        state, session = self.state, self.state.session
        compactor, ledger = state.compactor, session.ledger
        reading = state.reading()
        kept = session.conversation.shown()
        counts = [ledger.message(m) for m in kept]
        cut = compactor.cut(session, reading, counts, trigger="manual", mid_turn=False)
        return preview(
            session.conversation,
            ledger.message,
            cut=cut,
            cap=compactor.most_of_summary(session, reading),
            used=reading.used,
            estimated=reading.estimated,
            reason="" if cut else compactor.why_no_cut(session, kept, reading, "manual", None),
        )

    def context(self) -> ContextReport:
        """What the next request is made of."""
        state, session = self.state, self.state.session
        part = state.system_part()
        reading = state.meter.read(session, part)
        shares = breakdown(
            base=part.base,
            rules=part.rules,
            memory=part.memory,
            tools=part.tools,
            history=session.history(),
            ledger=session.ledger,
            used=reading.used,
        )
        gauge = state.meter.gauge(session, reading, auto=state.policy.auto_compress, why_not=state.why_not(reading))
        counted = session.conversation.measured
        measured = None if counted is None else (counted.prompt_tokens, counted.completion_tokens)
        return ContextReport(shares, gauge, measured)

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
