"""What the whole conversation settles about a summary: orders that were lifted, requests that were answered (51, 61).

A summary is made of one span; what ends an order or answers a request may lie in another. Code knows both for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from marextui.context.beside_labels import OPEN_LEADS, labels
from marextui.context.entries import Summary, SummaryItem
from marextui.context.language import detect_language
from marextui.context.messages import Message
from marextui.context.orders import Order, order_history
from marextui.context.quoting import quoted
from marextui.context.requests import closing_answer, request_spans
from marextui.context.section_titles import canonical_title, plain
from marextui.context.sections import rule_of
from marextui.context.speech import own_words
from marextui.context.summary_needs import says

_WANTS = frozenset({"session intent", "decisions made", "requirements"})
"""Sections in which an order of the user may stand as something that is wanted."""
_IS_THE_ORDER = 0.6
"""An item is about nothing else than an order when that says this share of its words."""
_QUOTE = 100


def settled(summary: Summary, before: Sequence[Message]) -> Summary:
    """`summary` of the messages `before` the cut (all of them since the beginning of the log), brought up to date.

    An item that is an order of the user which was lifted or replaced since is superseded; one that quotes it among
    other things says so. A next step that code wrote for an open request is done once that was answered. Nothing is
    removed. Pure; settling the result again changes nothing.
    """
    history = [o for o in order_history(before) if o.kind != "approval"]
    lifted = [o for o in history if o.superseded_by]
    standing = [plain(o.text) for o in history if not o.superseded_by]
    spans = request_spans(before)
    answered = {request.id for request, told in spans if closing_answer(told) is not None}
    note = labels(detect_language("\n".join(own_words(m) for m, _ in spans)))["lifted"]

    def now(title: str, item: SummaryItem) -> SummaryItem:
        if item.status != "active":
            return item
        if rule_of(title) == "steps":
            done = item.text.startswith(OPEN_LEADS) and item.sources[:1] and item.sources[0] in answered
            return replace(item, status="done") if done else item
        return _without_lifted(item, lifted, standing, note) if canonical_title(title) in _WANTS else item

    return Summary(tuple(replace(s, items=tuple(now(s.title, i) for i in s.items)) for s in summary.sections))


def _without_lifted(item: SummaryItem, lifted: Sequence[Order], standing: Sequence[str], note: str) -> SummaryItem:
    told = plain(item.text)
    if any(_quotes(told, order) or says(told, order) for order in standing):
        return item
    for order in lifted:
        text = plain(order.text)
        quotes = _quotes(told, text)
        if (quotes or says(told, text)) and len(text) >= _IS_THE_ORDER * len(plain(_asked(item.text))):
            return replace(item, status="superseded")
        said = note.format(text=quoted(order.text, _QUOTE), id=order.superseded_by)
        if quotes and said not in item.text:
            item = replace(item, text=f"{item.text} ({said})")
    return item


def _quotes(told: str, text: str) -> bool:
    return f" {text} " in f" {told} "


def _asked(text: str) -> str:
    """The part of an intent that quotes the user; all of it when nothing is quoted."""
    return text[1:].partition("”")[0] if text.startswith("“") else text
