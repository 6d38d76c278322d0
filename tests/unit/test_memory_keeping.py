"""Adding to memory: no repeats, corrections, a cap that is loud (I14, M32, M34; cases 129–131, 133)."""

from __future__ import annotations

import pytest

from marextui.context.memory import MEMORY_CAP, MemoryEntry, excerpt, format_entry, parse_memory
from marextui.context.memory_keeping import add_archive, remember, replaces


def _entry(n: int, *facts: str) -> MemoryEntry:
    return MemoryEntry(f"2026-01-{n % 28 + 1:02d}T10:00:00Z", f"conv{n}", n, facts or (f"item {n}",))


def _all(text: str) -> list[str]:
    return [f for e in parse_memory(text) for f in e.facts]


def test_two_compactions_two_entries_in_order() -> None:
    """M32."""
    text = remember(remember("", _entry(1)).text, _entry(2)).text
    assert text == (
        "## 2026-01-02T10:00:00Z · conversation conv1 · cycle 1\n- item 1\n\n"
        "## 2026-01-03T10:00:00Z · conversation conv2 · cycle 2\n- item 2\n"
    )
    assert parse_memory(text) == (_entry(1), _entry(2))


def test_duplicate_facts_are_merged() -> None:
    """M32: a fact the file holds is not said again, and an entry that would say nothing is not made."""
    text = remember("", _entry(1, "Use SQLite", "Port 8080")).text
    text = remember(text, _entry(2, "use  sqlite.", "Host a.example", "host a.example")).text
    text = remember(text, _entry(3, "USE SQLITE")).text
    assert [e.facts for e in parse_memory(text)] == [("Use SQLite", "Port 8080"), ("Host a.example",)]
    assert remember(text, _entry(4, "Decision: “Use SQLite”")).text == text, "nor under another label"


def test_what_a_person_wrote_is_kept_word_for_word() -> None:
    """M32: hand edits anywhere survive further entries and are read as entries of their own."""
    written = "# My notes\nnever  touch   prod\n\n" + format_entry(_entry(1)) + "\nan afterthought\n    indented\n"
    text = remember(written, _entry(2)).text
    assert text.startswith(written.rstrip("\n"))
    assert _all(text) == ["# My notes\nnever  touch   prod", "item 1", "an afterthought\n    indented", "item 2"]
    assert [e.by_hand for e in parse_memory(text)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Decision: use A", "Decision: use B"),
        ("Decision: use SQLite", "Decision: use Postgres"),
        ("Decision: the frontend is React", "Decision: the frontend is Svelte"),
        ("Decision: use React", "Decision: switched from React to Svelte"),
        ("Decision: use npm", "Decision: use pnpm instead of npm"),
        ("Decision: the server listens on 8443", "Decision: the server listens on 9443"),
        ("Decision: force-push to the branch", "Decision: never force-push to the branch"),
        ("File: src/a.py: a form", "File: src/a.py: a form with checks"),
    ],
)
def test_a_later_statement_about_the_same_subject_replaces_the_earlier(older: str, newer: str) -> None:
    """Cases 131, 133: kept, struck through, linked, not injected; and back again when the mind changes again."""
    kept = remember(remember("", _entry(1, older, "Decision: keep logs")).text, _entry(2, newer))
    assert kept.superseded == (older,)
    first, second = parse_memory(kept.text)
    assert (first.facts, first.superseded) == (("Decision: keep logs",), (older,))
    assert (second.facts, second.supersedes) == ((newer,), (older,))
    shown = excerpt(kept.text, None)
    assert newer in shown
    assert f"- {older}\n" not in shown + "\n"
    assert "supersedes" not in shown
    again = remember(kept.text, _entry(3, older))
    assert [e.facts for e in parse_memory(again.text)][2] == (older,)
    if not newer.startswith("Decision: never"):
        assert newer in again.superseded or "from React" in newer or "instead" in newer


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Decision: use SQLite for tests", "Decision: use Postgres for production"),
        ("Decision: use pytest", "Decision: use ruff"),
        ("Decision: use a linter", "Decision: use C"),
        ("File: a.py: form", "File: b.py: form"),
        ("Intent: add login", "Intent: add logout"),
        ("Decision: use SQLite", "Decision: use SQLite for the cache too"),
        ("Decision: keep the old API", "Decision: write tests first"),
        ("Decision: use SQLite", "decision: USE sqlite."),
        ("Decision: close issue 12", "Decision: close issue 13"),
    ],
)
def test_statements_that_hold_together_stay(older: str, newer: str) -> None:
    """Wrongly hiding a fact is worse than keeping two."""
    assert not replaces(newer, older)


