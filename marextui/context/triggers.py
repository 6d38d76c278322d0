"""When a compaction begins and where it then cuts: threshold, sliding window, task boundary, or by hand (P12–P15, M21).

Each trigger is a small value behind one protocol. All obey the same rules of where a cut may fall and what it must gain
(`context.cut`); the threshold guards the others, since it alone follows the size of what is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from marextui.context.cut import Cut, choose_cut, manual_cut, turn_starts, turns_cut
from marextui.context.entries import TriggerName
from marextui.context.fold import Conversation
from marextui.context.ladder import GOAL_SHARE
from marextui.context.messages import Message
from marextui.context.plans import plan_finished
from marextui.context.trigger_names import KEEP_TURNS, SLIDE_BY, ChosenTrigger

SLIDE_REDUCTION = 0.05
"""Least share of H that sliding must free: what is kept is given, and a little each time is its purpose (case 10)."""
TASK_SHARE = Fraction(1, 4)
"""Share of the budget above which a finished task is worth a compaction (P14)."""


def goal_of(threshold: float) -> float:
    """Tokens at which an automatic reduction must end, with such a threshold (I3, hysteresis; case 14)."""
    return GOAL_SHARE * threshold


@dataclass(frozen=True, slots=True)
class Moment:
    """What a trigger looks at, in tokens and turns. `budget` None: the window is unknown.

    `turns` are the user's turns in the view, the one that has just begun included; `task_ended`: the list of things to
    do that the turn before it wrote last has nothing open. `mark` names the threshold in words.
    """

    used: int
    budget: int | None
    over_threshold: bool
    turns: int = 0
    task_ended: bool = False
    mark: str = ""

    @property
    def share(self) -> str:
        """H as a share of the budget, in words."""
        return "unknown" if not self.budget or self.budget <= 0 else f"{self.used / self.budget:.0%}"


def moment_of(conversation: Conversation, *, used: int, budget: int | None, over_threshold: bool, mark: str) -> Moment:
    """The moment the view of `conversation` is at; the turn that has just begun counts."""
    kept = conversation.kept()
    starts = turn_starts(kept)
    turns = len(starts) + (conversation.pending() is not None)
    ended = len(starts) > 1 and plan_finished(kept[starts[-2] : starts[-1]])
    return Moment(used, budget, over_threshold, turns, ended, mark)


@dataclass(frozen=True, slots=True)
class CutFacts:
    """What there is to cut: messages after the cut in force with their tokens, as `context.cut` takes them.

    `least` are the tokens of a summary at its cap, `most` with what stands beside it too; `target` is the threshold
    (None: no window, no threshold), `ceiling` overrules the goal that follows from it.
    """

    messages: Sequence[Message]
    counts: Sequence[int]
    least: int
    most: int
    target: float | None
    used: int
    mid_turn: bool = False
    ceiling: float | None = None
    pending: int = 0

    @property
    def sizes(self) -> tuple[int, int]:
        """Tokens of a summary to try with: what stands beside it has to give way first."""
        return self.most, self.least


class Trigger(Protocol):
    """One way to begin a compaction."""

    @property
    def name(self) -> TriggerName: ...

    @property
    def by_hand(self) -> bool:
        """A person asked for it and is told how it went."""
        ...

    @property
    def goes_on(self) -> bool:
        """The summary may be asked for by going on with the turn's request: nothing else was sent since (L28)."""
        ...

    def due(self, moment: Moment) -> bool:
        """Whether it begins one by itself at the start of a turn."""
        ...

    def cut(self, facts: CutFacts) -> Cut | None:
        """Where it cuts; None when no cut helps enough (M10)."""
        ...

    def explain(self, moment: Moment) -> tuple[str, ...]:
        """When it begins one by itself and how far that is, a clause each, for `/status` and the preview."""
        ...


