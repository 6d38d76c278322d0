"""Lenient reader of recorded conversations in OpenAI chat form, for `marextui replay`: never fails on odd content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marextui.context.messages import Message


class RecordingError(Exception):
    """The file is not a recording at all; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was read: messages in order (not yet repaired) and one note per oddity."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...]


def message_from_wire(raw: Mapping[str, Any], *, id: str, turn: int) -> tuple[Message | None, list[str]]:
    """One message in wire form, read leniently, and notes on what was odd. None: nothing usable."""
    raise NotImplementedError


def read_recording(data: bytes, *, name: str) -> Recording:
    """JSON array, {"messages": [...]} or JSON lines, gzipped or not. Raises `RecordingError`."""
    raise NotImplementedError
