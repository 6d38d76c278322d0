"""Standing orders of the user, the open request and what became of the earlier ones (Part 2, 8 and 9; I12, I13).

Only sentences a user wrote themselves count: not tool output, quoted text, code, program messages or summaries (126,
127). Nothing here is ever a permission: what a user once allowed is asked again by the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from marextui.context.beside_labels import labels
from marextui.context.calls import call_command
from marextui.context.facts import sentences, user_constraints
from marextui.context.messages import Message, ToolCall
from marextui.context.order_words import (
    Meaning,
    describes,
    exclusive,
    is_lift,
    is_permission,
    is_rule,
    is_strong,
    is_toggle,
    meaning,
    polite,
    replaces,
    says_yes,
    scope_of,
)
from marextui.context.outcomes import files_of
from marextui.context.quoting import fitting, inert, quoted
from marextui.context.requests import Done, done_list, open_request, render_requests
from marextui.context.speech import own_words, tame, unquoted

OrderKind = Literal["constraint", "toggle", "lift", "approval"]
"""`lift` ends an earlier prohibition; `approval` allows something once. Neither is ever shown as a permission (I13)."""

_MAX_SENTENCE = 500
_PER_MESSAGE = 40


@dataclass(frozen=True, slots=True)
class Order:
    """A sentence of the user that constrains, verbatim (I12).

    `scope` is the part of the sentence that limits it ("for this task"), "" for the whole conversation.
    `superseded_by` is the id of the message that ended it: another order, or for an approval the call that used it.
    `about` is the order that it turns round without naming what it is about ("Turn it off.").
    """

    kind: OrderKind
    text: str
    message_id: str
    scope: str = ""
    superseded_by: str = ""
    about: str = ""


def _kind(sentence: str, own: str) -> OrderKind | None:
    """What a sentence of a user is, None when it orders nothing; `own` is the sentence without what it quotes."""
    if is_permission(own):
        return "approval"
    if is_lift(own):
        return "lift"
    if sentence.endswith("?") and not polite(sentence):
        return None
    if is_toggle(own):
        return "toggle"
    if describes(own):
        return None
    told = own.rstrip("? ") if polite(sentence) else own
    return "constraint" if is_rule(own) or user_constraints(Message("", "user", told)) else None


def _whole(parts: Sequence[str]) -> list[str]:
    """Sentences with what follows an abbreviation put back."""
    whole: list[str] = []
    for part in parts:
        if whole and whole[-1].endswith(("e.g.", "i.e.", "etc.", "p. ex.", "cf.")):
            whole[-1] += " " + part
        else:
            whole.append(part)
    return whole


def _orders_in(message: Message, before: Message | None) -> list[Order]:
    answers = before is not None and before.role == "assistant"
    return [Order(kind, text, message.id, scope) for kind, text, scope in _told_in(own_words(message), answers)]


@lru_cache(maxsize=1024)
def _told_in(own: str, answers: bool) -> tuple[tuple[OrderKind, str, str], ...]:
    """(kind, sentence, scope) of each order in what a user wrote; `answers`: to something the assistant said.

    Remembered: everything since the beginning of the log is looked through at every compaction.
    """
    words = tame(own)
    found: list[tuple[OrderKind, str, str]] = []
    told = _whole(sentences(words))
    if told and answers and says_yes(words):
        found.append(("approval", told[0], scope_of(words)))
    blanked, at = unquoted(words), 0
    for sentence in told:
        here = words.find(sentence, at)
        at = here + len(sentence) if here != -1 else at
        said = blanked[here:at] if here != -1 else unquoted(sentence)
        if len(found) >= _PER_MESSAGE or not 4 <= len(sentence) <= _MAX_SENTENCE:
            continue
        kind = _kind(sentence, said)
        if kind is not None and not (kind == "approval" and found and found[0][0] == "approval"):
            found.append((kind, sentence, scope_of(sentence)))
    return tuple(found)


def _acts(call: ToolCall) -> bool:
    """True for a call that changes something: a command, or a change of a file."""
    return bool(call_command(call)) or any(kind != "read" for _, kind in files_of(call))


class _Register:
    """Orders as they come; the later one on a subject ends the earlier."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.meanings: list[Meaning] = []
        self.by_subject: dict[str, list[int]] = {}
        self.waiting: list[int] = []  # approvals not used yet

    def take(self, order: Order) -> None:
        told = meaning(order.text)
        if order.kind == "toggle" and not told.subject:
            order = self._pointing(order, told)
        if order.kind != "approval":
            for n in self._comparable(told):
                old = self.orders[n]
                if not old.superseded_by and old.message_id != order.message_id and replaces(told, self.meanings[n]):
                    self.orders[n] = replace(old, superseded_by=order.message_id)
            for word in _filed_under(told):
                self.by_subject.setdefault(word, []).append(len(self.orders))
        else:
            self.waiting.append(len(self.orders))
        self.orders.append(order)
        self.meanings.append(told)

    def _comparable(self, told: Meaning) -> list[int]:
        """Places of the orders that may be about the same, in order."""
        return sorted({n for word in _filed_under(told) for n in self.by_subject.get(word, [])})

    def _pointing(self, order: Order, told: Meaning) -> Order:
        """ "Turn it off" ends the latest toggle the other way round, and stands for it."""
        for n in range(len(self.orders) - 1, -1, -1):
            old = self.orders[n]
            if old.kind == "toggle" and not old.superseded_by and old.message_id != order.message_id:
                if self.meanings[n].forbids == told.forbids:
                    return order
                self.orders[n] = replace(old, superseded_by=order.message_id)
                return replace(order, about=old.about or old.text)
        return order

    def acted(self, message: Message) -> None:
        """A call that changes something uses up the approvals given before it."""
        if self.waiting and any(_acts(c) for c in message.tool_calls):
            for n in self.waiting:
                self.orders[n] = replace(self.orders[n], superseded_by=message.id)
            self.waiting.clear()


