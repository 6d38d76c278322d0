"""One open conversation: its fold, its token ledger, and the only way to write its log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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
from marextui.store.database import uninterrupted


class Log(Protocol):
    """The part of `store.log.LogStore` a session writes to."""

    async def append(
        self, conversation_id: str, entries: Sequence[Entry], *, at: float, after: int | None = None
    ) -> tuple[Record, ...]: ...

    async def since(self, conversation_id: str, after: int) -> tuple[Record, ...]: ...


@dataclass(slots=True)
class Session:
    """An open conversation.

    `version` grows with every entry that may matter to a view: a compaction prepared against one version commits only
    against it (case 119). `seq` is the last entry of the log that is folded in.
    """

    id: str
    log: Log
    bus: Bus
    clock: Clock
    ledger: TokenLedger
    conversation: Conversation
    title: str = ""
    version: int = 0
    seq: int = 0
    refills: RefillWatch = field(default_factory=RefillWatch)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def append(self, *entries: Entry) -> tuple[Record, ...]:
        """Write `entries` durably in one transaction, then fold and announce them. Raises `StoreError`.

        What another process has written meanwhile stands before them in the log, and so in the view. A cancellation
        takes effect after that: log and fold never disagree.
        """
        return await uninterrupted(self._append(entries, alone=False))

    async def commit(self, entry: Entry) -> tuple[Record, ...]:
        """As `append`, but only if nobody else has written to the log since: else `LogMoved` (case 119)."""
        return await uninterrupted(self._append((entry,), alone=True))

    async def catch_up(self) -> bool:
        """Fold what another process has written to the log; True when there was something. Raises `StoreError`."""
        return await uninterrupted(self._catch_up())

    async def _append(self, entries: Sequence[Entry], *, alone: bool) -> tuple[Record, ...]:
        async with self._writing:
            after = self.seq if alone else None
            records = await self.log.append(self.id, entries, at=self.clock.now(), after=after)
            if records and records[0].seq > self.seq + 1:
                others = await self.log.since(self.id, self.seq)
                self._fold(r for r in others if r.seq < records[0].seq)
            self._fold(records)
            return records

    async def _catch_up(self) -> bool:
        async with self._writing:
            others = await self.log.since(self.id, self.seq)
            self._fold(others)
            return bool(others)

    def _fold(self, records: Iterable[Record]) -> None:
        for record in records:
            self.conversation.apply(record.entry)
            self.refills.take(record.entry)
            self.seq = record.seq
            if not isinstance(record.entry, CompactionChecked):  # written beside a turn, and never part of a view
                self.version = record.seq
            if isinstance(record.entry, MessageAdded):
                self.bus.emit(MessageAppended(record.entry.message, record.seq))

    def stored_ref(self, message_id: str, part: int = -1) -> OmissionRef | None:
        """The omission id an output was already stored under when it was produced."""
        return self.conversation.stored.get((message_id, part))

    def history(self) -> tuple[Message, ...]:
        """What is sent after the system message, as of now."""
        return self.conversation.history()
