"""What the engine takes from outside so that tests decide it: time and ids."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Protocol

from marextui.context.calibration import Calibration


class Clock(Protocol):
    """Wall time for dates, monotonic time for durations, and waiting; all in seconds."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Source of unique ids; `kind` is a short prefix ("m", "c", "q")."""

    def new(self, kind: str) -> str: ...


class CalibrationFile(Protocol):
    """Where what was learned of models' counting is kept (`store.calibration.CalibrationStore`). Raises OSError."""

    async def load(self) -> Calibration: ...

    async def save(self, calibration: Calibration) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """Ids no other process will draw: 10 base-32 characters (50 bits) after the prefix."""

    _ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

    def new(self, kind: str) -> str:
        return f"{kind}-" + "".join(secrets.choice(self._ALPHABET) for _ in range(10))


class CountingIds:
    """Deterministic ids in order ("m-1", "m-2"): for replays and tests."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def new(self, kind: str) -> str:
        self._next[kind] = self._next.get(kind, 0) + 1
        return f"{kind}-{self._next[kind]}"
