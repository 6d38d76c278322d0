"""A clock that waits as long as a test says."""

from __future__ import annotations

import asyncio


class HeldClock:
    """`sleep` ends when `advance` has passed its time; sleeps of at most `instant` seconds end at once.

    `asked` remembers every sleep that was asked for.
    """

    def __init__(self, instant: float = 0.0) -> None:
        self.instant = instant
        self.asked: list[float] = []
        self._held: list[tuple[float, asyncio.Event]] = []
        self._now = 0.0
        self._arrived = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        if seconds <= self.instant:
            await asyncio.sleep(0)
            return
        event = asyncio.Event()
        self._held.append((self._now + seconds, event))
        self._arrived.set()
        await event.wait()

    async def until_asked(self, seconds: float) -> None:
        """Wait until somebody sleeps for exactly `seconds`."""
        while seconds not in self.asked:
            self._arrived.clear()
            await self._arrived.wait()

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for until, event in self._held:
            if until <= self._now:
                event.set()
        self._held = [(until, event) for until, event in self._held if until > self._now]
