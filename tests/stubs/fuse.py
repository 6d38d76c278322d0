"""A process that dies between two operations of its stores: from then on nothing of it reaches the disk."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from marextui.context.entries import Entry
from marextui.engine.ports import RandomIds
from tests.stubs.engine_rig import Rig


class Killed(BaseException):
    """What the engine meets instead of an answer of the disk; no `except` of the product may take it for an error."""


class Fuse:
    """Counts the writes of a rig's stores and blows at number `at` (0: never), before that write or right after it.

    `durable` are the entries the log has taken. After the fuse has blown every write fails, as for a dead process.
    """

    def __init__(self, at: int = 0, *, after: bool = False) -> None:
        self.at = at
        self.after = after
        self.count = 0
        self.where = ""
        self.durable: list[Entry] = []

    def into(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wire it into every write of `rig`: operations of stores, and the files below them."""
        archive = rig.engine.state.archive
        for store, names in (
            (archive.store, ("create", "append", "rename")),
            (rig.omissions, ("put", "mark_read")),
            (rig.memory, ("feed",)),
            (rig.journal, ("append",)),
        ):
            for name in names:
                setattr(store, name, self._operation(getattr(store, name), f"{type(store).__name__}.{name}"))
        for module in ("marextui.store.omissions", "marextui.store.blobs", "marextui.store.memory"):
            monkeypatch.setattr(f"{module}.write_private", self._write(module))

    def _operation(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(real)
        async def wrapped(*args: Any, **kw: Any) -> Any:
            number = self._begin(name)
            result = await real(*args, **kw)
            if name == "LogStore.append":
                self.durable += [r.entry for r in result]
            self._end(number, name)
            return result

        return wrapped

    def _write(self, module: str) -> Callable[..., None]:
        from marextui.private_files import write_private

        def wrapped(*args: Any) -> None:
            number = self._begin(module)
            write_private(*args)
            self._end(number, module)

        return wrapped

    def _begin(self, where: str) -> int:
        """The number of the write that begins now."""
        self.count += 1
        self._burn(self.count == self.at and not self.after, f"before {where}")
        return self.count

    def _end(self, number: int, where: str) -> None:
        self._burn(number == self.at and self.after, f"after {where}")

    def _burn(self, blows: bool, where: str) -> None:
        if blows and not self.where:
            self.where = where
        if self.where:
            raise Killed(self.where)


async def run_until_death(rig: Rig, fuse: Fuse, scenario: Callable[[Rig], Any]) -> None:
    """Play `scenario` until it ends or the process is dead; then the process is gone, without tidying up."""
    playing = asyncio.ensure_future(scenario(rig))
    while not playing.done() and not fuse.where:  # noqa: ASYNC110 -- a death is not announced
        await asyncio.sleep(0)
    if fuse.where:
        playing.cancel()
    await asyncio.wait({playing})
    await rig.engine.close()
    if not fuse.where:
        await playing


def later(rig: Rig, **kw: Any) -> Rig:
    """Another process over the same home, on the same conversation."""
    kw.setdefault("window", rig.window)
    kw.setdefault("clock", rig.clock)
    return Rig(rig.folder, wanted=rig.engine.session.id, ids=RandomIds(), **kw)