def test_what_a_person_wrote_is_never_struck() -> None:
    """Hand edits survive, also when a compaction decides otherwise."""
    text = remember("We use SQLite\n\n", _entry(1, "Decision: use Postgres")).text
    assert text.startswith("We use SQLite\n")
    assert remember(text, _entry(2, "Decision: use MySQL")).superseded == ("Decision: use Postgres",)


def test_a_fact_wrapped_by_hand_is_struck_whole() -> None:
    """A person broke the line; the continuation goes with it."""
    text = format_entry(_entry(1, "Decision: use SQLite")).replace("use SQLite", "use\n  SQLite") + "\nby hand\n"
    kept = remember(text, _entry(2, "Decision: use Postgres"))
    assert parse_memory(kept.text)[0].superseded == ("Decision: use SQLite",)
    assert "by hand" in kept.text


def test_policy_outcomes_are_not_taken_whoever_feeds_them() -> None:
    """Case 130."""
    text = remember("", _entry(1, "cannot read secrets.toml", "Decision: use SQLite")).text
    assert _all(text) == ["Decision: use SQLite"]


def test_over_the_cap_the_oldest_go_whole_and_are_told() -> None:
    """M34, case 129: 1 499 900 bytes + an entry → within the cap, the newest whole, what left is returned."""
    text, n = "", 0
    while len(text.encode()) < MEMORY_CAP - 100:
        room = MEMORY_CAP - 100 - len(text.encode())
        text += format_entry(_entry(n, f"{n} " + "é" * min(40_000, room))) + "\n"
        n += 1
    newest = _entry(999, "n" * 460)
    kept = remember(text, newest)
    assert len(kept.text.encode()) <= MEMORY_CAP
    assert parse_memory(kept.text)[-1] == newest
    assert kept.archived == parse_memory(text)[:1]
    assert parse_memory(kept.text)[:-1] == parse_memory(text)[1:]


def test_what_no_longer_holds_goes_first_and_notes_by_hand_last() -> None:
    """I14: eviction is a rule: superseded and past, oldest, by hand."""
    hand = "always run make check\n"
    old = MemoryEntry("2026-01-01", "a", 1, ("Decision: port 8080 is ours", "freeze until 2026-01-05"))
    text = remember(hand + "\n" + format_entry(old), _entry(9, "Decision: x " + "y" * 60)).text
    text = text.replace("- Decision: port", "- ~~Decision: use A~~ (superseded 2026-01-03)\n- Decision: port")
    newest = MemoryEntry("2026-02-01", "n", 1, ("z" * 90,))
    full = len(remember(text, newest).text.encode())
    first = remember(text, newest, cap=full - 60)
    assert [(e.facts, e.superseded) for e in first.archived] == [(("freeze until 2026-01-05",), ("Decision: use A",))]
    assert "Decision: port 8080 is ours" in first.text
    second = remember(text, newest, cap=full - 180)
    assert second.text.startswith(hand)
    assert "port 8080" not in second.text
    assert any("port 8080" in f for e in second.archived for f in e.facts)
    third = remember(text, newest, cap=150)
    assert [e.by_hand for e in third.archived].count(True) == 1
    assert parse_memory(third.text)[-1].facts == newest.facts


def test_an_entry_larger_than_the_cap_is_cut() -> None:
    """M34."""
    kept = remember("old notes\n", _entry(1, "é" * 1000), cap=500)
    assert len(kept.text.encode()) <= 500
    assert kept.text.startswith("## 2026-01-02")
    assert [e.facts for e in kept.archived] == [("old notes",)]


def test_the_archive_has_a_cap_of_its_own() -> None:
    """I14: no file grows without end; what is dropped for good is counted."""
    text, dropped = "", 0
    for n in range(20):
        text, gone = add_archive(text, [_entry(n, "x" * 50)], cap=600)
        dropped += gone
        assert len(text.encode()) <= 600
    kept = parse_memory(text)
    assert kept[-1] == _entry(19, "x" * 50)
    assert len(kept) + dropped == 20
    assert add_archive("", [_entry(1)])[1] == 0
