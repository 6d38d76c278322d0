"""Checks of compactions from the log, and the questions of `/probe` (P17, P19, P20)."""

from __future__ import annotations

import pytest

from marextui.context.checking import aftermaths, check_compaction, context_checks, grade, probes_of, quiz, told
from marextui.context.entries import (
    CompactionChecked,
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    Summary,
    SummaryItem,
    SummarySection,
)
from marextui.context.messages import Message, ToolCall
from marextui.context.probes import Probe
from marextui.context.summary import SECTIONS

ORDER = "Never touch config/redis.ts in this project."


def summary(*texts: str) -> Summary:
    return Summary(tuple(SummarySection(s, tuple(SummaryItem(t) for t in texts[:1])) for s in SECTIONS))


def committed(cycle: int, cut: str, *texts: str) -> CompactionCommitted:
    return CompactionCommitted(cycle, "manual", cut, summary(*texts), "m", 9, 3, 900, 300, 1.0)


def log(*texts: str) -> list[Entry]:
    call = ToolCall("c1", "Write", '{"path": "src/queue.py", "content": "x"}')
    messages = [
        Message("u1", "user", ORDER, turn=1),
        Message("a1", "assistant", "", (call,), origin="model", turn=1),
        Message("t1", "tool", "Wrote src/queue.py", tool_call_id="c1", name="Write", origin="tool", turn=1),
        Message("z1", "assistant", "Done.", origin="model", turn=1),
        Message("u2", "user", "Thanks. What is next?", turn=2),
        Message("z2", "assistant", "Nothing.", origin="model", turn=2),
    ]
    return [*(MessageAdded(m) for m in messages), committed(1, "u2", *texts)]


def test_facts_are_those_of_the_span_that_was_cut_away() -> None:
    answers = {p.expected[0] for p in probes_of(log(), 1)}
    assert ORDER in answers
    assert "src/queue.py" in answers
    assert not any("What is next" in a for a in answers)
    assert probes_of(log(), 2) == ()
    assert len(probes_of(log(), 1, limit=1)) == 1


def test_what_the_summary_holds_is_in_view_and_the_rest_one_search_away() -> None:
    """The whole log stays searchable, so that a thin summary loses nothing."""
    thin = check_compaction(log(), 1)
    full = check_compaction(log(f"{ORDER} src/queue.py was written"), 1)
    assert thin is not None
    assert full is not None
    assert full.in_view > thin.in_view
    assert thin.by_recall > 0
    assert thin.lost == full.lost == ()
    assert thin.in_view + thin.by_recall == thin.total == full.total
    assert check_compaction(log(), 2) is None


def test_what_comes_after_does_not_change_a_check() -> None:
    later: list[Entry] = [CompactionUndone(1), MessageAdded(Message("u3", "user", ORDER)), committed(2, "u3")]
    assert check_compaction([*log(), *later], 1) == check_compaction(log(), 1)


def test_a_lost_fact_is_told_in_one_bounded_line() -> None:
    line = told(Probe("recall", "Which\nerror?", ("x\n" * 4000,), "m"))
    assert "\n" not in line
    assert len(line) < 300
    assert line.endswith("(recall: Which error?)")


def test_aftermaths_know_checks_and_undos() -> None:
    first, second = CompactionChecked(1, 3, 0, (), 3), CompactionChecked(2, 1, 1, ("x",), 3)
    entries = [*log(), first, committed(2, "u2"), second, CompactionUndone(2), committed(3, "u2")]
    found = aftermaths(entries)
    assert [(a.cycle, a.undone, a.checked) for a in found] == [(1, False, first), (2, True, second), (3, False, None)]
    assert aftermaths([*entries, CompactionUndone(1)])[0].undone
    assert aftermaths(log()[:-1]) == ()


def test_the_checklist_is_of_the_compaction_in_force() -> None:
    """P19: after an undo, of the one before; what was folded into memory is not gone."""
    first = CompactionChecked(1, 3, 0, (), 3)
    second = CompactionChecked(2, 1, 1, ("x (recall: q)",), 3)
    entries = [*log("a kept item"), first, committed(2, "u2"), second]
    lines = {c.name: c for c in context_checks(entries, trigger_share=0.6)}
    assert not lines["Probes"].passed
    assert "x (recall: q)" in lines["Probes"].detail
    assert not lines["Merged incrementally"].passed
    kept = {c.name: c for c in context_checks(entries, trigger_share=0.6, stored=("a kept item",))}
    assert kept["Merged incrementally"].passed
    undone = {c.name: c for c in context_checks([*entries, CompactionUndone(2)], trigger_share=0.9)}
    assert undone["Probes"].passed
    assert not undone["Trigger"].passed
    nothing = context_checks(log()[:-1], trigger_share=0.6)
    assert [c.passed for c in nothing] == [True] * 5


# --- the questions --------------------------------------------------------------------------------------------------

PROBES = (
    Probe("artifact", "Which file was created?", ("src/queue.py", "queue.py"), "m1"),
    Probe("decision", "What did the user\nforbid?", ("Never touch config/redis.ts",), "m2"),
    Probe("recall", "Which error?", ("TypeError: bad thing",), "m3"),
)


def test_the_questions_are_numbered_and_do_not_give_the_answers() -> None:
    text = quiz(PROBES)
    assert "1. Which file was created?\n2. What did the user forbid?\n3. Which error?" in text
    assert not any(e in text for p in PROBES for e in p.expected)


@pytest.mark.parametrize(
    "reply",
    [
        "1. queue.py\n2. never  touch CONFIG/redis.ts!\n3. unknown",
        "**1.** `src/queue.py`\n\n**2.** They said: Never touch config/redis.ts\nat all\n\n**3.** none",
        "Here is what I know:\n1) It was src/queue.py\n2) Never touch config/redis.ts\n3) unknown",
        "- Question 1: queue.py\n- Question 2: never touch config/redis.ts\n- Question 3: no idea",
        "src/queue.py\nnever touch config/redis.ts\nunknown",
    ],
)
def test_answers_are_graded_by_containment(reply: str) -> None:
    """Whatever the form of the numbers, the case and the white space."""
    assert [g.correct for g in grade(PROBES, reply)] == [True, True, False]


def test_an_answer_under_the_wrong_number_does_not_count() -> None:
    graded = grade(PROBES, "1. TypeError: bad thing\n3. src/queue.py")
    assert [g.correct for g in graded] == [False, False, False]
    assert [g.answer for g in graded] == ["TypeError: bad thing", "", "src/queue.py"]


@pytest.mark.parametrize("reply", ["", "   \n", "I know nothing.", "7. src/queue.py", "0. queue.py"])
def test_a_reply_without_usable_numbers_is_no_answer(reply: str) -> None:
    assert [(g.answer, g.correct) for g in grade(PROBES, reply)] == [("", False)] * 3


def test_the_first_answer_to_a_question_counts() -> None:
    """A model that lists everything twice does not get a second try."""
    assert not grade(PROBES, "1. unknown\n2. x\n3. y\n1. src/queue.py")[0].correct
