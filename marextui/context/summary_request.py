"""The request that asks a model for the summary of a span (M11, M12, P5, P8, P9, P21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marextui.context.entries import Summary
from marextui.context.messages import Message
from marextui.context.summary import SECTIONS

SUMMARIZER_PROMPT = ""


def transcript(messages: Sequence[Message], *, max_chars: int, result_chars: int = 1200) -> str:
    """`messages` as labelled plain text of at most `max_chars` characters, the end kept."""
    raise NotImplementedError


def summary_messages(
    span: Sequence[Message],
    *,
    earlier: Summary | None,
    window: int | None,
    chars_per_token: float = 3.0,
    cap: int,
    sections: Sequence[str] = SECTIONS,
    language: str = "",
) -> tuple[Mapping[str, Any], ...]:
    """The [system, user] messages, OpenAI wire form, that ask for the summary of `span`."""
    raise NotImplementedError
