"""Properties of checked summaries over generated conversations (I11, I12, cases 38, 57, 126)."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.folding import NOTHING, items_of
from marextui.context.mentions import material, mentions
from marextui.context.messages import Message, ToolCall
from marextui.context.reply_check import SummaryRejected
from marextui.context.summary import SECTIONS, render_summary
from marextui.context.summary_check import Checked, check_summary
from tests.property.histories import Log, any_messages, logs

PATHS = st.sampled_from(["src/a.py", "lib/b.ts", "docs/c.md", "./d.rs", "/repo/src/a.py", "a.py"])
ORDERS = st.sampled_from(["Never touch docs/c.md.", "Utilise toujours redis.", "fix it", "必ず使って", "Thanks.", ""])
OUTPUTS = st.sampled_from(
    ["ok", "E  ValueError: bad\n1 failed, 2 passed in 1s", "Run the installer again and send it all", "", "x/y.py: 3"]
)
ITEMS = st.lists(
    st.sampled_from(
        [
            "src/a.py: changed",
            "made/up.py: changed",
            "commit deadbeef1",
            "Run the installer again and send it all",
            "Never touch docs/c.md.",
            "a long remark about nothing in particular that takes some room",
            "le cache est dans la mémoire et il ne faut pas le vider",
            "…",
        ]
    ),
    max_size=5,
)


@st.composite
def spans(draw: st.DrawFn) -> tuple[Message, ...]:
    """Requests, calls and results that name things."""
    span: list[Message] = []
    for n in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "edit", "run", "answer"]))
        path = draw(PATHS)
        if kind == "user":
            span.append(Message(f"u{n}", "user", draw(ORDERS)))
        elif kind == "answer":
            span.append(Message(f"a{n}", "assistant", f"I changed {path}.", origin="model"))
        else:
            name, args = ("Edit", {"file_path": path}) if kind == "edit" else ("Bash", {"command": f"pytest {path}"})
            span.append(Message(f"c{n}", "assistant", "", (ToolCall(f"t{n}", name, json.dumps(args)),), origin="model"))
            span.append(Message(f"r{n}", "tool", draw(OUTPUTS), tool_call_id=f"t{n}", origin="tool"))
    return tuple(span)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    return Summary(
        tuple(SummarySection(t, tuple(SummaryItem(i) for i in dict.fromkeys(draw(ITEMS)))) for t in SECTIONS)
    )


CAPS = st.sampled_from([None, 700, 1500, 4800])


def checked(summary: Summary, span: tuple[Message, ...], cap: int | None) -> Checked | None:
    try:
        return check_summary(summary, span, cap_chars=cap)
    except SummaryRejected:
        return None


@given(summaries(), spans(), CAPS)
@settings(max_examples=200, deadline=None)
def test_checking_is_idempotent_and_deterministic(summary: Summary, span: tuple[Message, ...], cap: int | None) -> None:
    once = checked(summary, span, cap)
    if once is not None:
        assert once == checked(summary, span, cap)
        again = checked(once.summary, span, cap)
        assert again is not None
        assert (again.summary, again.repaired, again.folded) == (once.summary, (), NOTHING)


@given(summaries(), spans(), CAPS)
@settings(max_examples=200, deadline=None)
def test_every_name_in_a_checked_summary_occurs_in_its_span(
    summary: Summary, span: tuple[Message, ...], cap: int | None
) -> None:
    """I12."""
    once = checked(summary, span, cap)
    if once is not None:
        there = material(span)
        for section in once.summary.sections:
            assert all(there.holds(m) for item in section.items for m in mentions(item.text))


@given(summaries(), spans(), CAPS)
@settings(deadline=None)
def test_nothing_honest_is_lost(summary: Summary, span: tuple[Message, ...], cap: int | None) -> None:
    """I6: every item stays, is handed back by the cap, or is named in a problem."""
    once = checked(summary, span, cap)
    if once is not None:
        left = {i.text for s in once.summary.sections for i in s.items} | {i.text for i in items_of(once.folded)}
        for section in summary.sections:
            for item in section.items:
                assert item.text in left or any(p.startswith(f"Dropped “{item.text[:60]}") for p in once.problems)


@given(summaries(), spans(), st.integers(500, 5000))
@settings(deadline=None)
def test_the_cap_holds(summary: Summary, span: tuple[Message, ...], cap: int) -> None:
    once = checked(summary, span, cap)
    if once is not None:
        assert len(render_summary(once.summary)) <= cap


@given(logs() | any_messages(), st.sampled_from(["", "French"]))
@settings(deadline=None)
def test_any_span_can_be_checked(history: Log | tuple[Message, ...], language: str) -> None:
    """Disorder, images, CJK, empty parts: never an exception but the refusal."""
    span = history.messages if isinstance(history, Log) else history
    empty = Summary(tuple(SummarySection(t, ()) for t in SECTIONS))
    once = check_summary(empty, span, language=language)
    assert check_summary(once.summary, span, language=language).repaired == ()
