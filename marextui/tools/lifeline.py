"""Ends a process group when this program dies, even by SIGKILL: a command must not go on with nobody to stop it.

A small shell beside the group reads from a pipe that only this program holds open. The kernel closes the pipe when the
program is gone, however it went; then the group is ended. Nothing runs between fork and exec of the group's own leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

_WATCH = """\
read -r group || exit 0
read -r released && exit 0
kill -s TERM -- "-$group"
sleep 1
kill -s KILL -- "-$group"
"""


@dataclass(slots=True)
class Lifeline:
    """The end that this program holds, and the shell at the other end."""

    _watcher: asyncio.subprocess.Process
    _held: int

    def tie(self, group: int) -> None:
        """From now on the process group `group` ends with this program."""
        self._tell(f"{group}\n")

    async def release(self) -> None:
        """The group may outlive this program again; the shell beside it ends."""
        self._tell("released\n")
        os.close(self._held)
        await self._watcher.wait()

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # somebody ended the shell: then nothing is tied any more
            os.write(self._held, line.encode())


async def lifeline() -> Lifeline:
    """A lifeline with nothing tied to it yet. Raises OSError."""
    read_end, held = os.pipe()
    try:
        watcher = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _WATCH,
            stdin=read_end,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(read_end)
    return Lifeline(watcher, held)
