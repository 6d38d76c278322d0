"""Which files this conversation has seen, and in what state: the guard of Edit and Write (case 67, case 74)."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from marextui.context.entries import FileSeen

HASHED_BYTES = 16 * 1024 * 1024
"""Files up to this size are told apart by content; larger ones (which cannot be edited) by time and size."""

REMEMBERED_FILES = 5_000


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file's state: modification time (ns), size (bytes), SHA-256 of the content in hex ("" for large files)."""

    mtime_ns: int
    size: int
    sha256: str


def mark_of(status: os.stat_result, data: bytes | None) -> FileMark:
    """The mark of a file whose whole content is `data` (None: too large to be hashed)."""
    return FileMark(status.st_mtime_ns, status.st_size, hashlib.sha256(data).hexdigest() if data is not None else "")


class ReadState:
    """Real path -> mark of what the model was shown or wrote itself. The least recently noted files are forgotten.

    It is the single source of truth for "has been read": it belongs to the conversation, not to the view, so a
    compaction does not touch it. The engine logs what was noted (`take_noted`) and gives it back (`load`) when the
    conversation is opened again.
    """

    def __init__(self) -> None:
        self._marks: OrderedDict[str, FileMark] = OrderedDict()
        self._noted: dict[str, FileMark] = {}

    def note_read(self, path: Path, mark: FileMark | None = None) -> None:
        """Remember `path` (a real path) as seen. Without `mark` the file is looked at now. Raises OSError then."""
        key = str(path)
        self._marks[key] = self._noted[key] = mark if mark is not None else _look(path)
        self._marks.move_to_end(key)
        while len(self._marks) > REMEMBERED_FILES:
            self._marks.popitem(last=False)

    def seen(self, path: Path) -> bool:
        """Whether `path` was ever noted."""
        return str(path) in self._marks

    def check_fresh(self, path: Path, now: FileMark | None = None) -> str:
        """ "" when the file is as it was last seen, else the sentence for the model. A touched but equal file is fresh.

        `now` is its mark when the caller has just read it.
        """
        mark = self._marks.get(str(path))
        if mark is None:
            return "it has not been read in this conversation yet: Read it first."
        try:
            now = now if now is not None else _look(path)
        except FileNotFoundError:
            return "it was deleted after it was last read."
        except OSError as error:
            return f"it cannot be looked at ({error.strerror})."
        fresh = now.sha256 == mark.sha256 if mark.sha256 else (now.mtime_ns, now.size) == (mark.mtime_ns, mark.size)
        return "" if fresh else "it changed on disk after it was last read: Read it again."

    def take_noted(self) -> tuple[FileSeen, ...]:
        """What was noted since this was last asked, in order, for the log."""
        noted, self._noted = self._noted, {}
        return tuple(FileSeen(path, m.mtime_ns, m.size, m.sha256) for path, m in noted.items())

    def load(self, files: Iterable[FileSeen]) -> None:
        """Another conversation: what it has seen, in order, takes the place of everything known."""
        self._marks.clear()
        for file in files:
            self.note_read(Path(file.path), FileMark(file.mtime_ns, file.size, file.sha256))
        self._noted = {}


def _look(path: Path) -> FileMark:
    # O_NONBLOCK: a file swapped for a pipe must not hold the thread for ever
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        return mark_of(status, file.read() if status.st_size <= HASHED_BYTES else None)
