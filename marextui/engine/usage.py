"""Consumption per turn: the line on the screen (M38) and the line in `.marex/usage.jsonl` (M44)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from marextui.context.entries import TurnClosed, TurnEnd
from marextui.engine.event_values import UsageLine
from marextui.engine.meter import Reading
from marextui.engine.ports import Clock
from marextui.engine.summariser import Cost
from marextui.engine.toolrun import ToolTally
from marextui.engine.turn_terms import Totals
from marextui.models.types import ModelChoice, Usage

JOURNAL_VERSION = 1


class Journal(Protocol):
    """`store.usage.UsageJournal`. Raises OSError."""

    async def append(self, line: Mapping[str, Any]) -> None: ...


@dataclass(slots=True)
class UsageBook:
    """Lines of the open conversation in memory; every turn also goes to the journal (None: not kept)."""

    journal: Journal | None
    clock: Clock
    _lines: list[UsageLine] = field(default_factory=list)

    def open(self, turns: Sequence[TurnClosed]) -> None:
        """Another conversation: its earlier turns as the log has them."""
        self._lines = [UsageLine(t.turn, t.inp, t.out, t.cache_read, "n/a", 0, t.seconds, t.model) for t in turns]

    def lines(self) -> tuple[UsageLine, ...]:
        """One line per turn of the open conversation, oldest first."""
        return tuple(self._lines)

    def line(self, turn: int, totals: Totals | None, seconds: float, choice: ModelChoice | None) -> UsageLine:
        """The figures of a turn that just ended; what the provider did not say stays unknown."""
        known = totals or Totals()
        line = UsageLine(
            turn=turn,
            inp=known.inp,
            out=known.out,
            cache_read=known.cache_read,
            cost="local" if choice is not None and choice.local else "n/a",
            steps=known.steps,
            seconds=seconds,
            model=choice.label if choice else "",
            tokens_per_second=known.predicted_per_second,
        )
        self._lines.append(line)
        return line

    async def extra(self, kind: str, usage: Usage, conversation_id: str, turn: int, model: str) -> str:
        """Append a request made outside the turns (kind "probe"); returns as `record`."""
        if self.journal is None:
            return ""
        line = {"v": JOURNAL_VERSION, "ts": self.clock.now(), "conv": conversation_id, "turn": turn, "kind": kind}
        spent = {"inp": usage.inp, "out": usage.out, "cache_read": usage.cache_read}
        try:
            await self.journal.append({**line, "model": model, **spent})
        except OSError as problem:
            return f"The usage journal could not be written: {problem.strerror or problem}"
        return ""

    async def summaries(self, costs: Sequence[Cost], conversation_id: str, turn: int, model: str) -> str:
        """Append one line for each summary request, kind "compact" (L29); returns as `record`."""
        if self.journal is None:
            return ""
        try:
            for cost in costs:
                await self.journal.append(self._summary(cost, conversation_id, turn, model))
        except OSError as problem:
            return f"The usage journal could not be written: {problem.strerror or problem}"
        return ""

    async def prewarm(self, cost: Cost, conversation_id: str, turn: int, model: str) -> str:
        """Append one line for a prewarm (L50), which is in no turn's figures (L45); returns as `record`."""
        if self.journal is None:
            return ""
        try:
            await self.journal.append({**self._request(cost, conversation_id, turn, model), "kind": "prewarm"})
        except OSError as problem:
            return f"The usage journal could not be written: {problem.strerror or problem}"
        return ""

    def _summary(self, cost: Cost, conversation_id: str, turn: int, model: str) -> dict[str, Any]:
        return {**self._request(cost, conversation_id, turn, model), "kind": "compact"}

    def _request(self, cost: Cost, conversation_id: str, turn: int, model: str) -> dict[str, Any]:
        usage = cost.usage or Usage()
        times = {name: cost.timings.get(name) for name in ("prompt_ms", "predicted_ms")}
        return {
            "v": JOURNAL_VERSION,
            "ts": self.clock.now(),
            "conv": conversation_id,
            "turn": turn,
            "kind": "",
            "how": cost.how,
            "model": model,
            "inp": usage.inp,
            "out": usage.out,
            "cache_read": usage.cache_read,
            "computed": usage.computed,
            "ms": int(cost.seconds * 1000),
            **times,
        }

    async def record(
        self,
        line: UsageLine,
        conversation_id: str,
        end: TurnEnd,
        totals: Totals | None,
        tally: ToolTally,
        reading: Reading,
        summaries: Sequence[Cost],
    ) -> str:
        """Append the turn (and its summary requests, kind "compact") to the journal.

        Returns "" or the sentence people are told when the journal cannot be written; the turn itself stands.
        """
        if self.journal is None:
            return ""
        window = reading.window.tokens
        common: dict[str, Any] = {"v": JOURNAL_VERSION, "ts": self.clock.now(), "conv": conversation_id}
        common["turn"] = line.turn
        main = {
            **common,
            "kind": "main",
            "model": line.model,
            "steps": line.steps,
            "inp": line.inp,
            "out": line.out,
            "cache_read": line.cache_read,
            "cost_usd": 0 if line.cost == "local" else None,
            "price_src": line.cost,
            "estimated": line.inp is None,
            "ms": int(line.seconds * 1000),
            "ttft_ms": totals.first_token_ms if totals else None,
            "tools": tally.calls,
            "tool_errors": tally.errors,
            "end": end,
            "window": window,
            "used_pct": round(100 * (reading.used + reading.system_part) / window, 1) if window else None,
            "compacted": bool(totals and totals.compacted),
        }
        try:
            for cost in summaries:
                await self.journal.append(self._summary(cost, conversation_id, line.turn, line.model))
            await self.journal.append(main)
        except OSError as problem:
            return f"The usage journal could not be written: {problem.strerror or problem}"
        return ""
