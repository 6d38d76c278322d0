"""Secrets are replaced before text reaches a disk or a second model (cases 135, 137)."""

from __future__ import annotations


def redact(text: str) -> str:
    """`text` with obvious secrets replaced by `[redacted: kind]`."""
    raise NotImplementedError
