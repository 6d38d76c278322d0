"""Window, reserve, budget and threshold arithmetic (M1–M6, M18–M22, B1–B4). All figures are tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from marextui.context.trigger_names import CompactBase

WindowSource = Literal["override", "learned", "discovery", "known default", "unknown"]

MAX_RESERVE = 4096
"""Most tokens kept for the answer (M1)."""
LATE_TRIGGER = 0.80
"""Share of the window above which a trigger is called late (P3)."""


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens the model can hold and who said so; `tokens` None: unknown, then nothing is guessed (M4)."""

    tokens: int | None
    source: WindowSource


UNKNOWN_WINDOW = Window(None, "unknown")


def _exact(share: float) -> Fraction:
    """The decimal a person wrote, without binary noise: 0.65 is 13/20, so that M5's boundary is exact."""
    return Fraction(repr(share))


def check_window(value: object, *, key: str = "window") -> int:
    """`value` as a window override (M3). Raises ValueError naming `key` unless it is a whole number above 0."""
    number = value
    if isinstance(value, str) and value.strip().isdecimal():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int) or number <= 0:
        ignored = "" if key.startswith("--") else "; it is not used"
        raise ValueError(f"{key} must be a whole number of tokens above 0, got {value!r}{ignored}.")
    return number


def check_compact_at(value: object, *, key: str = "compact_at") -> float:
    """`value` as the share of the budget at which to compact (M6): used as it is, never clamped.

    Raises ValueError naming `key` unless 0 < value < 1; a percentage is refused, not reinterpreted.
    """
    number: object = value
    alias = "" if key.startswith("--") else " (alias compactAt)"
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"{key} must be a number between 0 and 1{alias}, got {value!r}.")
    if 0 < number < 1:
        return float(number)
    hint = f"; write {number / 100:g} for {number:g} %" if 1 < number < 100 else ""
    raise ValueError(f"{key} must be above 0 and below 1{alias}, got {value!r}{hint}.")


def settle_window(
    override: int | None = None,
    learned: int | None = None,
    discovered: int | None = None,
    default: int | None = None,
) -> Window:
    """The window in force (M3, case 98). Figures that are None or not above 0 do not answer.

    A window learned from the server's own refusal is a fact: it beats discovery and defaults, and an override that
    claims more than it. Otherwise override, then discovery, then the known default; else unknown.
    """

    def known(tokens: int | None) -> bool:
        return tokens is not None and tokens > 0

    if known(override) and not (known(learned) and override > learned):  # type: ignore[operator]
        return Window(override, "override")
    if known(learned):
        return Window(learned, "learned")
    if known(discovered):
        return Window(discovered, "discovery")
    if known(default):
        return Window(default, "known default")
    return UNKNOWN_WINDOW


def reserve_for(window: int, max_output: int | None) -> int:
    """R: tokens kept for the answer, min(max output, 4 096, window/4) (M1, I15).

    A maximum that is unknown or 0 counts as 4 096: it must never take the whole window (case 5).
    """
    wanted = max_output if max_output is not None and max_output > 0 else MAX_RESERVE
    return max(0, min(wanted, MAX_RESERVE, window // 4))


def budget_for(window: int | None, reserve: int, system: int) -> int | None:
    """B = W − R − S (M1); None when the window is unknown, 0 or less when the system part does not fit."""
    return None if window is None else window - reserve - system


def threshold_for(budget: int | None, compact_at: float) -> float | None:
    """compact_at × B, where compaction triggers (M5); None when there is no budget to share."""
    if budget is None or budget <= 0:
        return None
    return float(_exact(compact_at) * budget)


def reached(used: int, budget: int | None, compact_at: float) -> bool:
    """Whether H (`used`) is at or above compact_at × B, exactly (M5); never without a budget (M1, M4)."""
    if budget is None or budget <= 0:
        return False
    return used >= _exact(compact_at) * budget


def window_threshold(window: int, system: int, compact_at: float) -> float:
    """H (tokens) above which compaction triggers when `compact_at` is a share of the window (P12, B1)."""
    return max(0.0, float(_exact(compact_at) * window - system))


def past(used: int, system: int, window: int, compact_at: float) -> bool:
    """Whether S + H is above compact_at × W, exactly and strictly (P12)."""
    return used + system > _exact(compact_at) * window


def trigger_share(window: int, reserve: int, system: int, compact_at: float) -> float:
    """Share of the window the prompt fills when compaction triggers: (S + compact_at × B) / W (B1, P3)."""
    return float((system + _exact(compact_at) * (window - reserve - system)) / window)


def late_trigger_warning(
    window: int, reserve: int, system: int, compact_at: float, base: CompactBase = "budget"
) -> str:
    """The warning for a trigger above 80 % of the window, "" when it is not; the value is used anyway (M6, P3)."""
    share = compact_at if base == "window" else trigger_share(window, reserve, system, compact_at)
    if share <= LATE_TRIGGER:
        return ""
    return f"compact_at = {compact_at:g} compacts at {share:.0%} of the window; above 80 % summaries lose detail."


def beside_cap(window: int | None) -> int:
    """Most tokens of what stands beside a summary (work log, facts, orders): 5 % of the window, 200 to 1 500."""
    return 1500 if window is None else min(1500, max(200, window * 5 // 100))


def summary_cap(window: int | None) -> int:
    """Most tokens of a summary (M12, B4): 1 200 from a window of 30 000 on or unknown, else 4 % but at least 700."""
    if window is None or window >= 30_000:
        return 1200
    return min(1200, max(700, window * 4 // 100))
