"""Measures a request before it is sent: system part, history, budget, threshold (M1–M5, M39), and the gauge of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from marextui.context.budget import UNKNOWN_WINDOW, Window, budget_for, reached, reserve_for, threshold_for
from marextui.context.bulk import Scales
from marextui.context.messages import canonical_json
from marextui.context.tokens import TokenLedger, history_tokens, segments
from marextui.engine.events import Gauge
from marextui.engine.prompt import SystemPart
from marextui.engine.session import Session

RATE_TURNS = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures of one request, in tokens; `budget` and `threshold` None: the window is unknown (M4)."""

    system: int
    tools: int
    memory: int
    used: int
    estimated: bool
    window: Window
    reserve: int
    budget: int | None
    threshold: float | None
    over_threshold: bool
    rules: int = 0
    """The share of `system` that is MAREX.md."""
    project: int = 0
    """The project block: it stands in the first user message, and is no history (L51)."""

    @property
    def system_part(self) -> int:
        return self.system + self.tools + self.memory + self.project

    @property
    def over_budget(self) -> int:
        """Tokens by which the history exceeds the budget (0: it fits)."""
        return 0 if self.budget is None else max(0, self.used - self.budget)


@dataclass(slots=True)
class Meter:
    """Computes readings and gauges. `window` is settled by the engine; `max_output` the configured answer size."""

    ledger: TokenLedger
    compact_at: float
    max_output: int | None
    reserve_override: int | None = None
    window: Window = UNKNOWN_WINDOW
    used_at_turn_end: list[int] = field(default_factory=list)
    cached: int | None = None
    computed: int | None = None
    scales: Scales = field(default_factory=Scales)

    def reserve(self) -> int:
        """R: tokens kept for the answer; without a window the configured output, as it is what will be asked for."""
        if self.reserve_override is not None:
            return self.reserve_override
        if self.window.tokens is None:
            return self.max_output or 0
        return reserve_for(self.window.tokens, self.max_output)

    def read(self, session: Session, part: SystemPart) -> Reading:
        """Measure the next request of `session` with the system part `part`."""
        rules_and_base = "\n\n".join(p for p in (part.base, part.rules) if p)
        system = 4 + self.ledger.text(rules_and_base)
        memory = self.ledger.text("\n\n" + part.memory) if part.memory else 0
        tools = self.ledger.tools(part.tools) if part.tools else 0
        project = self.ledger.text(part.project)
        total = system + memory + tools + project
        used, estimated = history_tokens(session.conversation, self.ledger, total)
        reserve = self.reserve()
        budget = budget_for(self.window.tokens, reserve, total)
        return Reading(
            system=system,
            tools=tools,
            memory=memory,
            used=used,
            estimated=estimated,
            window=self.window,
            reserve=reserve,
            budget=budget,
            threshold=threshold_for(budget, self.compact_at),
            over_threshold=reached(used, budget, self.compact_at),
            rules=self.ledger.text(part.rules) if part.rules else 0,
            project=project,
        )

    def weigh(self, session: Session, part: SystemPart) -> int:
        """Bytes of the next request's body, but for its few settings (case 102). Each message is weighed once."""
        fixed = canonical_json([part.wire(), *filter(None, (part.project,)), *part.tools])
        return len(fixed.encode("utf-8", "surrogatepass")) + self.scales.messages(session.history())

    def turn_ended(self, used: int) -> None:
        """Remember H at the end of a turn, for the recent rate."""
        self.used_at_turn_end.append(used)
        del self.used_at_turn_end[: -(RATE_TURNS + 1)]

    def rewritten(self) -> None:
        """A compaction or undo changed H by itself: the rate starts again."""
        self.used_at_turn_end.clear()

    def rate(self) -> int | None:
        """Mean growth of H per turn over the recent turns; None before there are two or when it does not grow."""
        marks = self.used_at_turn_end
        if len(marks) < 2:
            return None
        growth = (marks[-1] - marks[0]) // (len(marks) - 1)
        return growth if growth > 0 else None

    def gauge(self, session: Session, reading: Reading, *, auto: bool, why_not: str) -> Gauge:
        """What the gauge pane shows for `reading`; the segments sum to H exactly (I8)."""
        parts = segments(session.history(), self.ledger, reading.used)
        return Gauge(
            system=reading.system,
            tools=reading.tools,
            memory=reading.memory,
            summary=parts.summary,
            outputs=parts.outputs,
            conversation=parts.conversation,
            window=reading.window.tokens,
            window_source=reading.window.source,
            reserve=reading.reserve,
            budget=reading.budget,
            threshold=None if reading.threshold is None else ceil(reading.threshold),
            compact_at=self.compact_at,
            estimated=reading.estimated,
            auto=auto,
            why_not=why_not,
            tokens_per_turn=self.rate(),
            cached=self.cached,
            computed=self.computed,
            project=reading.project,
        )
