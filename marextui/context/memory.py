"""Long-term memory as text: MEMORY.md entries and the excerpt for the system part (M31, M32, M35, B9; cases 129–133).

An entry is a dated header and one bullet per fact; a fact that a later one replaced stays, struck through:

    ## 2026-01-31T09:30:00Z · conversation 5f2c · cycle 2 · expires 2026-06-30
    - Decision: the server listens on 8443
    - ~~Decision: use SQLite~~ (superseded 2026-03-02)
    - supersedes: Decision: the server listens on 8080

What a person wrote by hand between entries is kept word for word, as an entry of its own. How entries are added, and
which go when the file is full, is decided in `memory_keeping`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from marextui.context.entries import Summary, SummaryItem
from marextui.context.policy_outcomes import is_policy_outcome
from marextui.context.redaction import redact
from marextui.context.section_titles import canonical_title

MEMORY_CAP = 1_500_000
"""Most bytes of MEMORY.md (M34, B12)."""

RULES_CAP = 32 * 1024
"""Most bytes taken of MAREX.md (M31)."""

EXCERPT_CHARS = 4000
"""Most characters of memory in the system part, whatever the window (M35)."""

_FACT_CHARS = 300
_HEADER = re.compile(r"## (\S+) · conversation (\S+) · cycle (\d{1,9})(?: · expires (\d{4}-\d{2}-\d{2}))?", re.ASCII)
_BY_HAND = "## by hand"
_NO_NEWS = "(nothing new)"
_STRUCK = re.compile(r"~~(?P<fact>.+)~~(?: \(superseded (?P<date>[^()]*)\))?")
_SUPERSEDES = "supersedes: "
_UNTIL = re.compile(
    r"\b(?:until|till|valid (?:through|to)|expires?(?: on)?|jusqu['’]au|bis(?: zum)?|hasta(?: el)?)\s+"
    r"(\d{4}-\d{2}-\d{2})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One entry. `date` is ISO 8601; `conversation_id` its source, `cycle` the compaction that fed it.

    `facts` are those that hold. `expires` is the last day (ISO) on which they do, "" for no end. `superseded` are
    facts of this entry that a later one replaced; `supersedes` the facts of earlier entries that this one replaced.
    Text written by hand has no date and no conversation, cycle 0, and is one fact with its line breaks.
    """

    date: str
    conversation_id: str
    cycle: int
    facts: tuple[str, ...]
    expires: str = ""
    superseded: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()

    @property
    def by_hand(self) -> bool:
        """True for text a person wrote into the file."""
        return not self.date

    def active(self, today: str) -> tuple[str, ...]:
        """The facts that hold on the day `today` (ISO; "" when no clock is at hand: then none is past its end)."""
        day = today[:10]
        if day and self.expires and self.expires < day:
            return ()
        return tuple(f for f in self.facts if not (day and not self.by_hand and _ends(f) < day))


def _ends(fact: str) -> str:
    """The day a fact names as its own end ("freeze until 2026-03-01"); far away when it names none."""
    found = _UNTIL.search(fact)
    return found.group(1) if found else "9999"


@dataclass(frozen=True, slots=True)
class FactLine:
    """A bullet of an entry: lines `first` to `end` (excluded) of the file."""

    kind: Literal["fact", "superseded", "supersedes"]
    text: str
    first: int
    end: int


@dataclass(slots=True)
class Block:
    """An entry and where it stands: lines `first` to `end` (excluded) of the file, its bullets in order."""

    first: int
    end: int
    date: str = ""
    conversation_id: str = ""
    cycle: int = 0
    expires: str = ""
    lines: list[FactLine] = field(default_factory=list)
    hand: str = ""

    @property
    def entry(self) -> MemoryEntry:
        if not self.date:
            return MemoryEntry("", "", 0, (self.hand,))
        return MemoryEntry(
            self.date,
            self.conversation_id,
            self.cycle,
            self.of("fact"),
            self.expires,
            self.of("superseded"),
            self.of("supersedes"),
        )

    def of(self, kind: str) -> tuple[str, ...]:
        """The texts of the bullets of one kind."""
        return tuple(line.text for line in self.lines if line.kind == kind)


