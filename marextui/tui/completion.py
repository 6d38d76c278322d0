"""Fuzzy matching, and the word at the cursor that `@` completes."""

from __future__ import annotations

import re
from collections.abc import Sequence


def score(query: str, text: str) -> int | None:
    """How well the letters of `query` stand, in order, in `text` (higher is better), None when they do not.

    Runs, word starts and a hit in the last path segment count more; longer texts count less.
    """
    if not query:
        return 0
    low, wanted = text.casefold(), query.casefold()
    whole = low.find(wanted)
    name = low.rfind("/") + 1
    if whole >= 0:
        bonus = 60 if whole == name else 40 if whole == 0 or not low[whole - 1].isalnum() else 20
        return 1_000 + bonus + (30 if low.find(wanted, name) >= 0 else 0) - len(text) // 4
    total, at, run = 0, -1, 0
    for letter in wanted:
        found = low.find(letter, at + 1)
        if found < 0:
            return None
        run = run + 1 if found == at + 1 else 0
        start = found == 0 or not low[found - 1].isalnum()
        total += 4 + 6 * run + (8 if start else 0) + (2 if found >= name else 0) - min(found - at - 1, 6)
        at = found
    return total - len(text) // 4


def fuzzy(query: str, texts: Sequence[str], limit: int = 50) -> list[str]:
    """The `texts` that match, best first, at most `limit`; ties keep their order."""
    rated = [(s, i) for i, text in enumerate(texts) if (s := score(query, text)) is not None]
    rated.sort(key=lambda pair: (-pair[0], pair[1]))
    return [texts[i] for _, i in rated[:limit]]


_AT = re.compile(r"(?:^|(?<=[\s(\"'`]))@([^\s@\"'`]*)$")


def file_query(before: str) -> str | None:
    """What is typed after the `@` that the cursor stands in; `before` is the line up to the cursor. None: no `@` word.

    An `@` inside a word ("me@host") is not one.
    """
    match = _AT.search(before)
    return match[1] if match else None


_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def writable(path: str) -> bool:
    """Whether a file's name can stand in a message: no line end, control or reordering character, no broken text."""
    return _UNWRITABLE.search(path) is None


def offered(path: str) -> bool:
    """Whether `@` offers a file: not what a message cannot hold, and not our own folder in the project."""
    return writable(path) and not path.startswith(".marex/")


def with_file(before: str, path: str) -> str:
    """`before` with its `@` word completed to `path`; a path with blanks or quotes is quoted."""
    match = _AT.search(before)
    if match is None:
        return before
    quote = "'" if '"' in path else '"'
    bare = not re.search(r"[\s\"'`]", path) or quote in path
    return f"{before[: match.start()]}@{path if bare else quote + path + quote} "
