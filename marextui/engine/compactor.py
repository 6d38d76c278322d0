"""Compaction: choose a cut, ask for a summary, check it, fuse it, commit it — or change nothing and say why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from marextui.context.budget import summary_cap
from marextui.context.cut import Cut, choose_cut, manual_cut
from marextui.context.entries import CompactionCommitted, Summary, SummaryItem, Trigger
from marextui.context.fold import summary_pair
from marextui.context.fusion import fit, fuse
from marextui.context.memory import MemoryEntry, durable_facts
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.policy import MAX_FAILURES, Attempts, Outcome, after_attempt
from marextui.context.summary import SummaryRejected, check_reply, parse_summary, render_summary
from marextui.context.summary_request import summary_messages
from marextui.engine.bus import Bus
from marextui.engine.events import CompactionFailed, CompactionFinished, CompactionStarted, Notice
from marextui.engine.meter import Meter, Reading
from marextui.engine.ports import Clock
from marextui.engine.reply import Reply
from marextui.engine.session import Session
from marextui.models.types import ChatModel, ChatRequest, ModelError, Usage

SUMMARY_TEMPERATURE = 0.1
CHARS_PER_TOKEN = 4


class MemoryFeed(Protocol):
    """Where durable facts of a compaction go (`store.memory.MemoryStore`)."""

    async def feed(self, entry: MemoryEntry) -> None: ...


@dataclass(slots=True)
class Compactor:
    """Runs compactions of the open conversation and remembers its attempts, in memory only (I4, case 13)."""

    bus: Bus
    clock: Clock
    meter: Meter
    memory: MemoryFeed
    strategy: Literal["anchored", "regenerative"] = "anchored"
    attempts: Attempts = field(default_factory=Attempts)
    last_failure: str = ""
    usages: list[Usage] = field(default_factory=list)
    """What the summary requests of this turn cost; they appear in usage, never in the trigger (cases 11, 123)."""

    def forget(self) -> None:
        """Another conversation is open."""
        self.attempts, self.last_failure = Attempts(), ""
        self.usages.clear()

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
    ) -> bool:
        """Try one compaction; True when it was committed. Nothing changes otherwise (M15, I5).

        `chat` is the model to ask (None only with `offline`), `extra` goes into the request body, `dated` is the ISO
        moment of the memory entry. Cancelling before the commit leaves the log untouched. Raises `StoreError`.
        """
        started = self.clock.monotonic()
        kept = session.conversation.shown()
        counts = [session.ledger.message(m) for m in kept]
        cut = self._cut(kept, counts, reading, trigger, mid_turn)
        if cut is None:
            reason = _why_no_cut(kept, counts, reading, mid_turn)
            return self._fail(session, reading, trigger, reason, "refused")
        span = kept[: cut.index]
        cycle = session.conversation.cycle + 1
        version = session.version
        live = session.conversation.compactions
        earlier = live[-1].summary if live else None
        self.bus.enter("compacting")
        self.bus.emit(CompactionStarted(cycle, trigger, kept[cut.index].id, len(span), reading.used))
        try:
            new = await self._summarise(chat if not offline else None, span, earlier, reading, cycle, extra)
        except SummaryRejected as problem:
            return self._fail(session, reading, trigger, f"the summary was not usable: {problem}", "failed")
        except ModelError as problem:
            return self._fail(session, reading, trigger, f"the summary could not be made: {problem.message}", "failed")
        merged = new if self.strategy == "regenerative" else fuse(earlier, new, cycle=cycle)
        summary, archived = fit(merged, summary_cap(reading.window.tokens) * CHARS_PER_TOKEN)
        pair = summary_pair(render_summary(summary), cycle)
        after = cut.kept_tokens + session.ledger.messages(pair)
        if after >= reading.used:
            reason = f"the result would not be smaller ({after} of {reading.used} tokens)"
            return self._fail(session, reading, trigger, reason, "refused")
        if session.version != version:
            return self._fail(session, reading, trigger, "the conversation changed meanwhile", "failed")
        entry = CompactionCommitted(
            cycle=cycle,
            trigger=trigger,
            cut=kept[cut.index].id,
            summary=summary,
            summarizer="offline" if offline or chat is None else "model",
            messages_before=len(session.history()),
            messages_after=len(kept) - cut.index + len(pair),
            tokens_before=reading.used,
            tokens_after=after,
            seconds=round(self.clock.monotonic() - started, 3),
        )
        await session.append(entry)
        self._remember(session, after, "done")
        self.last_failure = ""
        self.meter.rewritten()
        self.bus.emit(CompactionFinished(entry))
        await self._feed(session, new, archived, cycle, dated)
        return True

    def _cut(
        self,
        kept: Sequence[Message],
        counts: Sequence[int],
        reading: Reading,
        trigger: Trigger,
        mid_turn: bool,
    ) -> Cut | None:
        cap = summary_cap(reading.window.tokens)
        if trigger == "manual":
            return manual_cut(kept, counts, summary_tokens=cap, target=reading.threshold, used=reading.used)
        if reading.threshold is None:
            return None
        return choose_cut(
            kept, counts, summary_tokens=cap, target=reading.threshold, used=reading.used, mid_turn=mid_turn
        )

    async def _summarise(
        self,
        chat: ChatModel | None,
        span: Sequence[Message],
        earlier: Summary | None,
        reading: Reading,
        cycle: int,
        extra: dict[str, Any],
    ) -> Summary:
        """The newly cut span as a summary; `chat` None: without a model. Raises `ModelError`, `SummaryRejected`.

        The regenerative strategy summarises the earlier summary together with the span (P4).
        """
        if self.strategy == "regenerative" and earlier is not None:
            span = (*summary_pair(render_summary(earlier), cycle - 1), *span)
            earlier = None
        if chat is None:
            return await asyncio.to_thread(offline_summary, span, cycle=cycle)
        cap = summary_cap(reading.window.tokens)
        # Extracting and redacting a large span takes seconds: never in the loop.
        messages = await asyncio.to_thread(
            summary_messages, span, earlier=earlier, window=reading.window.tokens, cap=cap
        )
        request = ChatRequest(
            messages=messages,
            max_tokens=cap,
            temperature=SUMMARY_TEMPERATURE,
            stream=False,
            extra=extra,
        )
        reply = Reply("summary", 0, Bus())
        async for chunk in chat.stream(request):
            reply.feed(chunk)
        if reply.usage is not None:
            self.usages.append(reply.usage)
        text = check_reply(reply.body, reply.finish_reason, bool(reply.calls), "".join(reply.reasoning))
        return parse_summary(text, cycle=cycle, sources=(span[0].id, span[-1].id))

    async def _feed(
        self, session: Session, new: Summary, archived: Sequence[SummaryItem], cycle: int, dated: str
    ) -> None:
        """Feed long-term memory (M32); a failure is a warning, never a failed compaction."""
        facts = durable_facts(new, archived)
        if not facts:
            return
        try:
            await self.memory.feed(MemoryEntry(dated, session.id, cycle, facts))
        except OSError as problem:
            text = f"MEMORY.md could not be written: {problem.strerror or problem}"
            self.bus.emit(Notice("warning", text, "The compaction itself stands."))

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
        self.bus.emit(CompactionFailed(trigger, reason, outcome == "refused"))
        return False


def _why_no_cut(kept: Sequence[Message], counts: Sequence[int], reading: Reading, mid_turn: bool) -> str:
    """Why nothing can be cut, in tokens (M10)."""
    newest = max((i for i, m in enumerate(kept) if m.role == "user" and not m.synthetic), default=0)
    if len(kept) < 2:
        return "there is nothing to compact yet"
    if newest == 0 and not mid_turn:
        return "no usable cut: everything belongs to the newest turn"
    if mid_turn:
        return "no usable cut: what must be kept of this turn is too large by itself"
    limit = "" if reading.threshold is None else f" of a threshold of {int(reading.threshold)}"
    return f"no usable cut: the newest turn alone holds {sum(counts[newest:])} tokens{limit}"
