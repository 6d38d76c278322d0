"""What stands in the view right beside the summary: only what code knows for certain (issue section 2; I12, I13)."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.messages import Message

WORK_LOG, EXACT_FACTS, STANDING_ORDERS, EARLIER_REQUESTS = (
    "Work Log",
    "Exact Facts",
    "Standing Orders",
    "Earlier Requests",
)
BESIDE_SECTIONS = (WORK_LOG, EXACT_FACTS, STANDING_ORDERS, EARLIER_REQUESTS)
"""Headings of the block, in order."""


def beside(before: Sequence[Message], *, max_chars: int, sections: Sequence[str] = BESIDE_SECTIONS) -> str:
    """The block for everything before the cut: the `sections` that are not empty, at most `max_chars` characters.

    `before` is every raw message before the cut since the beginning of the log, so that nothing decays over cycles.
    """
    return ""
