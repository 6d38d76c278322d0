"""The folder of saved slot states: what each is of stands in a small file beside it (issue 4, section 7).

A state that was not recorded, or is not as long as recorded, does not exist: a crash while one is written leaves none.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from marextui.context.warm import KeptState, from_json
from marextui.private_files import ensure_private, write_private

_SUFFIX = ".json"


class WarmStates:
    """States in `folder`; those whose `bytes` are None lie with their server, and only what they are of lies here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def all(self) -> tuple[KeptState, ...]:
        """Every recorded state that is there and whole. Raises OSError."""
        return await asyncio.to_thread(self._all)

    async def record(self, state: KeptState) -> None:
        """The file of `state` is written as a whole. Raises OSError."""
        await asyncio.to_thread(self._record, state)

    async def intact(self, state: KeptState) -> bool:
        """Whether the file still holds what was recorded: after a loss of power parts of it may be zeros, and a server
        would believe them. Raises OSError."""
        return state.bytes is None or await asyncio.to_thread(_checksum, self.folder / state.file) == state.checksum

    async def forget(self, states: Iterable[KeptState]) -> None:
        """Delete states. Raises OSError."""
        await asyncio.to_thread(self._forget, tuple(states))

    async def sweep(self, before: float) -> None:
        """Delete states that nothing was recorded of and that were last written `before` then (seconds since 1970):
        younger ones another process may be writing. Raises OSError."""
        await asyncio.to_thread(self._sweep, before)

    async def make_room(self, file: str) -> None:
        """`file` is about to be written: what it held is no longer recorded. Raises OSError."""
        await asyncio.to_thread(self._make_room, file)

    async def discard(self, file: str) -> None:
        """Delete `file`, which was not written to its end. Raises OSError."""
        await asyncio.to_thread((self.folder / file).unlink, missing_ok=True)

    def _all(self) -> tuple[KeptState, ...]:
        found = []
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            state = from_json(path.read_bytes().decode("utf-8", "replace"))
            if state is not None and path.name == state.file + _SUFFIX and self._whole(state):
                found.append(state)
        return tuple(found)

    def _whole(self, state: KeptState) -> bool:
        if state.bytes is None:
            return True
        try:
            return (self.folder / state.file).stat().st_size == state.bytes
        except OSError:
            return False

    def _record(self, state: KeptState) -> None:
        ensure_private(self.folder)
        if state.bytes is not None:
            state = replace(state, checksum=_checksum(self.folder / state.file))
        write_private(self.folder / f"{state.file}{_SUFFIX}", state.to_json().encode())

    def _make_room(self, file: str) -> None:
        ensure_private(self.folder)
        (self.folder / f"{file}{_SUFFIX}").unlink(missing_ok=True)

    def _sweep(self, before: float) -> None:
        for path in self.folder.glob("*.bin"):
            if not (self.folder / f"{path.name}{_SUFFIX}").exists() and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _forget(self, states: tuple[KeptState, ...]) -> None:
        for state in states:
            (self.folder / f"{state.file}{_SUFFIX}").unlink(missing_ok=True)
            (self.folder / state.file).unlink(missing_ok=True)


def _checksum(path: Path) -> int:
    """CRC-32 of a file of some hundred megabytes, a megabyte at a time."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    return checksum
