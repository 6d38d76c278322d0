"""Long texts in the draft: a placeholder stands for each, so that the draft stays small and quick (cases 8, 36)."""

from __future__ import annotations

import re

from marextui.context.sanitise import without_sequences
from marextui.tui import formats

PASTE_LINES, PASTE_CHARS = 5, 1_000
"""A paste of more lines or characters than these becomes a placeholder."""
MOST_CHARS = 20_000
"""Characters from which any text put into the draft does: earlier prompts, queued messages, what an editor gives."""
KEEP = 50
"""Pastes remembered, so that undo still brings back what was sent."""

_PLACEHOLDER = re.compile(r"\[Pasted #\d+: [^\]\n]*\]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Pasted text as people meant it: one kind of line end, no escape sequences and control bytes; tabs stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", without_sequences(text))


class Pastes:
    """The texts behind the placeholders of one draft. Only a placeholder given out here, word for word, expands."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._count = 0

    def shown(self, text: str) -> str:
        """`text` as it stands in the draft after it was pasted."""
        text = clean(text)
        long = text.count("\n") >= PASTE_LINES or len(text) > PASTE_CHARS
        return self._collapsed(text) if long else text

    def held(self, text: str) -> str:
        """`text` as it stands in the draft when the app puts it there."""
        return self._collapsed(text) if len(text) > MOST_CHARS else text

    def _collapsed(self, text: str) -> str:
        self._count += 1
        rows = text.count("\n") + 1
        size = f"{formats.tokens(rows)} lines" if rows > 1 else formats.chars(len(text))
        placeholder = f"[Pasted #{self._count}: {size}]"
        self._texts[placeholder] = text
        while len(self._texts) > KEEP:
            del self._texts[next(iter(self._texts))]
        return placeholder

    def expanded(self, draft: str) -> str:
        """The draft with what its placeholders stand for."""
        return _PLACEHOLDER.sub(lambda m: self._texts.get(m[0], m[0]), draft)
