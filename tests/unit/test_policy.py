"""When a compaction runs by itself (M15–M20, L26, L27, I4, cases 1, 9, 13, 99)."""

from __future__ import annotations

from itertools import product

import pytest

from marextui.context.policy import (
    MAX_FAILURES,
    MAX_PER_TURN,
    Attempts,
    Outcome,
    after_attempt,
    after_undo,
    already_tried,
    why_no_compaction,
    without_refusal,
)


@pytest.mark.parametrize(("auto", "enough", "known"), list(product([True, False], repeat=3)))
def test_all_three_conditions_must_hold(auto: bool, enough: bool, known: bool) -> None:
    """M20: a truth table of 8 rows, only all-true triggers."""
    window, budget = (32_768, 27_472) if known else (None, None)
    why = why_no_compaction(auto=auto, messages=6 if enough else 5, window=window, budget=budget)
    assert (why == "") is (auto and enough and known)


def test_the_first_failing_condition_is_the_one_told() -> None:
    """M18, M19, M20 in that order (case 99: the status says why)."""
    assert "off" in why_no_compaction(auto=False, messages=1, window=None)
    assert "Only 1 of the 6" in why_no_compaction(auto=True, messages=1, window=None)
    assert "unknown" in why_no_compaction(auto=True, messages=6, window=None)
    assert "does not fit" in why_no_compaction(auto=True, messages=6, window=4096, budget=0)
    assert why_no_compaction(auto=True, messages=6, window=4096, budget=100, tried="later") == "later"
    assert why_no_compaction(auto=True, messages=6, window=4096, budget=100) == ""


def tried(
    attempts: Attempts, *, messages: int = 20, used: int = 18_000, turn: int = 3, window: int | None = 32_768
) -> str:
    return already_tried(attempts, messages=messages, used=used, turn=turn, window=window)


def attempt(*outcomes: Outcome, messages: int = 20, used: int = 18_000, turn: int = 3) -> Attempts:
    attempts = Attempts()
    for outcome in outcomes:
        attempts = after_attempt(attempts, outcome, messages=messages, used=used, turn=turn)
    return attempts


def test_the_first_try_is_free() -> None:
    assert tried(Attempts()) == ""


@pytest.mark.parametrize("outcome", ["done", "failed", "refused"])
def test_never_twice_on_the_same_content(outcome: Outcome) -> None:
    """I4, case 1: 35 compactions in a row."""
    assert "Nothing new" in tried(attempt(outcome), turn=4)


def test_an_undo_is_not_compacted_away_at_once() -> None:
    """H is back above the threshold, but no one said anything new."""
    assert "Nothing new" in tried(attempt("done", used=5000), used=18_000, turn=4)


def test_after_a_success_new_content_allows_another() -> None:
    assert tried(attempt("done"), messages=21) == ""


def test_a_failure_is_tried_again_in_the_next_turn_only() -> None:
    """M17."""
    assert "next turn" in tried(attempt("failed"), messages=21, turn=3)
    assert tried(attempt("failed"), messages=21, turn=4) == ""


def test_three_failures_in_a_row_stop_until_one_succeeds() -> None:
    """Case 13: the breaker; a person can always compact, and a success resets it."""
    failures: list[Outcome] = ["failed"] * MAX_FAILURES
    broken = attempt(*failures)
    assert "/compact" in tried(broken, messages=99, turn=9)
    assert tried(attempt(*failures[1:]), messages=99, turn=9) == ""
    healed = after_attempt(broken, "done", messages=99, used=5000, turn=9)
    assert healed.failures == 0
    assert tried(healed, messages=120, turn=10) == ""


@pytest.mark.parametrize(("used", "waits"), [(50_000, True), (52_000, True), (54_999, True), (55_000, False)])
def test_a_refusal_waits_for_ten_percent(used: int, waits: bool) -> None:
    """L26: refused at 50 000, skipped at 52 000, tried again at 55 000."""
    refused = attempt("refused", used=50_000)
    assert bool(tried(refused, messages=30, used=used, turn=4, window=131_072)) is waits


@pytest.mark.parametrize(("system", "waits"), [(2_000, True), (3_000, False)])
def test_the_system_part_counts_towards_a_full_window(system: int, waits: bool) -> None:
    """L27: 90 % of the window is of everything that is sent."""
    told = already_tried(
        attempt("refused", used=55_000), messages=99, used=56_000, turn=9, window=65_536, system=system
    )
    assert bool(told) == waits


@pytest.mark.parametrize("outcome", ["done", "failed", "refused"])
def test_another_model_or_window_forgets_refusals_only(outcome: Outcome) -> None:
    """L27: failures and successes of before still count (cases 1, 13)."""
    before = attempt("failed", outcome, used=55_000)
    after = without_refusal(before)
    assert after.failures == before.failures
    if outcome == "refused":
        assert tried(after, messages=before.messages, used=56_000, turn=9) == ""
    else:
        assert after == before


@pytest.mark.parametrize(("used", "waits"), [(56_000, True), (59_000, False), (30_000, False)])
def test_a_refusal_is_not_held_when_critical_nor_after_a_drop(used: int, waits: bool) -> None:
    """L27 (W 65 536): not held at 90 % of the window, forgotten when the context dropped."""
    refused = attempt("refused", used=55_000)
    assert bool(tried(refused, messages=30, used=used, turn=4, window=65_536)) is waits


def test_a_turn_that_fills_up_again_and_again_is_left_alone() -> None:
    """Case 9: what a compaction frees is read again at once."""
    often = Attempts()
    for n in range(MAX_PER_TURN):
        assert tried(often, messages=20 + n) == ""
        often = after_attempt(often, "done", messages=20 + n, used=9000, turn=3)
    assert "already" in tried(often, messages=40)
    assert tried(often, messages=40, turn=4) == ""


def test_successes_are_counted_per_turn() -> None:
    later = after_attempt(attempt("done", "done"), "done", messages=50, used=9000, turn=4)
    assert (later.in_turn, later.turn) == (1, 4)


def test_after_an_undo_nothing_is_compacted_until_something_new_is_said() -> None:
    """I4: even a view far over the threshold is left alone; the failures of before still count."""
    undone = after_undo(attempt("failed", "failed", turn=2), messages=30, used=30_000, turn=3)
    assert tried(undone, messages=30, used=30_000) == "Nothing new was said since the last compaction attempt."
    assert tried(undone, messages=31, used=30_500) == ""
    assert undone.failures == 2


def test_an_undo_does_not_reset_how_often_a_turn_was_compacted() -> None:
    """Case 9."""
    undone = after_undo(attempt(*["done"] * MAX_PER_TURN), messages=30, used=30_000, turn=3)
    assert f"compacted {MAX_PER_TURN} times" in tried(undone, messages=31)
    assert tried(undone, messages=31, turn=4) == tried(after_undo(Attempts(), messages=1, used=1, turn=1), messages=31)
