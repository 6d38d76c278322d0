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


@dataclass(frozen=True, slots=True)
class CacheState:
    """What the server's cache did for the last request of a turn, and what it holds now. Tokens; None: not told.

    `broke` is why it computed anew what it had computed before, as part of a sentence; "" when it did not have to.
    `held` is whether it holds this conversation as far as our books tell, None when they are not kept; `lost` is why
    it does not.
    """

    cached: int | None = None
    computed: int | None = None
    broke: str = ""
    held: bool | None = None
    lost: str = ""
