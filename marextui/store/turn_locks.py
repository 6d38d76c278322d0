"""One process at a time answers in a conversation: a lock that the system takes away from a process that died."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout

from marextui.private_files import ensure_private


class TurnLocks:
    """Locks by conversation in `folder`. A folder that cannot be written to locks nobody out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, FileLock] = {}

    async def take(self, conversation_id: str) -> bool:
        """False when another process holds it; True when this one does now."""
        return await asyncio.to_thread(self._take, conversation_id)

    async def busy(self, conversation_id: str) -> bool:
        """Whether another process holds it now."""
        if conversation_id in self._held:
            return False
        free = await self.take(conversation_id)
        await self.release(conversation_id)
        return not free

    async def release(self, conversation_id: str) -> None:
        """Give it back; one that is not held is fine."""
        lock = self._held.pop(conversation_id, None)
        if lock is not None:
            await asyncio.to_thread(lock.release)

    def _take(self, conversation_id: str) -> bool:
        if conversation_id in self._held:
            return True
        name = sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]
        try:
            lock = FileLock(ensure_private(self._folder) / f"{name}.lock", timeout=0, thread_local=False)
            lock.acquire()
        except Timeout:
            return False
        except OSError:
            return True
        self._held[conversation_id] = lock
        return True
