"""The few non-letters the screen draws, in a Unicode and an ASCII set. Never emoji: terminals disagree on width.

In ASCII mode one filter over every rendered line catches all else that is drawn, also by the toolkit (borders, scroll
bars, the sign where a line was cut), so that no widget has to think of it. What people, models, tools and files said
stays as it is: such texts are marked (`said`), or their widget leaves the filter out (`unfiltered`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter
from textual.style import Style


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set; every glyph is one cell wide in every terminal."""

    summary: str
    conversation: str
    outputs: str
    free: str
    mark: str
    dot: str
    ellipsis: str
    cursor: str
    more: str
    times: str
    arrow: str
    minus: str
    folded: str
    unfolded: str
    cached: str
    computed: str


UNICODE = Glyphs("▓", "█", "▒", "░", "┃", "·", "…", "▶", "↪", "×", "→", "−", "▸", "▾", "▓", "█")
ASCII = Glyphs("=", "#", "+", ".", "|", "-", "~", ">", "\\", "x", ">", "-", "+", "-", "=", "#")


def glyphs_of(app: Any) -> Glyphs:
    """The set the app chose (`app.glyphs`), the Unicode one when it did not choose."""
    chosen = getattr(app, "glyphs", UNICODE)
    return chosen if isinstance(chosen, Glyphs) else UNICODE


_MARK = "said"
_SAID = Style.from_meta({_MARK: True})


def _table() -> dict[int, str]:
    """Every character that is drawn, to one ASCII character: nothing moves."""
    table = {ord(c): "+" for c in map(chr, range(0x2500, 0x2580))}  # corners and crossings, then the straight ones
    table |= {ord(c): "-" for c in "─━┄┅┈┉╌╍═╴╶╸╺╼╾–—−‒―"}
    table |= {ord(c): "|" for c in "│┃┆┇┊┋╎╏║╵╷╹╻╽╿▏▎▍▌▋▊▉▐▕"}
    table |= {ord(c): " " for c in "▀▔▁▂▃▄▅▆▇\u00a0\u2007\u202f"}
    table |= {ord(c): "*" for c in "•▪‣⭑◦●○"}
    table |= {ord(c): "'" for c in "‘’"} | {ord(c): '"' for c in "“”"}
    pairs = zip("█▓▒░·…→←↑↓×▸▾▶▼▲◀↪↲✓✗⇄", "#=+.-~><^v*+->v^<\\/vx=", strict=True)
    return table | {ord(drawn): plain for drawn, plain in pairs}


TABLE = _table()


def to_ascii(text: str) -> str:
    """`text` with drawn characters replaced, one for one; letters of any language stay."""
    return text if text.isascii() else text.translate(TABLE)


def drawn(app: Any, text: str) -> str:
    """A text of the app's own as `app` draws it."""
    return to_ascii(text) if glyphs_of(app) is ASCII else text


def said(content: Content) -> Content:
    """`content` marked as somebody's own words: ASCII mode leaves it as it is."""
    return content if content.plain.isascii() else content.stylize(_SAID)


class AsciiFilter(LineFilter):
    """Replaces drawn characters in all that is not marked as said."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [s if s.text.isascii() or _is_said(s) else Segment(to_ascii(s.text), s.style) for s in segments]


def _is_said(segment: Segment) -> bool:
    return segment.style is not None and bool(segment.style.meta.get(_MARK))


ASCII_FILTER = AsciiFilter()


def unfiltered(filters: Sequence[LineFilter]) -> Sequence[LineFilter]:
    """`filters` for a widget that shows nothing but what was said."""
    return [f for f in filters if f is not ASCII_FILTER]
