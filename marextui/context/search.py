"""Lexical search without dependencies: exact matches first, then BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Doc:
    """A searchable text; documents are given in time order, oldest first."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage of the document `id`; a higher score is better."""

    id: str
    text: str
    score: float


def search(docs: Sequence[Doc], query: str, *, limit: int = 3, max_chars: int = 2000) -> tuple[Hit, ...]:
    """The best passages for `query`, best first."""
    raise NotImplementedError
