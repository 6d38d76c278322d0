"""Windows of well-known hosted models, for providers that do not tell (M3 "known default"; section C). Tokens."""

from __future__ import annotations

_KNOWN: tuple[tuple[str, int], ...] = (
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("claude-", 200_000),
    ("gemini-2.", 1_048_576),
    ("deepseek-chat", 131_072),
    ("deepseek-reasoner", 131_072),
    ("codestral", 256_000),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-small", 131_072),
    ("grok-4", 256_000),
    ("kimi-k2", 262_144),
    ("glm-4.6", 200_000),
    ("qwen3-coder", 262_144),
)
"""Beginnings of model ids; the smallest window of each family, so that the figure never promises too much."""


def known_window(model: str) -> int | None:
    """The window of a hosted model by its id, vendor prefix ignored ("openai/gpt-4o-mini"); None when not listed."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((tokens for start, tokens in _KNOWN if name.startswith(start)), None)
