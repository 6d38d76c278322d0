"""Whose prompt the slot holds: stamp, departures, changes of model and window (L16–L18)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.slot_ledger import KIND_WORDS, Departure, RequestKind, SlotLedger

KINDS: tuple[RequestKind, ...] = get_args(RequestKind)


def leave(ledger: SlotLedger, kind: RequestKind = "main", conversation: str = "c") -> tuple[SlotLedger, Departure]:
    ledger = ledger.departed(kind, conversation)
    assert ledger.last is not None
    return ledger, ledger.last


def stamped() -> SlotLedger:
    ledger, step = leave(SlotLedger("m", 8192))
    return ledger.accepted(step).ended(step)


def test_an_accepted_step_sets_the_stamp() -> None:
    """L16: with sequence number, conversation, model and window."""
    stamp = stamped().stamp
    assert stamp is not None
    assert (stamp.sequence, stamp.conversation, stamp.model, stamp.window) == (1, "c", "m", 8192)
    assert stamped().held_by("c")
    assert stamped().why_not("c") == ""


def test_nothing_is_held_before_acceptance_nor_after_a_refusal() -> None:
    """L16: only HTTP 200 counts."""
    ledger, step = leave(SlotLedger("m", 8192))
    assert not ledger.held_by("c")
    assert not ledger.ended(step).held_by("c")


def test_no_stamp_when_another_request_left_before_acceptance() -> None:
    """L16: begin A, begin B, accept A → not held."""
    ledger, a = leave(SlotLedger("m", 8192), conversation="a")
    ledger, _ = leave(ledger, "verify")
    ledger = ledger.accepted(a)
    assert not ledger.held_by("a")
    assert "before the step was accepted" in ledger.why_not("a")


@pytest.mark.parametrize("kind", KINDS)
def test_any_departure_takes_the_stamp_away(kind: RequestKind) -> None:
    """L17: verification, sub-agent, task, prewarm, summary, bench, another client, another turn."""
    ledger, _ = leave(stamped(), kind, "other")
    assert not ledger.held_by("c")
    assert ledger.why_not("c") == f"{KIND_WORDS[kind]} was sent since"


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "main"])
def test_only_a_step_of_a_turn_sets_the_stamp(kind: RequestKind) -> None:
    """L16."""
    ledger, other = leave(SlotLedger("m", 8192), kind)
    assert ledger.accepted(other).stamp is None


def test_another_conversation_replaces_the_stamp() -> None:
    """L17."""
    ledger, step = leave(stamped(), conversation="d")
    ledger = ledger.accepted(step)
    assert ledger.held_by("d")
    assert not ledger.held_by("c")
    assert ledger.why_not("c") == "another conversation was asked since"


@pytest.mark.parametrize(
    ("model", "window", "why"), [("n", 8192, "model"), ("m", 4096, "window"), ("m", None, "window")]
)
def test_a_change_of_model_or_window_loses_the_stamp(model: str, window: int | None, why: str) -> None:
    """L18; the same values again change nothing."""
    assert stamped().settled("m", 8192).held_by("c")
    ledger = stamped().settled(model, window)
    assert not ledger.held_by("c")
    assert f"the {why} changed" in ledger.why_not("c")


def test_a_change_while_a_step_is_on_its_way_leaves_no_stamp() -> None:
    """L18."""
    ledger, step = leave(SlotLedger("m", 8192))
    assert not ledger.settled("m", 4096).accepted(step).held_by("c")


def test_a_server_that_lost_its_cache_holds_nothing() -> None:
    """L18: restart, sleep."""
    ledger = stamped().forgotten("the server went to sleep")
    assert ledger.why_not("c") == "the server went to sleep"


@given(
    st.lists(
        st.tuples(st.sampled_from(["leave", "accept", "end", "settle"]), st.sampled_from(KINDS), st.integers(0, 3))
    )
)
def test_the_stamp_is_always_that_of_the_last_departure(steps: list[tuple[str, RequestKind, int]]) -> None:
    """L16, L17, as a property: whatever happens, a stamp names the newest departure, and that one was a step."""
    ledger = SlotLedger("m", 8192)
    left: list[Departure] = []
    for what, kind, n in steps:
        if what == "leave":
            ledger, departure = leave(ledger, kind)
            left.append(departure)
        elif what == "settle":
            ledger = ledger.settled("m", 8192 + n)
        elif left:
            chosen = left[n % len(left)]
            ledger = ledger.accepted(chosen) if what == "accept" else ledger.ended(chosen)
        if ledger.stamp is not None:
            assert ledger.stamp.sequence == ledger.departures
            assert left[ledger.departures - 1].kind == "main"
            assert (ledger.stamp.model, ledger.stamp.window) == (ledger.model, ledger.window)
        assert {d.sequence for d in ledger.in_flight} <= {d.sequence for d in left}
