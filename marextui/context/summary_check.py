"""Checking a summary against the span it stands for, and repairing it in code (Part 2, 7; I11, I12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.entries import Summary, SummaryItem
from marextui.context.messages import Message


@dataclass(frozen=True, slots=True)
class Checked:
    """A summary that may be used: what was wrong with it, what code added, what the size cap folded out of it."""

    summary: Summary
    problems: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    folded: tuple[SummaryItem, ...] = ()
    retry: str = ""
    """Why asking the model once more is worth it (a clear language mismatch, I11); "" when it is not."""


def check_summary(
    summary: Summary,
    span: Sequence[Message],
    *,
    earlier: Summary | None = None,
    language: str = "",
    cycle: int | None = None,
    cap_chars: int | None = None,
    known: Sequence[str] = (),
) -> Checked:
    """`summary` (of `span` alone, before fusion) checked and repaired."""
    raise NotImplementedError
