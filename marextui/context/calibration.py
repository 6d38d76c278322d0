"""How far a model's own count is from our estimate, learned from what providers report (case 91; M39). Unit: tokens.

The estimate counts in one fixed vocabulary (o200k), which already knows scripts and logs; what is left is one factor
for each model. It is never below 1: compacting somewhat early is safe, an overflow is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

LEARN_FROM = 256
"""Least estimated tokens of a request to learn from: below, the template's own tokens dominate."""
MAX_FACTOR = 3.0
LEARN_RATE = 0.5
"""Share of the way to the newest report that the factor moves: one odd report does not take over."""
MODELS = 200
"""Most models remembered; the one not seen for longest goes first."""

TRUNCATED_SHARE = 0.6
TRUNCATED_FROM = 2_000
"""A report below this share of an estimate above this many tokens: the server cut the prompt (case 93)."""
LEAST_WINDOW = 1_024
"""A smaller count is no window: then it is that of a part, not of what was left after a cut."""
CERTAIN_SHARE = 0.8
"""A count that is to the token what servers keep of a window, and below this share of the estimate, is a cut."""


def clamped(factor: float) -> float:
    """`factor` between 1 and 3; 1 for what is no number."""
    return min(MAX_FACTOR, max(1.0, factor)) if math.isfinite(factor) else 1.0


def moved(factor: float, measured: int, estimated: int) -> float:
    """The factor after a whole request measured `measured` where the estimate with `factor` said `estimated`."""
    if measured <= 0 or estimated < LEARN_FROM:
        return factor
    told = factor * measured / estimated
    return clamped(factor + LEARN_RATE * (told - factor))


def raised(factor: float, measured: int, estimated: int) -> float:
    """The factor after a server refused a request as too long: at once, and only upwards (B17)."""
    return factor if estimated <= 0 else clamped(max(factor, factor * measured / estimated))


def implausible(measured: int, estimated: int) -> bool:
    """Whether `measured` is far too little for about `estimated` tokens of text: cut, or counted in part."""
    return estimated > TRUNCATED_FROM and measured < TRUNCATED_SHARE * estimated


def cut_silently(measured: int, estimated: int, window: int | None, *, counted: int = 0, least: int = 0) -> bool:
    """Whether a server that reports `measured` prompt tokens has cut a prompt of about `estimated` tokens (case 93).

    `estimated` is the plain estimate of the text alone, without factor and images: both may be far too high. A cut
    shows as exactly what servers keep of a window (all of it, or half of it and two), or as far below the estimate.
    The latter may also be a server that counts only what its cache did not hold: so not when it has once counted more
    of this conversation (`counted`; what is left of a window after a cut is at least half of it), and not when fewer
    than `least` were counted, which are sent with every request and have to fit for anything to be answered.
    """
    if measured < max(LEAST_WINDOW, least) or estimated <= measured * 1.05 or counted > 2 * measured:
        return False
    if window is not None and measured in (window, window // 2 + 2):
        return True
    if measured < CERTAIN_SHARE * estimated and _whole_or_half(measured):
        return True
    return implausible(measured, estimated) and counted <= measured * 1.1


def _whole_or_half(measured: int) -> bool:
    """Whether a window of a usual size (a power of two) leaves exactly so many tokens after a cut."""
    return any(n & (n - 1) == 0 for n in (measured, 2 * (measured - 2)) if n >= 2 * LEAST_WINDOW)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors by model name, the model seen last at the end."""

    factors: Mapping[str, float] = field(default_factory=dict)

    def factor(self, model: str) -> float:
        """The factor of `model`; 1 for one never seen."""
        return self.factors.get(model, 1.0)

    def learned(self, model: str, factor: float) -> Calibration:
        """With the factor of `model` set to `factor` (clamped, 3 decimals)."""
        others = {k: v for k, v in self.factors.items() if k != model}
        for name in list(others)[: max(0, len(others) + 1 - MODELS)]:
            del others[name]
        return Calibration({**others, model: round(clamped(factor), 3)})

    def to_json(self) -> str:
        return json.dumps({"version": 1, "factors": dict(self.factors)}, ensure_ascii=False, indent=1) + "\n"


def from_json(text: str) -> Calibration:
    """What `Calibration.to_json` wrote; what cannot be used of it is left out, never an error."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return Calibration()
    factors = raw.get("factors") if isinstance(raw, dict) else None
    if not isinstance(factors, dict):
        return Calibration()
    usable = {
        k: clamped(float(v)) for k, v in factors.items() if isinstance(v, int | float) and not isinstance(v, bool)
    }
    return Calibration(dict(list(usable.items())[-MODELS:]))
