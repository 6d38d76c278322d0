"""Earlier prompts, kept in a file in the data directory: one JSON string a line, newest last, without secrets (I10)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from marextui.private_files import ensure_private, write_private

KEEP = 1_000
"""Prompts kept; the file is cut back to this when it is loaded."""
MOST_CHARS = 100_000
"""Characters of the longest prompt written to the file; a longer one is remembered until the end of this run."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _line(prompt: str) -> str:
    from marextui.context.redaction import redact  # its many patterns are compiled when there is a prompt to clean

    return json.dumps(redact(prompt)) + "\n"


class PromptHistory:
    """Prompts and a place in them. `path` None: kept in memory only. A file that cannot be read or written costs the
    memory of earlier prompts, never the prompt itself; `problem` then says so.

    Prompts of this run come back as they were typed; from the file they come with placeholders for secrets.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.entries: list[str] = []
        self.problem = ""
        self._at: int | None = None
        self._draft = ""

    async def load(self) -> None:
        """Read the file; call once at start."""
        if self._path is not None:
            self.entries = await asyncio.to_thread(self._read, self._path) + self.entries

    def _read(self, path: Path) -> list[str]:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            self.problem = f"Earlier prompts could not be read: {error.strerror or error} ({path})"
            return []
        found: list[str] = []
        for raw in lines[-KEEP:]:
            try:
                value = json.loads(raw)
            except ValueError:
                continue
            if isinstance(value, str) and value:
                found.append(value)
        if len(lines) > 2 * KEEP:
            self._rewrite(path, found)
        return found

    def _rewrite(self, path: Path, prompts: list[str]) -> None:
        try:
            write_private(path, "".join(map(_line, prompts)).encode("utf-8"))
        except OSError as error:
            self.problem = f"The file of earlier prompts could not be written: {error.strerror or error} ({path})"

    def _append(self, path: Path, prompt: str) -> None:
        try:
            ensure_private(path.parent)
            with open(path, "a", encoding="utf-8", opener=_private) as file:
                file.write(_line(prompt))
        except OSError as error:
            self.problem = f"The prompt could not be added to the history: {error.strerror or error} ({path})"

    async def add(self, prompt: str) -> None:
        """Remember a sent prompt (a repetition of the last one is not kept twice)."""
        self._at = None
        if not prompt.strip() or (self.entries and self.entries[-1] == prompt):
            return
        self.entries.append(prompt)
        if self._path is not None and len(prompt) <= MOST_CHARS:
            await asyncio.to_thread(self._append, self._path, prompt)

    def older(self, draft: str) -> str | None:
        """The prompt before the one shown; None at the oldest. The first call remembers `draft`."""
        if self._at is None:
            self._at, self._draft = len(self.entries), draft
        if self._at == 0:
            return None
        self._at -= 1
        return self.entries[self._at]

    def newer(self) -> str | None:
        """The prompt after the one shown, at last the draft; None when nothing older is shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at >= len(self.entries):
            self._at = None
            return self._draft
        return self.entries[self._at]

    def reset(self) -> None:
        """The draft was edited: it is no longer a place in the history."""
        self._at = None

    def search(self, query: str) -> list[str]:
        """Prompts that hold `query`, whatever the case, newest first, each once."""
        needle = query.casefold()
        return list(dict.fromkeys(e for e in reversed(self.entries) if needle in e.casefold()))
