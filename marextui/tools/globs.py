"""Glob patterns on relative paths: `*`, `?`, `[…]` in a part, `**` across parts, `{a,b}`. No pattern is slow."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

MAX_ALTERNATIVES = 64
_WILD = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*)\}")

Matcher = Callable[[str], bool]


class BadPattern(ValueError):
    """The pattern cannot be used; the text is a sentence."""


def split_base(pattern: str) -> tuple[str, str]:
    """(directory part without wildcards, the rest): `src/**/*.py` → (`src`, `**/*.py`); "" when there is none.

    Raises `BadPattern` when the rest climbs with `..`, or is empty.
    """
    parts = pattern.split("/")
    at = next((n for n, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
    base, rest = "/".join(parts[:at]), "/".join(parts[at:])
    if at and not base:
        base = "/"
    if ".." in rest.split("/"):
        raise BadPattern("`..` cannot come after a wildcard")
    if not rest.strip("/"):
        raise BadPattern("the pattern names no file; `**/*` matches all files")
    return base, rest


def compile_glob(pattern: str) -> Matcher:
    """A matcher of relative paths. Each part is matched without backtracking. Raises `BadPattern`."""
    alternatives = [_compile_one(one) for one in expand_braces(pattern)]
    return lambda path: _any(alternatives, path.split("/"))


def _any(alternatives: Sequence[Callable[[Sequence[str]], bool]], parts: Sequence[str]) -> bool:
    return any(matches(parts) for matches in alternatives)


def expand_braces(pattern: str) -> list[str]:
    """`a.{py,md}` → `a.py`, `a.md`; nested braces too. Raises `BadPattern` above `MAX_ALTERNATIVES`."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        match = _BRACES.search(one)
        if match is None or "," not in match.group(1):
            done.append(one)
        else:
            waiting += [one[: match.start()] + choice + one[match.end() :] for choice in match.group(1).split(",")]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise BadPattern(f"the braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done


def _compile_one(pattern: str) -> Callable[[Sequence[str]], bool]:
    """Parts of the pattern; None stands for `**`."""
    wanted: list[re.Pattern[str] | None] = []
    for part in pattern.split("/"):
        if part in {"", "."}:
            continue
        if part == "**":
            if not wanted or wanted[-1] is not None:
                wanted.append(None)
        else:
            try:
                wanted.append(re.compile(fnmatch.translate(part)))
            except re.error as error:
                raise BadPattern(f"{part!r} is not a pattern ({error})") from None
    if wanted and wanted[-1] is None:
        wanted.append(re.compile(fnmatch.translate("*")))  # `src/**` means the files under it

    def matches(parts: Sequence[str]) -> bool:
        at, here, star, mark = 0, 0, -1, 0
        while at < len(parts):
            part = wanted[here] if here < len(wanted) else None
            if here < len(wanted) and part is None:
                star, mark, here = here, at, here + 1
            elif part is not None and part.match(parts[at]):
                at, here = at + 1, here + 1
            elif star >= 0:  # let the last ** take one part more
                mark += 1
                at, here = mark, star + 1
            else:
                return False
        while here < len(wanted) and wanted[here] is None:
            here += 1
        return here == len(wanted)

    return matches