def one_line(text: str) -> str:
    """`text` with its blanks collapsed: a fact is one line."""
    return " ".join(text.split())


def _word(text: str) -> str:
    return "-".join(text.split()) or "?"


def _bullet(fact: str) -> str:
    """A fact as it is written, such that it is read back as a fact that holds."""
    taken = fact.startswith(_SUPERSEDES) or _STRUCK.fullmatch(fact)
    return f"- Note: {fact}" if taken else f"- {fact}"


def struck(fact: str, date: str) -> str:
    """The bullet of a fact that no longer holds since `date`."""
    return f"- ~~{one_line(fact).replace('~~', '~')}~~ (superseded {date[:10]})" if date else f"- ~~{fact}~~"


def format_entry(e: MemoryEntry) -> str:
    """`e` as Markdown, ending with a newline; facts are one line each."""
    if e.by_hand:
        return "\n".join((_BY_HAND, *e.facts)) + "\n"
    header = f"## {_word(e.date)} · conversation {_word(e.conversation_id)} · cycle {e.cycle}"
    lines = [f"{header} · expires {e.expires}" if e.expires else header]
    lines.extend(_bullet(fact) for fact in map(one_line, e.facts) if fact)
    lines.extend(struck(fact, "") for fact in map(one_line, e.superseded) if fact)
    if len(lines) == 1 and not e.supersedes:
        lines.append(f"- {_NO_NEWS}")
    lines.extend(f"- {_SUPERSEDES}{fact}" for fact in map(one_line, e.supersedes) if fact)
    return "\n".join(lines) + "\n"


def blocks(text: str) -> list[Block]:
    """Entries in file order with their places; lines that belong to none become entries by hand (never lost)."""
    found: list[Block] = []
    lines = text.split("\n")
    open_block: Block | None = None
    loose_from: int | None = None

    def close(at: int) -> None:
        nonlocal open_block, loose_from
        if open_block is not None:
            open_block.end = at
            found.append(open_block)
        if loose_from is not None:
            body = "\n".join(line for line in lines[loose_from:at] if line.rstrip() != _BY_HAND).strip("\n")
            if body.strip():
                found.append(Block(loose_from, at, hand=body))
        open_block, loose_from = None, None

    for at, line in enumerate(lines):
        header = _HEADER.fullmatch(line.rstrip())
        if header:
            close(at)
            date, source, cycle, expires = header.groups()
            open_block = Block(at, at, date, source, int(cycle), expires or "")
        elif line.rstrip() == _BY_HAND:
            close(at)
            loose_from = at
        elif open_block is None:
            loose_from = at if loose_from is None else loose_from
        elif line.startswith("- "):
            _add_line(open_block, line[2:].strip(), at)
        elif line.startswith("  ") and line.strip() and open_block.lines:
            last = open_block.lines[-1]
            open_block.lines[-1] = replace(last, text=f"{last.text} {line.strip()}", end=at + 1)
        elif line.strip():
            close(at)
            loose_from = at
    close(len(lines))
    return found


def _add_line(block: Block, text: str, at: int) -> None:
    gone = _STRUCK.fullmatch(text)
    if gone:
        block.lines.append(FactLine("superseded", gone.group("fact"), at, at + 1))
    elif text.startswith(_SUPERSEDES):
        block.lines.append(FactLine("supersedes", text.removeprefix(_SUPERSEDES).strip(), at, at + 1))
    elif text and text != _NO_NEWS:
        block.lines.append(FactLine("fact", text, at, at + 1))


def parse_memory(text: str) -> tuple[MemoryEntry, ...]:
    """Entries in file order; lines that belong to none become entries by hand, in their place (never lost)."""
    return tuple(block.entry for block in blocks(text))


def fold(fact: str) -> str:
    """Equal for facts that say the same: case, blanks and the full stop aside."""
    return one_line(fact).casefold().rstrip(".")


