"""Exact facts of a span, found by code: paths, errors, values with their keys, ids (issue section 2; Part 2, 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.messages import Message

FactKind = Literal[
    "path", "symbol", "error", "number", "hash", "url", "setting", "constraint", "id", "version", "port", "date"
]
Speaker = Literal["user", "assistant", "call", "tool"]
"""Who stated a fact; `call` is the arguments of a tool call."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value as it stands in the message `message_id` (the first one that states it).

    `key` names it: "timeout", a package; the value itself where nothing names it. `uses` counts the messages it stands
    in. `superseded_by` is the id of the message that gave the key another value, "" while it holds.
    """

    kind: FactKind
    key: str
    value: str
    message_id: str
    uses: int
    superseded_by: str = ""
    speaker: Speaker = "tool"
    last: int = 0
    """Position of the last message it stands in, counted from 1."""


def index_facts(messages: Sequence[Message]) -> tuple[Fact, ...]:
    """Facts of `messages` in the order they were first stated, superseded ones included."""
    return ()


def best_facts(facts: Sequence[Fact], *, max_chars: int) -> tuple[Fact, ...]:
    """The facts most worth their room, best first, whose rendering has at most `max_chars` characters."""
    return ()


def render_facts(facts: Sequence[Fact], *, max_chars: int, language: str = "English") -> str:
    """One bullet for each fact that holds, in the given order; a corrected one says what it was until when."""
    return ""
