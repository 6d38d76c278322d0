"""Properties of memory: the cap holds after any sequence, nothing written by hand is lost before it (I14, M34, M35)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.memory import (
    MemoryEntry,
    excerpt,
    excerpt_limit,
    format_entry,
    parse_memory,
    rules_excerpt,
)
from marextui.context.memory_keeping import add_archive, remember
from marextui.context.redaction import redact

FACTS = st.text(alphabet=st.sampled_from("abcé數🙂 #-\n·"), max_size=40)
ENTRIES = st.builds(
    MemoryEntry,
    st.sampled_from(["2026-01-02", "2026-03-04T05:06:07Z", "2026 odd date"]),
    st.sampled_from(["c1", "c2", "with blank", ""]),
    st.integers(0, 99),
    st.lists(FACTS, max_size=4).map(tuple),
)
FILES = st.text(max_size=200) | st.text(alphabet=st.sampled_from("# -\nab·## conversation"), max_size=200)


def _words(text: str) -> str:
    return " ".join(text.split())


@given(FILES, st.lists(ENTRIES, max_size=12), st.integers(60, 700))
def test_cap_after_any_sequence_and_nothing_without_a_trace(text: str, entries: list[MemoryEntry], cap: int) -> None:
    """I14, M34, case 129: bytes, not characters; what left the file is in what is handed to the archive."""
    for entry in entries:
        before = [w for e in parse_memory(text) for f in (*e.facts, *e.superseded) for w in f.split()]
        kept = remember(text, entry, cap=cap)
        assert len(kept.text.encode("utf-8", "surrogatepass")) <= cap
        archive, _ = add_archive("", kept.archived)
        left = f"{kept.text}\n{archive}"
        if len(format_entry(entry).encode("utf-8", "surrogatepass")) < cap - 60:
            assert all(word.replace("~~", "~") in left for word in before)
        text = kept.text


@given(FILES, ENTRIES)
def test_adding_keeps_what_stands(text: str, entry: MemoryEntry) -> None:
    """M32: what a person wrote stands where it stood, and is read back."""
    grown = remember(text, entry).text
    by_hand = [e.facts[0] for e in parse_memory(text) if e.by_hand]
    assert [e.facts[0] for e in parse_memory(grown) if e.by_hand] == by_hand


@given(FILES, ENTRIES)
def test_adding_twice_adds_no_fact_twice(text: str, entry: MemoryEntry) -> None:
    """M32: dedupe at write."""
    once = remember(text, entry).text
    twice = parse_memory(remember(once, entry).text)
    assert [f for e in twice for f in e.facts] == [f for e in parse_memory(once) for f in e.facts]


@given(ENTRIES)
def test_an_entry_is_read_back(entry: MemoryEntry) -> None:
    """One line per fact, in order; empty ones are no facts."""
    (read,) = parse_memory(format_entry(entry))
    assert read.cycle == entry.cycle
    assert read.facts == tuple(f for f in map(_words, entry.facts) if f)


@given(FILES, st.lists(ENTRIES, max_size=8), st.none() | st.integers(0, 100_000))
def test_excerpt_is_bounded_and_stable(text: str, entries: list[MemoryEntry], window: int | None) -> None:
    """M35: within its limit, the same for the same file."""
    for entry in entries:
        text = remember(text, entry).text
    shown = excerpt(text, window)
    assert len(shown) <= excerpt_limit(window)
    assert shown == excerpt(text, window)


@given(st.text(max_size=300), st.integers(0, 400))
def test_rules_keep_their_bytes(text: str, limit: int) -> None:
    """M31: a prefix, within the limit, cut only if said so."""
    kept, cut = rules_excerpt(text, limit)
    assert text.startswith(kept)
    assert cut == (kept != text)
    assert len(kept.encode("utf-8", "surrogatepass")) <= max(limit, 0) or not cut


@given(st.text(max_size=300))
def test_redaction_is_idempotent(text: str) -> None:
    """I10: what is redacted once is not touched again."""
    assert redact(redact(text)) == redact(text)
