"""Looks at the context for people: what a compaction would do, what one did, what fills a request. Never costs any.

Nothing here sends a request, writes to the log or changes a view (case 48).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from marextui.context.breakdown import breakdown
from marextui.context.checking import Aftermath, aftermaths, context_checks
from marextui.context.compaction_diff import CompactionDiff, compaction_diff
from marextui.context.entries import Entry, Summary
from marextui.context.folding import read_folded
from marextui.context.memory import parse_memory
from marextui.context.preview import CompactionPreview, preview
from marextui.context.probes import Check
from marextui.context.sections import titles_of
from marextui.context.triggers import BY_HAND
from marextui.engine.api import ContextReport, StatusReport
from marextui.engine.economy import EconomyLine
from marextui.engine.events import Notice
from marextui.engine.state import EngineState
from marextui.store.database import StoreError


@dataclass(slots=True)
class Inspection:
    """Reports about the open conversation of `state`."""

    state: EngineState

    async def status(self, *more: EconomyLine) -> StatusReport:
        """`/status` (M22); `more` is told of the features that save a local engine work, after the state's own."""
        state = self.state
        reading = state.reading()
        why = state.why_not(reading)
        session = self.state.session
        conversation = session.conversation
        last = conversation.compactions[-1] if conversation.compactions else None
        told = "none"
        if last is not None:
            told = (
                f"cycle {last.cycle} ({last.trigger}): {last.tokens_before} → {last.tokens_after} tokens, "
                f"{last.messages_before} → {last.messages_after} messages"
            )
        choice = state.control.choice
        return StatusReport(
            model=state.control.label,
            server=choice.base_url if choice else "",
            conversation_id=session.id,
            title=session.title,
            turns=conversation.turn,
            messages=len(conversation.messages),
            gauge=state.gauge(reading, why),
            auto_compress=state.policy.auto_compress,
            last_compaction=told,
            last_failure=state.compactor.last_failure,
            why_no_compaction=why,
            triggers=state.triggers(reading),
            usage=state.usage.lines(),
            data_path=state.archive.location,
            aftermaths=await self.aftermaths(),
            economy=(*state.economy(), *more),
            cache=state.cache.state,
        )

    def preview(self) -> CompactionPreview:
        """What `/compact` would do now."""
        state, session = self.state, self.state.session
        compactor, ledger = state.compactor, session.ledger
        reading = state.reading()
        cut = compactor.cut(session, reading, trigger=BY_HAND)
        return preview(
            session.conversation,
            ledger.message,
            cut=cut,
            cap=compactor.most_of_summary(session, reading),
            used=reading.used,
            estimated=reading.estimated,
            triggers=state.triggers(reading),
            reason="" if cut else compactor.why_no_cut(session, reading, BY_HAND),
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
            project=part.project,
        )
        gauge = state.gauge(reading, state.why_not(reading))
        counted = session.conversation.measured
        measured = None if counted is None else (counted.prompt_tokens, counted.completion_tokens)
        return ContextReport(shares, gauge, measured)

    async def diff(self, cycle: int) -> CompactionDiff | None:
        """What the compaction of `cycle` changed. Reads the whole log, off the loop."""
        entries = await self._entries()
        found = await asyncio.to_thread(compaction_diff, entries, cycle, self.state.session.ledger.message)
        if found is None:
            return None
        after = {a.cycle: a for a in await asyncio.to_thread(aftermaths, entries)}[cycle]
        return replace(found, memory=await self._facts(cycle), checked=after.checked, fetches=after.fetches)

    async def aftermaths(self) -> tuple[Aftermath, ...]:
        """What each compaction kept and what was fetched again after it."""
        if not self.state.session.conversation.cycle:
            return ()
        return await asyncio.to_thread(aftermaths, await self._entries())

    async def checks(self) -> tuple[Check, ...]:
        """The checklist of `/context check` (P19)."""
        reading = self.state.reading()
        share = None
        if reading.window.tokens and reading.threshold is not None and self.state.policy.auto_compress:
            share = (reading.system_part + reading.threshold) / reading.window.tokens
        live = self.state.session.conversation.compactions
        stored: list[str] = []
        if live:
            stored += [f.partition(": ")[2] for f in await self._facts(live[-1].cycle)]
            stored += await self._folded(live[-1].summary)
        entries = await self._entries()
        titles = titles_of(self.state.policy.sections)
        return await asyncio.to_thread(context_checks, entries, trigger_share=share, stored=stored, sections=titles)

    async def _entries(self) -> list[Entry]:
        """The whole log; none of it, with a notice, when it cannot be read."""
        try:
            records = await self.state.archive.store.records(self.state.session.id)
        except StoreError as problem:
            self.state.bus.emit(Notice("error", f"The conversation's log could not be read: {problem}"))
            return []
        return [r.entry for r in records]

    async def _folded(self, summary: Summary) -> list[str]:
        """Texts of the items that were folded out of `summary` or the ones before it and can still be read."""
        found: list[str] = []
        for omission_id in dict.fromkeys(f.omission_id for s in summary.sections for f in s.folded):
            try:
                found += read_folded(await self.state.omitter.store.get(omission_id) or "")
            except OSError as problem:
                self.state.bus.emit(
                    Notice("warning", f"{omission_id} could not be read: {problem.strerror or problem}")
                )
        return found

    async def _facts(self, cycle: int) -> tuple[str, ...]:
        """What the compaction of `cycle` added to long-term memory and still stands there."""
        try:
            text = await self.state.desk.memory.read()
        except OSError as problem:
            self.state.bus.emit(Notice("warning", f"MEMORY.md could not be read: {problem.strerror or problem}"))
            return ()
        mine = (e for e in parse_memory(text) if e.conversation_id == self.state.session.id and e.cycle == cycle)
        return tuple(fact for entry in mine for fact in entry.facts)
