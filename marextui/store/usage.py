"""The usage journal `.marex/usage.jsonl`: one line a turn, appended (M44)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marextui.context.redaction import redact
from marextui.store.project_folder import ensure_marex

NAME = "usage.jsonl"


class UsageJournal:
    """The journal of one project. Methods may raise OSError."""

    def __init__(self, project_marex: Path) -> None:
        """`project_marex` is the project's `.marex` folder, made when first needed, with its own `.gitignore`."""
        self.path = project_marex / NAME

    async def append(self, line: Mapping[str, Any]) -> None:
        """Add one line: JSON in UTF-8, a single write, without secrets (I10). What is unknown is None, never 0."""
        await asyncio.to_thread(self._append, dict(line))

    async def read(self) -> list[dict[str, Any]]:
        """All lines, oldest first; a line torn by a crash, or not a JSON object, is skipped."""
        return await asyncio.to_thread(self._read)

    def _append(self, line: dict[str, Any]) -> None:
        line = {key: redact(value) if isinstance(value, str) else value for key, value in line.items()}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        data = text.encode("utf-8", "backslashreplace")
        ensure_marex(self.path.parent)
        # A link is refused: a cloned repository must not make us write to a file elsewhere.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self.path, flags, 0o600)
        try:
            if os.lseek(handle, 0, os.SEEK_END) and not _ends_line(handle):
                data = b"\n" + data  # the last line was torn by a crash: it must not take this one with it
            os.write(handle, data)
        finally:
            os.close(handle)

    def _read(self) -> list[dict[str, Any]]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        lines: list[dict[str, Any]] = []
        for raw in data.split(b"\n"):
            try:
                line = json.loads(raw.decode("utf-8"))
            except ValueError:
                continue
            if isinstance(line, dict):
                lines.append(line)
        return lines


def _ends_line(handle: int) -> bool:
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) == b"\n"
