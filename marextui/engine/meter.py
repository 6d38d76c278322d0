"""Measures a request before it is sent: system part, history, budget, threshold (M1–M5, M39), and the gauge of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from marextui.context.budget import (
    UNKNOWN_WINDOW,
    Window,
    budget_for,
    past,
    reached,
    reserve_for,
    threshold_for,
    window_threshold,
)
from marextui.context.bulk import Scales
from marextui.context.entries import UsageMeasured
from marextui.context.messages import canonical_json
from marextui.context.tokens import TokenLedger, history_tokens, segments
from marextui.context.trigger_names import CompactBase
from marextui.engine.event_values import Gauge
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
    scales: Scales = field(default_factory=Scales)
    compact_base: CompactBase = "budget"
    """What `compact_at` is a share of (B1, P12)."""
    _counted: tuple[UsageMeasured | None, int] = (None, 0)
    """A count of the server, and the tokens of the system part it was made with."""

    @property
    def mark(self) -> str:
        """Where compaction triggers, in words."""
        return f"{self.compact_at:.0%} of the {self.compact_base}"

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
        measured, counted_with = self._counted
        same = measured is not None and measured is session.conversation.measured
        used, estimated = history_tokens(session.conversation, self.ledger, counted_with if same else total)
        reserve = self.reserve()
        budget = budget_for(self.window.tokens, reserve, total)
        threshold, over = threshold_for(budget, self.compact_at), reached(used, budget, self.compact_at)
        if self.compact_base == "window" and self.window.tokens is not None and threshold is not None:
            threshold = window_threshold(self.window.tokens, total, self.compact_at)
            over = past(used, total, self.window.tokens, self.compact_at)
        return Reading(
            system=system,
            tools=tools,
            memory=memory,
            used=used,
            estimated=estimated,
            window=self.window,
            reserve=reserve,
            budget=budget,
            threshold=threshold,
            over_threshold=over,
            rules=self.ledger.text(part.rules) if part.rules else 0,
            project=project,
        )

    def counted(self, session: Session, part: SystemPart) -> None:
        """The server counted the last request of `session`, which was sent with `part`: what of the count is history
        does not change when other rules, tools or notes are sent later."""
        self._counted = (None, 0)
        self._counted = (session.conversation.measured, self.read(session, part).system_part)

    def weigh(self, session: Session, part: SystemPart) -> int:
        """Bytes of the next request's body, but for its few settings (case 102). Each message is weighed once."""
        fixed = canonical_json([part.wire(), *filter(None, (part.project,)), *part.tools])
        return len(fixed.encode("utf-8", "surrogatepass")) + self.scales.messages(session.history())

    def turn_ended(self, used: int) -> None:
        """Remember H at the end of a turn, for the recent rate."""
        self.used_at_turn_end.append(used)
        del self.used_at_turn_end[: -(RATE_TURNS + 1)]

    def echo_reasoning(self, wanted: bool) -> None:
        """Whether past reasoning is sent back from now on, and so counts."""
        self.ledger.echo_reasoning = wanted
        self.scales = Scales(echo_reasoning=wanted)

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

    def _share_of_budget(self, reading: Reading) -> float:
        """The threshold as the gauge draws it, whatever it is a share of."""
        if self.compact_base == "budget" or reading.threshold is None or not reading.budget:
            return self.compact_at
        return reading.threshold / reading.budget

    def gauge(self, session: Session, reading: Reading, *, auto: bool, why_not: str, loading: bool = False) -> Gauge:
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
            budget=None if reading.budget is None else max(0, reading.budget),  # no room is none, not less than none
            threshold=None if reading.threshold is None else ceil(reading.threshold),
            compact_at=self._share_of_budget(reading),
            estimated=reading.estimated,
            auto=auto,
            why_not=why_not,
            tokens_per_turn=self.rate(),
            project=reading.project,
            loading=loading and reading.window.tokens is None,
        )
