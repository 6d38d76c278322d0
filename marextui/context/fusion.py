"""Merging a new summary into the earlier one, in code and never by a model (P5, P10, P11)."""

from __future__ import annotations

from marextui.context.entries import Summary, SummaryItem


def fuse(earlier: Summary | None, new: Summary, *, cycle: int) -> Summary:
    """`new` (the summary of the span cut in compaction `cycle`) merged into `earlier`."""
    raise NotImplementedError


def fit(summary: Summary, cap_chars: int) -> tuple[Summary, tuple[SummaryItem, ...]]:
    """(summary whose rendering is within `cap_chars`, the items taken out of it)."""
    raise NotImplementedError
