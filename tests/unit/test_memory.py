"""MEMORY.md, its cap and its excerpt; durable facts; rules (M31, M32, M34, M35, B9; cases 129, 130)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.memory import (
    MEMORY_CAP,
    MemoryEntry,
    add_entry,
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


def test_two_compactions_two_entries_in_order() -> None:
    """M32."""
    text = add_entry(add_entry("", _entry(1)), _entry(2))
    assert text == (
        "## 2026-01-02T10:00:00Z · conversation conv1 · cycle 1\n- fact 1\n\n"
        "## 2026-01-03T10:00:00Z · conversation conv2 · cycle 2\n- fact 2\n"
    )
    assert parse_memory(text) == (_entry(1), _entry(2))


def test_duplicate_facts_are_merged() -> None:
    """M32: a fact the file holds is not said again; the entry is still dated."""
    text = add_entry("", _entry(1, "Use SQLite", "Port 8080"))
    text = add_entry(text, _entry(2, "use  sqlite.", "Port 9090", "port 9090"))
    text = add_entry(text, _entry(3, "USE SQLITE"))
    assert [e.facts for e in parse_memory(text)] == [("Use SQLite", "Port 8080"), ("Port 9090",), ()]


def test_what_a_person_wrote_is_kept_word_for_word() -> None:
    """M32: hand edits anywhere survive further entries and are read as entries of their own."""
    written = "# My notes\nnever  touch   prod\n\n" + format_entry(_entry(1)) + "\nan afterthought\n    indented\n"
    text = add_entry(written, _entry(2))
    assert text.startswith(written.rstrip("\n"))
    assert [e.facts[0] for e in parse_memory(text)] == [
        "# My notes\nnever  touch   prod",
        "fact 1",
        "an afterthought\n    indented",
        "fact 2",
    ]
    assert [e.by_hand for e in parse_memory(text)] == [True, False, True, False]


def test_over_the_cap_the_oldest_go_whole() -> None:
    """M34: 1 499 900 bytes + an entry → within the cap, newest whole, a header first."""
    text, n = "", 0
    while len(text.encode()) < MEMORY_CAP - 100:
        room = MEMORY_CAP - 100 - len(text.encode())
        text += format_entry(_entry(n, "é" * min(40_000, room))) + "\n"
        n += 1
    newest = _entry(999, "n" * 460)
    grown = add_entry(text, newest)
    assert len(grown.encode()) <= MEMORY_CAP
    assert parse_memory(grown)[-1] == newest
    assert grown.startswith("## 2026-")
    assert parse_memory(grown)[0] == parse_memory(text)[1] or parse_memory(grown)[0] in parse_memory(text)


def test_an_entry_larger_than_the_cap_is_cut() -> None:
    """M34."""
    grown = add_entry("old notes\n", _entry(1, "é" * 1000), cap=500)
    assert len(grown.encode()) <= 500
    assert grown.startswith("## 2026-01-02")


def test_notes_by_hand_at_the_top_of_a_full_file_get_a_header() -> None:
    """M34: after dropping, the first line is a header."""
    text = "\n".join(["x" * 300, "by hand", format_entry(_entry(1, "y" * 50))])
    assert add_entry(text, _entry(2, "z" * 100), cap=400).startswith("## ")


@pytest.mark.parametrize(
    ("window", "limit"), [(8192, 655), (32_768, 2621), (50_000, 4000), (200_000, 4000), (None, 4000), (0, 0)]
)
def test_excerpt_limit(window: int | None, limit: int) -> None:
    """M35, B9: the smaller of 4 000 characters and 2 % of the window."""
    assert excerpt_limit(window) == limit


def test_excerpt_holds_the_newest_entries_whole() -> None:
    """M35: 100 entries at 32 768."""
    text = ""
    for n in range(100):
        text = add_entry(text, _entry(n, f"fact {n} " + "x" * 80))
    shown = excerpt(text, 32_768)
    assert len(shown) <= 2621
    assert shown.startswith(format_entry(_entry(99, "fact 99 " + "x" * 80)).rstrip())
    assert all(format_entry(e).rstrip() in text for e in parse_memory(shown))
    assert shown == excerpt(text, 32_768)


def test_excerpt_of_one_large_entry_shows_its_first_lines() -> None:
    """M35: rather some of the newest than nothing."""
    text = add_entry("", _entry(1, *(f"fact {n} " + "x" * 100 for n in range(40))))
    shown = excerpt(text, 8192)
    assert 0 < len(shown) <= 655
    assert "fact 0 " in shown


def test_excerpt_of_nothing() -> None:
    """No memory, or entries without facts: no text at all."""
    assert excerpt("", None) == ""
    assert excerpt(format_entry(MemoryEntry("2026-01-01", "c", 1, ())), None) == ""


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
