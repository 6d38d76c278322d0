"""What each provider refuses, checked on JSON values alone, without the code that writes them (I1)."""

from __future__ import annotations


def shape_violations(value: object, shape: str) -> tuple[str, ...]:
    """Rules of `shape` that the request fragment `value` breaks, in order; () for a valid one."""
    raise NotImplementedError
