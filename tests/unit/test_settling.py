"""What the whole conversation settles about a summary (cases 51, 61; I12, I13)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.settling import Settlement
from marextui.context.summary import parse_summary, render_summary
from tests.stubs.talk import assistant, bash, talk, user


def settled(summary: Summary, before: list[Message]) -> Summary:
    return Settlement(before).of(summary)


def _summary(text: str) -> Summary:
    return parse_summary(text, cycle=1)


def _items(summary: Summary) -> list[SummaryItem]:
    return [i for s in summary.sections for i in s.items]


def _intents(summary: Summary) -> list[tuple[str, str]]:
    return [(i.text, i.status) for s in summary.sections if s.title == "Session Intent" for i in s.items]


def _said(*texts: str) -> list[Message]:
    return talk(*(part for t in texts for part in (user(t), assistant("ok"))))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Never push to main.", "You may push to main again."),
        ("Turn on verbose mode.", "Turn off verbose mode."),
        ("Use tabs.", "Actually, use spaces instead of tabs."),
        ("Answer in German.", "From now on answer in English."),
        ("Keep the timeout at 30 s", "Keep the timeout at 60 s"),
        ("N'utilise jamais de tabulations.", "Tu peux de nouveau utiliser des tabulations."),
    ],
)
def test_a_lifted_order_is_no_intent_any_more(first: str, second: str) -> None:
    """Case 61: the register knows it is over; what stands as an intent or decision must not deny it."""
    messages = _said(first, "What time is it?", second, "Thanks.")
    for summary in (
        offline_summary(messages, cycle=1),
        _summary(f"## Session Intent\n- {first}\n- {second}\n- tell the time"),
        _summary(f"## Decisions Made\n- {first}"),
    ):
        now = settled(summary, messages)
        shown = render_summary(now)
        assert first.rstrip(".") not in shown.replace(second, "")
        before, after = _items(summary), _items(now)
        assert [i.text for i in after] == [i.text for i in before], "nothing is removed"
        assert [i.status for i in after].count("superseded") == 1
        assert settled(now, messages) == now


def test_an_order_among_other_things_is_shown_as_lifted() -> None:
    request = "Port the parser to the new interface and write the tests for it. Never touch legacy/. Report at the end."
    messages = _said(request, "You may touch legacy/ again.")
    (told, other) = _intents(settled(offline_summary(messages, cycle=1), messages))
    assert told[1] == other[1] == "active"
    assert told[0].endswith("(“Never touch legacy/.” no longer holds since m3)")
    again = settled(settled(offline_summary(messages, cycle=1), messages), messages)
    assert _intents(again)[0] == told


@pytest.mark.parametrize(
    "said",
    [
        ["plan mode on", "plan mode off", "plan mode on"],
        ["Never push to main.", "You may push to main again.", "Never push to main."],
        ["Never touch tests/.", "Never touch docs/."],
    ],
)
def test_an_order_that_stands_is_left_alone(said: list[str]) -> None:
    messages = _said(*said)
    summary = _summary("## Session Intent\n" + "".join(f"- {t}\n" for t in dict.fromkeys((said[0], said[-1]))))
    assert {status for _, status in _intents(settled(summary, messages))} == {"active"}


def test_what_an_order_does_not_concern_is_left_alone() -> None:
    messages = _said("Never push to main.", "You may push to main again.")
    text = (
        "## Session Intent\n- push the fix to main once it is reviewed\n- carry out the migration\n"
        "## Current State\n- Never push to main.\n## Next Steps\n- push to main\n"
    )
    assert settled(_summary(text), messages) == _summary(text)


def _open(messages: list[Message]) -> Summary:
    return offline_summary(messages, cycle=1)


def test_a_request_that_was_answered_later_is_no_next_step() -> None:
    """Case 51: cut in the middle of its turn it was open; its answer lies in the next span."""
    cut = talk(user("build all parts"), bash("make part1"))
    whole = [*cut, *talk(bash("make part2"), assistant("All parts are built."), start=9)]
    steps = _open(cut).sections[-1].items
    assert [i.status for i in steps] == ["active"]
    assert settled(_open(cut), cut) == _open(cut)
    assert [i.status for i in settled(_open(cut), whole).sections[-1].items] == ["done"]


def test_a_span_that_only_answers_says_that_nothing_is_open() -> None:
    span = talk(bash("make part2"), assistant("All parts are built."))
    assert _open(span).sections[-1].settled
    assert not _open(span[:2]).sections[-1].settled


def test_a_models_own_next_step_is_its_own() -> None:
    """Only what code wrote for a request is ended with it: "then ask for a review" may well be left."""
    messages = _said("build all parts")
    own = SummaryItem("Open the request for review", "", 1, 1, ("m1",))
    summary = _summary("## Next Steps\n- x")
    summary = Summary((*summary.sections[:-1], type(summary.sections[-1])("Next Steps", (own,))))
    assert settled(summary, messages) == summary
