"""What the whole conversation settles about a summary: orders that were lifted, requests that were answered (51, 61).

A summary is made of one span; what ends an order or answers a request may lie in another. Code knows both for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from marextui.context.beside_labels import OPEN_LEADS, labels
from marextui.context.entries import Summary, SummaryItem
from marextui.context.language import detect_language
from marextui.context.messages import Message
from marextui.context.orders import order_history
from marextui.context.quoting import quoted
from marextui.context.requests import closing_answer, request_spans
from marextui.context.section_titles import canonical_title, plain
from marextui.context.sections import rule_of
from marextui.context.speech import own_words
from marextui.context.summary_needs import SHARED_WORDS, is_negated, words_of

_WANTS = frozenset({"session intent", "decisions made", "requirements"})
"""Sections in which an order of the user may stand as something that is wanted."""
_IS_THE_ORDER = 0.6
"""An item is about nothing else than an order when that says this share of its words."""
_QUOTE = 100


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of an order or an item, made comparable once: each item is compared with each order."""

    text: str
    words: frozenset[str]
    negated: bool

    @classmethod
    def of(cls, text: str) -> _Said:
        bare = plain(text)
        return cls(f" {bare} ", words_of(bare), is_negated(bare))

    def quotes(self, order: _Said) -> bool:
        """Whether the order stands in it word for word."""
        return order.text in self.text

    def says(self, order: _Said) -> bool:
        """Whether it has most of the words of the order, the same way round."""
        if self.quotes(order):
            return True
        shared = len(order.words & self.words)
        return len(order.words) >= 3 and self.negated == order.negated and shared >= SHARED_WORDS * len(order.words)


class Settlement:
    """What the messages `before` the cut (all of them since the beginning of the log) settle. Pure."""

    def __init__(self, before: Sequence[Message]) -> None:
        history = [o for o in order_history(before) if o.kind != "approval"]
        self._lifted = [(o, _Said.of(o.text)) for o in history if o.superseded_by]
        self._standing = [_Said.of(o.text) for o in history if not o.superseded_by]
        spans = request_spans(before)
        self._answered = {request.id for request, told in spans if closing_answer(told) is not None}
        self._note = labels(detect_language("\n".join(own_words(m) for m, _ in spans)))["lifted"]

    def of(self, summary: Summary) -> Summary:
        """`summary` brought up to date; settling the result again changes nothing, and nothing is removed.

        An item that is an order of the user which was lifted or replaced since is superseded; one that quotes it among
        other things says so. A next step that code wrote for an open request is done once that was answered.
        """
        return Summary(tuple(replace(s, items=tuple(self._now(s.title, i) for i in s.items)) for s in summary.sections))

    def _now(self, title: str, item: SummaryItem) -> SummaryItem:
        if item.status != "active":
            return item
        if rule_of(title) == "steps":
            done = item.text.startswith(OPEN_LEADS) and item.sources[:1] and item.sources[0] in self._answered
            return replace(item, status="done") if done else item
        return self._without_lifted(item) if self._lifted and canonical_title(title) in _WANTS else item

    def _without_lifted(self, item: SummaryItem) -> SummaryItem:
        told = _Said.of(item.text)
        found = [(order, said) for order, said in self._lifted if told.says(said)]
        if not found or any(told.says(order) for order in self._standing):
            return item
        asked = len(plain(_asked(item.text)))
        for order, said in found:
            if len(said.text) - 2 >= _IS_THE_ORDER * asked:
                return replace(item, status="superseded")
            note = self._note.format(text=quoted(order.text, _QUOTE), id=order.superseded_by)
            if told.quotes(said) and note not in item.text:
                item = replace(item, text=f"{item.text} ({note})")
        return item


def _asked(text: str) -> str:
    """The part of an intent that quotes the user; all of it when nothing is quoted."""
    return text[1:].partition("”")[0] if text.startswith("“") else text
