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
    _stream: StreamSanitiser = field(default_factory=StreamSanitiser)
    _ends_with_newline: bool = True

    def hear(self, event: Event) -> None:
        if self.as_json:
            line = {"event": type(event).__name__, **asdict(event)}
            self.out.write(json.dumps(line, ensure_ascii=True) + "\n")
            self.out.flush()
        else:
            self._say(event)
        if isinstance(event, TurnFinished):
            self.failed = self.failed or event.end != "done"
            self._finish()
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
            case Notice(level, text, hint, _) if level != "info":
                self.err.write(f"{level}: {sanitise(text)} {sanitise(hint)}".rstrip() + "\n")
            case ModelFailed(label, message, hint, _):
                self.err.write(f"error: {sanitise(label)}: {sanitise(message)} {sanitise(hint)}".rstrip() + "\n")
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
    """Send `text`, print the answer, return the exit code (1 when the turn did not end well). Raises `StoreError`.

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
    return 1 if printer.failed else 0
