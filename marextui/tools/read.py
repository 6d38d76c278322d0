"""Read: a window of a text file, with line numbers."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from marextui.tools import textfile
from marextui.tools.names import count, human_size
from marextui.tools.offload import Abandoned, Stop, look
from marextui.tools.outside import outside_need
from marextui.tools.read_state import HASHED_BYTES, FileMark, ReadState, mark_of
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import PathRefused, Target, Workspace

DEFAULT_LINES = 2_000
LINE_CHARS = 2_000
TOTAL_CHARS = 200_000
"""Most characters one call returns: what an omission can hold (M27)."""

_CHUNK = 1 << 20
_LINE_BYTES = LINE_CHARS * 4 + 4
"""Bytes kept of a long line of a streamed file: enough for LINE_CHARS characters of any UTF-8 text."""


@dataclass(slots=True)
class _Window:
    """The lines asked for, filled one by one; `total` counts all lines of the file."""

    first: int
    limit: int
    lines: list[str] = field(default_factory=list)
    chars: int = 0
    total: int = 0
    full: bool = False
    cut: int = 0

    def wants(self, number: int) -> bool:
        return not self.past(number) and number >= self.first

    def past(self, number: int) -> bool:
        return self.full or number >= self.first + self.limit

    def add(self, text: str, more_chars: int | None = None) -> None:
        """`more_chars` is how much of the line was not even kept (None: nothing)."""
        long = len(text) > LINE_CHARS or more_chars is not None
        if long:
            left = len(text) - min(len(text), LINE_CHARS) + (more_chars or 0)
            text = f"{text[:LINE_CHARS]}… [{count(left, 'more character')} in this line]"
            self.cut += 1
        line = f"{self.first + len(self.lines):>5}→{text}"
        if self.lines and self.chars + len(line) > TOTAL_CHARS:
            self.full = True
            return
        self.lines.append(line)
        self.chars += len(line) + 1


class Read:
    """Reads text files; refuses binary ones by saying what they are. Notes what it read for Edit and Write."""

    def __init__(self, workspace: Workspace, state: ReadState) -> None:
        self._workspace = workspace
        self._state = state

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Read",
            "Read a text file. Lines are numbered like `12→text`; the number and → are not part of the file. "
            f"The first {DEFAULT_LINES} lines unless offset/limit are given.",
            {
                "type": "object",
                "properties": {
                    "file_path": {"type": "string"},
                    "offset": {"type": "integer", "description": "first line, from 1"},
                    "limit": {"type": "integer", "description": "number of lines"},
                },
                "required": ["file_path"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return await look(lambda _stop: outside_need(self._workspace, args["file_path"], "Read"))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await look(lambda stop: self._read(args, stop))

    def _read(self, args: Mapping[str, Any], stop: Stop) -> ToolResult:
        try:
            target = self._workspace.resolve(args["file_path"])
        except PathRefused as error:
            return _failed(f"Read: {args['file_path']!r} cannot be read: {error}.")
        if target.kind == "dir":
            return _failed(f"Read: {target.display} is a directory. Use Ls to list it.", "a directory")
        if target.kind == "missing":
            return _failed(missing(self._workspace, target, "Read"), "not found")
        first = args.get("offset", 1)
        limit = args.get("limit") or DEFAULT_LINES  # small models write 0 for what they leave open
        if first < 1:  # 0 is the first line for models that count from 0
            first = 1
        if limit < 1:
            return _failed(f"Read: limit must be 1 or more, not {limit}.", "bad limit")
        window = _Window(first, limit)
        try:
            encoding, mark = self._fill(target, window, stop)
        except textfile.NotText as error:
            return self._not_text(target, error)
        except OSError as error:
            return _failed(f"Read: {target.display} cannot be read: {error.strerror}.", "cannot be read")
        if stop:  # interrupted: nobody will see what was read
            raise Abandoned
        self._state.note_read(target.real, mark)
        return _result(target, window, encoding)

    def _fill(self, target: Target, window: _Window, stop: Stop) -> tuple[textfile.Encoding, FileMark]:
        with open(os.open(target.real, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            head = file.read(textfile.SNIFFED_BYTES) or b""  # None: a kernel file that would block
            what = textfile.sniff(head)
            if what:
                raise textfile.NotText(what)
            if status.st_size <= HASHED_BYTES:
                data = head + (file.read(HASHED_BYTES) or b"")
                text, encoding = textfile.decode(data)
                _fill_from_text(text, window)
                return encoding, mark_of(status, data)
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise textfile.NotText("UTF-16 text too large to be read")
            file.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
            _fill_from_chunks(iter(lambda: file.read(_CHUNK), b""), window, stop)
            return textfile.UTF8, mark_of(status, None)

    def _not_text(self, target: Target, error: textfile.NotText) -> ToolResult:
        try:
            size = human_size(os.stat(target.real).st_size)
        except OSError:
            size = "unknown size"
        if error.image:
            text = f"Read: {target.display} is a {error} ({size}). Pictures cannot be shown to the model here."
        else:
            text = f"Read: {target.display} is not text: {error} ({size}). Bash can inspect it (file, strings, xxd)."
        return _failed(text, str(error))


def _fill_from_text(text: str, window: _Window) -> None:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    window.total = len(lines)
    for line in lines[window.first - 1 : window.first - 1 + window.limit]:
        window.add(textfile.shown(line.removesuffix("\r")))


def _fill_from_chunks(chunks: Iterator[bytes], window: _Window, stop: Stop) -> None:
    """Go through a file that does not fit in memory; only the start of each wanted line is ever kept."""
    number, kept, length = 1, bytearray(), 0
    for chunk in chunks:
        if stop:
            raise Abandoned
        newlines = chunk.count(b"\n")
        if window.past(number) or number + newlines < window.first:  # nothing wanted in here: only count
            number += newlines
            length = len(chunk) - chunk.rfind(b"\n") - 1 if newlines else length + len(chunk)
            continue
        start = 0
        while start < len(chunk):
            end = chunk.find(b"\n", start)
            stop_at = len(chunk) if end < 0 else end
            if window.wants(number) and len(kept) < _LINE_BYTES:
                kept += chunk[start : min(stop_at, start + _LINE_BYTES - len(kept))]
            length += stop_at - start
            if end < 0:
                break
            _end_line(window, number, kept, length)
            number, length = number + 1, 0
            kept.clear()
            start = end + 1
    if length:
        _end_line(window, number, kept, length)
        number += 1
    window.total = number - 1


def _end_line(window: _Window, number: int, kept: bytearray, length: int) -> None:
    if not window.wants(number):
        return
    text = bytes(kept).decode("utf-8", "replace")
    window.add(text.removesuffix("\r"), length - len(kept) if length > len(kept) else None)


def _result(target: Target, window: _Window, encoding: textfile.Encoding) -> ToolResult:
    if window.total == 0:
        return ToolResult(f"({target.display} is empty)", summary="empty")
    if not window.lines:
        return _failed(
            f"Read: {target.display} has {count(window.total, 'line')}; there is no line {window.first}.",
            "past the end",
        )
    last = window.first + len(window.lines) - 1
    notes: list[str] = []
    if last < window.total or window.first > 1:
        notes.append(f"lines {window.first}-{last} of {window.total}")
        if last < window.total:
            notes.append(f"continue with offset={last + 1}")
    if window.cut:
        notes.append(f"{count(window.cut, 'line')} cut at {LINE_CHARS} characters: use Grep or Bash for the rest")
    if encoding.lossy:
        notes.append("some bytes are not UTF-8 and are shown as \ufffd")
    elif encoding.codec != "utf-8":
        notes.append(f"stored as {encoding.label}")
    text = "\n".join(window.lines)
    if notes:
        text += f"\n[{'; '.join(notes)}]"
    whole = window.first == 1 and last == window.total
    summary = count(window.total, "line") if whole else f"lines {window.first}-{last} of {window.total}"
    return ToolResult(text, summary=summary)


def missing(workspace: Workspace, target: Target, tool: str) -> str:
    """The sentence for a path that does not exist, with the nearest names there are."""
    text = f"{tool}: {target.display} does not exist."
    near = workspace.nearest(target)
    return f"{text} Did you mean {' or '.join(near)}?" if near else f"{text} Use Glob or Ls to find it."


def _failed(text: str, summary: str = "refused") -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary)
