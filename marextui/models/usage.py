"""Provider usage in all its shapes → one `Usage` (section C). Absent is None, never 0; `inp` includes cached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from marextui.models.lenient import as_float, as_int, as_positive, at
from marextui.models.types import Usage


def _first(raw: Mapping[str, object], *names: str) -> int | None:
    return next((n for n in (as_int(raw.get(name)) for name in names) if n is not None), None)


def usage_from(raw: object, timings: object = None) -> Usage | None:
    """Normalise a `usage` object; llama.cpp's `timings` fill what it leaves out. None when neither tells anything.

    Understood: OpenAI (chat and responses), llama.cpp, vLLM, Ollama (native too), LM Studio, Mistral, DeepSeek,
    Anthropic (input excludes the cache there), OpenRouter, Gemini (both routes). Numbers may be floats or strings.
    A prompt of 0 tokens is read as "not told" (Ollama on a cache hit); a cached count above the input is clamped.
    """
    u: Mapping[str, object] = raw if isinstance(raw, Mapping) else {}
    t: Mapping[str, object] = timings if isinstance(timings, Mapping) else {}
    inp = _first(u, "prompt_tokens", "input_tokens", "prompt_eval_count", "promptTokenCount")
    out = _first(u, "completion_tokens", "output_tokens", "eval_count", "total_output_tokens", "candidatesTokenCount")
    read = next(
        (
            n
            for n in (
                as_int(at(u, "prompt_tokens_details", "cached_tokens")),
                as_int(at(u, "input_tokens_details", "cached_tokens")),
                as_int(u.get("cache_read_input_tokens")),
                as_int(u.get("prompt_cache_hit_tokens")),
                as_int(u.get("prompt_eval_cached_count")),
                as_int(u.get("cachedContentTokenCount")),
            )
            if n is not None
        ),
        None,
    )
    write = next(
        (
            n
            for n in (
                as_int(u.get("cache_creation_input_tokens")),
                as_int(at(u, "prompt_tokens_details", "cache_write_tokens")),
                as_int(at(u, "prompt_tokens_details", "created_cache_tokens")),
                as_int(at(u, "input_tokens_details", "cache_write_tokens")),
            )
            if n is not None
        ),
        None,
    )
    reasoning = next(
        (
            n
            for n in (
                as_int(at(u, "completion_tokens_details", "reasoning_tokens")),
                as_int(at(u, "output_tokens_details", "reasoning_tokens")),
                as_int(u.get("thoughtsTokenCount")),
            )
            if n is not None
        ),
        None,
    )

    anthropic = "cache_read_input_tokens" in u or "cache_creation_input_tokens" in u
    if anthropic and "input_tokens" in u and "prompt_tokens" not in u and inp is not None:
        inp += (read or 0) + (write or 0)
    if inp is None:
        hit, miss = as_int(u.get("prompt_cache_hit_tokens")), as_int(u.get("prompt_cache_miss_tokens"))
        if hit is not None and miss is not None:
            inp = hit + miss
    if "candidatesTokenCount" in u and out is not None:
        out += reasoning or 0
    total = as_int(u.get("total_tokens"))
    if (
        inp is not None
        and out is not None
        and total is not None
        and total > inp + out
        and total != inp + out + (read or 0)
    ):
        out = total - inp  # Gemini's OpenAI route leaves thinking out of the completion count

    cache_n, prompt_n = as_int(t.get("cache_n")), as_int(t.get("prompt_n"))
    if inp is None and prompt_n is not None:
        inp = prompt_n + (cache_n or 0)
    if out is None:
        out = as_int(t.get("predicted_n"))
    if read is None:
        read = cache_n

    inp, apart = as_positive(inp), None
    if inp is not None and read is not None and read > inp:
        read, apart = inp, read
    usage = Usage(inp, out, read, write, reasoning, apart)
    return None if usage == Usage() else usage


def with_cache(usage: Usage, prompt: int) -> Usage:
    """`usage` of a prompt of about `prompt` tokens, the cache counted in where the server left it out (case 89)."""
    if usage.inp is None or usage.cached_apart is None:
        return usage
    total = usage.inp + usage.cached_apart
    if abs(total - prompt) >= abs(usage.inp - prompt):
        return usage
    return replace(usage, inp=total, cache_read=usage.cached_apart, cached_apart=None)


def timings_from(raw: object) -> dict[str, float]:
    """The finite numbers of a llama.cpp `timings` object."""
    if not isinstance(raw, Mapping):
        return {}
    read = {str(k): as_float(v) for k, v in raw.items()}
    return {k: v for k, v in read.items() if v is not None}
