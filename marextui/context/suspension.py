"""When a model is no longer asked to go on with a conversation for a summary, and why (L23, L24). In memory only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

SOFT_LIMIT = 2
"""Soft failures in a row after which it is not tried again."""

Failure = Literal["hard", "soft", "passing"]
"""hard: the model or its template cannot do it; soft: it gave nothing usable; passing: says nothing about the model."""


def refusal_kind(status: int | None, *, overflow: bool) -> Failure:
    """What an error answer says: a template refusal (400, 422, 500) is hard; overflow, loading (503), a rate limit and
    a broken connection pass (L23)."""
    return "hard" if status in {400, 422, 500} and not overflow else "passing"


@dataclass(frozen=True, slots=True)
class Suspension:
    """Soft failures in a row, and the reason of each suspension, by model name."""

    soft: Mapping[str, int] = field(default_factory=dict)
    suspended: Mapping[str, str] = field(default_factory=dict)

    def why(self, model: str) -> str:
        """Why `model` is suspended, as part of a sentence; "" when it is not."""
        return self.suspended.get(model, "")

    def failed(self, model: str, kind: Failure, reason: str) -> Suspension:
        """After one more failure; `reason` is part of a sentence."""
        if kind == "passing":
            return self
        count = self.soft.get(model, 0) + 1
        if kind == "soft" and count < SOFT_LIMIT:
            return replace(self, soft={**self.soft, model: count})
        told = reason if kind == "hard" else f"{count} times in a row nothing usable came ({reason})"
        return Suspension({**self.soft, model: 0}, {**self.suspended, model: told})

    def succeeded(self, model: str) -> Suspension:
        """One success starts the count again."""
        return replace(self, soft={**self.soft, model: 0}) if self.soft.get(model) else self
