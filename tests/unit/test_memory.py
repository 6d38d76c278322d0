"""MEMORY.md, its cap and its excerpt; durable facts; rules (M31, M32, M34, M35, B9; cases 129, 130)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.memory import (
    MemoryEntry,
    durable_facts,
    excerpt,
    excerpt_limit,
    format_entry,
    parse_memory,
    rules_excerpt,
)
from marextui.context.summary import parse_summary


def _entry(n: int, *facts: str) -> MemoryEntry:
    return MemoryEntry(f"2026-01-{n % 28 + 1:02d}T10:00:00Z", f"conv{n}", n, facts or (f"fact {n}",))


@pytest.mark.parametrize(
    ("window", "limit"), [(8192, 655), (32_768, 2621), (50_000, 4000), (200_000, 4000), (None, 4000), (0, 0)]
)
def test_excerpt_limit(window: int | None, limit: int) -> None:
    """M35, B9: the smaller of 4 000 characters and 2 % of the window."""
    assert excerpt_limit(window) == limit


def test_excerpt_holds_the_newest_entries_whole() -> None:
    """M35: 100 entries at 32 768."""
    text = "\n".join(format_entry(_entry(n, f"fact {n} " + "x" * 80)) for n in range(100))
    shown = excerpt(text, 32_768)
    assert len(shown) <= 2621
    assert shown.startswith(format_entry(_entry(99, "fact 99 " + "x" * 80)).rstrip())
    assert all(format_entry(e).rstrip() in text for e in parse_memory(shown))
    assert shown == excerpt(text, 32_768)


def test_excerpt_of_one_large_entry_shows_its_first_lines() -> None:
    """M35: rather some of the newest than nothing."""
    text = format_entry(_entry(1, *(f"fact {n} " + "x" * 100 for n in range(40))))
    shown = excerpt(text, 8192)
    assert 0 < len(shown) <= 655
    assert "fact 0 " in shown


def test_excerpt_of_nothing() -> None:
    """No memory, or entries without facts: no text at all."""
    assert excerpt("", None) == ""
    assert excerpt(format_entry(MemoryEntry("2026-01-01", "c", 1, ())), None) == ""


def test_excerpt_shows_what_holds() -> None:
    """Cases 130, 131, 133: nothing superseded, nothing past its end, nothing twice."""
    text = """\
## 2026-01-01T00:00:00Z · conversation a · cycle 1
- ~~Decision: use SQLite~~ (superseded 2026-02-01)
- Decision: port 8080
- freeze main until 2026-02-10

## 2026-01-02T00:00:00Z · conversation a · cycle 2 · expires 2026-01-31
- the staging key is in the vault

## 2026-02-01T00:00:00Z · conversation b · cycle 1
- Decision: use Postgres
- supersedes: Decision: use SQLite
- decision: PORT 8080.
"""
    shown = excerpt(text, None, "2026-02-15")
    assert shown == (
        "## 2026-02-01T00:00:00Z · conversation b · cycle 1\n- Decision: use Postgres\n- decision: PORT 8080."
    )
    assert "freeze main" in excerpt(text, None, "2026-02-10T09:00:00Z"), "the last day counts"
    assert "staging key" in excerpt(text, None, "2026-01-31")
    assert "staging key" in excerpt(text, None), "without a clock nothing is past its end"


def test_every_part_of_an_entry_is_read_back() -> None:
    """Source, date, end, what was replaced and by what."""
    entry = MemoryEntry("2026-01-02", "c1", 3, ("a", "b"), "2026-05-01", ("old one",), ("Decision: use A",))
    assert parse_memory(format_entry(entry)) == (entry,)
    odd = MemoryEntry("2026-01-02", "c1", 3, ("supersedes: x", "~~struck~~", "a ~~b~~ c"))
    (read,) = parse_memory(format_entry(odd))
    assert read.facts == ("Note: supersedes: x", "Note: ~~struck~~", "a ~~b~~ c")
    assert (read.superseded, read.supersedes) == ((), ())


def test_durable_facts() -> None:
    """M32: intents, files and decisions; not the state of the moment."""
    summary = parse_summary(
        "## Session Intent\n- add login\n## Files Modified\n- a.py: form\n## Decisions Made\n- Use SQLite\n"
        "## Current State\n- tests fail\n## Next Steps\n- fix them",
        cycle=1,
    )
    assert durable_facts(summary) == ("Intent: add login", "File: a.py: form", "Decision: Use SQLite")


def test_superseded_decisions_are_not_durable() -> None:
    """Case 131: only what holds."""
    items = (SummaryItem("use A", status="superseded"), SummaryItem("use B"))
    assert durable_facts(Summary((SummarySection("Decisions Made", items),))) == ("Decision: use B",)


def test_items_folded_out_of_the_summary_go_to_memory() -> None:
    """P10: labelled as earlier; the same filters apply."""
    archived = (SummaryItem("b.py: helper"), SummaryItem("access to /x was blocked"), SummaryItem("Use SQLite"))
    summary = parse_summary("## Decisions Made\n- Use SQLite", cycle=1)
    assert durable_facts(summary, archived) == ("Decision: Use SQLite", "Earlier: b.py: helper")


@pytest.mark.parametrize(
    "outcome",
    [
        "Access to /etc/shadow was blocked",
        "cannot read secrets.toml",
        "Bash command denied by the user",
        "The tool is not allowed to write outside the project",
        "read-only sandbox",
        "User approved the deployment",
        "L'accès au dossier est bloqué",
        "Impossible de lire config.toml",
    ],
)
def test_policy_outcomes_stay_out_of_memory(outcome: str) -> None:
    """Case 130, I13: they would stop valid calls, or allow others, in a later session."""
    assert durable_facts(parse_summary(f"## Decisions Made\n- {outcome}\n- Use SQLite", cycle=1)) == (
        "Decision: Use SQLite",
    )


def test_secrets_stay_out_of_memory() -> None:
    """Cases 135, 137."""
    fake = "sk-" + "a1B2" * 10
    (fact,) = durable_facts(parse_summary(f"## Decisions Made\n- The key is {fake}", cycle=1))
    assert fake not in fact
    assert "[redacted: api key #" in fact


def test_rules_within_32_kib() -> None:
    """M31: whole, or cut at a line end and said so."""
    assert rules_excerpt("be kind\n") == ("be kind\n", False)
    kept, cut = rules_excerpt("é" * 30 + "\n" + "règle\n" * 10_000)
    assert cut
    assert len(kept.encode()) <= 32 * 1024
    assert kept.endswith("règle\n")
