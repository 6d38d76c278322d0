"""Keeps stored outputs within their quota, and says by id what had to go (I6, case 81)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from marextui.engine.bus import Bus
from marextui.engine.events import Notice
from marextui.engine.omitter import Omissions, RemovedForRoom, StoredOutput
from marextui.store.database import StoreError

SHOWN_IDS = 20


@dataclass(slots=True)
class WithinQuota:
    """An omission store that evicts after each put. `in_views` gives the ids the project's conversations refer to."""

    store: Omissions
    bus: Bus
    in_views: Callable[[], Awaitable[Collection[str]]]

    async def put(
        self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str, file: str = ""
    ) -> StoredOutput:
        meta = await self.store.put(
            text, tool=tool, what=what, conversation_id=conversation_id, message_id=message_id, file=file
        )
        if await self.store.over_quota():
            await self._make_room(meta.id)
        return meta

    async def _make_room(self, newest: str) -> None:
        try:
            referenced = await self.in_views()
        except StoreError as problem:
            text = f"Stored tool outputs take too much room, and none could be removed: {problem}"
            self.bus.emit(Notice("warning", text))
            return
        gone = await self.store.evict(referenced, keep={newest})
        if gone.unreferenced:
            named = _named(gone.unreferenced)
            text = f"To stay within omissions_quota_mb, stored outputs that no view shows were removed: {named}."
            self.bus.emit(Notice("info", text))
        if gone.referenced:
            self._lost(gone.referenced, "To stay within omissions_quota_mb", "Raise omissions_quota_mb to keep more.")

    def _lost(self, ids: Sequence[str], why: str, hint: str) -> None:
        text = f"{why}, outputs that conversations still refer to were removed: {_named(ids)}."
        self.bus.emit(Notice("warning", text, f"Reading them back will say so. {hint}"))

    async def purge(self, days: int) -> list[str]:
        gone = await self.store.purge(days)
        if gone:
            try:
                lost = set(gone) & set(await self.in_views())
            except StoreError:
                lost = set(gone)  # who refers to them is not known: better named than silent
            if lost:
                hint = "memory_retention_days = 0 keeps them for ever."
                self._lost([i for i in gone if i in lost], f"After {days} days", hint)
        return gone

    async def get(self, omission_id: str) -> str | None:
        return await self.store.get(omission_id)

    async def meta(self, omission_id: str) -> StoredOutput | None:
        return await self.store.meta(omission_id)

    async def all(self) -> Sequence[StoredOutput]:
        return await self.store.all()

    async def mark_read(self, omission_id: str) -> int:
        return await self.store.mark_read(omission_id)

    async def why_missing(self, omission_id: str, days: int) -> str:
        return await self.store.why_missing(omission_id, days)

    async def about(self, omission_id: str, *, whole: bool = False) -> str:
        return await self.store.about(omission_id, whole=whole)

    async def total_bytes(self) -> int:
        return await self.store.total_bytes()

    async def over_quota(self) -> bool:
        return await self.store.over_quota()

    async def evict(self, referenced: Collection[str], *, keep: Collection[str] = ()) -> RemovedForRoom:
        return await self.store.evict(referenced, keep=keep)


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:SHOWN_IDS])
    return shown if len(ids) <= SHOWN_IDS else f"{shown} and {len(ids) - SHOWN_IDS} more ({ids[-1]} the last)"
