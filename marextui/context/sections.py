"""The sections of a summary: what belongs in each and how its items join those of earlier cycles (P6, P7, P10).

A person lists them in order. A name of `KINDS` (or a synonym or translation of one) is enough; any other section is
written "Title: what belongs there", and its items are appended.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.section_titles import canonical_title, plain

Rule = Literal["appended", "decided", "quoted", "by path", "replaced", "steps"]
"""How new items join the old ones. appended: both stand. decided: a contradicting one supersedes. quoted: as decided,
and each must repeat words of the user (case 127). by path: the latest note on a path wins. replaced: the new ones stand
alone. steps: as replaced, but a step that was told of is done. What no longer stands is kept, with another status."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A section the product knows. `guide` tells the model what belongs in it; `value` is how long its items resist
    being folded out of the view: one point outweighs one cycle of age."""

    title: str
    guide: str
    rule: Rule
    value: int


KINDS: dict[str, Kind] = {
    canonical_title(kind.title): kind
    for kind in (
        Kind(
            "Session Intent",
            "what the user wants, and each change of it, with the user's constraints in the user's own words",
            "appended",
            6,
        ),
        Kind("Files Modified", "each file created, changed or deleted, as `path: what changed`", "by path", 3),
        Kind(
            "Decisions Made",
            "what was decided and why; limits and preferences the user stated; what was rejected",
            "decided",
            5,
        ),
        Kind(
            "Current State",
            "what works, what fails with the exact error, the last results of commands and tests",
            "replaced",
            4,
        ),
        Kind("Next Steps", "what remains to be done, first the request that is still open", "steps", 4),
        Kind("Requirements", "what the user demanded, in the user's own words, one demand per bullet", "quoted", 6),
        Kind("Errors and Fixes", "each error met, its exact message, and what removed it", "appended", 4),
        Kind("Findings", "what was found out, with the source that says so", "appended", 4),
        Kind("Sources", "each document, page or person consulted, and what it was good for", "appended", 2),
        Kind("Open Questions", "what is not known yet and who could know it", "replaced", 4),
        Kind("Outline", "the parts of the text being written, in order, and how far each is", "replaced", 5),
    )
}

SECTIONS: tuple[str, ...] = ("Session Intent", "Files Modified", "Decisions Made", "Current State", "Next Steps")
"""The default, made for coding (P6)."""

_STAND_INS: dict[str, tuple[str, ...]] = {
    "session intent": ("outline", "current state"),
    "files modified": ("sources", "current state"),
    "requirements": ("decisions made", "session intent"),
    "decisions made": ("findings", "outline", "current state"),
    "current state": ("errors and fixes", "findings", "outline"),
    "next steps": ("open questions", "outline", "current state"),
}
"""Where what code knows goes when the list lacks its own section. Requirements hold words of the user alone."""

_TITLE = re.compile(r"[^\W\d_][\w &'’/()-]{2,39}")
_RESERVED = frozenset(map(plain, ("Work Log", "Exact Facts", "Standing Orders", "Plan", "Earlier Requests")))
"""Headings of the block beside the summary."""
MOST_SECTIONS = 12
_GUIDE_CHARS = 200


def title_of(spec: str) -> str:
    """The heading of a listed section."""
    return " ".join(spec.partition(":")[0].split())


def guide_of(spec: str) -> str:
    """What the model is told belongs under it."""
    own = " ".join(spec.partition(":")[2].split())
    kind = KINDS.get(canonical_title(title_of(spec)))
    return own or (kind.guide if kind is not None else "what the material says about it")


def titles_of(specs: Sequence[str]) -> tuple[str, ...]:
    """The headings of the listed sections, in order."""
    return tuple(map(title_of, specs))


def check_sections(specs: Sequence[str]) -> None:
    """Raises ValueError with a sentence that names the wrong entry of a list a person wrote."""
    if not 1 <= len(specs) <= MOST_SECTIONS:
        raise ValueError(f"must name 1 to {MOST_SECTIONS} sections, not {len(specs)}")
    seen: set[str] = set()
    for spec in specs:
        title = title_of(spec)
        _check_section(title, spec.partition(":")[2].strip())
        if canonical_title(title) in seen:
            raise ValueError(f'names "{title}" twice')
        seen.add(canonical_title(title))


def _check_section(title: str, guide: str) -> None:
    if not _TITLE.fullmatch(title):
        raise ValueError(f'names "{title[:40]}", which is no title: 3 to 40 letters, digits and blanks')
    if plain(title) in _RESERVED:
        raise ValueError(f'names "{title}", which already stands beside every summary')
    if len(guide) > _GUIDE_CHARS or "\n" in guide:
        raise ValueError(f'must say what belongs under "{title}" on one line of at most {_GUIDE_CHARS} characters')
    if not guide and canonical_title(title) not in KINDS:
        near = difflib.get_close_matches(title.lower(), KINDS, n=1, cutoff=0.6)
        meant = f" (did you mean {KINDS[near[0]].title}?)" if near else ""
        known = ", ".join(k.title for k in KINDS.values())
        raise ValueError(
            f'names "{title}", which is no known section{meant}; known are {known}, '
            f'and one of your own is written "{title}: what belongs there"'
        )


def rule_of(title: str) -> Rule:
    """How items of the section so titled join earlier ones."""
    kind = KINDS.get(canonical_title(title))
    return kind.rule if kind is not None else "appended"


def value_of(title: str) -> int:
    """How long items of that section resist being folded out."""
    kind = KINDS.get(canonical_title(title))
    return kind.value if kind is not None else 3


def place_for(kind: str, titles: Sequence[str]) -> int:
    """The index in `titles` of the section for what code knows of `kind` (a canonical title), else of the one that
    comes nearest, else of the last. Raises ValueError when there is none at all."""
    if not titles:
        raise ValueError("there are no sections")
    there = [canonical_title(t) for t in titles]
    return next((there.index(k) for k in (kind, *_STAND_INS.get(kind, ())) if k in there), len(titles) - 1)