def size_of(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def cut_bytes(text: str, limit: int) -> str:
    """The beginning of `text` within `limit` bytes of UTF-8."""
    return text.encode("utf-8", "surrogatepass")[: max(0, limit)].decode("utf-8", "ignore")


def excerpt_limit(window: int | None) -> int:
    """Most characters of memory in the system part: 2 % of the window at 4 characters a token, 4 000 at most (M35)."""
    return EXCERPT_CHARS if window is None else min(EXCERPT_CHARS, max(0, window) * 2 // 25)


def excerpt(text: str, window: int | None, today: str = "") -> str:
    """The newest entries of memory, newest first and whole, within `excerpt_limit` (M35).

    Only what holds: nothing superseded, nothing past its end on the day `today` (ISO), nothing said twice (cases
    130, 131, 133). When not even the newest entry fits, as many of its lines as do. The same file and day give the same
    bytes (I7).
    """
    limit = excerpt_limit(window)
    kept: list[str] = []
    said: set[str] = set()
    used = 0
    for entry in reversed(parse_memory(text)):
        facts = tuple(f for f in entry.active(today) if fold(f) not in said)
        if not facts:
            continue
        said.update(map(fold, facts))
        block = format_entry(replace(entry, facts=facts, superseded=(), supersedes=())).rstrip("\n")
        cost = len(block) + (2 if kept else 0)
        if used + cost > limit:
            return "\n\n".join(kept) if kept else _first_lines(block, limit)
        kept.append(block)
        used += cost
    return "\n\n".join(kept)


def _first_lines(block: str, limit: int) -> str:
    lines: list[str] = []
    used = 0
    for line in block.split("\n"):
        if used + len(line) > limit:
            break
        lines.append(line)
        used += len(line) + 1
    return "\n".join(lines) if len(lines) > 1 else ""


_LABELS = {
    "session intent": "Intent",
    "decisions made": "Decision",
    "files modified": "File",
    "requirements": "Requirement",
}


def admissible(fact: str) -> bool:
    """False for nothing, and for outcomes of permissions: they would outlive the policy that made them (case 130)."""
    return bool(fact.strip()) and not is_policy_outcome(fact)


def durable_items(folded: Summary) -> tuple[SummaryItem, ...]:
    """Of the items folded out of a summary those that still hold and whose section is durable (case 131)."""
    return tuple(
        item
        for section in folded.sections
        if canonical_title(section.title) in _LABELS
        for item in section.items
        if item.status == "active"
    )


def durable_facts(summary: Summary, archived: Sequence[SummaryItem] = (), said: Sequence[str] = ()) -> tuple[str, ...]:
    """One line for each active intent, decision and file of `summary`, each of `archived` and of `said` (M32, P10).

    `archived` are what `durable_items` finds among the items folded out of it; `said` are facts with their labels.

    Secrets are redacted. Outcomes of permissions ("access blocked", "cannot read X") are left out: they would outlive
    the policy that made them (case 130). State and next steps belong to the conversation and are not durable.
    """
    labelled = [
        (_LABELS[key], item.text)
        for section in summary.sections
        if (key := canonical_title(section.title)) in _LABELS
        for item in section.items
        if item.status == "active"
    ]
    labelled.extend(("Earlier", item.text) for item in archived)
    labelled.extend((label, text) for label, _, text in (fact.partition(": ") for fact in said))
    facts: dict[str, str] = {}
    for label, text in labelled:
        fact = redact(one_line(text))
        if not admissible(fact):
            continue
        if len(fact) > _FACT_CHARS:
            fact = fact[: _FACT_CHARS - 1].rstrip() + "…"
        facts.setdefault(fold(fact).strip("“”. "), f"{label}: {fact}")
    return tuple(facts.values())


def rules_excerpt(text: str, limit: int = RULES_CAP) -> tuple[str, bool]:
    """(the rules within `limit` bytes of UTF-8, whether something was left out), cut at a line end if near (M31)."""
    if size_of(text) <= limit:
        return text, False
    kept = cut_bytes(text, limit)
    newline = kept.rfind("\n")
    return (kept[: newline + 1] if newline > len(kept) * 3 // 4 else kept), True
