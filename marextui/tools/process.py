"""Child processes in their own session: output through one pipe, and an end that takes the children along."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from marextui.tools.lifeline import Lifeline, lifeline
from marextui.tools.offload import settle

TERM_GRACE_SECONDS = 2.0
"""How long a process group may take to end by SIGTERM before SIGKILL."""

KILL_GRACE_SECONDS = 1.0
"""How long to look for the last of a killed group to be gone; one in an uninterruptible call may stay longer."""

_POLL_SECONDS = 0.05
_HELD_BACK = 'read -r _ && exec "$@" <"$0"'
"""For the leader's shell: wait for a word, then become the program, which reads from the file named first. Without the
word (this program died before its group was tied to it) nothing is run."""
_READ_AHEAD = 1 << 18


class Clock(Protocol):
    """The port to waiting."""

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """Waits in real time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Child:
    """A running child. `output` ends when the last process that holds the pipe has closed it, maybe after the child."""

    process: asyncio.subprocess.Process
    output: asyncio.StreamReader
    pipe: asyncio.ReadTransport
    line: Lifeline

    async def end(self, clock: Clock) -> None:
        """End the process group: SIGTERM, after `TERM_GRACE_SECONDS` SIGKILL. Goes through also when cancelled."""
        task = asyncio.ensure_future(self._end(clock))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await settle(task)
            raise

    async def _end(self, clock: Clock) -> None:
        if signal_group(self.process.pid, signal.SIGTERM):
            await self._gone(clock, TERM_GRACE_SECONDS)
        if signal_group(self.process.pid, signal.SIGKILL):
            await self._gone(clock, KILL_GRACE_SECONDS)
        await self.process.wait()

    async def _gone(self, clock: Clock, seconds: float) -> None:
        """Until nothing of the group runs, at most `seconds`."""
        waited = 0.0
        while waited < seconds and (self.process.returncode is None or group_alive(self.process.pid)):
            await clock.sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS

    async def close(self) -> None:
        """Let go of the pipe; processes that still run are on their own."""
        self.pipe.close()
        await self.line.release()


async def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str = os.devnull,
    stderr: int | IO[bytes] = asyncio.subprocess.STDOUT,
) -> Child:
    """Start `argv` as the leader of a new session, which ends when this program dies; it reads from the file `stdin`.

    Raises OSError and ValueError (NUL in an argument). A program that does not exist ends with 127, as in a shell.

    The pipe is ours, not asyncio's: `Process.wait` must return when the process ends, even if a background child
    keeps the pipe open.
    """
    read_end, write_end = os.pipe()
    output = asyncio.StreamReader(limit=_READ_AHEAD)
    try:
        # before the child: once there is one, nothing here may be cancelled without ending it
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), os.fdopen(read_end, "rb", 0)
        )
        try:
            process, line = await _tied(argv, cwd, env, stdin, write_end, stderr)
        except BaseException:
            pipe.close()
            raise
    finally:
        os.close(write_end)
    return Child(process, output, pipe, line)


async def _tied(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: str, stdout: int, stderr: int | IO[bytes]
) -> tuple[asyncio.subprocess.Process, Lifeline]:
    line = await lifeline()
    try:
        process = await _spawn(argv, cwd, env, stdin, stdout, stderr)
    except BaseException:
        await line.release()
        raise
    line.tie(process.pid)
    assert process.stdin is not None
    process.stdin.write(b"\n")  # fits the pipe: goes out at once
    process.stdin.close()
    return process, line


async def _spawn(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: str, stdout: int, stderr: int | IO[bytes]
) -> asyncio.subprocess.Process:
    spawning = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _HELD_BACK, stdin, *argv),
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        await settle(spawning)  # it was started all the same
        if not spawning.cancelled() and spawning.exception() is None:
            signal_group(spawning.result().pid, signal.SIGKILL)
            await settle(asyncio.ensure_future(spawning.result().wait()))
        raise


def signal_group(group: int, number: signal.Signals) -> bool:
    """Signal every process of the group; False when there is none left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so for a group of zombies; also a set-uid child, which we may not end
        return False
    return True


def group_alive(group: int) -> bool:
    """Whether a process of the group still runs; those that only wait to be reaped do not count (Linux)."""
    if not sys.platform.startswith("linux"):
        with contextlib.suppress(PermissionError):
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return False
        return True
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # the name in parentheses may hold anything; after it come state, parent, group
                state, _parent, its_group = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(its_group) == group and state not in {b"Z", b"X"}:
            return True
    return False
