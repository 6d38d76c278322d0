"""Re-fetches after a compaction, and reads of what was still in view (P20, Part 2, 16; cases 9, 72, 73)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from marextui.context.entries import Entry


@dataclass(frozen=True, slots=True)
class Refetch:
    """`call_id` in `message_id` fetched `what` again, which message `first_id` had fetched."""

    what: str
    message_id: str
    call_id: str
    first_id: str


@dataclass(frozen=True, slots=True)
class FetchReport:
    """Fetches made while the compaction of `cycle` was in force (0: none)."""

    cycle: int
    fetches: int
    refetched: tuple[Refetch, ...]
    regretted: tuple[Refetch, ...]


def fetch_reports(entries: Iterable[Entry]) -> tuple[FetchReport, ...]:
    """One report per compaction, in order of its cycle, and one with cycle 0 for what came before the first."""
    raise NotImplementedError
