"""What a view must look like, and how it is made so (I1, cases 17–26). Repairs touch the view, never the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.messages import Message


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule broken at `index`; `rule` is a short stable name, `detail` a sentence."""

    index: int
    rule: str
    detail: str


def violations(messages: Sequence[Message], *, with_system: bool = True, closed: bool = True) -> tuple[Violation, ...]:
    """Rules broken by a view. `closed` False: an unanswered tool group at the very end is still being answered."""
    raise NotImplementedError


def strict_violations(messages: Sequence[Message], *, with_system: bool = True) -> tuple[Violation, ...]:
    """`violations`, plus user/assistant alternation as strict templates check it (cases 22, 23)."""
    raise NotImplementedError


def repair(messages: Sequence[Message], *, closed: bool = True) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """(a view without violations, one note per change). Idempotent and prefix-stable."""
    raise NotImplementedError
