"""MAREX.md (the project's rules, user-owned) and MEMORY.md (fed by compactions): M31, M32, M34, M37, cases 129–133."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from marextui.context.memory import MemoryEntry, rules_excerpt
from marextui.context.memory_keeping import Fed, add_archive, remember
from marextui.context.redaction import redact
from marextui.paths import MEMORY_NAME, RULES_NAME
from marextui.private_files import ensure_private, write_private

ARCHIVE_NAME = "MEMORY.archive.md"
"""Beside MEMORY.md: what had to leave it, within the same cap; never read by a model."""

LOCK_SECONDS = 10
"""How long to wait for another process that feeds the same memory."""

_RULES_READ = 256 * 1024  # bytes; several times what may be used of MAREX.md

Stamp = tuple[tuple[int, int] | None, tuple[int, int] | None]
"""(time of change in ns, size in bytes) of MAREX.md and MEMORY.md; None: absent."""


class MemoryStore:
    """Memory of one project. All methods may raise OSError."""

    def __init__(self, memory_dir: Path, project_root: Path) -> None:
        self.memory_path = memory_dir / MEMORY_NAME
        self.archive_path = memory_dir / ARCHIVE_NAME
        self.rules_path = project_root / RULES_NAME
        self._root = project_root
        self.rules_notice = ""
        """What was wrong with MAREX.md when it was last read, as a sentence; "" when nothing was."""

    async def read(self) -> str:
        """Text of MEMORY.md, "" when there is none; undecodable bytes are replaced."""
        return await asyncio.to_thread(self._read)

    async def feed(self, entry: MemoryEntry) -> Fed:
        """Add `entry`, without secrets, within the cap (M32, M34). The file is replaced as a whole.

        What had to leave the file is in the archive; the answer says so, for people (case 129).
        """
        return await asyncio.to_thread(self._feed, entry)

    async def clear(self) -> None:
        """Empty MEMORY.md and remove its archive; the file stays, omissions are not touched (M37)."""
        await asyncio.to_thread(self._clear)

    async def size(self) -> int:
        """Bytes of MEMORY.md."""
        stamp = await self.stamp()
        return stamp[1][1] if stamp[1] else 0

    async def rules(self) -> tuple[str, bool]:
        """(text of MAREX.md, whether it was cut to the cap); ("", False) when there is none (M31)."""
        return await asyncio.to_thread(self._rules)

    async def stamp(self) -> Stamp:
        """Changes when either file does: cheap enough to ask at each turn start (M31)."""
        return await asyncio.to_thread(lambda: (_stamp(self.rules_path), _stamp(self.memory_path)))

    def _read(self) -> str:
        try:
            return self.memory_path.read_bytes().decode("utf-8-sig", "replace")
        except FileNotFoundError:
            return ""

    def _feed(self, entry: MemoryEntry) -> Fed:
        clean = replace(entry, facts=tuple(redact(fact) for fact in entry.facts))
        dropped = 0
        with self._locked():
            before = self._read()
            kept = remember(before, clean)
            if kept.text == before:
                return Fed()
            if kept.archived:  # first: a crash in between leaves an entry twice, never nowhere
                archive, dropped = add_archive(self._archive(), kept.archived)
                write_private(self.archive_path, archive.encode("utf-8", "replace"))
            write_private(self.memory_path, kept.text.encode("utf-8", "replace"))
        return Fed(kept.superseded, kept.archived, dropped)

    def _archive(self) -> str:
        try:
            return self.archive_path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _clear(self) -> None:
        with self._locked():
            self.archive_path.unlink(missing_ok=True)
            write_private(self.memory_path, b"")

    def _locked(self) -> FileLock:
        ensure_private(self.memory_path.parent)
        return FileLock(self.memory_path.parent / ".lock", timeout=LOCK_SECONDS)

    def _rules(self) -> tuple[str, bool]:
        self.rules_notice = ""
        if not self.rules_path.is_file():
            return "", False
        if not self.rules_path.resolve().is_relative_to(self._root.resolve()):
            # A cloned repository must not put a file of the user's into the prompt.
            self.rules_notice = f"{RULES_NAME} is a link to a file outside the project, so it is not used."
            return "", False
        with self.rules_path.open("rb") as file:
            data = file.read(_RULES_READ + 1)
        text = data.decode("utf-8-sig", "replace")
        if "\ufffd" in text and "\ufffd".encode() not in data:
            self.rules_notice = f"{RULES_NAME} is not all UTF-8: the bytes that are not were replaced by \ufffd."
        kept, cut = rules_excerpt(text)
        if cut or len(data) > _RULES_READ:
            size, used = self.rules_path.stat().st_size, len(kept.encode("utf-8", "surrogatepass"))
            self.rules_notice = self.rules_notice or (
                f"{RULES_NAME} is too long: of its {size:,} bytes only the first {used:,} are sent; what stands after "
                "them does not reach the model."
            )
            return kept, True
        return kept, False


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size
