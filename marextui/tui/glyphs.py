"""The few non-letters the screen draws, in a Unicode and an ASCII set. Never emoji: terminals disagree on width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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


UNICODE = Glyphs("▓", "█", "▒", "░", "┃", "·", "…", "▶", "↪", "×", "→", "−", "▸", "▾")
ASCII = Glyphs("=", "#", "+", ".", "|", "-", "~", ">", "\\", "x", ">", "-", "+", "-")


def glyphs_of(app: Any) -> Glyphs:
    """The set the app chose (`app.glyphs`), the Unicode one when it did not choose."""
    chosen = getattr(app, "glyphs", UNICODE)
    return chosen if isinstance(chosen, Glyphs) else UNICODE
