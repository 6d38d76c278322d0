"""Window, reserve, budget and threshold arithmetic (M1–M6, M18–M22, B1–B4). All figures are tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WindowSource = Literal["override", "learned", "discovery", "known default", "unknown"]


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens the model can hold and who said so; `tokens` None: unknown, then nothing is guessed (M4)."""

    tokens: int | None
    source: WindowSource


UNKNOWN_WINDOW = Window(None, "unknown")
