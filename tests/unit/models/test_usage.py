"""`usage_from`: every shape of section C gives the same record; absent is not 0 (case I9)."""

from __future__ import annotations

from typing import Any

import pytest

from marextui.models.types import Usage
from marextui.models.usage import timings_from, usage_from


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(
            {
                "prompt_tokens": 900,
                "completion_tokens": 40,
                "total_tokens": 940,
                "prompt_tokens_details": {"cached_tokens": 870, "cache_write_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 12},
            },
            Usage(900, 40, 870, 5, 12),
            id="openai-chat",
        ),
        pytest.param(
            {"input_tokens": 900, "output_tokens": 40, "input_tokens_details": {"cached_tokens": 870}},
            Usage(900, 40, 870),
            id="openai-responses",
        ),
        pytest.param(
            {
                "input_tokens": 20,
                "output_tokens": 40,
                "cache_read_input_tokens": 870,
                "cache_creation_input_tokens": 10,
            },
            Usage(900, 40, 870, 10),
            id="anthropic-input-excludes-cache",
        ),
        pytest.param(
            {"completion_tokens": 40, "prompt_cache_hit_tokens": 870, "prompt_cache_miss_tokens": 30},
            Usage(900, 40, 870),
            id="deepseek-without-total",
        ),
        pytest.param(
            {"prompt_eval_count": 900, "eval_count": 40, "prompt_eval_cached_count": 870},
            Usage(900, 40, 870),
            id="ollama-native",
        ),
        pytest.param({"prompt_eval_count": 0, "eval_count": 40}, Usage(None, 40), id="ollama-zero-prompt-is-unknown"),
        pytest.param({"input_tokens": 900, "total_output_tokens": 40}, Usage(900, 40), id="lm-studio-native"),
        pytest.param(
            {"promptTokenCount": 900, "candidatesTokenCount": 30, "thoughtsTokenCount": 10},
            Usage(900, 40, reasoning=10),
            id="gemini-native",
        ),
        pytest.param(
            {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 940},
            Usage(900, 40),
            id="gemini-openai-route-hides-thinking",
        ),
        pytest.param(
            {"prompt_tokens": 900, "completion_tokens": 40, "prompt_tokens_details": None},
            Usage(900, 40),
            id="vllm-null-details",
        ),
        pytest.param(
            {
                "prompt_tokens": 3031,
                "completion_tokens": 40,
                "prompt_tokens_details": {"cached_tokens": 2944, "created_cache_tokens": 87},
            },
            Usage(3031, 40, 2944, 87),
            id="vllm-with-details",
        ),
        pytest.param({"prompt_tokens": "900", "completion_tokens": 40.0}, Usage(900, 40), id="strings-and-floats"),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(10, 1, 10),
            id="cached-above-input-is-clamped",
        ),
        pytest.param(
            {"prompt_tokens": -5, "completion_tokens": True, "x": "nan", "total_tokens": float("inf")},
            None,
            id="nonsense-is-absent",
        ),
        pytest.param({}, None, id="empty"),
        pytest.param(None, None, id="none"),
        pytest.param("900", None, id="not-a-mapping"),
    ],
)
def test_every_shape(raw: Any, expected: Usage | None) -> None:
    assert usage_from(raw) == expected


def test_llama_timings_fill_what_usage_leaves_out() -> None:
    timings = {"cache_n": 870, "prompt_n": 30, "predicted_n": 40, "prompt_ms": 12.5, "note": "x"}
    assert usage_from(None, timings) == Usage(900, 40, 870)
    assert usage_from({"prompt_tokens": 900, "completion_tokens": 40}, timings) == Usage(900, 40, 870)
    assert usage_from({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 1}}, timings) == Usage(
        900, 40, 1
    )
    assert timings_from(timings) == {"cache_n": 870.0, "prompt_n": 30.0, "predicted_n": 40.0, "prompt_ms": 12.5}


def test_unknown_cache_is_none_and_zero_cache_is_zero() -> None:
    told = usage_from({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}})
    untold = usage_from({"prompt_tokens": 5, "completion_tokens": 1})
    assert told is not None
    assert told.cache_read == 0
    assert untold is not None
    assert untold.cache_read is None
