"""Who has which conversation open: one lock file each, freed by the kernel when the program that holds it is gone."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout


class OpenConversations:
    """The conversation that this program has open, held against others. `folder` is where the lock files are.

    Advice, not protection: where locks cannot be had (a read-only home, some network disks), everything can be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = ""
        self._lock: FileLock | None = None

    def take(self, conversation_id: str) -> bool:
        """Hold `conversation_id` instead of the one held so far; False, and nothing changes, when another has it."""
        if conversation_id == self._held:
            return True
        lock = FileLock(self._folder / f"{conversation_id}.lock", thread_local=False)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            return False
        except (OSError, NotImplementedError):
            self.release()
            return True
        self.release()
        self._held, self._lock = conversation_id, lock
        return True

    def release(self) -> None:
        """Hold nothing any more."""
        if self._lock is not None:
            Path(self._lock.lock_file).unlink(missing_ok=True)  # while it is still held: nobody else's goes
            self._lock.release()
        self._held, self._lock = "", None
