"""One form of a secret: how it is found in a text (cases 135, 137; I10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One form. The group `secret` of `pattern` is what is replaced; `accept` has the last word on it.

    The pattern is tried where one of `needles` stands, with `lead` characters before it. Its repetitions are bounded
    or possessive, so that a search is linear in the text.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] | None = None
    lead: int = 0

    def found_in(self, text: str) -> Iterator[re.Match[str]]:
        """All places of the form in `text`, in no order; with several needles a place may be found twice."""
        for needle in self.needles:
            at = text.find(needle)
            while at >= 0:
                match = self.pattern.match(text, max(0, at - self.lead))
                if match and (self.accept is None or self.accept(match.group("secret"))):
                    yield match
                at = text.find(needle, max(at + len(needle), match.end() if match else 0))


_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))"
"""Where a key may begin: not inside a word, but behind an escaped line end, an escaped byte or a colour."""


def form(kind: str, needles: str, pattern: str, accept: Callable[[str], bool] | None = None, *, lead: int = 0) -> Form:
    if "(?P<secret>" not in pattern:
        pattern = rf"{_START}(?P<secret>{pattern})"
    return Form(kind, tuple(needles.split()), re.compile(pattern, re.ASCII), accept, lead)
