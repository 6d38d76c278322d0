"""Skeleton; see the next commit."""

from __future__ import annotations

from dataclasses import dataclass

PROBE_PORTS: tuple[tuple[str, int], ...] = (("llama.cpp", 8080), ("Ollama", 11434), ("LM Studio", 1234), ("vLLM", 8000))


@dataclass(frozen=True, slots=True)
class Found:
    """One loopback address that was asked: what usually lives there, and what answered."""

    kind: str
    url: str
    models: tuple[str, ...]
    answered: bool
