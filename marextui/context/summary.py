"""Structured summaries: reading a model's reply, rendering for the view (P6–P8, P11, M16)."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.entries import Summary

SECTIONS: tuple[str, ...] = ("Session Intent", "Files Modified", "Decisions Made", "Current State", "Next Steps")
"""The coding default (P6); a setting may name others (P7)."""

EMPTY = "none"
"""What stands under a heading without items."""


class SummaryRejected(ValueError):
    """The reply is not a usable summary (M16); the text is a sentence for people."""


def render_summary(summary: Summary, *, cap_chars: int | None = None) -> str:
    """`summary` as Markdown."""
    blocks = []
    for section in summary.sections:
        lines = [f"## {section.title}"]
        for item in section.items:
            if item.status != "active":
                continue
            first, last = item.first_cycle, item.last_cycle
            tag = f"(cycle {last})" if first == last else f"(cycles {first}–{last})"
            lines.append(f"- {item.text} {tag}")
        if len(lines) == 1:
            lines.append(EMPTY)
        blocks.append("\n".join(lines))
    text = "\n\n".join(blocks)
    return text if cap_chars is None else text[:cap_chars]


def parse_summary(
    text: str, *, cycle: int, sections: Sequence[str] = SECTIONS, sources: tuple[str, ...] = ()
) -> Summary:
    """The reply `text` as data."""
    raise NotImplementedError


def check_reply(text: str, finish_reason: str, has_tool_calls: bool, reasoning: str) -> str:
    """The cleaned text of a summary reply; raises `SummaryRejected` (M16)."""
    raise NotImplementedError
