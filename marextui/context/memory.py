"""Long-term memory as text: MEMORY.md entries, its cap, the excerpt for the system part (M31, M32, M34, M35)."""

from __future__ import annotations

from dataclasses import dataclass

from marextui.context.entries import Summary

MEMORY_CAP = 1_500_000
"""Most bytes of MEMORY.md (M34, B12)."""

RULES_CAP = 32 * 1024
"""Most bytes taken of MAREX.md (M31)."""


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One dated entry. `date` is ISO 8601; `cycle` the compaction that fed it."""

    date: str
    conversation_id: str
    cycle: int
    facts: tuple[str, ...]


def format_entry(e: MemoryEntry) -> str:
    """`e` as Markdown, ending with a newline."""
    raise NotImplementedError


def parse_memory(text: str) -> tuple[MemoryEntry, ...]:
    """Entries in file order."""
    raise NotImplementedError


def add_entry(text: str, e: MemoryEntry) -> str:
    """The file's text with `e` appended, within `MEMORY_CAP` bytes."""
    raise NotImplementedError


def excerpt_limit(window: int | None) -> int:
    """Most characters of memory in the system part (M35, B9)."""
    raise NotImplementedError


def excerpt(text: str, window: int | None) -> str:
    """Newest entries of memory within `excerpt_limit`."""
    raise NotImplementedError


def durable_facts(summary: Summary) -> tuple[str, ...]:
    """What of `summary` is worth keeping for later conversations."""
    raise NotImplementedError


def rules_excerpt(text: str, limit: int = RULES_CAP) -> tuple[str, bool]:
    """(the rules within `limit` bytes, whether something was left out)."""
    raise NotImplementedError
