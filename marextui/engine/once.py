"""One answer without a screen (`marextui -p`): text for pipes, or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

from marextui.context.sanitise import StreamSanitiser, sanitise
from marextui.engine.api import NEW
from marextui.engine.build import build_engine
from marextui.engine.engine import Engine
from marextui.engine.events import (
    CompactionFinished,
    Event,
    ModelFailed,
    ModelNeeded,
    Notice,
    TextStreamed,
    ToolStarted,
    TurnFinished,
)
from marextui.engine.permissions import Decision
from marextui.settings import Settings

KINDS = frozenset({"edit", "write", "bash", "outside", "memory"})


@dataclass(slots=True)
class Printer:
    """Writes what a pipe wants: the answer on `out`, everything else on `err`. Control bytes never pass (see 3.4)."""

    out: TextIO
    err: TextIO
    as_json: bool
    over: asyncio.Event = field(default_factory=asyncio.Event)
    failed: bool = False
    broken: OSError | None = None
    """Why nothing more can be written to `out`; the answer is then over (its reader has gone, or a disk is full)."""
    _stream: StreamSanitiser = field(default_factory=StreamSanitiser)
    _ends_with_newline: bool = True
    _answered: bool = False
    _told: str = ""

    def hear(self, event: Event) -> None:
        """Take one event; never raises, for the engine must not suffer from its listener."""
        if self.broken is not None:
            return
        try:
            self._hear(event)
        except OSError as problem:
            self.broken = problem
            self.over.set()

    def _hear(self, event: Event) -> None:
        if self.as_json:
            line = {"event": type(event).__name__, **asdict(event)}
            self.out.write(json.dumps(line, ensure_ascii=True) + "\n")
            self.out.flush()
        else:
            self._say(event)
        if isinstance(event, TurnFinished):
            self.failed = self.failed or event.end != "done" or not self._answered
            self._finish()
        elif isinstance(event, TextStreamed):
            self._answered = True
        elif isinstance(event, ModelNeeded | ModelFailed):
            self.failed = True

    def _say(self, event: Event) -> None:
        match event:
            case TextStreamed(_, text):
                self._write(self._stream.feed(text))
            case ToolStarted(_, _, _, title):
                self._write(self._stream.flush())
                self._newline()
                self.err.write(f"· {sanitise(title)}\n")
            case Notice(level, text, hint, _) if level != "info" and text != self._told:
                self.err.write(f"{level}: {sanitise(text)} {sanitise(hint)}".rstrip() + "\n")
            case ModelFailed(_, message, hint, _):
                self._told = message  # the turn that needed the model will end with the same words
                self.err.write(f"error: {sanitise(message)} {sanitise(hint)}".rstrip() + "\n")
            case ModelNeeded():
                self.err.write(
                    "error: no model is configured, installed or running.\n"
                    "Install the local one (pip install 'marextui[local]'), or give --base-url and --model.\n"
                )
            case CompactionFinished(entry):
                self.err.write(f"compacted: {entry.tokens_before} → {entry.tokens_after} tokens\n")
            case _:
                pass

    def _write(self, text: str) -> None:
        if text:
            self.out.write(text)
            self.out.flush()
            self._ends_with_newline = text.endswith("\n")

    def _newline(self) -> None:
        if not self._ends_with_newline:
            self._write("\n")

    def _finish(self) -> None:
        if not self.as_json:
            self._write(self._stream.flush())
            self._newline()
        self.over.set()


async def ask_once(
    text: str,
    settings: Settings,
    *,
    root: Path,
    wanted: str = NEW,
    allowed: frozenset[str] = frozenset(),
    as_json: bool = False,
    out: TextIO,
    err: TextIO,
) -> int:
    """Send `text`, print the answer, return the exit code (1 when the turn did not end well).

    Raises `StoreError`, and OSError when the answer could not be written to `out`.
    Nobody can be asked, so tools that need permission run only if their kind is in `allowed`.
    """
    unattended = {kind: Decision("once") for kind in allowed}
    engine: Engine = await build_engine(settings, cwd=root, root=root, wanted=wanted, unattended=unattended)
    printer = Printer(out, err, as_json)
    engine.subscribe(printer.hear)
    try:
        await engine.start(connect=False)
        engine.submit(text)
        await printer.over.wait()
    finally:
        await engine.close()
    if printer.broken is not None:
        raise printer.broken
    return 1 if printer.failed else 0
