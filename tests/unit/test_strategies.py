"""Anchored and regenerative summaries behind one protocol (P4, P5, P10)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.fusion import fuse
from marextui.context.messages import Message
from marextui.context.strategies import strategy_named
from marextui.context.strategy_names import STRATEGY_NAMES
from marextui.context.summary_request import summary_messages


def summary(cycle: int, **sections: str) -> Summary:
    titles = {"intent": "Session Intent", "files": "Files Modified", "state": "Current State"}
    return Summary(
        tuple(
            SummarySection(title, (SummaryItem(sections[key], "", cycle, cycle),) if key in sections else ())
            for key, title in titles.items()
        )
    )


FIRST = summary(1, intent="add a login", state="tests fail")
SECOND = summary(2, intent="add a logout", state="tests pass")


def texts(told: Summary) -> list[str]:
    return [i.text for s in told.sections for i in s.items if i.status == "active"]


def test_anchored_merges_the_span_into_what_stands() -> None:
    """P5, P10: the earlier item stands with its own tag; nothing is left out."""
    merged = strategy_named("anchored").merge(FIRST, SECOND, cycle=2)
    assert merged.summary == fuse(FIRST, SECOND, cycle=2)
    assert merged.left_out == Summary(())
    assert texts(merged.summary) == ["add a login", "add a logout", "tests pass"]


def test_regenerative_takes_the_answer_and_hands_back_what_it_does_not_repeat() -> None:
    """P4: what the new summary drops is named, so that it can be stored."""
    merged = strategy_named("regenerative").merge(FIRST, SECOND, cycle=2)
    assert merged.summary == SECOND
    assert texts(merged.left_out) == ["add a login", "tests fail"]
    again = strategy_named("regenerative").merge(FIRST, FIRST, cycle=2)
    assert again.left_out == Summary(())


@pytest.mark.parametrize("name", STRATEGY_NAMES)
def test_a_first_summary_is_taken_as_it_is(name: str) -> None:
    """P8."""
    strategy = strategy_named(name)  # type: ignore[arg-type]
    assert strategy.name == name
    assert strategy.merge(None, FIRST, cycle=1).summary == FIRST
    assert strategy.without_model(None, FIRST, cycle=1) == FIRST


def test_without_a_model_regenerative_still_tells_of_what_came_before() -> None:
    """P4: the earlier summary is part of what is summarised; its history is not carried on."""
    told = strategy_named("regenerative").without_model(FIRST, SECOND, cycle=2)
    assert texts(told) == ["add a login", "add a logout", "tests pass"]
    assert all(i.status == "active" for s in told.sections for i in s.items)
    assert strategy_named("anchored").without_model(FIRST, SECOND, cycle=2) == SECOND


def test_the_model_is_told_whether_its_notes_replace_the_earlier_ones() -> None:
    """P4, P5, P9: the earlier summary is in the request both times, as data."""
    span = [Message("m1", "user", "Please add a logout button to the page.", turn=1)]
    asked = {
        rewrite: summary_messages(span, earlier=FIRST, window=8192, cap=700, rewrite=rewrite)[1]["content"]
        for rewrite in (True, False)
    }
    for text in asked.values():
        assert "- add a login (cycle 1)" in text
    assert "Yours replace them" in asked[True]
    assert "do not repeat them" in asked[False]
