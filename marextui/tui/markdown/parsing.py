"""Markdown source to pieces. The source is clean already; what is no Markdown we know is shown as it was written.

A link shows where it leads: a text that promises one address and hides another deceives nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from marextui.context.sanitise import one_line, sanitise
from marextui.tui.glyphs import ASCII, Glyphs
from marextui.tui.markdown.highlighting import Highlighter
from marextui.tui.markdown.lines import BLANK, EMPTY, Align, Line, Piece, Rule, Table

CODE_FILL = "on $panel"
CODE_INDENT = Content("  ")
TAB = 8
_MARKS = {"em": "italic", "strong": "bold", "s": "strike"}
_CODE = "$text-warning on $warning 10%"
_HEADINGS = {
    "h1": "bold $primary",
    "h2": "underline $primary",
    "h3": "bold $primary",
    "h4": "bold underline",
    "h5": "bold",
    "h6": "bold $foreground 80%",
}
_ADDRESS = "$foreground-muted"
ADDRESS_CELLS = 200
"""Cells of an address that are shown."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Block:
    """A block at the top of a document: its pieces, and the source line it starts at.

    `splits`: where a list can be cut, as (source line, pieces before it); the rest of it can be parsed by itself.
    """

    kind: str
    pieces: tuple[Piece, ...]
    start: int
    splits: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("gfm-like")


def parse(source: str, glyphs: Glyphs, highlighter: Highlighter) -> list[Block]:
    """The blocks of a document."""
    builder = _Builder(glyphs, highlighter)
    return [builder.block(node) for node in SyntaxTreeNode(_parser().parse(source)).children]


def document(blocks: Iterable[Block]) -> list[Piece]:
    """The pieces of all blocks, a blank line between any two blocks."""
    return _joined((block.pieces for block in blocks), tight=False)


def code_line(text: str) -> Line:
    """One line of code."""
    return Line(Content(text.expandtabs(TAB)), CODE_INDENT, CODE_INDENT, code=True, fill=CODE_FILL)


def code_source(code: str) -> str:
    """Code as it is coloured and shown."""
    return code.rstrip("\n").expandtabs(TAB)


def code_lines(code: str, language: str, highlighter: Highlighter) -> list[Line]:
    """Lines of code, at least one, in colours if these are at hand."""
    source = code_source(code)
    found = highlighter.lines(source, language)
    if found is None:
        return [code_line(text) for text in source.split("\n")]
    return [Line(text, CODE_INDENT, CODE_INDENT, code=True, fill=CODE_FILL) for text in found]


class _Builder:
    """Walks the tree of a document."""

    def __init__(self, glyphs: Glyphs, highlighter: Highlighter) -> None:
        self._ascii = glyphs is ASCII
        self._highlighter = highlighter

    def block(self, node: SyntaxTreeNode) -> Block:
        start = node.map[0] if node.map else 0
        if node.type not in ("bullet_list", "ordered_list"):
            return Block(node.type, tuple(self._pieces(node, 0)), start)
        pieces: list[Piece] = []
        splits: list[tuple[int, int]] = []
        tight = _is_tight(node)
        for child, item in zip(node.children, self._items(node, 0), strict=True):
            if pieces:
                if not tight:
                    pieces.append(BLANK)
                splits.append((child.map[0] if child.map else start, len(pieces)))
            pieces += item
        return Block(node.type, tuple(pieces), start, tuple(splits))

    def _pieces(self, node: SyntaxTreeNode, depth: int) -> Sequence[Piece]:
        """A node as pieces; `depth` counts the bullet lists around it."""
        match node.type:
            case "paragraph":
                return _lines(node)
            case "heading":
                return [Line(line.text.stylize(_HEADINGS[node.tag])) for line in _lines(node)]
            case "fence" | "code_block":
                language = node.info.split()
                return code_lines(node.content, language[0] if language else "", self._highlighter)
            case "bullet_list" | "ordered_list":
                return _joined(self._items(node, depth), tight=_is_tight(node))
            case "blockquote":
                bar = Content.styled("| " if self._ascii else "▌ ", "$text-primary 50%")
                return [piece.within(bar, bar) for piece in self._children(node, depth)]
            case "hr":
                return [Rule("-" if self._ascii else "─")]
            case "table":
                return [self._table(node)]
            case _:
                source = node.token.content if node.token is not None else ""
                return [Line(Content(text.expandtabs(TAB))) for text in source.rstrip("\n").split("\n")]

    def _children(self, node: SyntaxTreeNode, depth: int, *, tight: bool = False) -> list[Piece]:
        return _joined((self._pieces(child, depth) for child in node.children), tight=tight)

    def _items(self, node: SyntaxTreeNode, depth: int) -> list[Sequence[Piece]]:
        """The items of a list, each behind its bullet or number."""
        bullets = ("- ", "* ", "+ ") if self._ascii else ("• ", "▪ ", "‣ ")
        ordered = node.type == "ordered_list"
        marks = [f" {item.info}. " if ordered else bullets[depth % 3] for item in node.children]
        width = max(map(len, marks))
        tight = _is_tight(node)
        items: list[Sequence[Piece]] = []
        rest = Content(" " * width)
        for item, mark in zip(node.children, marks, strict=True):
            first = Content.styled(mark.rjust(width), "$text-primary")
            pieces = self._children(item, depth if ordered else depth + 1, tight=tight) or [Line(EMPTY)]
            items.append([piece.within(rest if n else first, rest) for n, piece in enumerate(pieces)])
        return items

    def _table(self, node: SyntaxTreeNode) -> Table:
        rows = [row for part in node.children for row in part.children]
        cells = [tuple(_one_line(_inline(cell)) for cell in row.children) for row in rows]
        cells[0] = tuple(cell.stylize("bold $primary") for cell in cells[0])
        aligns = tuple(_align(str(cell.attrs.get("style", ""))) for cell in rows[0].children)
        return Table(tuple(cells), aligns, *(("-", "|", "+") if self._ascii else ("─", "│", "┼")))


