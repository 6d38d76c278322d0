"""What is kept and what is shown of a process's output, however much of it there is."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable

from marextui.tools.process import Clock

HEAD_BYTES = 4 * 1024 * 1024
TAIL_BYTES = 4 * 1024 * 1024
EMIT_SECONDS = 0.1
"""Output is handed to the screen at most this often."""

EMIT_CHARS = 32_768
"""Most characters handed over at once; what came before them in that moment is only counted."""

_CHUNK = 1 << 16


class KeptOutput:
    """The first and the last four megabytes of a stream (a log of five is kept whole); `total` counts all bytes."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, bytes that are not UTF-8 as U+FFFD, with a line that says how much is missing between."""
        tail = b"".join(self._tail)
        missing = self.total - len(self._head) - len(tail)
        over = max(0, len(tail) - self._tail_bytes)
        if missing + over == 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        left_out = f"{missing + over:,}".replace(",", " ")
        head = bytes(self._head).decode("utf-8", "replace")
        return f"{head}\n[… {left_out} bytes left out here …]\n{tail[over:].decode('utf-8', 'replace')}"


class OutputStream:
    """Pumps a pipe into `kept` and, coalesced, into `emit`."""

    def __init__(self, emit: Callable[[str], None], clock: Clock) -> None:
        self.kept = KeptOutput()
        self._emit = emit
        self._clock = clock
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._skipped = 0
        self._pacer: asyncio.Task[None] | None = None

    async def pump(self, source: asyncio.StreamReader) -> None:
        """Until the stream ends. Cancelled or not, what has come is emitted."""
        try:
            while data := await source.read(_CHUNK):
                self.kept.add(data)
                self._push(self._decoder.decode(data))
            self._push(self._decoder.decode(b"", final=True))
        finally:
            if self._pacer is not None:
                self._pacer.cancel()
            self._flush()

    def _push(self, text: str) -> None:
        self._pending += text
        over = len(self._pending) - EMIT_CHARS
        if over > 0:
            self._skipped += over
            self._pending = self._pending[over:]
        if self._pending and (self._pacer is None or self._pacer.done()):
            self._pacer = asyncio.ensure_future(self._pace())

    async def _pace(self) -> None:
        while self._pending:
            self._flush()
            await self._clock.sleep(EMIT_SECONDS)

    def _flush(self) -> None:
        if not self._pending:
            return
        text, self._pending = self._pending, ""
        if self._skipped:
            text = f"[… {self._skipped} characters not shown here …]\n{text}"
            self._skipped = 0
        self._emit(text)
