"""Bash: one shell command, streamed, bounded, and ended together with its children."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marextui.tools.environment import plain_environment
from marextui.tools.names import count, show_name
from marextui.tools.offload import look, settle
from marextui.tools.process import Child, Clock, RealClock, group_alive, start
from marextui.tools.streaming import OutputStream
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import PathRefused, Workspace

MAX_TIMEOUT_SECONDS = 600
HELD_PIPE_GRACE_SECONDS = 0.5
"""How long a background child may keep the output open after the shell has ended."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a command ended: `code` of the shell, and what is to be told besides."""

    code: int
    timed_out: bool
    note: str


class Bash:
    """Runs `command` in the project with bash (sh where there is none), stdin closed, stdout and stderr in one."""

    def __init__(self, workspace: Workspace, *, default_timeout: int, clock: Clock | None = None) -> None:
        self._workspace = workspace
        self._default_timeout = max(1, min(default_timeout, MAX_TIMEOUT_SECONDS))
        self._clock = clock if clock is not None else RealClock()
        self._shell = shutil.which("bash") or "/bin/sh"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Bash",
            "Run a shell command in the project. No input, no terminal. "
            "Prefer Read, Glob and Grep for looking at files.",
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout": {
                        "type": "integer",
                        "description": f"seconds, default {self._default_timeout}, at most {MAX_TIMEOUT_SECONDS}",
                    },
                    "cwd": {"type": "string", "description": "directory in the project"},
                },
                "required": ["command"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        """Every command is asked. The scope is the exact command, with its directory unless that is the project."""
        try:
            cwd = await look(lambda _stop: self._cwd(args))
        except PathRefused:
            return None
        command: str = args["command"]
        here = self._workspace.display(cwd)
        return PermissionNeed(
            kind="bash",
            title="Run a command",
            detail=f"{command}\n\nin {show_name(str(cwd))}",
            scope=command if here == "." else f"{command}\n(in {here})",
        )

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        command: str = args["command"]
        timeout = min(args.get("timeout") or self._default_timeout, MAX_TIMEOUT_SECONDS)  # 0: left open
        if not command.strip():
            return _failed("Bash: the command is empty.")
        if timeout < 1:
            return _failed(f"Bash: timeout must be 1 to {MAX_TIMEOUT_SECONDS} seconds, not {timeout}.")
        try:
            cwd = await look(lambda _stop: self._cwd(args))
            argv = (self._shell, "-c", "--", command)
            child = await start(argv, cwd=cwd, env=plain_environment(os.environ))
        except PathRefused as error:
            return _failed(f"Bash: {error}")
        except OSError as error:
            return _failed(f"Bash: the command could not be started: {error.strerror}.")
        except ValueError as error:  # NUL or a lone surrogate: no process can be given such text
            return _failed(f"Bash: the command could not be started: {error}.")
        stream = OutputStream(ctx.emit, self._clock)
        try:
            ending = await self._follow(child, stream, timeout)
        except BaseException:
            await child.end(self._clock)
            raise
        finally:
            await child.close()
        return _result(stream, ending, timeout)

    def _cwd(self, args: Mapping[str, Any]) -> Path:
        """The directory to run in. Raises `PathRefused` with a sentence for what is not a directory of the project."""
        written = args.get("cwd") or "."
        try:
            target = self._workspace.resolve(written)
        except PathRefused as error:
            raise PathRefused(f"cwd {written!r} cannot be used: {error}.") from None
        if not target.inside:
            raise PathRefused(f"cwd {target.display} is outside the project. Use cd in the command instead.")
        if target.kind != "dir":
            what = "does not exist" if target.kind == "missing" else "is not a directory"
            raise PathRefused(f"cwd {target.display} {what}.")
        return target.real

    async def _follow(self, child: Child, stream: OutputStream, timeout: int) -> _Ending:
        pump = asyncio.ensure_future(stream.pump(child.output))
        exited = asyncio.ensure_future(child.process.wait())
        timer = asyncio.ensure_future(self._clock.sleep(timeout))
        try:
            await asyncio.wait({exited, timer}, return_when=asyncio.FIRST_COMPLETED)
            timed_out = not exited.done()
            if timed_out:
                await child.end(self._clock)
            note = "" if await self._drained(pump) else await self._take_pipe(child, pump)
            if not note and not timed_out and group_alive(child.process.pid):
                note = f"background processes of this command still run; end them with: kill -- -{child.process.pid}"
            return _Ending(await exited, timed_out, note)
        finally:
            for task in (pump, exited, timer):
                task.cancel()
                await settle(task)

    async def _take_pipe(self, child: Child, pump: asyncio.Task[None]) -> str:
        """The shell is gone but its pipe is held. Ends who holds it; a process that left the group is let alone."""
        await child.end(self._clock)
        if await self._drained(pump):
            return (
                "background processes still held the output and were ended; "
                "to keep one running, send its output to a file: command >log 2>&1 &"
            )
        return "a detached process still holds the output; it was left running and is no longer listened to"

    async def _drained(self, pump: asyncio.Task[None]) -> bool:
        grace = asyncio.ensure_future(self._clock.sleep(HELD_PIPE_GRACE_SECONDS))
        try:
            await asyncio.wait({pump, grace}, return_when=asyncio.FIRST_COMPLETED)
            return pump.done()
        finally:
            grace.cancel()


def _result(stream: OutputStream, ending: _Ending, timeout: int) -> ToolResult:
    text = stream.kept.text()
    notes: list[str] = []
    if ending.timed_out:
        notes.append(f"timed out after {count(timeout, 'second')}; the command and its children were ended")
        summary = f"timed out after {timeout} s"
    elif ending.code < 0:
        notes.append(f"ended by {_signal_name(-ending.code)}")
        summary = notes[-1]
    else:
        summary = f"exit code {ending.code}"
        if ending.code:
            notes.append(summary)
    if ending.note:
        notes.append(ending.note)
    if not text.strip() and not notes:
        text = "(no output)"
    if notes:
        gap = "" if not text or text.endswith("\n") else "\n"
        text = text + gap + "\n".join(f"[{note}]" if note != summary else note for note in notes)
    lines = text.count("\n") + (not text.endswith("\n"))
    failed = ending.timed_out or ending.code != 0
    return ToolResult(text, is_error=failed, summary=summary if failed else count(lines, "line"))


def _signal_name(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def _failed(text: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary="not run")