def _is_tight(node: SyntaxTreeNode) -> bool:
    """Whether the items of a list stand without blank lines between them."""
    return any(child.type == "paragraph" and child.hidden for item in node.children for child in item.children)


def _joined(groups: Iterable[Sequence[Piece]], *, tight: bool) -> list[Piece]:
    out: list[Piece] = []
    for group in groups:
        if out and group and not tight:
            out.append(BLANK)
        out += group
    return out


def _lines(node: SyntaxTreeNode) -> list[Line]:
    """The inline content of a block; hard breaks part the lines."""
    content = _inline(node)
    return [Line(text) for text in content.split("\n")] if "\n" in content.plain else [Line(content)]


def _one_line(content: Content) -> Content:
    return Content(" ").join(content.split("\n")) if "\n" in content.plain else content


def _align(style: str) -> Align:
    return "right" if "right" in style else "center" if "center" in style else "left"


def _inline(node: SyntaxTreeNode) -> Content:
    writer = _Writer()
    for child in node.children:
        writer.write(child)
    return Content("".join(writer.parts), writer.spans)


class _Writer:
    """Collects the text of inline nodes and the spans of their styles."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self._at = 0

    def _add(self, text: str) -> None:
        self.parts.append(text)
        self._at += len(text)

    def write(self, node: SyntaxTreeNode) -> None:
        start = self._at
        style: str | Style = _MARKS.get(node.type, "")
        match node.type:
            case "text":
                # an entity ("&#x202e;") became a character only here
                self._add(_SPACE.sub(" ", sanitise(node.content)))
            case "softbreak":
                self._add(" ")
            case "hardbreak":
                self._add("\n")
            case "code_inline":
                self._add(_SPACE.sub(" ", node.content))
                style = _CODE
            case "html_inline":
                self._add("\n" if _BREAK.fullmatch(node.content) else node.content)
            case "link" | "image":
                target = str(node.attrs.get("href") or node.attrs.get("src") or "")
                self._link(node, target)
                return
        for child in node.children:
            self.write(child)
        if style and self._at > start:
            self.spans.append(Span(start, self._at, style))

    def _link(self, node: SyntaxTreeNode, target: str) -> None:
        """The text of a link or picture, and its address behind it unless the text is that."""
        start, first = self._at, len(self.parts)
        for child in node.children:
            self.write(child)
        if self._at == start:
            self._add(sanitise(node.content) or one_line(target, ADDRESS_CELLS))
        end, text = self._at, "".join(self.parts[first:]).strip()
        self.spans.append(Span(start, end, "underline"))
        if target and not _names(text, target):
            self._add(f" ({one_line(target, ADDRESS_CELLS)})")
            self.spans.append(Span(end, self._at, _ADDRESS))
        self.spans.append(Span(start, self._at, Style.from_meta({"href": target})))


def _names(text: str, target: str) -> bool:
    """Whether a link's text is its address, written in full or as people write addresses."""
    for address in (target, unquote(target)):
        for scheme in ("", "https://", "http://", "mailto:"):
            known = address.removeprefix(scheme)
            if text in (known, known.removesuffix("/")):
                return True
    return False
