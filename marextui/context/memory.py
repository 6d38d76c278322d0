"""Long-term memory as text: MEMORY.md entries, its cap, the excerpt for the system part (M31, M32, M34, M35, B9).

An entry is a dated header and one bullet per fact:

    ## 2026-01-31T09:30:00Z · conversation 5f2c · cycle 2
    - Decision: the server listens on 8443

What a person wrote by hand between entries is kept word for word, as an entry of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.entries import Summary, SummaryItem
from marextui.context.redaction import redact
from marextui.context.section_titles import canonical_title

MEMORY_CAP = 1_500_000
"""Most bytes of MEMORY.md (M34, B12)."""

RULES_CAP = 32 * 1024
"""Most bytes taken of MAREX.md (M31)."""

EXCERPT_CHARS = 4000
"""Most characters of memory in the system part, whatever the window (M35)."""

_FACT_CHARS = 300
_HEADER = re.compile(r"## (\S+) · conversation (\S+) · cycle (\d{1,9})")
_BY_HAND = "## by hand"
_NO_NEWS = "(nothing new)"


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One entry. `date` is ISO 8601; `cycle` the compaction that fed it.

    Text written by hand has no date and no conversation, cycle 0, and is one fact with its line breaks.
    """

    date: str
    conversation_id: str
    cycle: int
    facts: tuple[str, ...]

    @property
    def by_hand(self) -> bool:
        """True for text a person wrote into the file."""
        return not self.date


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _word(text: str) -> str:
    return "-".join(text.split()) or "?"


def format_entry(e: MemoryEntry) -> str:
    """`e` as Markdown, ending with a newline; facts are one line each."""
    if e.by_hand:
        return "\n".join((_BY_HAND, *e.facts)) + "\n"
    lines = [f"## {_word(e.date)} · conversation {_word(e.conversation_id)} · cycle {e.cycle}"]
    lines.extend(f"- {fact}" for fact in map(_one_line, e.facts) if fact)
    if len(lines) == 1:
        lines.append(f"- {_NO_NEWS}")
    return "\n".join(lines) + "\n"


def parse_memory(text: str) -> tuple[MemoryEntry, ...]:
    """Entries in file order; lines that belong to none become entries by hand, in their place (never lost)."""
    entries: list[MemoryEntry] = []
    header: re.Match[str] | None = None
    facts: list[str] = []
    loose: list[str] = []

    def close_loose() -> None:
        body = "\n".join(loose).strip("\n")
        if body.strip():
            entries.append(MemoryEntry("", "", 0, (body,)))
        loose.clear()

    def close_entry() -> None:
        nonlocal header
        if header is not None:
            kept = tuple(f for f in facts if f != _NO_NEWS)
            entries.append(MemoryEntry(header.group(1), header.group(2), int(header.group(3)), kept))
        header = None
        facts.clear()

    for line in text.split("\n"):
        found = _HEADER.fullmatch(line.rstrip())
        if found or line.rstrip() == _BY_HAND:
            close_entry()
            close_loose()
            header = found
        elif header is not None and line.startswith("- "):
            facts.append(line[2:].strip())
        elif header is not None and facts and line.startswith("  ") and line.strip():
            facts[-1] += " " + line.strip()
        elif header is not None and not line.strip():
            continue
        elif header is not None:
            close_entry()
            loose.append(line)
        else:
            loose.append(line)
    close_entry()
    close_loose()
    return tuple(entries)


def _fold(fact: str) -> str:
    return _one_line(fact).casefold().rstrip(".")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _cut_bytes(text: str, limit: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: max(0, limit)].decode("utf-8", "ignore")


