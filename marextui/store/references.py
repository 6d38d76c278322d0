"""Which stored outputs the views of conversations refer to, read from the log without its messages (I6, case 81)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

SQL = """SELECT e.conversation_id, e.seq, e.kind, e.message_id,
    CASE WHEN e.kind = 'MessageAdded' THEN '' ELSE e.payload END
    FROM entry AS e JOIN conversation AS c ON c.id = e.conversation_id
    WHERE c.project = ? AND e.kind IN ('MessageAdded', 'OutputStored', 'OutputsOmitted', 'InputsOmitted',
    'TextsShortened', 'CompactionCommitted', 'CompactionUndone') ORDER BY e.conversation_id, e.seq"""

_ID = re.compile(r"omitted-\d{3,}", re.ASCII)


class _Conversation:
    """What of one conversation's log decides which ids its view holds."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}  # message id -> seq
        self.refs: list[tuple[str, str]] = []  # (message id, omission id)
        self.compactions: list[tuple[int, int, str, str]] = []  # (cycle, seq, cut, payload) in force

    def apply(self, seq: int, kind: str, message_id: str | None, payload: str) -> None:
        if kind == "MessageAdded":
            if message_id is not None:
                self.places.setdefault(message_id, seq)
            return
        try:
            raw = json.loads(payload)
            if kind == "CompactionCommitted":
                self.compactions.append((int(raw["cycle"]), seq, str(raw["cut"]), payload))
            elif kind == "CompactionUndone":
                self.compactions = [c for c in self.compactions if c[0] < int(raw["cycle"])]
            else:
                refs = [raw["ref"]] if "ref" in raw else raw["refs"]
                self.refs += [(str(r["message_id"]), str(r["omission_id"])) for r in refs]
        except (ValueError, KeyError, TypeError):
            return  # damaged: the fold leaves it out as well

    def shown(self) -> set[str]:
        start, summary = 0, ""
        for _, seq, cut, payload in reversed(self.compactions):
            at = self.places.get(cut) if cut else seq
            if at is not None:
                start, summary = at, payload
                break
        found = {omission for message, omission in self.refs if self.places.get(message, 0) >= start}
        return found | set(_ID.findall(summary))


def in_views(rows: Iterable[Any]) -> frozenset[str]:
    """Ids that stand in a view, or will stand for what stands there whole: after the cut in force, or in its summary.

    `rows` are those of `SQL`.
    """
    conversations: dict[str, _Conversation] = {}
    for conversation_id, seq, kind, message_id, payload in rows:
        conversations.setdefault(conversation_id, _Conversation()).apply(seq, kind, message_id, payload)
    return frozenset().union(*(c.shown() for c in conversations.values()))
