"""The window of mounted items: bounds that hold for any conversation (cases 2, 4, 11)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marextui.tui import windowing
from marextui.tui.items import AssistantItem, TextBuffer, ToolItem, UserItem
from marextui.tui.windowing import Limits, Window

LIMITS = Limits(items=60, nodes=800, page=15)
WEIGHTS = st.lists(st.integers(1, 250), max_size=200)


def nodes(window: Window, weights: list[int]) -> int:
    return sum(weights[window.lo : window.hi])


def in_bounds(window: Window, weights: list[int]) -> bool:
    return len(window) <= LIMITS.items and (nodes(window, weights) <= LIMITS.nodes or len(window) == 1)


@given(WEIGHTS)
def test_the_tail_ends_at_the_end_and_keeps_the_bounds(weights: list[int]) -> None:
    window = windowing.tail(0, len(weights), weights.__getitem__, LIMITS)
    assert window.hi == len(weights)
    assert in_bounds(window, weights)
    assert bool(len(window)) == bool(weights)


@given(WEIGHTS, st.lists(st.sampled_from(["up", "down", "follow", "around"]), max_size=30), st.data())
def test_no_walk_leaves_the_bounds(weights: list[int], walk: list[str], data: st.DataObject) -> None:
    end = len(weights)
    weigh = weights.__getitem__
    window = windowing.tail(0, end, weigh, LIMITS)
    for step in walk:
        if step == "up":
            moved = windowing.up(window, 0, weigh, LIMITS)
            assert moved.lo == max(0, window.lo - LIMITS.page)
            window = moved
        elif step == "down":
            moved = windowing.down(window, end, weigh, LIMITS)
            assert moved.hi == min(end, window.hi + LIMITS.page)
            window = moved
        elif step == "follow":
            window = windowing.follow(window, 0, end, weigh, LIMITS)
            assert window.hi == end
        elif weights:
            position = data.draw(st.integers(0, end - 1))
            window = windowing.around(position, 0, end, weigh, LIMITS)
            assert position in window
        assert 0 <= window.lo <= window.hi <= end
        assert in_bounds(window, weights)


def test_following_trims_rarely_not_with_each_item() -> None:
    window, trims = Window(), 0
    for end in range(1, 401):
        moved = windowing.follow(window, 0, end, lambda _: 1, LIMITS)
        trims += moved.lo != window.lo
        window = moved
    assert trims <= 12


def test_positions_may_be_negative() -> None:
    window = windowing.up(Window(0, 5), -40, lambda _: 1, LIMITS)
    assert window == Window(-15, 5)


def answer(text: str) -> AssistantItem:
    return AssistantItem(key="a", text=TextBuffer(text))


def test_an_answer_weighs_its_widgets_and_its_length() -> None:
    assert windowing.node_weight(ToolItem(key="t")) == 1
    assert windowing.node_weight(answer("- a\n" * 10)) == 4
    assert windowing.node_weight(answer("x" * 10_000)) == 44


def test_what_is_long_is_shown_shortened() -> None:
    assert windowing.is_long(answer("x" * 70_000))
    assert not windowing.is_long(answer("short"))
    assert windowing.is_long(UserItem(key="u", text="line\n" * 100))
