"""When a compaction begins and where it then cuts (P12–P15, M21; cases 10, 14, 110)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.budget import past, window_threshold
from marextui.context.cut import cut_candidates, turn_starts
from marextui.context.entries import CompactionCommitted, MessageAdded, Summary
from marextui.context.fold import fold
from marextui.context.messages import Message, ToolCall
from marextui.context.trigger_names import CHOSEN_TRIGGERS
from marextui.context.triggers import (
    BY_HAND,
    OVERFLOW,
    PHASE,
    TASK_BOUNDARY,
    THRESHOLD,
    CutFacts,
    Moment,
    SlidingWindow,
    Trigger,
    chosen_trigger,
    moment_of,
)
from tests.unit.test_cut import history

EVERY: tuple[Trigger, ...] = (THRESHOLD, OVERFLOW, SlidingWindow(), TASK_BOUNDARY, PHASE, BY_HAND)
NOW = Moment(used=4000, budget=10_000, over_threshold=False, turns=5, mark="65% of the budget")


def facts(turns: int, size: int = 1000, *, target: float = 100_000, summary: int = 500) -> CutFacts:
    """`turns` turns of a question and an answer, `size` tokens each turn."""
    messages = history(" ".join(["u", "a"] * turns))
    counts = [size // 2] * len(messages)
    return CutFacts(messages, counts, least=summary, most=summary, target=target, used=size * turns)


def test_the_default_is_the_threshold_and_all_have_names() -> None:
    """P15: every trigger a person can choose is guarded by the threshold, which is one by itself."""
    assert chosen_trigger("threshold") is THRESHOLD
    assert [chosen_trigger(n).name for n in CHOSEN_TRIGGERS] == list(CHOSEN_TRIGGERS)
    for name in CHOSEN_TRIGGERS:
        assert any(NOW.mark in clause for clause in chosen_trigger(name).explain(NOW))


@pytest.mark.parametrize(("percent", "yes"), [(7500, False), (7501, True)])
def test_a_share_of_the_window_is_passed_strictly(percent: int, yes: bool) -> None:
    """P12: context tokens / limit > 0.75, the system part counted: 0.75 no, 0.7501 yes."""
    assert past(percent - 900, 900, 10_000, 0.75) is yes
    assert window_threshold(10_000, 900, 0.75) == 6600
    assert window_threshold(10_000, 9000, 0.75) == 0


def test_a_sliding_window_slides_several_turns_at_once() -> None:
    """P13, case 110: not at the seventh turn, nor the eighth; then the newest six stay."""
    sliding = SlidingWindow(keep=6, slide_by=3)
    assert next(n for n in range(1, 12) if sliding.due(replace(NOW, turns=n))) == 9
    found = sliding.cut(facts(9))
    assert found is not None
    assert len(turn_starts(facts(9).messages[found.index :])) == 6
    assert SlidingWindow(keep=6, slide_by=1).due(replace(NOW, turns=7))


def test_sliding_must_gain_something() -> None:
    """Case 10, M10: where the summary would be as long as the turns that leave, nothing slides."""
    assert SlidingWindow().cut(facts(9, size=100)) is None
    assert SlidingWindow().cut(facts(6)) is None
    assert SlidingWindow().cut(replace(facts(9), target=None)) is None
    tight = replace(facts(9), target=7_000)  # 0.8 of it is less than six turns and a summary take (I3)
    assert SlidingWindow().cut(tight) is None


def test_what_stands_beside_the_summary_gives_way_first() -> None:
    sliding = SlidingWindow()
    roomy = sliding.cut(replace(facts(9), most=1500))
    assert roomy is not None
    assert roomy.projected == 6 * 1000 + 1500
    scarce = sliding.cut(replace(facts(9), most=4000))
    assert scarce is not None
    assert scarce.projected == 6 * 1000 + 500


@pytest.mark.parametrize(("share", "yes"), [(10, False), (25, False), (26, True), (40, True)])
def test_a_task_boundary_is_worth_it_above_a_quarter_of_the_budget(share: int, yes: bool) -> None:
    """P14: at 40 % yes, at 10 % no."""
    moment = Moment(used=share * 100, budget=10_000, over_threshold=False, task_ended=True)
    assert TASK_BOUNDARY.due(moment) is yes
    assert not TASK_BOUNDARY.due(replace(moment, task_ended=False))
    assert not TASK_BOUNDARY.worthwhile(replace(moment, budget=None))
    assert not TASK_BOUNDARY.worthwhile(replace(moment, budget=-5))


def test_a_task_boundary_keeps_the_last_turn_alone() -> None:
    """P14, M9: what the task was made of goes into the summary."""
    found = TASK_BOUNDARY.cut(facts(9))
    assert found is not None
    assert found.index == len(facts(9).messages) - 2


def test_only_what_a_turn_begins_may_go_on_with_its_request() -> None:
    """L28: not by hand, and not after a refusal."""
    assert {t.name: t.goes_on for t in EVERY if not t.by_hand} == {
        "threshold": True,
        "overflow": False,
        "sliding": True,
        "task": True,
    }
    assert [t.goes_on for t in EVERY if t.by_hand] == [False, False]


@given(
    shape=st.lists(st.sampled_from(["u a", "u A1 t1 a", "u A1,2 t1 t2 a", "u u a", "u A1", "s a", "r a"]), max_size=12),
    size=st.integers(1, 3000),
    keep=st.integers(1, 8),
    target=st.none() | st.integers(100, 200_000),
)
def test_every_trigger_obeys_the_same_cut_rules(shape: list[str], size: int, keep: int, target: int | None) -> None:
    """M7, M8, I3: a cut is a candidate, gains something, ends below the threshold; sliding keeps its turns."""
    messages = history(" ".join(shape))
    used = size * len(messages)
    given_facts = CutFacts(messages, [size] * len(messages), 300, 600, target, used)
    for trigger in (*EVERY, SlidingWindow(keep)):
        found = trigger.cut(given_facts)
        if found is None:
            continue
        assert found.index in cut_candidates(messages)
        assert found.kept_tokens < used
        if not trigger.by_hand or trigger is PHASE:
            assert target is not None
            assert found.projected < min(target, used)
            assert found.projected <= 0.8 * target
        if trigger.name == "sliding":
            assert len(turn_starts(messages[found.index :])) >= trigger.keep  # type: ignore[attr-defined]


def todo(status: str) -> Message:
    call = ToolCall("c1", "TodoWrite", f'{{"todos": [{{"content": "a", "status": "{status}"}}]}}')
    return Message(f"a-{status}", "assistant", "", (call,), origin="model", turn=1)


@pytest.mark.parametrize(("status", "ended"), [("completed", True), ("in_progress", False)])
def test_a_task_has_ended_with_the_list_the_last_turn_finished(status: str, ended: bool) -> None:
    """P14: a finished to-do list is a boundary, once: at the start of the turn that follows."""
    done = Message("r1", "tool", "ok", tool_call_id="c1", origin="tool", turn=1)
    first = [Message("u1", "user", "do a", turn=1), todo(status), done, Message("e1", "assistant", "ok", turn=1)]
    second = Message("u2", "user", "now b", turn=2)
    third = Message("u3", "user", "and c", turn=3)

    def at(*messages: Message) -> Moment:
        told = fold(map(MessageAdded, messages))
        return moment_of(told, used=1, budget=2, over_threshold=False, mark="")

    assert at(*first).task_ended is False
    assert at(*first, second).task_ended is ended
    assert at(*first, second, third).task_ended is False
    assert at(*first, second).turns == 2


def test_a_turn_that_was_cut_in_two_still_counts_as_one_in_view() -> None:
    """B13: its request is repeated ahead of the tail."""
    messages = [
        Message("u1", "user", "do a", turn=1),
        Message("a1", "assistant", "", (ToolCall("c1", "Read", "{}"),), origin="model", turn=1),
        Message("r1", "tool", "ok", tool_call_id="c1", origin="tool", turn=1),
        Message("a2", "assistant", "", (ToolCall("c2", "Read", "{}"),), origin="model", turn=1),
        Message("r2", "tool", "ok", tool_call_id="c2", origin="tool", turn=1),
        Message("u2", "user", "and b", turn=2),
    ]
    cut = CompactionCommitted(1, "threshold", "a2", Summary(()), "model", 6, 4, 9, 5, 0.0)
    conversation = fold([*map(MessageAdded, messages), cut])
    assert moment_of(conversation, used=1, budget=2, over_threshold=False, mark="").turns == 2


def test_the_explanations_name_the_figures() -> None:
    assert THRESHOLD.explain(NOW) == ("at 65% of the budget (now 40% of the budget)",)
    sliding = SlidingWindow(4, 2).explain(NOW)
    assert sliding[0] == "from 6 turns in view on (now 5), when that makes room; 4 stay"
    assert TASK_BOUNDARY.explain(NOW)[1] == "when over 25% of the budget (now 40%)"
    assert "unknown" in THRESHOLD.explain(replace(NOW, budget=None))[0]
