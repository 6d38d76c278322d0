"""Keeps the answer that is arriving, so that a killed process costs no more than its last two seconds (I5, case 45)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from marextui.context.messages import Message
from marextui.engine.bus import Bus
from marextui.engine.ports import Clock
from marextui.engine.reply import Reply
from marextui.store.database import StoreError

EVERY = 2.0
"""Seconds between two writes."""


class UnfinishedAnswers(Protocol):
    """Where they are kept (`store.log.LogStore`), one for each conversation, beside its log. All raise `StoreError`."""

    async def save_unfinished(self, conversation_id: str, message: Message) -> None: ...
    async def drop_unfinished(self, conversation_id: str) -> None: ...


@dataclass(slots=True)
class Unfinished:
    """The answers of one turn. Nothing waits for the disk but the end of an answer."""

    store: UnfinishedAnswers
    clock: Clock
    bus: Bus
    conversation: str
    saved: bool = False
    _at: float = 0.0
    _saving: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """An answer begins."""
        self._at = self.clock.monotonic()

    def heard(self, reply: Reply) -> None:
        """More of it has come."""
        now = self.clock.monotonic()
        if now - self._at < EVERY or (self._saving is not None and not self._saving.done()):
            return
        message = reply.partial()
        if message is not None:
            self._at = now
            self._saving = asyncio.create_task(self._save(message))

    async def end(self) -> None:
        """It has ended, however: what is being written is written first."""
        if self._saving is not None:
            await asyncio.wait({self._saving})

    async def drop(self) -> None:
        """The turn is closed: what was kept is in the log by now."""
        if not self.saved:
            return
        try:
            await self.store.drop_unfinished(self.conversation)
        except StoreError as problem:
            self.bus.warn_once(f"What was kept of an unfinished answer could not be removed: {problem}")

    async def _save(self, message: Message) -> None:
        self.saved = True
        try:
            await self.store.save_unfinished(self.conversation, message)
        except StoreError as problem:
            self.bus.warn_once(f"The answer cannot be saved while it arrives: {problem}")