@dataclass(frozen=True, slots=True)
class Threshold:
    """At `compact_at`: the earliest cut that makes enough room (M5, B3). Also after a server refused the size (B17)."""

    name: TriggerName = "threshold"
    by_hand: bool = field(default=False, init=False)
    goes_on: bool = True

    def due(self, moment: Moment) -> bool:
        return moment.over_threshold

    def cut(self, facts: CutFacts) -> Cut | None:
        def with_summary(size: int, target: float, ceiling: float) -> Cut | None:
            return choose_cut(
                facts.messages,
                facts.counts,
                summary_tokens=size,
                target=max(target, facts.ceiling or 0.0),
                used=facts.used,
                mid_turn=facts.mid_turn,
                ceiling=ceiling,
                pending=facts.pending,
            )

        return _first_that_helps(facts, with_summary)

    def explain(self, moment: Moment) -> tuple[str, ...]:
        return (f"at {moment.mark} (now {moment.share} of the budget)",)


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keeps the newest `keep` turns beside the summary (P13); `slide_by` turns leave at once (case 110)."""

    keep: int = KEEP_TURNS
    slide_by: int = SLIDE_BY
    name: TriggerName = field(default="sliding", init=False)
    by_hand: bool = field(default=False, init=False)
    goes_on: bool = field(default=True, init=False)

    def due(self, moment: Moment) -> bool:
        return moment.turns >= self.keep + self.slide_by

    def cut(self, facts: CutFacts) -> Cut | None:
        return _newest_turns(facts, self.keep, SLIDE_REDUCTION)

    def explain(self, moment: Moment) -> tuple[str, ...]:
        first = self.keep + self.slide_by
        return (
            f"from {first} turns in view on (now {moment.turns}), when that makes room; {self.keep} stay",
            f"at the latest at {moment.mark} (now {moment.share} of the budget)",
        )


@dataclass(frozen=True, slots=True)
class TaskBoundary:
    """At the end of a phase or task, above a quarter of the budget: only its last turn is kept (P14)."""

    by_hand: bool = False
    name: TriggerName = field(default="task", init=False)

    @property
    def goes_on(self) -> bool:
        return not self.by_hand

    def due(self, moment: Moment) -> bool:
        return moment.task_ended and self.worthwhile(moment)

    @staticmethod
    def worthwhile(moment: Moment) -> bool:
        """Whether a boundary now is worth a compaction."""
        return moment.budget is not None and moment.used > TASK_SHARE * moment.budget > 0

    def cut(self, facts: CutFacts) -> Cut | None:
        return _newest_turns(facts, 1, 0.2)

    def explain(self, moment: Moment) -> tuple[str, ...]:
        return (
            "at /phase NAME or a finished to-do list",
            f"when over {float(TASK_SHARE):.0%} of the budget (now {moment.share})",
            f"at the latest at {moment.mark}",
        )


@dataclass(frozen=True, slots=True)
class ByHand:
    """`/compact`, whatever the threshold says (M21)."""

    name: TriggerName = field(default="manual", init=False)
    by_hand: bool = field(default=True, init=False)
    goes_on: bool = field(default=False, init=False)

    def due(self, moment: Moment) -> bool:
        return False

    def cut(self, facts: CutFacts) -> Cut | None:
        return manual_cut(
            facts.messages,
            facts.counts,
            summary_tokens=facts.least,
            target=facts.target,
            used=facts.used,
            pending=facts.pending,
        )

    def explain(self, moment: Moment) -> tuple[str, ...]:
        return ("never by itself",)


THRESHOLD = Threshold()
OVERFLOW = Threshold("overflow", goes_on=False)
TASK_BOUNDARY = TaskBoundary()
PHASE = TaskBoundary(by_hand=True)
"""`/phase NAME`."""
BY_HAND = ByHand()


def chosen_trigger(name: ChosenTrigger, *, keep: int = KEEP_TURNS, slide_by: int = SLIDE_BY) -> Trigger:
    """The trigger of that name, as the settings have it."""
    triggers: dict[ChosenTrigger, Trigger] = {
        "threshold": THRESHOLD,
        "sliding": SlidingWindow(keep, slide_by),
        "task": TASK_BOUNDARY,
    }
    return triggers[name]


def _newest_turns(facts: CutFacts, turns: int, reduction: float) -> Cut | None:
    def with_summary(size: int, target: float, ceiling: float) -> Cut | None:
        return turns_cut(
            facts.messages,
            facts.counts,
            turns=turns,
            summary_tokens=size,
            target=target,
            used=facts.used,
            ceiling=ceiling,
            floor_reduction=reduction,
            pending=facts.pending,
        )

    return _first_that_helps(facts, with_summary)


def _first_that_helps(facts: CutFacts, with_summary: Callable[[int, float, float], Cut | None]) -> Cut | None:
    """The cut `with_summary` finds with the largest summary that still leaves one: it takes the tokens of a summary,
    the threshold, and what H may be at most afterwards. None also where there is no threshold."""
    if facts.target is None:
        return None
    ceiling = goal_of(facts.target) if facts.ceiling is None else facts.ceiling
    cuts = (with_summary(size, facts.target, ceiling) for size in facts.sizes)
    return next((cut for cut in cuts if cut is not None), None)
