"""Colours for code. A short piece is coloured at once, a long one away from the event loop, a huge one never.

So is the first piece in a language.
"""

from __future__ import annotations

from collections import OrderedDict

from textual.content import Content

AT_ONCE = 2_000
"""Characters of code up to which colouring takes a few milliseconds, once a language was met."""
TOO_LONG = 200_000
"""Characters of code from which it stays plain."""
KEPT = 128
"""Results kept, of the pieces looked at last."""

_Key = tuple[str, str]
_met: set[str] = set()
"""Languages whose rules are loaded; that takes a tenth of a second each."""


class Highlighter:
    """Remembers what was coloured. `wanted` is what was asked for and is too long to be done while drawing."""

    def __init__(self) -> None:
        self._done: OrderedDict[_Key, tuple[Content, ...]] = OrderedDict()
        self.wanted: set[_Key] = set()

    def lines(self, code: str, language: str) -> tuple[Content, ...] | None:
        """The lines of `code` in colours; None: not at hand (it may be `wanted` now), or in no known language."""
        if not language or len(code) > TOO_LONG:
            return None
        key = (code, language)
        if key in self._done:
            self._done.move_to_end(key)
        elif len(code) <= AT_ONCE and language in _met:
            self.add(key, coloured(code, language))
        else:
            self.wanted.add(key)
            return None
        return self._done[key]

    def add(self, key: _Key, lines: tuple[Content, ...]) -> None:
        """Take in what was coloured elsewhere."""
        self.wanted.discard(key)
        self._done[key] = lines
        while len(self._done) > KEPT:
            self._done.popitem(last=False)


def coloured(code: str, language: str) -> tuple[Content, ...]:
    """`code` in colours, line by line; plain when the language is unknown. Takes long for long code."""
    from textual.highlight import highlight

    found = tuple(highlight(code, language=language).split("\n", allow_blank=True))
    _met.add(language)
    plain = code.split("\n")
    if len(found) < len(plain) or any(a.plain != b for a, b in zip(found, plain, strict=False)):
        return tuple(map(Content, plain))  # the lexer changed the code, and what is shown is the code
    return found[: len(plain)]
