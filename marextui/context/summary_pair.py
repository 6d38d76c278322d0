"""The two messages that stand in the view for everything before the cut (M13, B6, I11)."""

from __future__ import annotations

from functools import lru_cache

from marextui.context.entries import CompactionCommitted
from marextui.context.language import detect_language
from marextui.context.marks import SUMMARY_MARK
from marextui.context.messages import Message
from marextui.context.phrases import noted
from marextui.context.summary import render_summary


def summary_text(compaction: CompactionCommitted) -> str:
    """What a compaction says of everything before its cut: the summary, then what code knows for certain."""
    return "\n\n".join(t for t in (render_summary(compaction.summary), compaction.beside) if t)


def compaction_pair(compaction: CompactionCommitted) -> tuple[Message, Message]:
    """The summary pair of a compaction, in the language of what its user wanted (I11, case 125)."""
    sections = compaction.summary.sections
    wanted = "\n".join(item.text for section in sections[:1] for item in section.items)
    everything = "\n".join(item.text for section in sections for item in section.items)
    return summary_pair(summary_text(compaction), compaction.cycle, _language(wanted) or _language(everything))


_language = lru_cache(maxsize=64)(detect_language)
"""Remembered: a view is made anew after every entry of the log."""


def summary_pair(text: str, cycle: int, language: str = "") -> tuple[Message, Message]:
    """The user + assistant pair that stands for everything before the cut (M13, B6).

    Ids depend on `cycle` only. The marker stands alone on the first line, so that the pair is recognised by prefix. The
    assistant half keeps user and assistant alternating on strict templates (case 22); it speaks `language`.
    """
    return (
        Message(f"summary-{cycle}", "user", f"{SUMMARY_MARK}\n{text}", origin="summary"),
        Message(f"summary-{cycle}-ack", "assistant", noted(language), origin="summary"),
    )