def add_entry(text: str, e: MemoryEntry, *, cap: int = MEMORY_CAP) -> str:
    """The file's text with `e` appended, at most `cap` bytes of UTF-8 (M32, M34, I14).

    Facts the file already holds (case and blanks aside) are not repeated. Over the cap the oldest entries go, whole;
    an entry larger than the cap by itself is cut at its end. What stands in the file stays as it is until then.
    """
    known = {_fold(f) for old in parse_memory(text) for f in old.facts}
    fresh: dict[str, str] = {}
    for fact in e.facts:
        if _fold(fact) and _fold(fact) not in known:
            fresh.setdefault(_fold(fact), fact)
    block = format_entry(MemoryEntry(e.date, e.conversation_id, e.cycle, tuple(fresh.values())))
    before = text.rstrip("\n")
    joined = f"{before}\n\n{block}" if before.strip() else block
    if _bytes(joined) <= cap:
        return joined
    kept = [block]
    size = _bytes(block)
    for old in reversed(parse_memory(text)):
        formatted = format_entry(old) + "\n"
        size += _bytes(formatted)
        if size > cap:
            break
        kept.append(formatted)
    return _cut_bytes("".join(reversed(kept)), cap)


def excerpt_limit(window: int | None) -> int:
    """Most characters of memory in the system part: 2 % of the window at 4 characters a token, 4 000 at most (M35)."""
    return EXCERPT_CHARS if window is None else min(EXCERPT_CHARS, max(0, window) * 2 // 25)


def excerpt(text: str, window: int | None) -> str:
    """The newest entries of memory, newest first and whole, within `excerpt_limit` (M35).

    When not even the newest fits, as many of its lines as do. Entries without a fact are passed over. The same file
    gives the same bytes (I7).
    """
    limit = excerpt_limit(window)
    kept: list[str] = []
    used = 0
    for entry in reversed(parse_memory(text)):
        if not entry.facts:
            continue
        block = format_entry(entry).rstrip("\n")
        cost = len(block) + (2 if kept else 0)
        if used + cost > limit:
            break
        kept.append(block)
        used += cost
    if kept:
        return "\n\n".join(kept)
    newest = next((e for e in reversed(parse_memory(text)) if e.facts), None)
    if newest is None:
        return ""
    lines: list[str] = []
    for line in format_entry(newest).rstrip("\n").split("\n"):
        if sum(len(x) + 1 for x in lines) + len(line) > limit:
            break
        lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else ""


_POLICY = re.compile(
    r"\b(?:access|permission|tool|command|request|read|write|edit|approval|network|sandbox)\w*\b.{0,40}?"
    r"\b(?:blocked|denied|refused|rejected|forbidden|prohibited|not (?:allowed|permitted|granted)|disallowed)"
    r"|\b(?:blocked|denied|refused|forbidden|not allowed|not permitted)\b.{0,30}?"
    r"\b(?:access|permission|by (?:the )?(?:user|policy|sandbox))"
    r"|\b(?:cannot|can['’]?t|could not|couldn['’]t|unable to|not able to|no permission to|not allowed to)\s+"
    r"(?:read|write|access|open|run|execute|edit|reach|connect|use the)\b"
    r"|\bread-only (?:sandbox|file ?system|mode)\b|\bplan mode\b"
    r"|\b(?:user|permission)s? (?:has )?(?:approved|granted)\b"
    r"|\b(?:accès|permission|commande|outil)\b.{0,40}?\b(?:bloqué|refusé|interdit)e?"
    r"|\b(?:impossible|incapable|interdit) d(?:e |['’])(?:lire|écrire|accéder|ouvrir|lancer|exécuter)",
    re.IGNORECASE,
)
_LABELS = {"session intent": "Intent", "decisions made": "Decision", "files modified": "File"}


def durable_facts(summary: Summary, archived: Sequence[SummaryItem] = ()) -> tuple[str, ...]:
    """One line for each active intent, decision and file of `summary`, and each item folded out of it (M32, P10).

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
    facts: dict[str, str] = {}
    for label, text in labelled:
        fact = redact(_one_line(text))
        if not fact or _POLICY.search(fact):
            continue
        if len(fact) > _FACT_CHARS:
            fact = fact[: _FACT_CHARS - 1].rstrip() + "…"
        facts.setdefault(_fold(fact), f"{label}: {fact}")
    return tuple(facts.values())


def rules_excerpt(text: str, limit: int = RULES_CAP) -> tuple[str, bool]:
    """(the rules within `limit` bytes of UTF-8, whether something was left out), cut at a line end if near (M31)."""
    if _bytes(text) <= limit:
        return text, False
    kept = _cut_bytes(text, limit)
    newline = kept.rfind("\n")
    return (kept[: newline + 1] if newline > len(kept) * 3 // 4 else kept), True
