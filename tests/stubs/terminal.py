"""A real pseudo-terminal with a program on it, read by a terminal emulator: the end of the end-to-end tests.

    async with Terminal([sys.executable, "-m", "marextui"], cwd=folder) as term:
        await term.until("Write a message")
        term.type("hello\\r")
        assert await term.exited() == 0

Waiting is for output, with a limit that only a failure reaches.
"""

from __future__ import annotations

import asyncio
import copy
import os
import re
import signal
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pexpect
import pyte

LIMIT = 30.0
"""Seconds until a wait is a failure."""

ENTER, ESCAPE, F9, CTRL_C = "\r", "\x1b", "\x1b[20~", "\x03"
_ALTERNATE = 1049 << 5
_UNKNOWN = re.compile(rb"\x1b\[<[0-9]*u|\x1b\[[0-9;]*:[0-9;:]*m")
"""Sequences the emulator does not know and would print: kitty keys, underline styles."""


class _Screen(pyte.Screen):
    """With the alternate screen, which pyte lacks."""

    def __init__(self, columns: int, lines: int) -> None:
        self._main: Any = None
        super().__init__(columns, lines)

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        super().set_mode(*modes, **kwargs)
        if 1049 in modes and self._main is None:
            self._main = copy.deepcopy(dict(self.buffer))
            self.erase_in_display(2)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        super().reset_mode(*modes, **kwargs)
        if 1049 in modes and self._main is not None:
            self.buffer.clear()
            self.buffer.update(self._main)
            self._main = None

    @property
    def alternate(self) -> bool:
        """The alternate screen is shown."""
        return self._main is not None

    def on(self, mode: int) -> bool:
        """A private mode (like 1003, mouse) is set."""
        return mode << 5 in self.mode


class Terminal:
    """`raw` is every byte the program wrote, `screen` what a terminal makes of it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        columns: int = 120,
        lines: int = 40,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._size = (columns, lines)
        inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}  # they beat the real size
        self._env = {**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", **(env or {})}
        self.raw = bytearray()
        self.screen = _Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._news = asyncio.Event()
        self._over = False

    async def __aenter__(self) -> Terminal:
        columns, lines = self._size
        self._child = pexpect.spawn(
            self._command[0],
            self._command[1:],
            cwd=str(self._cwd),
            env=self._env,
            dimensions=(lines, columns),
            echo=True,
        )
        self._child.delaybeforesend = None
        self.cooked = termios.tcgetattr(self._child.child_fd)
        asyncio.get_running_loop().add_reader(self._child.child_fd, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over:
            asyncio.get_running_loop().remove_reader(self._child.child_fd)
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
        await asyncio.to_thread(self._child.close, force=True)

    @property
    def pid(self) -> int:
        return int(self._child.pid)

    @property
    def text(self) -> str:
        """The screen with plain blanks, those at line ends cut."""
        shown = "\n".join(line.rstrip() for line in self.screen.display)
        return shown.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")

    def _read(self) -> None:
        try:
            data = os.read(self._child.child_fd, 1 << 16)
        except OSError:  # how Linux says that the program has closed its side
            data = b""
        if data:
            self.raw += data
            self._stream.feed(_UNKNOWN.sub(b"", data))
        else:
            self._over = True
            asyncio.get_running_loop().remove_reader(self._child.child_fd)
        self._news.set()

    async def until(self, wanted: str | Callable[[], bool], *, limit: float = LIMIT) -> None:
        """Wait until the screen shows `wanted`, or until it holds; a failure shows the screen."""
        seen = (lambda: wanted in self.text) if isinstance(wanted, str) else wanted
        try:
            async with asyncio.timeout(limit):
                while not seen():
                    if self._over:
                        raise AssertionError(f"ended before {wanted!r} was there:\n{self.text}")
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{wanted!r} did not come in {limit:g} s:\n{self.text}") from None

    def type(self, keys: str | bytes) -> None:
        """Send keys as a terminal would; bytes for what is no text."""
        self._child.send(keys)

    async def paste(self, text: str | bytes) -> None:
        """Send a bracketed paste, however large."""
        body = text.encode() if isinstance(text, str) else text
        await self.pour(b"\x1b[200~" + body + b"\x1b[201~")

    async def pour(self, data: bytes) -> None:
        """Send more than the program may read at once."""
        await asyncio.to_thread(self._child.send, data)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._child.setwinsize(lines, columns)

    def kill(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def exited(self, *, limit: float = LIMIT) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        try:
            async with asyncio.timeout(limit):
                while not self._over:
                    self._news.clear()
                    await self._news.wait()
                await asyncio.to_thread(self._child.wait)
        except TimeoutError:
            raise AssertionError(f"did not end in {limit:g} s:\n{self.text}") from None
        if self._child.signalstatus is not None:
            return -int(self._child.signalstatus)
        return int(self._child.exitstatus)
