"""One open conversation: its fold, its token ledger, and the only way to write its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from marextui.context.entries import CompactionChecked, Entry, MessageAdded, OmissionRef, Record
from marextui.context.fold import Conversation
from marextui.context.messages import Message
from marextui.context.refills import RefillWatch
from marextui.context.tokens import TokenLedger
from marextui.engine.bus import Bus
from marextui.engine.events import MessageAppended
from marextui.engine.ports import Clock


class Log(Protocol):
    """The part of `store.log.LogStore` a session writes to."""

    async def append(self, conversation_id: str, entries: Sequence[Entry], *, at: float) -> tuple[Record, ...]: ...


@dataclass(slots=True)
class Session:
    """An open conversation.

    `version` grows with every entry that may matter to a view: a compaction prepared against one version commits only
    against it (case 119).
    """

    id: str
    log: Log
    bus: Bus
    clock: Clock
    ledger: TokenLedger
    conversation: Conversation
    title: str = ""
    version: int = 0
    refills: RefillWatch = field(default_factory=RefillWatch)

    async def append(self, *entries: Entry) -> tuple[Record, ...]:
        """Write `entries` durably in one transaction, then fold and announce them. Raises `StoreError`."""
        records = await self.log.append(self.id, entries, at=self.clock.now())
        for record in records:
            self.conversation.apply(record.entry)
            self.refills.take(record.entry)
            if not isinstance(record.entry, CompactionChecked):  # written beside a turn, and never part of a view
                self.version = record.seq
            if isinstance(record.entry, MessageAdded):
                self.bus.emit(MessageAppended(record.entry.message, record.seq))
        return records

    def stored_ref(self, message_id: str, part: int = -1) -> OmissionRef | None:
        """The omission id an output was already stored under when it was produced."""
        return self.conversation.stored.get((message_id, part))

    def history(self) -> tuple[Message, ...]:
        """What is sent after the system message, as of now."""
        return self.conversation.history()
