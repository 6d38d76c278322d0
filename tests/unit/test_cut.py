"""Where a compaction may cut and where it should (M7–M10, M21, B3, B13, cases 3, 17, 18)."""

from __future__ import annotations

import pytest

from marextui.context.cut import Cut, choose_cut, cut_candidates, manual_cut
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall


def history(shape: str) -> list[Message]:
    """One message per word: u, a, s (summary user), r (repair user); `A1,2` calls 1 and 2; `t1` the result of 1."""
    made: list[Message] = []
    for n, word in enumerate(shape.split()):
        kind, ids = word[0], [i for i in word[1:].split(",") if i]
        if kind == "u":
            made.append(Message(f"m{n}", "user", f"ask {n}"))
        elif kind == "s":
            made.append(Message(f"m{n}", "user", "earlier", origin="summary"))
        elif kind == "r":
            made.append(Message(f"m{n}", "user", "(made up)", origin="repair"))
        elif kind == "a":
            made.append(Message(f"m{n}", "assistant", f"say {n}", origin="model"))
        elif kind == "A":
            calls = tuple(ToolCall(f"c{i}", "Read", "{}") for i in ids)
            made.append(Message(f"m{n}", "assistant", "", calls, origin="model"))
        else:
            made.append(Message(f"m{n}", "tool", "out", tool_call_id=f"c{ids[0]}", origin="tool"))
    return made


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("u a u A1,2 t1 t2 a u a u", [2, 7, 9]),  # M7's own example
        ("u", []),
        ("", []),
        ("u a", []),
        ("u A1 t1 A2 t2 A3 t3", []),  # M10: one user message, a long tool loop
        ("s a u a u", [2, 4]),  # the summary pair is not eligible
        ("u a r a u", [4]),
        ("a u", [1]),
        ("u A1 t1 u a u", [3, 5]),
        ("u A1 u t1 a u", [5]),  # the result came late: never between call and result
        ("u A1,2 t1 u t2 a u", [6]),
        ("u a u A1", [2]),  # M8: an exchange in progress; the cut lies before it
        ("u a u A1,2 t1", [2]),
        ("u a u A1,2 t1 u", [2]),  # interrupted just now: still before the assistant that issued it
        ("u a u A1,2 t1 u a u", [2, 5, 7]),  # the conversation went on without that result
        ("u A1 t1 a u A1 t1 a u A1 t1 a", [4, 8]),  # ids that repeat in every round
    ],
)
def test_candidates(shape: str, expected: list[int]) -> None:
    """M7, M8."""
    assert cut_candidates(history(shape)) == expected


def test_mid_turn_also_before_a_tool_group() -> None:
    """B13: a long tool loop has no user message to cut at."""
    assert cut_candidates(history("u A1 t1 A2,3 t2 t3 A4 t4 a"), mid_turn=True) == [1, 3, 6]
    assert cut_candidates(history("u A1 A2 t2 t1 A3"), mid_turn=True) == [1, 5]


def test_an_image_is_a_user_message_and_a_bare_update_is_not() -> None:
    """M7's edges."""
    image = Message("i", "user", (ImagePart("data:image/png;base64,AAAA"),))
    update = Message("x", "user", '<context_update from="loki">\nnew page\n</context_update>')
    carried = Message("y", "user", (TextPart('<context_update from="loki">n</context_update>'), TextPart("go on")))
    base = history("u a")
    assert cut_candidates([*base, image, *history("a"), update, *history("a"), carried]) == [2, 6]


COUNTS = [1000] * 10
TURNS = history("u a u a u a u a u a")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (20_000, Cut(2, 8000, 8500)),  # half of it is met by the earliest cut that takes enough away
        (10_000, Cut(6, 4000, 4500)),  # half is 5 000: the first two are too small a step
        (9000, Cut(6, 4000, 4500)),
        (8999, Cut(8, 2000, 2500)),
        (4000, Cut(8, 2000, 2500)),  # half is out of reach: the smallest projection below the target
        (2500, None),  # the projection must be below it, not at it
    ],
)
def test_choice_by_target(target: float, expected: Cut | None) -> None:
    """B3, M10."""
    found = choose_cut(TURNS, COUNTS, summary_tokens=500, target=target, used=11_000)
    assert found == expected


