"""Recall over the open conversation: the index finds messages, `context.search` finds the place in them."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from marextui.context.messages import Message
from marextui.context.recalling import changes, facts_around, pieces, recall_text
from marextui.context.search import Doc, Hit, Index, Prepared
from marextui.engine.session import Session
from marextui.store.database import StoreError
from marextui.store.log import LogStore, Recalled
from marextui.tools.types import OmittedReader, RecallHit

RESULTS = 3
LOOKED_AT = 1_000_000
"""Characters looked through for one query at most: the messages the index ranks first."""

COMPARED, COMPARED_CHARS = 24, 20_000
"""How many of those messages are searched for corrections, and the longest one that is."""

PREPARED = 4_000
"""Documents kept ready for the next query."""


@dataclass(slots=True)
class ConversationRecaller:
    """`tools.types.Recaller` over log and stored outputs. The turn under way is left out: it stands in the view."""

    session: Callable[[], Session]
    log: LogStore
    outputs: OmittedReader
    _prepared: Prepared = field(default_factory=dict)
    _prepared_for: str = ""

    async def search(self, query: str, *, max_chars: int = 2_000) -> tuple[RecallHit, ...]:
        """At most three places, exact ones first. A disk that fails costs speed and the hidden middle of outputs only:
        all messages are in memory.
        """
        session = self.session()
        conversation = session.conversation
        current = conversation.turn if conversation.open_turn else -1
        messages = [m for m in conversation.messages if m.turn != current]
        try:
            found = await self.log.recall(session.id, query)
        except StoreError:
            found = None
        if found is None:  # this SQLite cannot search: look through all of it, the newest first
            found = tuple(Recalled(m.id, 0.0) for m in reversed(messages))
        docs, only = await self._docs(session, messages, found)
        if self._prepared_for != session.id or len(self._prepared) > PREPARED:
            self._prepared, self._prepared_for = {}, session.id
        hits = await asyncio.to_thread(_hits, docs, only, query, max_chars, self._prepared)
        times = {r.message_id: r.at for r in found}
        first = {h.id for h in hits} | {r.message_id for r in found[:COMPARED]}
        compared = [m for m in messages if m.id in first and len(m.text) <= COMPARED_CHARS]
        notes = await asyncio.to_thread(_notes, compared, hits)
        by_id = {m.id: m for m in messages}
        return tuple(
            RecallHit(h.id, _when(by_id[h.id], times.get(h.id, 0.0)), _who(by_id[h.id]), h.text, note)
            for h, note in zip(hits, notes, strict=True)
        )

    async def _docs(
        self, session: Session, messages: Sequence[Message], found: Sequence[Recalled]
    ) -> tuple[list[Doc], frozenset[str]]:
        """(all messages as documents, the ids to look through): those found, whole where their output was stored."""
        by_id = {m.id: m for m in messages}
        texts = await asyncio.to_thread(lambda: {m.id: recall_text(m) for m in messages})
        only: set[str] = set()
        looked_at = 0
        for recalled in found:
            if recalled.message_id not in texts:
                continue
            ref = session.stored_ref(recalled.message_id)
            if ref is not None:
                try:
                    whole = await self.outputs.read(ref.omission_id)
                except OSError:
                    whole = None
                texts[recalled.message_id] = recall_text(by_id[recalled.message_id], whole)
            texts[recalled.message_id] = pieces(texts[recalled.message_id], recalled.starts)
            looked_at += len(texts[recalled.message_id])
            if only and looked_at > LOOKED_AT:
                break
            only.add(recalled.message_id)
        return [Doc(m.id, texts[m.id]) for m in messages if texts[m.id]], frozenset(only)


def _hits(docs: Sequence[Doc], only: frozenset[str], query: str, max_chars: int, prepared: Prepared) -> tuple[Hit, ...]:
    return Index(docs, only=only, prepared=prepared).search(query, limit=RESULTS, max_chars=max_chars)


def _notes(messages: Sequence[Message], hits: Sequence[Hit]) -> list[str]:
    facts = facts_around(messages) if hits else ()
    places = {m.id: n for n, m in enumerate(messages)}
    return [changes(h.text, h.id, facts, places) for h in hits]


def _when(message: Message, at: float) -> str:
    turn = f"turn {message.turn}"
    if not at:
        return turn
    moment = datetime.datetime.fromtimestamp(at, tz=datetime.UTC)
    return f"{turn}, {moment:%Y-%m-%d %H:%M} UTC"


def _who(message: Message) -> str:
    if message.role == "tool":
        return f"output of {message.name}" if message.name else "tool output"
    return message.role
