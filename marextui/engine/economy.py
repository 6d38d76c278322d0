"""What `/status` tells of the features that save a local engine work (issue 4, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EconomyLine:
    """How things stand with one feature that saves a local engine work; `why` is a sentence for `/status`."""

    key: str
    state: Literal["off", "on", "suspended"]
    why: str
