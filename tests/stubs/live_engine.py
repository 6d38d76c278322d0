"""The product's own engine (`build_engine`: real log, tools, hub and model server) with every event recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from marextui.context.messages import Message
from marextui.context.validate import violations
from marextui.engine.api import NEW
from marextui.engine.build import build_engine
from marextui.engine.engine import Engine
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    Event,
    PhaseChanged,
    TextStreamed,
    TurnFinished,
)
from marextui.engine.permissions import Decision
from marextui.settings import Settings

E = TypeVar("E")


@dataclass
class LiveEngine:
    """`engine` and what it said. Waiting is by event, never by the clock."""

    engine: Engine
    root: Path
    events: list[Event] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, test: Callable[[Event], bool], *, after: int = 0) -> Event:
        """The first event since index `after` that passes `test`."""
        while True:
            self._news.clear()
            for event in self.events[after:]:
                if test(event):
                    return event
            after = len(self.events)
            await self._news.wait()

    async def ended(self, mark: int) -> TurnFinished:
        """The end of the first turn that finished since event index `mark`, once the engine is idle again."""
        finished = await self.until(lambda e: isinstance(e, TurnFinished), after=mark)
        at = self.events.index(finished, mark)
        await self.until(lambda e: isinstance(e, PhaseChanged) and e.phase == "idle", after=at)
        assert isinstance(finished, TurnFinished)
        return finished

    async def ask(self, text: str) -> TurnFinished:
        """Send a message and wait for the end of its turn."""
        mark = len(self.events)
        self.engine.submit(text)
        return await self.ended(mark)

    async def compact(self) -> None:
        """Compact now, and wait until that has ended one way or the other."""
        mark = len(self.events)
        self.engine.compact()
        ended = await self.until(lambda e: isinstance(e, CompactionFinished | CompactionFailed), after=mark)
        at = self.events.index(ended, mark)
        await self.until(lambda e: isinstance(e, PhaseChanged) and e.phase == "idle", after=at)

    async def words(self, count: int, *, after: int = 0) -> None:
        """Wait until `count` pieces of text have been streamed since event index `after`."""
        seen = 0

        def enough(event: Event) -> bool:
            nonlocal seen
            seen += isinstance(event, TextStreamed)
            return seen >= count

        await self.until(enough, after=after)

    def of(self, kind: type[E], after: int = 0) -> list[E]:
        return [e for e in self.events[after:] if isinstance(e, kind)]

    def history(self) -> tuple[Message, ...]:
        return self.engine.session.history()

    def last(self) -> Message:
        return self.engine.session.conversation.messages[-1]

    def check_log(self) -> None:
        """The log, folded, is a view a provider would accept."""
        assert violations(self.history(), with_system=False) == ()


@asynccontextmanager
async def live_engine(
    settings: Settings, root: Path, *, wanted: str = NEW, allow: tuple[str, ...] = ()
) -> AsyncIterator[LiveEngine]:
    """Start the engine for the project `root`; permissions of the kinds in `allow` are given, others refused."""
    root.mkdir(exist_ok=True)
    unattended = {kind: Decision("once") for kind in allow}
    engine = await build_engine(settings, cwd=root, root=root, wanted=wanted, unattended=unattended, env={})
    live = LiveEngine(engine, root)
    engine.subscribe(live.hear)
    try:
        await engine.start(connect=False)
        yield live
    finally:
        await engine.close()
