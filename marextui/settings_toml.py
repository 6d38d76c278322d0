"""Where the values of a TOML text stand. `tomllib` reads values but gives no positions; this gives positions only."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

_PART = r'(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*\[\[?[ \t]*({_KEY})[ \t]*\]\]?")
_ASSIGNMENT = re.compile(rf"[ \t]*({_KEY})[ \t]*=[ \t]*")
_ONE_PART = re.compile(_PART)
# the pieces of a value: whole strings and comments, so that a bracket or quote inside them is not taken for one
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{]|[\]}]|\n|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the value of a key stands: `line` from 1, `start` and `end` are offsets in the text."""

    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of values by key path, lines of table headers, and `top_end`: the offset where a new top-level key can be
    put (before the first table).
    """

    places: dict[tuple[str, ...], Place]
    headers: dict[tuple[str, ...], int]
    top_end: int

    def line_of(self, path: tuple[str, ...]) -> int | None:
        """Line of `path`, or of the nearest thing that holds it (an inline table, a table's header)."""
        while path:
            if path in self.places:
                return self.places[path].line
            if path in self.headers:
                return self.headers[path]
            path = path[:-1]
        return None


def _path(key: str) -> tuple[str, ...]:
    return tuple(tomllib.loads(f"k = {p}")["k"] if p[0] in "\"'" else p for p in _ONE_PART.findall(key))


def _value_end(text: str, start: int) -> int:
    """Offset after the value that begins at `start` of a valid TOML text."""
    depth = 0
    end = at = start
    while (token := _TOKEN.match(text, at)) is not None:
        piece = token[0]
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            depth -= 1
        elif depth == 0 and (piece == "\n" or piece.startswith("#")):
            break
        at = token.end()
        if piece.strip():
            end = at - (len(piece) - len(piece.rstrip()))
    return end


def layout(text: str) -> Layout:
    """Layout of `text`, which must be valid TOML (`tomllib` accepts it)."""
    places: dict[tuple[str, ...], Place] = {}
    headers: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    top_end: int | None = None
    at, line = 0, 1
    while at < len(text):
        header = _HEADER.match(text, at)
        assignment = _ASSIGNMENT.match(text, at)
        end = at
        if header is not None:
            table = _path(header[1])
            headers.setdefault(table, line)
            top_end = at if top_end is None else top_end
        elif assignment is not None:
            end = _value_end(text, assignment.end())
            places[table + _path(assignment[1])] = Place(line, assignment.end(), end)
        newline = text.find("\n", end)
        following = len(text) if newline == -1 else newline + 1
        line += text.count("\n", at, following)
        at = following
    return Layout(places, headers, len(text) if top_end is None else top_end)
