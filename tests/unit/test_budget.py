"""Window, reserve, budget and threshold (M1–M6, B4, I15, cases 5, 6, 7, 15, 98)."""

from __future__ import annotations

import pytest

from marextui.context.budget import (
    UNKNOWN_WINDOW,
    Window,
    budget_for,
    check_compact_at,
    check_window,
    late_trigger_warning,
    reached,
    reserve_for,
    settle_window,
    summary_cap,
    threshold_for,
    trigger_share,
)


@pytest.mark.parametrize(
    ("window", "reserve", "system", "budget"),
    [
        (32_768, 4096, 1200, 27_472),
        (8192, 1024, 500, 6668),
        (4096, 1024, 3072, 0),
        (4096, 1024, 4000, -928),
        (None, 4096, 1200, None),
    ],
)
def test_budget_is_window_less_reserve_less_system(
    window: int | None, reserve: int, system: int, budget: int | None
) -> None:
    """M1."""
    assert budget_for(window, reserve, system) == budget


def test_a_grown_system_part_lowers_the_budget_by_as_much() -> None:
    """M1."""
    before, after = budget_for(32_768, 4096, 1200), budget_for(32_768, 4096, 1600)
    assert before is not None
    assert after == before - 400


@pytest.mark.parametrize(
    ("window", "max_output", "reserve"),
    [
        (32_768, None, 4096),
        (32_768, 0, 4096),
        (32_768, -1, 4096),
        (32_768, 1024, 1024),
        (400_000, 128_000, 4096),
        (1_048_576, 1_048_576, 4096),
        (16_384, 0, 4096),
        (8192, None, 2048),
        (4096, 4096, 1024),
        (3, None, 0),
    ],
)
def test_reserve(window: int, max_output: int | None, reserve: int) -> None:
    """M1; cases 5 (unset limit), 15 (a large output limit is not the window), 33."""
    assert reserve_for(window, max_output) == reserve


@pytest.mark.parametrize("window", [4096, 8192, 16_384, 32_768, 131_072, 262_144, 1_048_576, 2_097_152])
@pytest.mark.parametrize("max_output", [None, 0, 256, 4096, 32_768, 2_000_000])
def test_at_least_half_the_window_is_usable(window: int, max_output: int | None) -> None:
    """I15, case 6."""
    usable = budget_for(window, reserve_for(window, max_output), 0)
    assert usable is not None
    assert usable >= window / 2


@pytest.mark.parametrize(
    ("budget", "compact_at", "threshold"),
    [
        (27_472, 0.65, 17_856.8),
        (27_472, 0.5, 13_736.0),
        (27_472, 0.9, 24_724.8),
        (0, 0.65, None),
        (-928, 0.65, None),
        (None, 0.65, None),
    ],
)
def test_threshold(budget: int | None, compact_at: float, threshold: float | None) -> None:
    """M5, M6; no threshold without a budget (M1, M4) and never a negative one (case 7)."""
    assert threshold_for(budget, compact_at) == threshold


@pytest.mark.parametrize(
    ("used", "budget", "compact_at", "is_reached"),
    [
        (17_856, 27_472, 0.65, False),
        (17_857, 27_472, 0.65, True),
        (65, 100, 0.65, True),
        (64, 100, 0.65, False),
        (7, 10, 0.7, True),
        (29, 100, 0.29, True),  # 0.29 * 100 is 28.999999999999996 in binary
        (57, 100, 0.57, True),  # 0.57 * 100 is 56.99999999999999
        (7, 100, 0.07, True),  # 0.07 * 100 is 7.000000000000001: binary noise would say no
        (10**9, 0, 0.65, False),
        (10**9, -5, 0.65, False),
        (10**9, None, 0.65, False),
    ],
)
def test_reached_is_exact_and_inclusive(used: int, budget: int | None, compact_at: float, is_reached: bool) -> None:
    """M5: "reaches" is at or above, decided on the decimal a person wrote."""
    assert reached(used, budget, compact_at) is is_reached


@pytest.mark.parametrize(("value", "number"), [(0.65, 0.65), ("0.5", 0.5), (0.99, 0.99), (0.001, 0.001)])
def test_compact_at_is_used_as_it_is(value: object, number: float) -> None:
    """M6: no clamping, rounding or correction."""
    assert check_compact_at(value) == number


@pytest.mark.parametrize("value", [0, 1, 65, "65", 1.5, -0.1, True, None, "much", float("nan"), float("inf"), [0.65]])
def test_a_wrong_compact_at_is_refused_with_its_key(value: object) -> None:
    """M6: a percentage is refused, not reinterpreted."""
    with pytest.raises(ValueError, match="compact_at") as caught:
        check_compact_at(value)
    assert "compactAt" in str(caught.value)


def test_a_percentage_is_told_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"write 0\.65 for 65 %"):
        check_compact_at(65)


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", "", True, None, float("nan")])
def test_a_wrong_window_is_refused_with_its_key(value: object) -> None:
    """M3."""
    with pytest.raises(ValueError, match="window"):
        check_window(value)


def test_a_window_may_come_as_text() -> None:
    assert check_window("16000") == check_window(16_000) == 16_000


def test_window_precedence() -> None:
    """M3: override, discovery, known default, unknown."""
    assert settle_window(16_000, None, 32_768, 8192) == Window(16_000, "override")
    assert settle_window(None, None, 32_768, 8192) == Window(32_768, "discovery")
    assert settle_window(None, None, None, 8192) == Window(8192, "known default")
    assert settle_window() == UNKNOWN_WINDOW
    assert settle_window(32_000, None, None, 1_000_000) == Window(32_000, "override")


def test_a_learned_window_beats_what_claims_more() -> None:
    """Case 98: the server's own refusal is a fact; a smaller override still holds."""
    assert settle_window(32_000, 8192, 32_768, None) == Window(8192, "learned")
    assert settle_window(4000, 8192, 32_768, None) == Window(4000, "override")
    assert settle_window(8192, 8192, None, None) == Window(8192, "override")
    assert settle_window(None, 8192, 131_072, 131_072) == Window(8192, "learned")


@pytest.mark.parametrize("nothing", [0, -5, None])
def test_figures_that_are_not_above_zero_do_not_answer(nothing: int | None) -> None:
    assert settle_window(nothing, nothing, 32_768, None) == Window(32_768, "discovery")
    assert settle_window(nothing, nothing, nothing, nothing) == UNKNOWN_WINDOW


@pytest.mark.parametrize(
    ("window", "cap"),
    [
        (None, 1200),
        (200_000, 1200),
        (30_000, 1200),
        (29_999, 1199),
        (20_000, 800),
        (17_500, 700),
        (8192, 700),
        (2048, 700),
    ],
)
def test_summary_cap(window: int | None, cap: int) -> None:
    """M12, B4."""
    assert summary_cap(window) == cap


def test_a_trigger_above_80_percent_of_the_window_is_warned_about() -> None:
    """M6, P3: 0.9 triggers at 79 % of this window, 0.95 above 80 %."""
    assert trigger_share(32_768, 4096, 1200, 0.65) == pytest.approx(0.58, abs=0.005)
    assert late_trigger_warning(32_768, 4096, 1200, 0.9) == ""
    assert "83%" in late_trigger_warning(32_768, 4096, 1200, 0.95)
