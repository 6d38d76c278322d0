"""Whether compactions are in vain: what they free is filled at once with what they took away (case 9, I4).

Counted from the log as it grows, in constant time for each entry. Sizes are characters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256

from marextui.context.calls import call_files
from marextui.context.entries import CompactionCommitted, CompactionUndone, Entry, MessageAdded, TurnOpened
from marextui.context.messages import ImagePart, Message, ToolCall
from marextui.context.omission import parse_marker
from marextui.context.outcomes import status_of
from marextui.context.refetch import targets

MAX_REFILLS = 3
"""Compactions in a row that were refilled; after these none is made automatically."""
REFILL_SHARE = 0.5
"""Share of what came since a compaction, above which it was refilled."""
SAME_CHARS = 200
"""Characters from which an output that equals an earlier one is that output again."""
_IMAGE_CHARS = 4_000
_NAMED = 4


@dataclass(slots=True)
class _Period:
    """What came since a compaction: all of it, and what had been there before."""

    grown: int = 0
    again: int = 0

    @property
    def refilled(self) -> bool:
        return self.again > 0 and self.again >= REFILL_SHARE * self.grown


@dataclass(slots=True)
class RefillWatch:
    """Watches a conversation's log; `count` and `sentence` answer for the state so far."""

    _known: set[str] = field(default_factory=set)  # what was fetched, and the text of outputs
    _calls: dict[str, ToolCall] = field(default_factory=dict)
    _period: _Period = field(default_factory=_Period)
    _chain: int = 0  # refilled compactions in a row, without the one in force
    _what: Counter[str] = field(default_factory=Counter)
    _compacted: bool = False
    _in_turn: int = 0  # refilled compactions of the turn in progress, without the one in force
    _seen: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        """Compactions in a row, up to the one in force, that were refilled."""
        return self._chain + (self._compacted and self._period.refilled)

    def take(self, entry: Entry) -> None:
        """Take one more log entry into account."""
        if isinstance(entry, MessageAdded):
            if entry.message.id not in self._seen:
                self._seen.add(entry.message.id)
                self._message(entry.message)
        elif isinstance(entry, CompactionCommitted):
            self._chain = 0 if entry.trigger == "manual" else self.count
            self._in_turn += self._period.refilled and self._compacted
            if not self._chain:
                self._what.clear()
            self._period = _Period()
            self._compacted = True
        elif isinstance(entry, CompactionUndone):
            self.forget()
        elif isinstance(entry, TurnOpened):
            self._in_turn = 0

    def forget(self) -> None:
        """Another window or an undo: what was in vain there says nothing here."""
        self._chain, self._period, self._compacted = 0, _Period(), False
        self._what.clear()

    @property
    def in_vain(self) -> bool:
        """Whether another compaction would only make room for the same once more."""
        return self.count >= MAX_REFILLS

    @property
    def loops(self) -> bool:
        """Whether that happened within the turn in progress: the model goes round in circles."""
        return self.in_vain and self._in_turn + self._period.refilled >= MAX_REFILLS

    def sentence(self) -> str:
        """Why nothing more is compacted automatically, "" while compactions help."""
        if not self.in_vain:
            return ""
        named = [what for what, _ in self._what.most_common(_NAMED)]
        more = len(self._what) - len(named)
        told = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        return f"What the last {self.count} compactions had cut away was read again each time ({told})."

    def _message(self, message: Message) -> None:
        size = _size(message)
        self._period.grown += size
        self._calls.update((c.id, c) for c in message.tool_calls)
        if message.role != "tool":
            return
        call = self._calls.pop(message.tool_call_id, None)
        if call is None or status_of(message) != "done":
            return
        names = [t.what for t in targets(call)]
        keys = {f"{t.kind} {t.what} {t.lines}" for t in targets(call)}
        text = _text(message)
        if len(text) >= SAME_CHARS:
            keys.add(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        if keys & self._known:
            self._period.again += size
            self._what.update(names or [message.name or call.name])
        self._known |= keys
        for path, kind in call_files(call):
            if kind != "read":  # it holds something else now: to read it is no repetition
                self._known -= {k for k in self._known if k.startswith("file ") and path in k}


def _text(message: Message) -> str:
    """The output without the marker that ends a capped one: its id may be another."""
    text = message.text
    return text if parse_marker(text) is None else text.rstrip().rpartition("\n")[0]


def _size(message: Message) -> int:
    images = 0 if isinstance(message.content, str) else sum(isinstance(p, ImagePart) for p in message.content)
    return len(message.text) + sum(len(c.arguments) for c in message.tool_calls) + images * _IMAGE_CHARS


__all__ = ["MAX_REFILLS", "REFILL_SHARE", "RefillWatch"]
