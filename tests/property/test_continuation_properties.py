"""Properties of continuations over random histories (L7, L8, L15, L25)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.continuation import MISALIGNED, demand, realign, without_trailing_users
from marextui.context.cut import choose_cut
from marextui.context.messages import Message, to_wire
from tests.property.histories import any_messages

SYSTEM = {"role": "system", "content": "s"}


def histories() -> st.SearchStrategy[tuple[Message, ...]]:
    """Messages behind the system part, in any order."""
    return any_messages().map(lambda messages: tuple(m for m in messages if m.role != "system"))


@given(histories(), st.data())
def test_every_boundary_of_a_view_comes_back_whatever_system_messages_are_put_in(
    history: tuple[Message, ...], data: st.DataObject
) -> None:
    """L7."""
    model = [to_wire(m) for m in history]
    sent = list(model)
    for at in sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=3)), reverse=True):
        sent.insert(at, SYSTEM)
    boundary = data.draw(st.integers(0, len(history)))
    at = realign(sent, model, boundary)
    assert [m for m in sent[at:] if m is not SYSTEM] == model[boundary:]


@given(histories(), st.data())
def test_an_altered_role_is_never_taken_for_the_view(history: tuple[Message, ...], data: st.DataObject) -> None:
    """L7."""
    if not history:
        return
    i = data.draw(st.integers(0, len(history) - 1))
    other = "user" if history[i].role != "user" else "assistant"
    altered = (*history[:i], replace(history[i], role=other), *history[i + 1 :])
    assert realign([to_wire(m) for m in history], [to_wire(m) for m in altered], 0) == MISALIGNED


@given(histories())
def test_what_is_gone_on_from_never_ends_on_a_user(history: tuple[Message, ...]) -> None:
    """L15."""
    sent = (SYSTEM, *(to_wire(m) for m in history))
    kept = without_trailing_users(sent)
    assert kept == sent[: len(kept)]
    assert kept[-1]["role"] != "user"
    assert all(m["role"] == "user" for m in sent[len(kept) :])


@given(histories(), st.data())
def test_a_demand_can_be_made_for_every_boundary(history: tuple[Message, ...], data: st.DataObject) -> None:
    """L8: whatever stands there (images, parallel calls, no text), and always with the number kept."""
    sent = (SYSTEM, *(to_wire(m) for m in history))
    at = data.draw(st.integers(1, len(sent)))
    text = demand(sent, at, earlier=data.draw(st.booleans()))
    kept = len(sent) - at
    assert (f"({kept} from the end)" in text) == (kept > 0)
    assert len(text) < 4500


@given(
    histories(),
    st.integers(20, 4000),
    st.integers(0, 3000),
    st.floats(100, 20_000, allow_nan=False),
    st.booleans(),
    st.data(),
)
def test_no_summary_is_asked_for_that_even_when_empty_would_not_free_a_fifth(
    history: tuple[Message, ...], wrapper: int, cap: int, target: float, mid_turn: bool, data: st.DataObject
) -> None:
    """L25: a cut is only chosen when what is kept and an empty summary's wrapper are at most 80 % of what there is.

    Ours is the stricter rule (M10 counts the whole budget of the summary), so the exact bound holds a fortiori.
    """
    counts = data.draw(st.lists(st.integers(1, 3000), min_size=len(history), max_size=len(history)))
    used = sum(counts)
    cut = choose_cut(history, counts, summary_tokens=wrapper + cap, target=target, used=used, mid_turn=mid_turn)
    if cut is not None:
        assert cut.kept_tokens + wrapper <= Fraction(8, 10) * used
