"""How long the event loop was held: by the clock, and in processor time, which a busy machine does not change."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

FRAME = 50.0
"""Milliseconds of holding the loop from which a frame counts as dropped: 20 pictures a second."""


@dataclass(slots=True)
class Turns:
    """Milliseconds of processor time of each turn of the loop."""

    cpu: list[float] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.cpu, default=0.0)

    @property
    def total(self) -> float:
        return sum(self.cpu)

    @property
    def dropped(self) -> int:
        """Turns that would have held up a frame on an idle core."""
        return sum(t > FRAME for t in self.cpu)


@contextmanager
def watched() -> Iterator[Turns]:
    """Measure every turn of the running loop. No key press waits longer than the worst one, on an idle core.

    As in the product, what was loaded before is no longer looked at by the garbage collector (`tui.run`).
    """
    gc.collect()
    gc.freeze()
    loop = asyncio.get_running_loop()
    turns = Turns()
    once = loop._run_once  # type: ignore[attr-defined]

    def measured() -> None:
        before = time.thread_time()
        once()
        turns.cpu.append((time.thread_time() - before) * 1000)

    loop._run_once = measured  # type: ignore[attr-defined]
    try:
        yield turns
    finally:
        loop._run_once = once  # type: ignore[attr-defined]
