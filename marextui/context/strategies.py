"""How an earlier summary and a newly cut span become one summary: anchored or regenerative (P4, P5, P9, P10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from marextui.context.entries import Summary, SummaryItem
from marextui.context.folding import NOTHING, carried
from marextui.context.fusion import fuse
from marextui.context.section_titles import canonical_title, plain
from marextui.context.strategy_names import StrategyName


@dataclass(frozen=True, slots=True)
class Merged:
    """The `summary` of everything before the cut, and the items of the earlier one it no longer holds, by section."""

    summary: Summary
    left_out: Summary = NOTHING


class Strategy(Protocol):
    """What the model is asked for, and how its answer joins what was known."""

    @property
    def name(self) -> StrategyName: ...

    @property
    def rewrites(self) -> bool:
        """Whether the new summary tells the earlier one anew (P4), or only of the newly cut span (P5, P9)."""
        ...

    def without_model(self, earlier: Summary | None, span: Summary, *, cycle: int) -> Summary:
        """What a model that `rewrites` or does not would have answered, from the offline summary of the span."""
        ...

    def merge(self, earlier: Summary | None, new: Summary, *, cycle: int) -> Merged:
        """`new`, the answer in compaction `cycle`, joined with `earlier`. Deterministic; nothing vanishes."""
        ...


@dataclass(frozen=True, slots=True)
class Anchored:
    """The earlier summary stays; the span's is merged into it in code (P5, P10)."""

    name: StrategyName = "anchored"
    rewrites: bool = False

    def without_model(self, earlier: Summary | None, span: Summary, *, cycle: int) -> Summary:
        return span

    def merge(self, earlier: Summary | None, new: Summary, *, cycle: int) -> Merged:
        return Merged(fuse(earlier, new, cycle=cycle))


@dataclass(frozen=True, slots=True)
class Regenerative:
    """The whole summary is written anew each time; what the new one does not repeat leaves it (P4)."""

    name: StrategyName = "regenerative"
    rewrites: bool = True

    def without_model(self, earlier: Summary | None, span: Summary, *, cycle: int) -> Summary:
        return span if earlier is None else _active(fuse(_active(earlier), span, cycle=cycle))

    def merge(self, earlier: Summary | None, new: Summary, *, cycle: int) -> Merged:
        if earlier is None:
            return Merged(new)
        said = {(canonical_title(s.title), plain(i.text)) for s in new.sections for i in s.items}
        left = (
            replace(s, items=tuple(i for i in s.items if (canonical_title(s.title), plain(i.text)) not in said))
            for s in earlier.sections
        )
        return Merged(carried(new, earlier), Summary(tuple(s for s in left if s.items)))


def _active(summary: Summary) -> Summary:
    def standing(items: Iterable[SummaryItem]) -> tuple[SummaryItem, ...]:
        return tuple(i for i in items if i.status == "active")

    return Summary(tuple(replace(s, items=standing(s.items)) for s in summary.sections))


def strategy_named(name: StrategyName) -> Strategy:
    """The strategy of that name."""
    return Anchored() if name == "anchored" else Regenerative()
