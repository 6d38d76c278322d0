"""What of a compaction outlasts its conversation: what holds, without the talk it was said in (M32; cases 51, 61, 131).

A request that was answered, a question and a greeting are no goals. What the user demands stands in their own words, a
value that they corrected with its latest; what was taken back or corrected is neither fed nor left standing in memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from marextui.context.beside_labels import every
from marextui.context.entries import Summary, SummaryItem
from marextui.context.factindex import Fact, index_facts
from marextui.context.messages import Message
from marextui.context.order_words import claims_permission, is_strong
from marextui.context.orders import order_history
from marextui.context.requests import closing_answer, request_spans
from marextui.context.search_words import flat
from marextui.context.section_titles import canonical_title, plain

_VALUES = frozenset({"port", "version", "date", "setting", "number"})
_ANSWERED = re.compile(r"^“.*” — (?:" + "|".join(map(re.escape, every("answered"))) + "): ", re.DOTALL)
_TALK = re.compile(
    r"(?:(?:hello|hi|hey|thanks|thank you|thx|bye|good (?:morning|evening|night)|bonjour|bonsoir|salut|coucou|merci"
    r"|hallo|guten tag|danke|hola|gracias|ciao|ok|okay|yes|no|oui|non|ja|nein|there|you|all|everyone|very much|again"
    r"|beaucoup|schön)\b\W*)+",
    re.IGNORECASE,
)
_MOST_SAID = 15
_SHORTEST = 8
_DEMAND_CHARS = 60
"""A longer sentence that does not say "always" or "never" is a task with its details."""


class Lasting:
    """What the whole log says of how long things last. Pure.

    `before` are the messages before the cut since the beginning, `after` those that stay in view, `fresh` the ids of
    those that this compaction summarises: what was said earlier was fed to memory by an earlier compaction.
    """

    def __init__(self, before: Sequence[Message], after: Sequence[Message], fresh: frozenset[str]) -> None:
        told = [*before, *after]
        spans = request_spans(told)
        self._asked = {request.id for request, _ in spans}
        self._answered = {r.id for r, following in spans if closing_answer(following) is not None}
        self._said = {plain(r.text) for r, _ in spans if r.id in self._answered}
        new = fresh | {m.id for m in after}
        orders = [o for o in order_history(told) if o.kind in {"constraint", "toggle"}]
        heard = set(fresh)
        heard.update(o.superseded_by for o in orders if o.message_id in heard)  # said again, or otherwise, in view
        demands = [o for o in orders if o.message_id in heard and not o.superseded_by and not o.scope]
        self._demands = [o.text for o in demands if len(o.text) <= _DEMAND_CHARS or is_strong(o.text)]
        values = [f for f in index_facts(told) if f.kind in _VALUES and f.speaker == "user" and f.key != f.value]
        holding = {(f.kind, flat(f.key)): f for f in values if not f.superseded_by}
        self._stale = [(f, holding.get((f.kind, flat(f.key)))) for f in values if f.superseded_by]
        touched = {(f.kind, flat(f.key)) for f in values if f.message_id in fresh}
        self._values = [_value(f) for name, f in holding.items() if name in touched]
        standing = {plain(o.text) for o in orders if not o.superseded_by} | {plain(_value(f)) for f in holding.values()}
        gone = [o.text for o in orders if o.superseded_by in new]
        gone += [_value(f) for f, _ in self._stale if f.superseded_by in new]
        closed = ((r, closing_answer(following)) for r, following in spans)
        gone += [f"Intent: {r.text}" for r, answer in closed if answer is not None and answer.id in new]
        self.ended = tuple(dict.fromkeys(t for t in gone if plain(t) and plain(t) not in standing))
        """What no longer holds since this compaction: orders, values, and requests that were answered."""

    def of(self, summary: Summary) -> Summary:
        """`summary` without the items that do not last."""
        return Summary(
            tuple(
                replace(s, items=tuple(i for i in s.items if self._lasts(canonical_title(s.title), i)))
                for s in summary.sections
            )
        )

    def said(self) -> tuple[str, ...]:
        """What the user laid down in the messages summarised now, as facts: demands in their words, then values."""
        demands = [t for t in self._demands if not claims_permission(t)]
        return (
            *(f"Requirement: {t}" for t in dict.fromkeys(demands[-_MOST_SAID:])),
            *(f"Value: {t}" for t in dict.fromkeys(self._values[-_MOST_SAID:])),
        )

    def _lasts(self, title: str, item: SummaryItem) -> bool:
        if any(self._outdated(item.text, old, now) for old, now in self._stale):
            return False
        if title != "session intent":
            return True
        if _ANSWERED.match(item.text) or not self._answered.isdisjoint(item.sources[:1]):
            return False
        bare = plain(item.text)
        if bare in self._said or _TALK.fullmatch(bare):
            return False
        quotes = not self._asked.isdisjoint(item.sources[:1])
        return not quotes or not (bare.endswith("?") or item.text.rstrip("” ").endswith("?") or len(bare) < _SHORTEST)

    @staticmethod
    def _outdated(text: str, old: Fact, now: Fact | None) -> bool:
        """Whether `text` gives a thing the value that the user corrected, and not the one it has."""
        there = f" {plain(text)} "
        if f" {plain(old.value)} " not in there or f" {plain(old.key)} " not in there:
            return False
        return now is None or f" {plain(now.value)} " not in there


def _value(fact: Fact) -> str:
    return f"{fact.key} = {fact.value}"
