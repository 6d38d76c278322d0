"""The screen as text: the one place that touches Textual's private compositor."""

from __future__ import annotations

from typing import Any

from textual.app import App


def frame(app: App[Any]) -> str:
    """The current screen, one line per row, trailing blanks dropped."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def control_bytes(text: str) -> list[str]:
    """Characters that must never reach a terminal from content: C0 but newline, DEL, C1, bidi controls."""
    bidi = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x61C}
    return [c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0 or ord(c) in bidi]
