"""Properties of memory: the cap holds after any sequence, nothing written by hand is lost before it (I14, M34, M35)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.memory import (
    MemoryEntry,
    add_entry,
    excerpt,
    excerpt_limit,
    format_entry,
    parse_memory,
    rules_excerpt,
)
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
def test_cap_after_any_sequence(text: str, entries: list[MemoryEntry], cap: int) -> None:
    """I14, M34: bytes, not characters; over the cap the file begins with a header."""
    for entry in entries:
        before, text = text, add_entry(text, entry, cap=cap)
        assert len(text.encode("utf-8", "surrogatepass")) <= cap
        if not text.startswith(before.rstrip("\n")):
            assert text.startswith("## ")


@given(FILES, ENTRIES)
def test_adding_keeps_what_stands(text: str, entry: MemoryEntry) -> None:
    """M32: below the cap the file only grows, and what a person wrote is read back."""
    grown = add_entry(text, entry)
    assert grown.startswith(text.rstrip("\n")) or not text.strip()
    read = _words(" ".join(f for e in parse_memory(text) for f in e.facts))
    assert read in _words(" ".join(f for e in parse_memory(grown) for f in e.facts))


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
        text = add_entry(text, entry)
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
