"""The one seam between untrusted text and the screen: every string from a model, tool, file or server goes through it.

Nothing that leaves this module can be read as markup or as a terminal command (cases 26 and 27).
"""

from __future__ import annotations

from textual.content import Content

from marextui.context.sanitise import one_line, sanitise


def plain(text: str) -> Content:
    """`text` made harmless, its lines kept, no markup interpreted; to hand to any widget as it is."""
    return Content(sanitise(text))


_REVEALED = {0x1B: "\u241b", **dict.fromkeys(range(0x80, 0xA0), "\ufffd")}


def reveal(text: str) -> str:
    """`text` with the starts of escape sequences made visible, so that nothing behind them is dropped as their body.

    For what a person must approve: a command could hide its second half in a window title. Still to be sanitised.
    """
    return text.translate(_REVEALED)


def line(text: str, limit: int = 200) -> Content:
    """`text` as one harmless line of at most `limit` cells."""
    return Content(one_line(text, limit))


_NO_LIMIT = 1_000_000_000  # cells


def copyable(text: str) -> str:
    """`text` for the clipboard or an editor: as it is, tabs included, but without control bytes."""
    return "\t".join(sanitise(part, max_line=_NO_LIMIT, collapse_progress=False) for part in text.split("\t"))
