"""File work off the event loop, with two kinds of cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Stop:
    """Asked between pieces of work in a thread: whether anybody still waits for it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()


class Abandoned(RuntimeError):
    """Raised in the thread when it notices that nobody waits any more."""


async def look(work: Callable[[Stop], T]) -> T:
    """Run reading `work` in a thread. Cancelled: returns at once, the thread ends by itself when it asks `stop`."""
    stop = Stop()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()


async def change(work: Callable[[Stop], T]) -> T:
    """Run changing `work` in a thread. Cancelled: waits until the thread is done, so nothing changes afterwards.

    `work` asks `stop` right before its one irrevocable step: either all of the change happens or none of it.
    """
    stop = Stop()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await settle(task)
        raise


async def settle(task: asyncio.Future[Any]) -> None:
    """Wait until `task` is done, however often this is cancelled meanwhile; its outcome is dropped."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()  # taken, so that the loop does not report it as never retrieved
