"""What the screen needs from the outside world, as small Protocols with the real ones: clock, clipboard, editor, pager.

The real clipboard never says "copied" on hope (case 18), and no text is lost when an editor fails (case 42).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from textual.app import App, SuspendNotSupported

from marextui.context.sanitise import sanitise

OSC52_LIMIT = 74_000
"""Bytes of text; terminals commonly drop an OSC 52 above 100,000 characters of base64 without a word."""

TOOL_TIMEOUT = 3.0
"""Seconds a clipboard tool may take."""


class Clock(Protocol):
    """Time in seconds."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    def arrival(self, stamp: float) -> float:
        """When a key that carries the time `stamp` arrived, in seconds from an arbitrary start.

        Not when it is looked at: a busy app looks late at keys typed slowly, and slowly at keys sent at once.
        """
        ...

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Call `call` once, `seconds` from now, in the running loop."""
        ...


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """`ok`: the text left for the clipboard; `how` names the way; `problem` says what to do when not `ok`.

    `verified` is False when the way gives no answer (OSC 52): say "sent", never "copied" (case 18).
    """

    ok: bool
    how: str
    problem: str = ""
    verified: bool = True


class Clipboard(Protocol):
    async def copy(self, text: str) -> CopyOutcome: ...


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """`text` after the edit; None when it failed: then `problem` is a sentence and `path` the file that holds it."""

    text: str | None
    problem: str = ""
    path: Path | None = None


class Editor(Protocol):
    async def edit(self, text: str, *, suffix: str = ".md") -> EditOutcome:
        """Edit `text` in a private temporary file."""
        ...

    async def open(self, path: Path) -> str:
        """Edit the file at `path` in place; "" or a sentence saying what went wrong."""
        ...


class Pager(Protocol):
    async def show(self, text: str, *, title: str = "") -> str:
        """Show `text`; "" or a sentence saying what went wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The bundle an app carries as `app.ports`."""

    clock: Clock
    clipboard: Clipboard
    editor: Editor
    pager: Pager


class RealClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def arrival(self, stamp: float) -> float:
        return stamp

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)


RunTool = Callable[[Sequence[str], bytes], Awaitable[str]]
"""Runs a command with the bytes as its input; "" when it exited with 0, else what went wrong."""


async def run_tool(command: Sequence[str], data: bytes) -> str:
    """The real `RunTool`. Outputs are not captured: xclip and wl-copy leave a child behind that keeps them open."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        return f"{command[0]} did not start ({error.strerror or error})"
    try:
        await asyncio.wait_for(process.communicate(data), TOOL_TIMEOUT)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{command[0]} did not answer within {TOOL_TIMEOUT:g} seconds"
    return "" if process.returncode == 0 else f"{command[0]} failed with exit code {process.returncode}"


class SystemClipboard:
    """Tries the tools that fit the session, then tmux, then OSC 52 through the terminal.

    `send` writes an OSC 52 through the app and says whether there was a terminal to write to.
    """

    def __init__(
        self,
        send: Callable[[str], bool],
        *,
        run: RunTool = run_tool,
        env: Mapping[str, str] | None = None,
        which: Callable[[str], str | None] = shutil.which,
        platform: str = sys.platform,
    ) -> None:
        self._send = send
        self._run = run
        self._env = os.environ if env is None else env
        self._which = which
        self._platform = platform

    def _tools(self) -> Iterator[tuple[str, list[str]]]:
        """(what it reaches, command) of each tool worth trying here."""
        if self._platform == "darwin":
            yield "the clipboard", ["pbcopy"]
        if self._env.get("WAYLAND_DISPLAY"):
            yield "the clipboard", ["wl-copy"]
        if self._env.get("DISPLAY"):
            yield "the clipboard", ["xclip", "-selection", "clipboard"]
            yield "the clipboard", ["xsel", "--clipboard", "--input"]
        if self._env.get("TMUX"):
            yield "the tmux buffer", ["tmux", "load-buffer", "-w", "-"]
            yield "the tmux buffer", ["tmux", "load-buffer", "-"]

    async def copy(self, text: str) -> CopyOutcome:
        data = text.encode("utf-8", "replace")
        problems: list[str] = []
        for reaches, command in self._tools():
            if self._which(command[0]) is None:
                continue
            problem = await self._run(command, data)
            if not problem:
                return CopyOutcome(True, f"{reaches} ({command[0]})")
            problems.append(problem)
        if len(data) <= OSC52_LIMIT and self._send(data.decode("utf-8")):
            return CopyOutcome(True, "the terminal (OSC 52)", verified=False)
        if len(data) > OSC52_LIMIT:
            problems.append("the text is too long to go through the terminal")
        return CopyOutcome(False, "", f"{'; '.join([*problems, self._advice()])}.")

    def _advice(self) -> str:
        if self._platform == "darwin":
            return "pbcopy should be part of the system: check your PATH"
        if self._env.get("WAYLAND_DISPLAY"):
            return "install wl-clipboard so that copying works here"
        if self._env.get("DISPLAY"):
            return "install xclip or xsel so that copying works here"
        return "there is no desktop clipboard in this session: run in tmux, or use a terminal that accepts OSC 52"


def _no_interrupt() -> AbstractContextManager[None]:
    """Ctrl+C in a pager goes to the whole foreground group: while it runs, it is not for us.

    A handler that does nothing, not SIG_IGN: an ignored signal would stay ignored in the child.
    """

    @contextmanager
    def scope() -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    return scope()


