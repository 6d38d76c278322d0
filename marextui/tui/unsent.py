"""What was written and not sent, kept on disk: queued messages and the draft come back with their conversation."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path


class Unsent:
    """One small private file a conversation; none while nothing waits. `folder` None keeps nothing.

    The file is without secrets (I10): what comes back has placeholders in their place, in sight in the draft. Only the
    texts of `open` onwards are kept: what an earlier run left is read first and never written over.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: Path | None = None
        self._kept = ""

    async def open(self, conversation_id: str) -> list[str]:
        """From now on keep for this conversation; the texts an earlier run left, the oldest first."""
        self._file = self._folder / f"{conversation_id}.json" if self._folder and conversation_id else None
        self._kept = ""
        if self._file is None:
            return []
        try:
            self._kept = await asyncio.to_thread(self._file.read_text, "utf-8")
            found = json.loads(self._kept)
        except (OSError, ValueError):
            return []
        return [t for t in found if isinstance(t, str)] if isinstance(found, list) else []

    def move_on(self) -> None:
        """Another conversation is shown: the draft has gone along, and is kept with that one."""
        with suppress(OSError):  # then it comes back once more with the former one
            self.keep([])

    def close(self) -> None:
        """Leave the file as it is from now on."""
        self._file = None

    def keep(self, texts: list[str]) -> None:
        """Keep exactly these. Raises `OSError`."""
        wanted = json.dumps(texts) if texts else ""
        if self._file is None or wanted == self._kept:
            return
        self._kept = wanted
        if not texts:
            self._file.unlink(missing_ok=True)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._file.with_suffix(".new")
        from marextui.context.redaction import redact  # its many patterns are compiled when there is a text to clean

        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps([redact(t) for t in texts]))
        new.replace(self._file)
