"""Where a compaction may cut, and where it should (M7–M10, M21, B3, B13). Token figures exclude the system part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.messages import Message


@dataclass(frozen=True, slots=True)
class Cut:
    """Keep `messages[index:]`: `kept_tokens` of them, `projected` with the summary."""

    index: int
    kept_tokens: int
    projected: int


def cut_candidates(messages: Sequence[Message], *, mid_turn: bool = False) -> list[int]:
    """Indices that may be the first kept message, ascending."""
    raise NotImplementedError


def choose_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    summary_tokens: int,
    target: float,
    floor_reduction: float = 0.2,
    used: int,
    mid_turn: bool = False,
) -> Cut | None:
    """The cut of an automatic compaction, or None (B3)."""
    raise NotImplementedError


def manual_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    summary_tokens: int,
    target: float | None,
    used: int,
    mid_turn: bool = False,
) -> Cut | None:
    """The cut of a forced compaction (`/compact`); `target` None: unknown window (M21)."""
    raise NotImplementedError