@contextmanager
def _foreground(app: App[Any]) -> Iterator[None]:
    """The terminal belongs to another program. The loop goes on (a stream is not stalled), but nothing is painted."""
    with app.batch_update(), app.suspend(), _no_interrupt():
        yield


class _Foreground:
    """Runs a program in the terminal with the app suspended."""

    def __init__(self, suspend: Callable[[], AbstractContextManager[None]]) -> None:
        self._suspend = suspend

    async def run(self, command: str, path: Path) -> str:
        """Run `command` on `path`; "" or a sentence saying what went wrong."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            return f"The command {command!r} cannot be read ({error})."
        if not words:
            return "No command is set."
        try:
            with self._suspend():
                process = await asyncio.create_subprocess_exec(*words, str(path))
                code = await process.wait()
        except SuspendNotSupported:
            return f"{words[0]} cannot be opened: this terminal cannot be handed over."
        except OSError as error:
            return f"{words[0]} did not start ({error.strerror or error})."
        return "" if code == 0 else f"{words[0]} ended with exit code {code}."


def _private_file(text: str, suffix: str) -> Path:
    """A new temporary file with `text`, readable by its owner only."""
    handle, name = tempfile.mkstemp(prefix="marextui-", suffix=suffix)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
    return Path(name)


def _first_of(*commands: str) -> str:
    return next((c for c in commands if shutil.which(c)), "")


class TerminalEditor:
    """The editor of the settings, else $VISUAL, $EDITOR, else the first of nano, vim, vi there is."""

    def __init__(self, suspend: Callable[[], AbstractContextManager[None]], command: str = "") -> None:
        self._runner = _Foreground(suspend)
        self._command = command

    def _resolve(self) -> str:
        env = os.environ
        return self._command or env.get("VISUAL", "") or env.get("EDITOR", "") or _first_of("nano", "vim", "vi")

    async def edit(self, text: str, *, suffix: str = ".md") -> EditOutcome:
        try:
            path = await asyncio.to_thread(_private_file, text, suffix)
        except OSError as error:
            return EditOutcome(None, f"No temporary file could be written ({error.strerror or error}).")
        problem = await self.open(path)
        if problem:
            return EditOutcome(None, f"{problem} The text is kept in {path}.", path)
        try:
            edited = (await asyncio.to_thread(path.read_bytes)).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return EditOutcome(None, f"The edited text could not be read ({error}). It is kept in {path}.", path)
        await asyncio.to_thread(path.unlink, missing_ok=True)
        if edited.endswith("\n") and not text.endswith("\n"):
            edited = edited[:-1]  # editors end a file with a newline of their own
        return EditOutcome(edited)

    async def open(self, path: Path) -> str:
        command = self._resolve()
        if not command:
            return "No editor was found: set $EDITOR, or `editor` in the settings."
        return await self._runner.run(command, path)


class TerminalPager:
    """The pager of the settings, else $PAGER, else less or more. It gets sanitised text: some pass escapes on."""

    def __init__(self, suspend: Callable[[], AbstractContextManager[None]], command: str = "") -> None:
        self._runner = _Foreground(suspend)
        self._command = command

    async def show(self, text: str, *, title: str = "") -> str:
        command = self._command or os.environ.get("PAGER", "") or _first_of("less", "more")
        if not command:
            return "No pager was found: set $PAGER, or `pager` in the settings."
        safe = await asyncio.to_thread(sanitise, text, max_line=1_000_000, collapse_progress=False)
        try:
            path = await asyncio.to_thread(_private_file, safe, ".txt")
        except OSError as error:
            return f"No temporary file could be written ({error.strerror or error})."
        try:
            return await self._runner.run(command, path)
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)


def real_ports(app: App[Any], *, editor: str = "", pager: str = "") -> Ports:
    """The real ones for `app`; `editor` and `pager` are the commands from the settings, "" for the environment's."""

    def send(text: str) -> bool:
        if app.is_headless or os.environ.get("TERM", "") in ("", "dumb", "linux"):
            return False
        app.copy_to_clipboard(text)
        return True

    def suspend() -> AbstractContextManager[None]:
        return _foreground(app)

    return Ports(RealClock(), SystemClipboard(send), TerminalEditor(suspend, editor), TerminalPager(suspend, pager))


def ports_of(app: App[Any]) -> Ports:
    """`app.ports` when the app carries a bundle, else real ones. The panes and screens here ask for ports this way."""
    ports = getattr(app, "ports", None)
    return ports if isinstance(ports, Ports) else real_ports(app)


async def copy_and_tell(app: App[Any], text: str, what: str) -> CopyOutcome:
    """Copy `text` through the app's clipboard and tell the person, honestly, what became of `what` ("the id").

    When nothing took it, the text goes into a private temporary file, and the person is told which.
    """
    outcome = await ports_of(app).clipboard.copy(text)
    if outcome.ok and outcome.verified:
        app.notify(f"Copied {what} to {outcome.how}.", markup=False)
    elif outcome.ok:
        app.notify(f"Sent {what} to {outcome.how}; whether it took it cannot be verified.", markup=False)
    else:
        try:
            saved = f" Saved to {await asyncio.to_thread(_private_file, text, '.txt')} instead."
        except OSError as error:
            saved = f" It could not be saved to a file either ({error.strerror or error})."
        app.notify(
            f"Not copied: {outcome.problem}{saved}", title="Clipboard", severity="error", timeout=15, markup=False
        )
    return outcome