def test_less_than_a_fifth_is_not_worth_a_request() -> None:
    """B3: at least 20 % must go, exactly at the bound is enough."""
    shape, counts = history("u a u a"), [1500, 500, 7000, 1000]
    assert choose_cut(shape, counts, summary_tokens=0, target=20_000, used=10_000) == Cut(2, 8000, 8000)
    assert choose_cut(shape, counts, summary_tokens=1, target=20_000, used=10_000) is None


def test_one_turn_larger_than_the_threshold_gives_no_cut() -> None:
    """Case 3, M10: nothing is asked of a model that cannot help."""
    assert choose_cut(history("u A1 t1"), [10, 10, 9000], summary_tokens=700, target=5000, used=9020) is None


def test_the_newest_turn_is_never_cut_away() -> None:
    """Never everything: the last candidate still keeps the last user message."""
    found = choose_cut(TURNS, [10] * 9 + [900], summary_tokens=1, target=980, used=990)
    assert found is None
    found = choose_cut(TURNS, [100] * 9 + [90], summary_tokens=1, target=300, used=990)
    assert found is not None
    assert found.index == 8


def test_mid_turn_cuts_come_after_user_cuts_and_pay_for_the_repeated_request() -> None:
    """B13: the pending request stands again ahead of the tail."""
    loop, counts = history("u A1 t1 A2 t2 A3 t3"), [300, 100, 2000, 100, 2000, 100, 500]
    kwargs = {"summary_tokens": 200, "target": 2500.0, "used": 5100}
    assert choose_cut(loop, counts, **kwargs) is None  # type: ignore[arg-type]
    assert choose_cut(loop, counts, **kwargs, mid_turn=True) == Cut(5, 900, 1100)  # type: ignore[arg-type]
    both = history("u a u A1 t1")
    found = choose_cut(both, [4000, 500, 100, 50, 100], summary_tokens=100, target=3000, used=4750, mid_turn=True)
    assert found == Cut(2, 250, 350)


def test_counts_must_match() -> None:
    with pytest.raises(ValueError, match="10 messages but 1 counts"):
        choose_cut(TURNS, [1], summary_tokens=1, target=1, used=1)


def test_manual_keeps_the_last_fifth_when_the_window_is_unknown() -> None:
    """M21."""
    shape = history("u a u a u a u a u u")
    assert manual_cut(shape, COUNTS, summary_tokens=1200, target=None, used=10_000) == Cut(8, 2000, 3200)
    assert manual_cut(shape, [*COUNTS[1:], 1001], summary_tokens=1200, target=None, used=10_001) == Cut(9, 1001, 2201)


def test_manual_keeps_at_least_the_newest_turn() -> None:
    """M21: when that turn alone is more than a fifth."""
    found = manual_cut(TURNS, [100] * 8 + [5000, 5000], summary_tokens=1200, target=None, used=10_800)
    assert found == Cut(8, 10_000, 11_200)


def test_manual_works_far_below_the_threshold() -> None:
    """M21: H at 10 % of the budget, one request and a shorter history."""
    found = manual_cut(TURNS, [270] * 10, summary_tokens=1200, target=17_856.8, used=2700)
    assert found is not None
    assert found.projected < 2700


def test_manual_takes_the_deepest_cut_when_the_cap_alone_would_not_pay() -> None:
    """M21: the summary of little is short; whether it became smaller is checked afterwards (I3)."""
    assert manual_cut(TURNS, [60] * 10, summary_tokens=1200, target=17_856.8, used=600) == Cut(8, 120, 1320)


@pytest.mark.parametrize("target", [None, 17_856.8])
@pytest.mark.parametrize("shape", ["u", "u a", "u a u", ""])
def test_nothing_to_compact(shape: str, target: float | None) -> None:
    """M21: no request for next to nothing."""
    messages = history(shape)
    assert manual_cut(messages, [20] * len(messages), summary_tokens=700, target=target, used=60) is None
