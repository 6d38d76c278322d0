"""Standing orders of the user, the open request and what became of the earlier ones (Part 2, 8 and 9; I12, I13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.messages import Message

OrderKind = Literal["constraint", "toggle", "lift", "approval"]
"""`lift` ends an earlier prohibition; `approval` allows something once. Neither is ever shown as a permission (I13)."""


@dataclass(frozen=True, slots=True)
class Order:
    """A sentence of the user that constrains, verbatim (I12).

    `scope` is the part of the sentence that limits it ("for this task", a path), "" for the whole conversation.
    `superseded_by` is the id of the message that ended it: another order, or for an approval the call that used it.
    """

    kind: OrderKind
    text: str
    message_id: str
    scope: str = ""
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A request that is no longer open and how it ended; `outcome` is one line quoted from the final answer."""

    message_id: str
    request: str
    ended: Literal["answered", "interrupted", "failed", "joined"]
    outcome: str = ""
    answer_id: str = ""


def order_history(messages: Sequence[Message]) -> tuple[Order, ...]:
    """Every order the user gave, in order, with what ended it. Only the user's own words count (case 126)."""
    return ()


def standing_orders(messages: Sequence[Message]) -> tuple[Order, ...]:
    """The orders in force, oldest first: the last one on a subject wins (case 61)."""
    return tuple(o for o in order_history(messages) if not o.superseded_by)


def render_orders(orders: Sequence[Order], *, max_chars: int, language: str = "English") -> str:
    """Bullets of at most `max_chars` characters; approvals and lifts are never shown as permissions (I13)."""
    return ""


def open_request(messages: Sequence[Message]) -> Message | None:
    """The last request of the user that no final answer has closed, None when there is none (case 51)."""
    return None


def done_list(messages: Sequence[Message]) -> tuple[Done, ...]:
    """The requests before the open one, oldest first, with how each ended (cases 51, 58)."""
    return ()


def render_requests(
    done: Sequence[Done], request: Message | None = None, *, max_chars: int, language: str = "English"
) -> str:
    """The open request, then the earlier ones newest first, at most `max_chars` characters."""
    return ""
