"""Helper programs (rg, git, our search worker): output taken in pieces, ended when enough or cancelled."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from marextui.tools.environment import plain_environment
from marextui.tools.offload import settle
from marextui.tools.process import Child, Clock, start

SEARCH_SECONDS = 30
_CHUNK = 1 << 16
_STDERR_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Captured:
    """How the program ended. `code` is None when it was stopped: by `take`, or after the time was up."""

    code: int | None
    timed_out: bool
    stderr: str


async def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    clock: Clock,
    take: Callable[[bytes], bool],
    seconds: float = SEARCH_SECONDS,
    given: bytes = b"",
) -> Captured:
    """Run `argv`, hand each piece of its output to `take` until that says False. `given` is its standard input.

    Raises OSError when it cannot be started.
    """
    with tempfile.TemporaryFile() as errors, tempfile.NamedTemporaryFile() as source:
        source.write(given)
        source.flush()
        stdin = source.name if given else os.devnull  # an empty file would be searched by ripgrep
        child = await start(argv, cwd=cwd, env=plain_environment(os.environ), stdin=stdin, stderr=errors)
        try:
            reading = asyncio.ensure_future(_read(child, take))
            timer = asyncio.ensure_future(clock.sleep(seconds))
            try:
                await asyncio.wait({reading, timer}, return_when=asyncio.FIRST_COMPLETED)
                timed_out = not reading.done()
                enough = not timed_out and reading.result()
            finally:
                for task in (reading, timer):
                    task.cancel()
                    await settle(task)
            stopped = timed_out or enough
            if stopped:
                await child.end(clock)
            code = await child.process.wait()
        except BaseException:
            await child.end(clock)
            raise
        finally:
            await child.close()
        errors.seek(0)
        stderr = errors.read(_STDERR_BYTES).decode("utf-8", "replace").strip()
    return Captured(None if stopped else code, timed_out, stderr)


async def _read(child: Child, take: Callable[[bytes], bool]) -> bool:
    """True when `take` had enough."""
    while data := await child.output.read(_CHUNK):
        if not take(data):
            return True
    return False
