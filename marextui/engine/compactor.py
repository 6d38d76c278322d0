"""Compaction: choose a cut, ask for a summary, check it, fuse it, commit it — or change nothing and say why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from marextui.context.beside import Beside
from marextui.context.budget import beside_cap, summary_cap
from marextui.context.cut import Cut, forced_cut
from marextui.context.entries import CompactionCommitted, Summary
from marextui.context.folding import fit_tokens, folded_text, in_place, items_of, joined, named
from marextui.context.lasting import Lasting
from marextui.context.memory import MemoryEntry, durable_facts, durable_items
from marextui.context.memory_keeping import Fed
from marextui.context.messages import Message
from marextui.context.policy import MAX_FAILURES, Attempts, Outcome, after_attempt, after_forced, without_refusal
from marextui.context.redacted import redacted_message
from marextui.context.settling import Settlement
from marextui.context.summary import SummaryRejected
from marextui.context.summary_pair import compaction_pair, summary_pair
from marextui.context.triggers import OVERFLOW, CutFacts, Trigger, goal_of
from marextui.engine.bus import Bus
from marextui.engine.continuation import Point
from marextui.engine.events import CompactionFailed, CompactionFinished, CompactionStarted, Notice
from marextui.engine.meter import Meter, Reading
from marextui.engine.ports import Clock
from marextui.engine.refusal import no_progress
from marextui.engine.session import Session
from marextui.engine.summariser import CHARS_PER_TOKEN, Summariser, Task
from marextui.models.types import ChatModel, ModelError
from marextui.store.database import LogMoved

LEAST_SUMMARY_CHARS = 160
MOST_REFUSALS = 64
"""Conversations of which a refused compaction is remembered (L26)."""


class Keeper(Protocol):
    """Where items of a summary go that have no room in it (`engine.omitter.Omitter`)."""

    async def put_aside(self, session: Session, text: str, *, what: str, message_id: str) -> str: ...


class MemoryFeed(Protocol):
    """Where durable facts of a compaction go (`store.memory.MemoryStore`)."""

    async def feed(self, entry: MemoryEntry) -> Fed: ...


@dataclass(frozen=True, slots=True)
class _Plan:
    """A compaction that is known to help: where it cuts, most tokens of its summary and of what code sets beside it,
    who writes it (None: no model)."""

    trigger: Trigger
    cut: Cut
    cap: int
    beside: int
    chat: ChatModel | None
    extra: dict[str, Any]
    dated: str
    forced: bool = False


@dataclass(slots=True)
class Compactor:
    """Runs compactions of the open conversation and remembers its attempts, in memory only (I4, case 13)."""

    bus: Bus
    clock: Clock
    meter: Meter
    memory: MemoryFeed
    keeper: Keeper
    summariser: Summariser = field(default_factory=Summariser)
    beside_tokens: int | None = None
    """Budget of what stands beside the summary; None: by the window."""
    attempts: Attempts = field(default_factory=Attempts)
    last_failure: str = ""
    _refused_in: int = 0
    _conversation: str = ""
    _refusals: dict[str, Attempts] = field(default_factory=dict)

    def opened(self, conversation: str) -> None:
        """Another conversation is open; what was refused in the former one is known when it comes back (L26)."""
        if self.attempts.outcome == "refused":
            self._refusals[self._conversation] = self.attempts
            while len(self._refusals) > MOST_REFUSALS:
                del self._refusals[next(iter(self._refusals))]
        self._conversation = conversation
        self.attempts = self._refusals.pop(conversation, Attempts())
        self.last_failure, self._refused_in = "", 0
        self.summariser.costs.clear()

    def conditions_changed(self) -> None:
        """Another model or window: what was refused before may be possible now (L27)."""
        self.attempts = without_refusal(self.attempts)
        self._refusals.clear()

    async def compact(
        self,
        session: Session,
        reading: Reading,
        *,
        trigger: Trigger,
        chat: ChatModel | None,
        offline: bool,
        extra: dict[str, Any],
        dated: str,
        mid_turn: bool = False,
        ceiling: float | None = None,
    ) -> bool:
        """Try one compaction; True when it was committed. Nothing changes otherwise (M15, I5).

        `chat` is the model to ask (None only with `offline`), `extra` goes into the request body, `dated` is the ISO
        moment of the memory entry. An automatic one must end at `ceiling` tokens or less, or at 0.8 of the threshold
        without one: that is proven before anything is asked (I3; Part 2, 4). Cancelling before the commit leaves the
        log untouched. Raises `StoreError`.
        """
        cut = self.cut(session, reading, trigger=trigger, mid_turn=mid_turn, ceiling=ceiling)
        if cut is None:
            reason = self.why_no_cut(session, reading, trigger, ceiling)
            return self._fail(session, reading, trigger, reason, "refused")
        cap, beside_room = summary_cap(reading.window.tokens), self._beside_cap(reading)
        if not trigger.by_hand and reading.threshold is not None:
            limit = goal_of(reading.threshold) if ceiling is None else ceiling
            beside_room = min(beside_room, max(0, int(limit - cut.kept_tokens - cap - _pair_tokens(session))))
        plan = _Plan(trigger, cut, cap, beside_room, None if offline else chat, extra, dated)
        return await self._run(session, reading, plan)

    async def force(self, session: Session, reading: Reading, *, room: int, dated: str) -> bool:
        """Make the history fit `room` tokens with a summary made without a model; False when no cut does.

        The way out when the request could not be sent otherwise (ladder, rung e). Says nothing when it cannot help:
        the refusal will. Raises `StoreError`.
        """
        kept = session.conversation.shown()
        found = forced_cut(
            kept,
            [session.ledger.message(m) for m in kept],
            cap=summary_cap(reading.window.tokens) + self._beside_cap(reading),
            overhead=_pair_tokens(session),
            room=room,
            used=reading.used,
            pending=_pending_tokens(session),
        )
        if found is None:
            return False
        cut, cap = found
        beside_room = min(self._beside_cap(reading), cap // 4)
        plan = _Plan(OVERFLOW, cut, cap - beside_room, beside_room, None, {}, dated, forced=True)
        return await self._run(session, reading, plan)

    def most_of_summary(self, session: Session, reading: Reading) -> int:
        """The most a summary may take, in tokens: its text, what stands beside it, and its two messages."""
        return summary_cap(reading.window.tokens) + self._beside_cap(reading) + _pair_tokens(session)

    def _beside_cap(self, reading: Reading) -> int:
        return beside_cap(reading.window.tokens) if self.beside_tokens is None else self.beside_tokens

    async def _run(self, session: Session, reading: Reading, plan: _Plan) -> bool:
        started = self.clock.monotonic()
        kept = session.conversation.shown()
        cut, trigger = plan.cut, plan.trigger
        span = await asyncio.to_thread(_clean, kept[: cut.index])
        cycle = session.conversation.cycle + 1
        version = session.version
        live = session.conversation.compactions
        earlier = live[-1].summary if live else None
        self.bus.enter("compacting")
        self.bus.emit(CompactionStarted(cycle, trigger.name, kept[cut.index].id, len(span), reading.used))
        window = reading.window.tokens
        point = None
        if trigger.goes_on:
            point = Point(session.id, session.history(), kept[cut.index].id, session.ledger)
        task = Task(
            span,
            earlier,
            cycle,
            cap=plan.cap,
            window=window,
            chat=plan.chat,
            extra=plan.extra,
            conversation=session.id,
            point=point,
        )
        try:
            checked = await self.summariser.summarise(task)
        except SummaryRejected as problem:
            return self._fail(session, reading, trigger, f"the summary was not usable: {problem}", "failed")
        except ModelError as problem:
            return self._fail(session, reading, trigger, f"the summary could not be made: {problem.message}", "failed")
        messages = session.conversation.messages
        at = next((i for i, m in enumerate(messages) if m.id == kept[cut.index].id), 0)
        before = await asyncio.to_thread(_clean, messages[:at])
        settlement = await asyncio.to_thread(Settlement, before)
        new = await asyncio.to_thread(settlement.of, checked.summary)
        merged = await asyncio.to_thread(self.summariser.strategy.merge, earlier, new, cycle=cycle)
        known = await asyncio.to_thread(settlement.of, merged.summary)
        gone = joined(known, checked.folded, merged.left_out)
        fitted = fit_tokens(in_place(known, gone), plan.cap, session.ledger.text)
        gone = joined(fitted.summary, gone, fitted.folded)
        entry = CompactionCommitted(
            cycle=cycle,
            trigger=trigger.name,
            cut=kept[cut.index].id,
            summary=fitted.summary,
            summarizer="model" if plan.chat is not None else "offline",
            messages_before=len(session.history()),
            messages_after=len(kept) - cut.index + 2,
            tokens_before=reading.used,
            tokens_after=0,
            seconds=0.0,
            beside=await self._known_for_certain(session, before, messages[at:], plan.beside),
        )
        pair = compaction_pair(entry)
        after = cut.kept_tokens + session.ledger.messages(pair)
        if after >= reading.used and entry.beside:  # a small conversation: the summary alone may still be shorter
            entry = replace(entry, beside="")
            pair = compaction_pair(entry)
            after = cut.kept_tokens + session.ledger.messages(pair)
        if after >= reading.used:
            reason = f"the result would not be smaller ({after} of {reading.used} tokens)"
            return self._fail(session, reading, trigger, reason, "refused")
        try:
            omission_id = await self._put_aside(session, entry, gone, plan)
        except OSError as problem:
            reason = f"what has no room in the summary could not be stored: {problem.strerror or problem}"
            return self._fail(session, reading, trigger, reason, "failed")
        if session.version != version:
            return self._fail(session, reading, trigger, "the conversation changed meanwhile", "failed")
        seconds = round(self.clock.monotonic() - started, 3)
        summary = named(entry.summary, omission_id)
        entry = replace(entry, summary=summary, tokens_after=after, seconds=seconds)
        try:
            await session.commit(entry)
        except LogMoved:
            return self._fail(session, reading, trigger, "the conversation changed meanwhile", "failed")
        if plan.forced:
            logged = len(session.conversation.messages)
            self.attempts = after_forced(self.attempts, messages=logged, used=after)
        else:
            self._remember(session, after, "done")
            self.last_failure = ""
        self.meter.rewritten()
        self.bus.emit(CompactionFinished(entry))
        fresh = frozenset(m.id for m in span if not m.synthetic)
        lasting = await asyncio.to_thread(Lasting, before, messages[at:], fresh)
        await self._feed(session, lasting, new, fitted.folded, cycle, plan.dated)
        return True

    async def _put_aside(self, session: Session, entry: CompactionCommitted, gone: Summary, plan: _Plan) -> str:
        """The id under which the items of `gone` can be read from now on; "" when there are none.

        Raises OSError, but not when the request could not be sent otherwise: then people are told, and the log still
        holds what the items were made from.
        """
        count = len(items_of(gone))
        if not count:
            return ""
        items = f"{count} item{'' if count == 1 else 's'}"
        try:
            return await self.keeper.put_aside(
                session,
                folded_text(gone, entry.cycle, entry.summary),
                what=f"{items} folded out in compaction {entry.cycle}",
                message_id=f"summary-{entry.cycle}",
            )
        except OSError as problem:
            if not plan.forced:
                raise
            text = f"{items} of the summary could not be stored: {problem.strerror or problem}"
            self.bus.emit(Notice("warning", text, "Recall still finds the messages they were made from."))
            return ""

    async def _known_for_certain(
        self, session: Session, before: Sequence[Message], after: Sequence[Message], room: int
    ) -> str:
        """What stands beside the summary of everything `before` the cut, in `room` tokens (issue section 2)."""
        chars = room * CHARS_PER_TOKEN
        if chars <= LEAST_SUMMARY_CHARS:
            return ""
        block = await asyncio.to_thread(Beside, before, after=after)
        while chars > LEAST_SUMMARY_CHARS:
            text = await asyncio.to_thread(block.text, chars)
            size = session.ledger.text(text)
            if size <= room:
                return text
            chars = min(chars * 4 // 5, int(chars * room / size))
        return ""

    def cut(
        self,
        session: Session,
        reading: Reading,
        *,
        trigger: Trigger,
        counts: Sequence[int] | None = None,
        mid_turn: bool = False,
        ceiling: float | None = None,
    ) -> Cut | None:
        """Where a compaction would cut; None when no cut helps enough. `counts` are the tokens of the kept messages, if
        they were other than they are."""
        kept = session.conversation.shown()
        least = summary_cap(reading.window.tokens) + _pair_tokens(session)
        facts = CutFacts(
            messages=kept,
            counts=[session.ledger.message(m) for m in kept] if counts is None else counts,
            least=least,
            most=least + self._beside_cap(reading),
            target=reading.threshold,
            used=reading.used,
            mid_turn=mid_turn,
            ceiling=ceiling,
            pending=_pending_tokens(session),
        )
        return trigger.cut(facts)

    async def _feed(
        self, session: Session, lasting: Lasting, new: Summary, folded: Summary, cycle: int, dated: str
    ) -> None:
        """Feed long-term memory with what lasts (M32); a failure is a warning, never a failed compaction."""
        archived = durable_items(lasting.of(folded))
        facts = await asyncio.to_thread(durable_facts, lasting.of(new), archived, lasting.said())
        if not facts and not lasting.ended:
            return
        try:
            fed = await self.memory.feed(MemoryEntry(dated, session.id, cycle, facts, supersedes=lasting.ended))
        except OSError as problem:
            text = f"MEMORY.md could not be written: {problem.strerror or problem}"
            self.bus.emit(Notice("warning", text, "The compaction itself stands."))
            return
        if fed.archived:
            oldest = next((e.date[:10] for e in fed.archived if e.date), "notes by hand")
            text = f"MEMORY.md is full: {len(fed.archived)} entries (from {oldest}) were moved to MEMORY.archive.md."
            gone = f"The archive is full too: its {fed.dropped} oldest entries are gone." if fed.dropped else ""
            self.bus.emit(Notice("warning", text, gone))

    def _remember(self, session: Session, used: int, outcome: Outcome) -> None:
        conversation = session.conversation
        self.attempts = after_attempt(
            self.attempts, outcome, messages=len(conversation.messages), used=used, turn=conversation.turn
        )

    def _fail(self, session: Session, reading: Reading, trigger: Trigger, reason: str, outcome: Outcome) -> bool:
        self.last_failure = reason
        self._remember(session, reading.used, outcome)
        if outcome == "failed" and self.attempts.failures >= MAX_FAILURES:
            reason += f"; after {MAX_FAILURES} failures in a row only /compact tries again"
        turn = session.conversation.turn
        if outcome != "refused" or trigger.by_hand or self._refused_in != turn:  # said once a turn, it is known
            self.bus.emit(CompactionFailed(trigger.name, reason, outcome == "refused"))
        self._refused_in = turn if outcome == "refused" else self._refused_in
        return False

    def why_no_cut(
        self,
        session: Session,
        reading: Reading,
        trigger: Trigger,
        ceiling: float | None = None,
    ) -> str:
        """Why nothing can be cut, in tokens (M10; Part 2, 4)."""
        kept = session.conversation.shown()
        if len(kept) < 2:
            return "there is nothing to compact yet"
        newest = max((i for i, m in enumerate(kept) if m.role == "user" and not m.synthetic), default=0)
        if reading.threshold is None or (trigger.by_hand and newest == 0):
            return "no usable cut: everything belongs to the newest turn"
        held = session.ledger.messages(kept[newest:]) + _pending_tokens(session)
        return no_progress(reading, held, goal_of(reading.threshold) if ceiling is None else ceiling)


def _clean(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` without secrets: what is taken out of its sentence could not be told for a secret any more (I10)."""
    return tuple(map(redacted_message, messages))


def _pending_tokens(session: Session) -> int:
    pending = session.conversation.pending()
    return 0 if pending is None else session.ledger.message(pending)


def _pair_tokens(session: Session) -> int:
    """What a summary costs besides its text."""
    return session.ledger.messages(summary_pair("", session.conversation.cycle + 1))
