"""Properties of summaries: parsing never fails, rendering is read back, fusion loses nothing (P6, P10, P11)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.fusion import fit, fuse
from marextui.context.section_titles import plain
from marextui.context.summary import SECTIONS, SummaryRejected, check_reply, parse_summary, render_summary

WORDS = st.lists(
    st.sampled_from(["port", "cache", "server", "8080", "9090", "not", "use", "redis", "réseau", "file", "α", "数据"]),
    min_size=1,
    max_size=5,
)
TEXTS = WORDS.map(" ".join)
PATHS = st.sampled_from(["a.py", "src/b.ts", "docs/c.md", "lib/d.rs"])
CYCLES = st.integers(1, 6)


@st.composite
def summaries(draw: st.DrawFn, cycle: int | None = None) -> Summary:
    sections = []
    for title in SECTIONS:
        items: dict[str, SummaryItem] = {}
        for text in draw(st.lists(TEXTS, max_size=4)):
            last = cycle or draw(CYCLES)
            key = draw(PATHS) if title == "Files Modified" else ""
            item = SummaryItem(f"{key}: {text}" if key else text, key, last, last)
            items.setdefault(key or plain(item.text), item)
        sections.append(SummarySection(title, tuple(items.values())))
    return Summary(tuple(sections))


LINES = """
## Files Modified
**Next Steps**
# 1. Décisions prises
- a.py: x
  - nested
```
none
| a | b |
|---|---|
*
text (cycle 3)
<think>
</think>
====
""".splitlines()
MESSY = st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=25).map("\n".join)


@given(MESSY, CYCLES)
def test_any_reply_gives_all_sections_first(text: str, cycle: int) -> None:
    """P6."""
    summary = parse_summary(text, cycle=cycle)
    assert tuple(s.title for s in summary.sections)[:5] == SECTIONS
    for section in summary.sections:
        for item in section.items:
            assert 1 <= item.first_cycle <= item.last_cycle <= cycle
            assert "\n" not in item.text


@given(MESSY, st.sampled_from(["stop", "length", "tool_calls", ""]), st.booleans())
def test_a_reply_is_accepted_with_text_or_refused_with_a_sentence(text: str, finish: str, calls: bool) -> None:
    """M16: no third outcome."""
    try:
        cleaned = check_reply(text, finish, calls, "")
    except SummaryRejected as refused:
        cleaned = f"{refused}"
        said = cleaned.endswith(".")
    else:
        said = len(cleaned) >= 40
    assert said, cleaned


@given(summaries())
def test_rendering_is_read_back(summary: Summary) -> None:
    """P4, P11: texts, keys and cycle tags survive a round trip through Markdown."""
    read = parse_summary(render_summary(summary), cycle=9)
    assert [[(i.text, i.key, i.first_cycle, i.last_cycle) for i in s.items] for s in read.sections] == [
        [(i.text, i.key, i.first_cycle, i.last_cycle) for i in s.items] for s in summary.sections
    ]


def _said(summary: Summary) -> set[str]:
    return {plain(i.text) for s in summary.sections for i in s.items}


@given(st.lists(summaries(), min_size=1, max_size=5))
def test_fusion_loses_nothing_and_is_deterministic(parts: list[Summary]) -> None:
    """P10: every text of every part stands in the result, active or not; tags never pass the cycle."""
    merged: Summary | None = None
    for cycle, part in enumerate(parts, 1):
        again = fuse(merged, part, cycle=cycle)
        merged = fuse(merged, part, cycle=cycle)
        assert merged == again
        assert all(1 <= i.first_cycle <= i.last_cycle <= max(cycle, 6) for s in merged.sections for i in s.items)
    assert merged is not None
    assert _said(merged) == set().union(*map(_said, parts))


@given(summaries(), summaries(), st.integers(2, 9))
def test_fusion_is_idempotent(first: Summary, second: Summary, cycle: int) -> None:
    """P10: an empty delta changes nothing."""
    merged = fuse(first, second, cycle=cycle)
    empty = parse_summary("", cycle=cycle)
    assert fuse(merged, empty, cycle=cycle + 1) == merged


@given(summaries(), summaries(), st.integers(0, 600))
def test_fit_keeps_or_hands_back_everything(first: Summary, second: Summary, cap: int) -> None:
    """P10, I6: the cap holds above the bare headings; nothing is lost."""
    merged = fuse(first, second, cycle=6)
    kept, archived = fit(merged, cap)
    bare = len(render_summary(Summary(tuple(SummarySection(s.title, ()) for s in merged.sections))))
    if cap >= bare + 60:
        assert len(render_summary(kept)) <= cap
    assert len(render_summary(merged, cap_chars=cap)) <= cap
    whole = {plain(i.text) for i in archived} | _said(kept)
    assert whole >= _said(merged)
