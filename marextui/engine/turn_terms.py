"""What a turn asks of the engine around it, what it adds up, and how it says that it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from marextui.context.entries import TurnEnd
from marextui.context.triggers import Moment, Trigger
from marextui.engine.meter import Reading
from marextui.engine.prompt import SystemPart
from marextui.models.types import Usage

ViewListener = Callable[[tuple[Mapping[str, Any], ...], Reading], None]
"""Sees every view as it is about to be sent: wire messages, its figures."""


class Host(Protocol):
    """What a turn asks of the engine around it."""

    def system_part(self) -> SystemPart: ...

    def gauge_changed(self, reading: Reading) -> None: ...

    def why_not(self, reading: Reading) -> str: ...

    def window_learned(self, tokens: int, *, told: bool = True) -> None: ...

    def window_held(self, tokens: int) -> None: ...

    def counted(self, usage: Usage | None) -> None: ...

    @property
    def model(self) -> str: ...

    async def calibrated(self) -> None: ...

    async def settle_project(self, turn: int) -> bool: ...

    def may_summarise(self) -> bool: ...

    def moment(self, reading: Reading) -> Moment: ...

    @property
    def trigger(self) -> Trigger: ...

    def today(self) -> str: ...

    @property
    def keep_images(self) -> int: ...

    @property
    def max_request_bytes(self) -> int: ...


@dataclass(slots=True)
class Totals:
    """Sums over the steps of a turn; None stays None: unknown is not 0 (M38, M44)."""

    steps: int = 0
    inp: int | None = None
    out: int | None = None
    cache_read: int | None = None
    first_token_ms: int | None = None
    predicted_per_second: float | None = None
    compacted: bool = False

    def add(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self.inp = _plus(self.inp, usage.inp)
        self.out = _plus(self.out, usage.out)
        self.cache_read = _plus(self.cache_read, usage.cache_read)


def _plus(total: int | None, value: int | None) -> int | None:
    if value is None:
        return total
    return (total or 0) + value


class TurnFailed(Exception):
    """The turn ended early; `end` and `reason` say how, `hint` what to do, `retry` whether trying again makes sense."""

    def __init__(self, end: TurnEnd, reason: str, hint: str = "", *, retry: bool = True) -> None:
        super().__init__(reason)
        self.end: TurnEnd = end
        self.reason = reason
        self.hint = hint
        self.retry = retry
