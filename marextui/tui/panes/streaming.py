"""An answer while it comes: whole Markdown blocks as Markdown, an open code fence plain, one clean render at the end.

Highlighting a fence anew with each piece is what freezes other programs (case 7), so an open fence is shown as plain
text in chunks of which only the last changes, and becomes Markdown when it closes.
"""

from __future__ import annotations

import re

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Markdown, Static

from marextui.context.sanitise import StreamSanitiser
from marextui.tui.glyphs import ASCII, glyphs_of
from marextui.tui.text import plain, safe_markdown
from marextui.tui.windowing import LONG_NODES, markdown_nodes

CHUNK_LINES = 40
"""Lines of an open fence in one widget; only the last such widget is updated."""

_OPENS = re.compile(r"^\s*(?:(?:[-*+>]|\d{1,9}[.)])\s+)*(?P<run>`{3,}(?=[^`]*$)|~{3,})")
_MAY_OPEN = re.compile(r"^\s*(?:(?:[-*+>]|\d{1,9}[.)])\s*)*(?:[`~].*)?$")


class FenceSplitter:
    """Splits a stream of (clean) Markdown into what can be rendered now and the open fence at its end."""

    def __init__(self) -> None:
        self._held = ""
        self._mid_line = False
        self._run = ""
        self._fence: list[str] = []

    @property
    def code(self) -> list[str]:
        """Lines of the open fence without its opening line, the unfinished one included; [] outside a fence."""
        if not self._run:
            return []
        return [line.rstrip("\n") for line in self._fence[1:]] + ([self._held] if self._held else [])

    @property
    def in_fence(self) -> bool:
        return bool(self._run)

    def feed(self, text: str) -> str:
        """Take the next piece; returns the Markdown source that is now complete enough to be rendered."""
        out: list[str] = []
        *lines, rest = (self._held + text).split("\n")
        self._held = ""
        for line in lines:
            self._line(line + "\n", out)
        if self._run or (not self._mid_line and _MAY_OPEN.match(rest)):
            self._held = rest
        elif rest:
            out.append(rest)
            self._mid_line = True
        return "".join(out)

    def _line(self, line: str, out: list[str]) -> None:
        if self._run:
            self._fence.append(line)
            if self._closes(line):
                out.extend(self._fence)
                self._run, self._fence = "", []
            return
        opening = None if self._mid_line else _OPENS.match(line.rstrip("\n"))
        self._mid_line = False
        if opening:
            self._run, self._fence = opening["run"], [line]
        else:
            out.append(line)

    def _closes(self, line: str) -> bool:
        bare = line.strip().lstrip("> ")
        return len(bare) >= len(self._run) and set(bare) == {self._run[0]}


class AnswerMarkdown(Markdown):
    """Markdown from a model: links are never followed by themselves."""

    def __init__(self, source: str | None = None, *, ascii_only: bool = False) -> None:
        super().__init__(source, open_links=False)
        if ascii_only:
            self.BULLETS = ["- ", "* ", "+ "] * 2


class StreamingBody(Vertical):
    """Shows a growing answer. `feed` takes the whole text so far, `finish` the final one; both in raw form.

    From `LONG_NODES` widgets on, what comes is plain text, so that no answer can slow the screen down.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sanitiser = StreamSanitiser()
        self._splitter = FenceSplitter()
        self._taken = 0
        self._block_count = 0
        self._overflow = ""
        self._chunks: list[Static] = []
        self._chunk_sizes: list[int] = []
        self.streaming = True
        self.renders = 0
        """How often the Markdown widget was given something: tests count work, not time."""

    @property
    def allow_select(self) -> bool:
        """Selection waits until the answer is complete: its blocks are still being replaced."""
        return not self.streaming

    def compose(self) -> ComposeResult:
        yield AnswerMarkdown(ascii_only=glyphs_of(self.app) is ASCII)

    async def feed(self, raw: str) -> None:
        """Show what is new in `raw` since the last call."""
        piece = raw[self._taken :]
        self._taken = len(raw)
        markdown = self._splitter.feed(self._sanitiser.feed(piece))
        if self._block_count > LONG_NODES:
            self._overflow += markdown
        elif markdown.strip() or (markdown and self.renders):
            self.renders += 1
            self._block_count += markdown_nodes(markdown)
            await self.query_one(AnswerMarkdown).append(markdown.replace("![", "["))
        code = self._splitter.code
        await self._show_plain([*self._overflow.split("\n"), *code] if self._overflow else code)

    async def finish(self, raw: str) -> None:
        """The answer is complete: one update from the full text, which also mends references defined late."""
        self.streaming = False
        self.renders += 1
        await self.query_one(AnswerMarkdown).update(safe_markdown(raw))
        await self._show_plain([])

    async def _show_plain(self, lines: list[str]) -> None:
        wanted = [lines[i : i + CHUNK_LINES] for i in range(0, len(lines), CHUNK_LINES)]
        if len(wanted) < len(self._chunks) or not wanted:
            for chunk in self._chunks:
                await chunk.remove()
            self._chunks, self._chunk_sizes = [], []
        for index, part in enumerate(wanted):
            if index < len(self._chunks):
                last = index == len(self._chunks) - 1
                if not last and self._chunk_sizes[index] == CHUNK_LINES:
                    continue
                self._chunks[index].update(plain("\n".join(part)))
                self._chunk_sizes[index] = len(part) if index < len(wanted) - 1 else 0
            else:
                chunk = Static(plain("\n".join(part)), classes="open-code", markup=False)
                self._chunks.append(chunk)
                self._chunk_sizes.append(len(part) if index < len(wanted) - 1 else 0)
                await self.mount(chunk)
