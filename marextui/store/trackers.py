"""Trackers: `.marex/trackers/<slug>.toml`, a value with its unit and the day it was set (L51, L57, L71)."""

from __future__ import annotations

import asyncio
import datetime
import os
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from marextui.context.project import UNIT_CHARS, VALUE_CHARS, Tracker
from marextui.context.redaction import redact
from marextui.private_files import ensure_private, write_private
from marextui.store.project_folder import (
    Stamp,
    changed_at,
    ensure_marex,
    inside,
    named_file,
    named_files,
    read_bounded,
    stamp_of,
)

MAX_TRACKERS = 100
MAX_BYTES = 8 * 1024
FOLDER = "trackers"


class TrackerStore:
    """Trackers of the project at `root`, in its `.marex` folder. Methods may raise OSError."""

    def __init__(self, project_marex: Path, root: Path) -> None:
        self.folder = project_marex / FOLDER
        self._marex = project_marex
        self._root = root
        self.notice = ""
        """What was wrong with the files at the last `all`, as a sentence; "" when nothing was."""

    async def all(self) -> tuple[Tracker, ...]:
        """All trackers by slug; a file that cannot be read as one is left out, with a notice."""
        return await asyncio.to_thread(self._all)

    async def stamp(self) -> Stamp:
        """Changes when any tracker does."""
        return await asyncio.to_thread(self._stamp)

    async def set(self, tracker: Tracker) -> str:
        """Make or replace a tracker, without secrets; other keys of its file stay. Returns "" or why it was not set."""
        return await asyncio.to_thread(self._set, tracker)

    async def delete(self, slug: str) -> bool:
        """False: there is none of that slug."""
        return await asyncio.to_thread(self._delete, slug)

    def path_of(self, slug: str) -> Path | None:
        """Where the tracker lies or would lie; None when the slug cannot be one."""
        return named_file(self.folder, slug, ".toml")

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        found = named_files(self.folder, ".toml")[: MAX_TRACKERS + 1]
        return found if inside(self.folder, self._root) else []

    def _stamp(self) -> Stamp:
        return stamp_of(self._files())

    def _all(self) -> tuple[Tracker, ...]:
        self.notice = ""
        trackers: list[Tracker] = []
        for path, _ in self._files():
            raw = self._raw(path)
            if raw is None:
                self.notice = f".marex/{FOLDER}/{path.name} is not valid TOML, so this tracker is not used."
            else:
                trackers.append(_tracker(path.stem, raw))
        return tuple(trackers)

    def _raw(self, path: Path) -> dict[str, Any] | None:
        text = read_bounded(path, MAX_BYTES)
        try:
            return tomllib.loads(text or "", parse_float=str)  # as it was written: 73.0 is not 73
        except tomllib.TOMLDecodeError:
            return None

    def _set(self, tracker: Tracker) -> str:
        path = self.path_of(tracker.slug)
        if path is None:
            return f"{tracker.slug[:80]!r} cannot be the name of a tracker: use letters, digits and dashes"
        if not inside(self.folder, self._root) or path.is_symlink():
            return f".marex/{FOLDER}/{path.name} leads out of the project and was left alone"
        known = changed_at(path) is not None
        if not known and len(self._files()) >= MAX_TRACKERS:
            return f"there are {MAX_TRACKERS} trackers already; delete some first"
        kept = (self._raw(path) or {}) if known else {}
        told = {"value": tracker.value, "unit": tracker.unit, "date": tracker.date}
        values = {key: redact(" ".join(text.split())) for key, text in told.items()}
        if len(values["value"]) > VALUE_CHARS or len(values["unit"]) > UNIT_CHARS:
            return f"a value has at most {VALUE_CHARS} characters and a unit {UNIT_CHARS}; a page takes more"
        ensure_marex(self._marex)
        ensure_private(self.folder)
        write_private(path, tomli_w.dumps({**kept, **values}).encode("utf-8", "replace"))
        return ""

    def _delete(self, slug: str) -> bool:
        path = self.path_of(slug)
        if path is None or changed_at(path) is None or not inside(self.folder, self._root):
            return False
        path.unlink()
        return True


def _tracker(slug: str, raw: dict[str, Any]) -> Tracker:
    return Tracker(slug, _word(raw.get("value")), _word(raw.get("unit")), _word(raw.get("date")))


def _word(value: object) -> str:
    """A scalar of a TOML file as it is shown; tables and lists are not."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, str | int) else ""
