"""The desk of a conversation: memory, rules and the omission list around it, read from disk when they changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from marextui.context.memory import MemoryEntry, excerpt, excerpt_limit, parse_memory, rules_excerpt
from marextui.context.memory_keeping import Fed
from marextui.context.project import block_limit
from marextui.engine.bus import Bus
from marextui.engine.event_values import MemoryEntryInfo, MemoryReport
from marextui.engine.events import MemoryChanged
from marextui.engine.omitter import DAY, Omitter
from marextui.engine.project import ProjectDesk
from marextui.engine.prompt import SystemPart, system_part


class Memory(Protocol):
    """`store.memory.MemoryStore`: MAREX.md and MEMORY.md on disk. All raise OSError."""

    @property
    def rules_path(self) -> Path: ...
    @property
    def memory_path(self) -> Path: ...

    rules_notice: str
    """What was wrong with MAREX.md at the last `rules`, "" when nothing was."""

    async def read(self) -> str: ...
    async def feed(self, entry: MemoryEntry) -> Fed: ...
    async def clear(self) -> None: ...
    async def size(self) -> int: ...
    async def rules(self) -> tuple[str, bool]: ...
    async def stamp(self) -> tuple[object, ...]: ...


def day(now: float) -> str:
    """The day of `now` (seconds since the epoch) in UTC, ISO 8601."""
    return datetime.datetime.fromtimestamp(now, tz=datetime.UTC).date().isoformat()


@dataclass(slots=True)
class Desk:
    """What of memory is on the desk now. `refresh` is called at every turn start; the text in between does not move."""

    memory: Memory
    omitter: Omitter
    bus: Bus
    project: str
    about: ProjectDesk
    rules: str = ""
    rules_cut: bool = False
    """Whether the file holds more rules than `rules`."""
    notes: str = ""
    today: str = ""
    """The day (ISO) memory was last read: what is past its end is left out as of then, so that text in use stands."""
    _stamp: tuple[object, ...] | None = None
    _part: tuple[tuple[object, ...], SystemPart] | None = None

    async def refresh(self) -> bool:
        """Re-read MAREX.md, MEMORY.md and what tells of the project if they changed (M31, L51); True when they had.

        A read error is a notice.
        """
        told = await self.about.refresh()
        return await self._refresh() or told

    async def _refresh(self) -> bool:
        try:
            stamp = await self.memory.stamp()
            if stamp == self._stamp:
                return False
            self.rules, self.rules_cut = await self.memory.rules()
            if self.memory.rules_notice:
                self.bus.warn_once(self.memory.rules_notice)
            self.notes = await self.memory.read()
            self.today = day(self.omitter.clock.now())
        except OSError as problem:
            self.bus.warn_once(
                f"Memory could not be read: {problem.strerror or problem}", "The conversation goes on without it."
            )
            return False
        self._stamp = stamp
        return True

    def system_part(
        self,
        window: int | None,
        tools: tuple[Mapping[str, Any], ...],
        base: str,
        block: str = "",
        *,
        frozen: bool = False,
    ) -> SystemPart:
        """The system part as it would be sent now (remembered while nothing of it changes).

        `block` is the project block, `frozen` whether it is a dated copy: that says the folder itself (B21).
        """
        key = (self.rules, self.notes, self.today, window, tools, base, block, frozen)
        if self._part is None or self._part[0] != key:
            part = system_part(
                base=base,
                project="" if frozen else self.project,
                rules=self.rules,
                memory=self.notes,
                window=window,
                tools=tools,
                today=self.today,
                block=block,
            )
            for notice in part.notices:
                self.bus.warn_once(notice)
            self._part = (key, part)
        return self._part[1]

    async def report(self, window: int | None) -> MemoryReport:
        """`/memory` (M36)."""
        await self.refresh()
        metas = await self.omitter.store.all()
        oldest = min((m.created_at for m in metas), default=None)
        days = self.omitter.days
        left = None
        if oldest is not None and days > 0:
            left = max(0.0, days - (self.omitter.clock.now() - oldest) / DAY)
        shown, truncated = rules_excerpt(self.rules)
        return MemoryReport(
            rules_path=str(self.memory.rules_path),
            rules=shown,
            rules_truncated=truncated or self.rules_cut,
            memory_path=str(self.memory.memory_path),
            memory_bytes=await self.memory.size(),
            entries=tuple(
                MemoryEntryInfo(e.date, e.conversation_id, e.cycle, e.facts) for e in parse_memory(self.notes)
            ),
            injected=excerpt(self.notes, window, self.today),
            injected_limit=excerpt_limit(window),
            omissions=len(metas),
            omissions_bytes=await self.omitter.store.total_bytes(),
            oldest_omission_at=oldest,
            days_to_purge=left,
            retention_days=days,
            pages=self.about.sources.pages,
            trackers=self.about.sources.trackers,
            project=self.about.sent,
            project_limit=block_limit(window),
        )

    async def announce(self, window: int | None) -> None:
        """Tell the screen what memory holds now."""
        self.bus.emit(MemoryChanged(await self.report(window)))
