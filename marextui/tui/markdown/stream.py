"""Markdown that is still coming: what is complete is parsed once, only the open block at the end is parsed again.

Pure: fed with clean text, it says which pieces to replace. An open block of code grows line by line, without a parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from marextui.tui.glyphs import Glyphs
from marextui.tui.markdown.highlighting import Highlighter
from marextui.tui.markdown.lines import BLANK, Line, Piece
from marextui.tui.markdown.parsing import Block, code_line, code_lines, code_source, document, parse

LONG_LIST = 1_000
"""Characters of an open list from which its complete items are done with."""
LONG_TEXT = 4_000
"""Characters of an open paragraph from which its beginning is done with."""
TELLING = 20
"""Characters of an unfinished line from which it will not join the block before it any more ("1" may become "1. x")."""

_OPENS = re.compile(r"^(?P<indent> {0,3})(?P<run>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
_MAY_OPEN = re.compile(r"^\s*(?:(?:[-*+>]|\d{1,9}[.)])\s*)*[`~]{0,2}$")


@dataclass(frozen=True, slots=True)
class Change:
    """Keep the first `keep` pieces shown, put `pieces` in the place of all others."""

    keep: int
    pieces: tuple[Piece, ...]


@dataclass(slots=True)
class _Fence:
    """A block of code: the run that ends it, its indentation, its language, the piece it starts at, its lines."""

    run: str
    indent: str
    language: str
    at: int
    code: list[str]

    def closes(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.run) and set(bare) == {self.run[0]} and len(line) - len(line.lstrip(" ")) < 4


class MarkdownStream:
    """`feed` takes the next clean piece of text. `parsed` counts the characters the parser was given."""

    def __init__(self, glyphs: Glyphs, highlighter: Highlighter) -> None:
        self._glyphs = glyphs
        self._highlighter = highlighter
        self._done: list[Piece] = []
        self._gap = False
        """A blank line goes before what comes next."""
        self._tail = ""
        self._fence: _Fence | None = None
        self._uncoloured: list[_Fence] = []
        self._open: tuple[Piece, ...] = ()
        self.parsed = 0

    def feed(self, text: str) -> Change:
        """Take in `text`."""
        keep = len(self._done)
        self._tail += text
        self._open = ()
        while self._fence is not None or self._tail:
            fence = self._fence
            self._open = self._read_blocks() if fence is None else self._read_code(fence)
            if self._fence is fence:
                break
            if fence is not None:  # it is closed: its lines may have got their colours
                keep = min(keep, fence.at)
        return Change(keep, (*self._done[keep:], *self._open))

    def colour(self) -> Change | None:
        """Give code the colours that were found since; None when there is nothing new."""
        keep = len(self._done)
        for fence in list(self._uncoloured):
            lines = self._lines(fence)
            if lines is not None:
                self._done[fence.at : fence.at + len(lines)] = lines
                keep = min(keep, fence.at)
        return None if keep == len(self._done) else Change(keep, (*self._done[keep:], *self._open))

    # --- code ------------------------------------------------------------------------------------------------------
    def _read_code(self, fence: _Fence) -> tuple[Piece, ...]:
        """Take the complete lines; returns the open one."""
        *lines, self._tail = self._tail.split("\n")
        for n, line in enumerate(lines):
            if fence.closes(line):
                self._tail = "\n".join([*lines[n + 1 :], self._tail])
                self._close(fence)
                return ()
            fence.code.append(line.removeprefix(fence.indent))
            self._done.append(code_line(fence.code[-1]))
        shown = self._tail and not set(self._tail.strip()) <= {fence.run[0]}
        return (code_line(self._tail),) if shown else ()

    def _close(self, fence: _Fence) -> None:
        self._fence = None
        self._gap = True
        self._uncoloured.append(fence)
        source = code_source("\n".join(fence.code))
        self._done[fence.at :] = self._lines(fence) or [code_line(line) for line in source.split("\n")]

    def _lines(self, fence: _Fence) -> list[Line] | None:
        """The lines of a closed block with their colours, None while these are still being looked for."""
        source = code_source("\n".join(fence.code))
        lines = code_lines(source, fence.language, self._highlighter)
        if (source, fence.language) in self._highlighter.wanted:
            return None
        self._uncoloured.remove(fence)
        return lines

    # --- everything else -------------------------------------------------------------------------------------------
    def _read_blocks(self) -> tuple[Piece, ...]:
        """Be done with all blocks but the last; returns the pieces of that, or opens a block of code."""
        source = self._tail
        head, newline, last_line = source.rpartition("\n")
        if _MAY_OPEN.match(last_line):
            source = head + newline
        blocks = self._parse(source)
        if not blocks:
            return ()
        if blocks[-1].start == source.count("\n") and len(last_line) < TELLING:
            pieces = tuple(document(blocks))
            return (BLANK, *pieces) if self._gap else pieces
        for block in blocks[:-1]:
            self._add(block.pieces)
        last = blocks[-1]
        self._cut_before(last.start)
        opening, newline, rest = self._tail.partition("\n")
        if last.kind == "fence" and newline and (opens := _OPENS.match(opening)):
            self._add(())
            language = opens["info"].split()
            indent, name = opens["indent"], language[0] if language else ""
            self._fence = _Fence(opens["run"], indent, name, len(self._done), [])
            self._tail = rest
            return ()
        return self._shorten(last)

    def _shorten(self, last: Block) -> tuple[Piece, ...]:
        """Be done with the beginning of a long list or paragraph; returns the pieces of what stays open."""
        pieces = last.pieces
        if last.splits and len(self._tail) > LONG_LIST:
            line, before = last.splits[-1]
            self._add(pieces[:before])
            self._gap = False
            self._cut_before(line - last.start)
            return pieces[before:]
        if last.kind == "paragraph" and len(self._tail) > LONG_TEXT:
            cut = self._tail.rfind(" ", 0, len(self._tail) - LONG_TEXT // 4) + 1
            if cut:
                self._add(tuple(p for block in self._parse(self._tail[:cut]) for p in block.pieces))
                self._gap = False
                self._tail = self._tail[cut:]
                return tuple(p for block in self._parse(self._tail) for p in block.pieces)
        return (BLANK, *pieces) if self._gap else pieces

    def _parse(self, source: str) -> list[Block]:
        self.parsed += len(source)
        return parse(source, self._glyphs, self._highlighter)

    def _add(self, pieces: tuple[Piece, ...]) -> None:
        if self._gap:
            self._done.append(BLANK)
        self._done += pieces
        self._gap = True

    def _cut_before(self, line: int) -> None:
        """Drop the first `line` lines of the open source."""
        if line:
            self._tail = "\n".join(self._tail.split("\n")[line:])
