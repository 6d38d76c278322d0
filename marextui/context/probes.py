"""Probes: facts of a span that must have survived its compaction, and whether they did (P16–P19)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.entries import Summary, SummaryItem
from marextui.context.messages import Message
from marextui.context.search import Doc

ProbeKind = Literal["recall", "artifact", "continuation", "decision"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about the span, and the strings any of which answers it."""

    kind: ProbeKind
    question: str
    expected: tuple[str, ...]
    message_id: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`total` = `in_view` + `by_recall` + len(`lost`)."""

    in_view: int
    by_recall: int
    lost: tuple[Probe, ...]
    total: int
    recalled: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist (P19)."""

    name: str
    passed: bool
    detail: str


def extract_probes(span: Sequence[Message], *, limit: int = 40) -> tuple[Probe, ...]:
    """At most `limit` probes of `span`, in message order."""
    raise NotImplementedError


def check_probes(probes: Sequence[Probe], view: Sequence[Message], docs: Sequence[Doc]) -> ProbeResult:
    """Where each probe's answer is: in `view`, within one search of `docs`, or lost."""
    raise NotImplementedError


def checklist(
    *,
    trigger_share: float | None,
    sections: Sequence[str],
    summary: Summary | None,
    earlier: Summary | None = None,
    folded: Sequence[SummaryItem] = (),
    probes: ProbeResult | None = None,
    refetch_rate: float | None = None,
) -> tuple[Check, ...]:
    """The five lines of `/context check` (P19)."""
    raise NotImplementedError
