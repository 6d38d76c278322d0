"""What the screen needs from the outside world, as small Protocols, with the real ones: clock, clipboard, editor, pager."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from textual.app import App


class Clock(Protocol):
    """Time in seconds."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
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
    """`text` after the edit, None when the editor failed; `problem` is then a sentence and `path` where the text is kept."""

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


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class Ports:
    """The bundle an app carries as `app.ports`."""

    clock: Clock
    clipboard: Clipboard
    editor: Editor
    pager: Pager


def real_ports(app: App[Any], *, editor: str = "", pager: str = "") -> Ports:
    """The real ones for `app`; `editor` and `pager` are the commands from the settings, "" for the environment's."""
    raise NotImplementedError


def ports_of(app: App[Any]) -> Ports:
    """`app.ports` when the app carries a bundle, else real ones. The panes and screens here ask for ports this way."""
    ports = getattr(app, "ports", None)
    return ports if isinstance(ports, Ports) else real_ports(app)


async def copy_and_tell(app: App[Any], text: str, what: str) -> CopyOutcome:
    """Copy `text` through the app's clipboard and tell the person, honestly, what became of `what` ("the id")."""
    raise NotImplementedError
