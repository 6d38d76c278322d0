"""Reading other people's JSON: a bad telemetry field is absent, never an error (section C, last row)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def as_int(value: object) -> int | None:
    """A count ≥ 0 from an int, a finite float or a numeric string ("8,192" too); anything else is None."""
    number = as_float(value)
    return None if number is None or number < 0 else int(number)


def as_positive(value: object) -> int | None:
    """Like `as_int`, with 0 read as "not told" (a window or prompt of zero tokens cannot be)."""
    return as_int(value) or None


def as_float(value: object) -> float | None:
    """A finite number from an int, float or numeric string; booleans are not numbers."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        value = value.strip().replace(",", "").replace("_", "")
        if not value or len(value) > 40:
            return None
    if not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < 1e15 else None


def at(value: object, *path: str | int) -> Any:
    """The value at `path` through mappings and lists; None where the path ends early."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def as_text(value: object) -> str:
    """A string as it is; anything else is ""."""
    return value if isinstance(value, str) else ""


def items(value: object) -> list[Any]:
    """A list as it is; anything else is empty."""
    return value if isinstance(value, list) else []


def parse_json(raw: str | bytes) -> Any:
    """The parsed value, or None when `raw` is not JSON (too deeply nested included)."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
