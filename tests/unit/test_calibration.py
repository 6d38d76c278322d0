"""The factor of a model, learned from reports; silent truncation (cases 91, 93; M39, B17)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.calibration import MAX_FACTOR, MODELS, Calibration, cut_silently, from_json, moved, raised


def after(reports: int, *, measured: int, plain: int, factor: float = 1.0) -> float:
    for _ in range(reports):
        factor = moved(factor, measured, int(plain * factor))
    return factor


def test_chinese_at_06_and_at_10_token_a_character() -> None:
    """Case 91: 100 kB of Chinese is 33 000 characters; the vocabulary says 0.8 a character."""
    assert after(12, measured=33_000, plain=26_400) == pytest.approx(1.25, abs=0.01)
    assert after(12, measured=20_000, plain=26_400) == 1.0


@given(st.floats(1, 3), st.integers(-5, 10**7), st.integers(-5, 10**7))
def test_no_report_moves_the_factor_out_of_its_bounds(factor: float, measured: int, estimated: int) -> None:
    assert 1.0 <= moved(factor, measured, estimated) <= MAX_FACTOR
    assert factor <= raised(factor, measured, estimated) <= MAX_FACTOR


def test_a_refusal_corrects_at_once_and_never_downwards() -> None:
    assert raised(1.0, 12_000, 8_000) == 1.5
    assert raised(1.5, 8_000, 8_000) == 1.5
    assert raised(1.2, 4_000, 8_000) == 1.2


@pytest.mark.parametrize(
    ("measured", "estimated", "window", "cut"),
    [
        (16_386, 50_000, 32_768, True),  # half the window and two, as such a server reports
        (16_386, 20_000, 32_768, True),
        (16_386, 16_400, 32_768, False),  # a prompt that happens to be that long
        (1_199, 2_001, None, True),
        (1_201, 2_001, None, False),
        (100, 2_000, 8_192, False),  # too small to tell
        (0, 50_000, 32_768, False),  # not told
        (49_000, 50_000, 131_072, False),
    ],
)
def test_silent_truncation_is_seen(measured: int, estimated: int, window: int | None, cut: bool) -> None:
    """Case 93."""
    assert cut_silently(measured, estimated, window) is cut


def test_it_survives_its_json_and_keeps_models_apart() -> None:
    known = Calibration().learned("a", 1.25).learned("目录/模型", 9.0).learned("a", 1.5)
    assert from_json(known.to_json()) == known
    assert (known.factor("a"), known.factor("目录/模型"), known.factor("b")) == (1.5, MAX_FACTOR, 1.0)


def test_it_remembers_a_bounded_number_of_models() -> None:
    known = Calibration()
    for n in range(MODELS + 5):
        known = known.learned(f"m{n}", 1.1)
    assert len(known.factors) == MODELS
    assert "m4" not in known.factors
    assert "m5" in known.factors


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"factors": 3}', "[" * 100_000, '{"factors": {"m": "x", "n": true, "o": null}}']
)
def test_a_damaged_file_is_no_calibration(text: str) -> None:
    assert from_json(text) == Calibration()


def test_numbers_out_of_bounds_are_brought_in() -> None:
    text = json.dumps({"factors": {"low": 0.1, "high": 99, "odd": float("nan"), "fine": 1.3}})
    assert dict(from_json(text).factors) == {"low": 1.0, "high": 3.0, "odd": 1.0, "fine": 1.3}
