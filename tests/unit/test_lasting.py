"""What of a compaction goes to memory, what does not, and what it strikes there (M32; cases 51, 61, 131, 133)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary
from marextui.context.lasting import Lasting
from marextui.context.memory import MemoryEntry, durable_facts, parse_memory
from marextui.context.memory_keeping import remember
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.settling import Settlement
from marextui.context.summary import parse_summary
from tests.stubs.talk import assistant, talk, user


def _said(*texts: str) -> list[Message]:
    return talk(*(part for t in texts for part in (user(t), assistant(f"OK. You said {len(t)} chars."))))


def _fed(file: str, told: list[Message], start: int = 0, end: int | None = None, summary: Summary | None = None) -> str:
    """The file after a compaction of `told[start:end]`."""
    before, span = told[:end], told[start:end]
    new = Settlement(before).of(summary or offline_summary(span, cycle=1))
    lasting = Lasting(before, told[len(before) :], frozenset(m.id for m in span))
    facts = durable_facts(lasting.of(new), (), lasting.said())
    return remember(file, MemoryEntry("2026-03-01T00:00:00Z", "c", 1, facts, supersedes=lasting.ended)).text


def _facts(file: str) -> list[str]:
    return [f for e in parse_memory(file) for f in e.facts]


def test_talk_that_was_answered_is_no_memory() -> None:
    """Greetings, questions, tasks done: nothing durable, so no entry at all."""
    told = _said("hello there", "what time is it?", "tell me a joke", "Thanks!")
    assert _fed("", told) == ""
    model = parse_summary("## Session Intent\n- Hello there\n- “tell me a joke”\n- ship the web shop", cycle=1)
    assert _facts(_fed("", told, summary=model)) == ["Intent: ship the web shop"], "a goal is one"


def test_a_request_left_open_is_remembered_until_it_is_answered() -> None:
    """Cases 51, 131: struck where it stands once it is done, a long one too."""
    goal = "Build the web shop with a cart and a login. " + "It sells tea, coffee and cups to people at home. " * 8
    told = [*_said("hello there"), *talk(user(goal), start=3)]
    file = _fed("", told)
    assert [f[:30] for f in _facts(file)] == ["Intent: “Build the web shop wi"]
    told += [*talk(assistant("Here it is."), user("And now?"), assistant("Rest."), start=4)]
    later = _fed(file, told, 3)
    assert _facts(later) == []
    assert "~~Intent: “Build" in later
    assert "(nothing new)" not in later


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Deadline is March 3", "Correction: deadline is March 9, not March 3"),
        ("The deadline is March 3.", "Correction: the deadline is March 9, not March 3."),
    ],
)
def test_of_a_corrected_value_memory_holds_the_latest(old: str, new: str) -> None:
    """Case 131: corrected before the compaction, after it, and in what a model wrote."""
    told = _said(old, "hello", new)
    assert _facts(_fed("", told)) == ["Value: deadline = March 9"]
    assert _facts(_fed("", told, 0, 2)) == ["Value: deadline = March 9"], "corrected in what stays in view"
    first = _fed("", told[:2])
    assert _facts(first) == ["Value: deadline = March 3"]
    both = _fed(first, told, 2)
    assert _facts(both) == ["Value: deadline = March 9"]
    assert "~~Value: deadline = March 3~~" in both
    stale = parse_summary(f"## Session Intent\n- {old}\n## Decisions Made\n- {old}\n- The API stays", cycle=1)
    assert _facts(_fed("", told, summary=stale)) == ["Decision: The API stays", "Value: deadline = March 9"]


@pytest.mark.parametrize(
    ("order", "lift"),
    [
        ("Never use the word foo", "Ok, foo is fine from now on"),
        ("Schreibe nie direkt in /etc/hosts", "You can ignore what I said about /etc/hosts now"),
        ("Never push to main.", "You may push to main again."),
    ],
)
def test_an_order_is_remembered_while_it_holds(order: str, lift: str) -> None:
    """Case 61: lifted before the compaction it never gets there, lifted after it is struck through."""
    told = _said(order, "hello", lift)
    assert _fed("", told) == ""
    assert _fed("", told, 0, 4) == "", "what stays in view may lift it already"
    first = _fed("", told[:4])
    assert _facts(first) == [f"Requirement: {order}"]
    both = _fed(first, told, 4)
    assert _facts(both) == []
    assert f"~~Requirement: {order}~~" in both


def test_what_stands_in_memory_is_not_entered_again() -> None:
    """Case 133: the same span summarised again (after an undo) adds nothing, not even an entry; nor what stands there
    by hand."""
    told = _said("Always run make lint first", "The port is 8080", "hello")
    file = _fed("", told)
    assert _facts(file) == ["Requirement: Always run make lint first", "Value: port = 8080"]
    assert _fed(file, told) == file
    hand = "# Mine\n- Always run make lint first\n- port = 8080\n"
    assert _fed(hand, told) == hand


def test_orders_of_a_task_and_details_of_one_are_not_durable() -> None:
    """What is limited to a task ends with it."""
    assert _fed("", _said("For this task, don't touch the tests")) == ""


def test_an_order_given_again_stands() -> None:
    """Case 61: tabs, spaces, tabs."""
    told = _said("Use tabs.", "Actually, use spaces instead of tabs.", "Actually, use tabs instead of spaces.")
    file = _fed(_fed("", told[:2]), told[:4], 2)
    assert _facts(file) == ["Requirement: Actually, use spaces instead of tabs."]
    assert _facts(_fed(file, told, 4)) == ["Requirement: Actually, use tabs instead of spaces."]


def test_an_order_repeated_in_what_stays_in_view_is_fed() -> None:
    """M32: the register keeps the last of two that say the same."""
    told = _said("Never push to main.", "hello", "Again: never push to main.")
    assert _facts(_fed("", told, 0, 4)) == ["Requirement: Again: never push to main."]


def test_a_decision_is_not_struck_by_the_answer_to_its_request() -> None:
    """Only an intent ends with its answer."""
    told = _said("Write it in Rust please")
    model = parse_summary("## Decisions Made\n- Write it in Rust please", cycle=1)
    file = _fed("", told, summary=model)
    assert _facts(file) == ["Decision: Write it in Rust please"]
    assert _facts(_fed(file, told)) == ["Decision: Write it in Rust please"]
