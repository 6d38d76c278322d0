"""A summary without a model: sections built from the messages themselves."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.entries import Summary
from marextui.context.messages import Message
from marextui.context.summary import SECTIONS


def offline_summary(
    span: Sequence[Message], *, cycle: int, sections: Sequence[str] = SECTIONS, max_chars: int = 4800
) -> Summary:
    """Deterministic summary of `span`."""
    raise NotImplementedError