def _filed_under(told: Meaning) -> Iterator[str]:
    yield from told.subject
    yield from (f"\0{n}" for n in exclusive(told))


def order_history(messages: Sequence[Message]) -> tuple[Order, ...]:
    """Every order the user gave, in order, with what ended it. Only the user's own words count (case 126)."""
    register = _Register()
    before: Message | None = None
    for message in messages:
        if message.role == "user":
            for order in _orders_in(message, before):
                register.take(order)
        elif message.role == "assistant" and not message.synthetic:
            register.acted(message)
        before = message
    return tuple(register.orders)


def standing_orders(messages: Sequence[Message]) -> tuple[Order, ...]:
    """The orders in force, oldest first: the last one on a subject wins (case 61). Lifts are not orders themselves."""
    return tuple(o for o in order_history(messages) if not o.superseded_by and o.kind != "lift")


def render_orders(orders: Sequence[Order], *, max_chars: int, language: str = "English") -> str:
    """Bullets of at most `max_chars` characters; "" when there is nothing to show.

    Orders that hold always come before those of a task, each newest first. Approvals are never shown: a line says that
    the program asks for permissions (I13).
    """
    words = labels(language)
    shown = [o for o in orders if o.kind in {"constraint", "toggle"} and not o.superseded_by]
    newest = list(reversed(shown))
    ranked = [o for o in newest if is_strong(o.text)] + [o for o in newest if not is_strong(o.text)]
    lines = []
    for order in dict.fromkeys(ranked):
        scope = f"; {inert(order.scope, 60)}" if order.scope else ""
        scope += f"; → {quoted(order.about, 80)}" if order.about else ""
        lines.append(f"- {quoted(order.text, _MAX_SENTENCE)} ({order.message_id}{scope})")
    note = f"- {words['permissions']}" if any(o.kind == "approval" for o in orders) else ""
    if not lines:
        return note if len(note) <= max_chars else ""
    text = fitting(lines, max_chars - (len(note) + 1 if note else 0), words["more orders"])
    return "\n".join(filter(None, (text, note))) if text else ""


__all__ = [
    "Done",
    "Order",
    "OrderKind",
    "done_list",
    "open_request",
    "order_history",
    "render_orders",
    "render_requests",
    "standing_orders",
]
