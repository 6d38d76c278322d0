"""What a provider's count of a request tells: the estimate's factor, the window it really has (M39, cases 89–93)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from marextui.context.calibration import cut_silently, implausible
from marextui.context.messages import Message
from marextui.engine.bus import Bus
from marextui.engine.events import Notice
from marextui.engine.meter import Meter
from marextui.engine.prompt import SystemPart
from marextui.engine.session import Session
from marextui.models.types import Usage

LEAST_ROOM = 256
"""A window without so many tokens beside the system part and the tools is none that a server is taken to have."""


class Host(Protocol):
    """What is told of counts."""

    def window_learned(self, tokens: int, *, told: bool = True) -> None: ...

    def window_held(self, tokens: int) -> None: ...

    @property
    def model(self) -> str: ...


@dataclass(slots=True)
class Counting:
    """One request of `session` with the system part `part`, from before it is sent until its count has come."""

    session: Session
    meter: Meter
    host: Host
    bus: Bus
    part: SystemPart
    history: tuple[Message, ...] = field(init=False)
    plain: int = field(init=False)
    """Tokens of its words, without factor and flat guesses."""

    def __post_init__(self) -> None:
        ledger = self.session.ledger
        self.history = self.session.history()
        self.plain = sum(map(ledger.plain_text, self.part.texts)) + ledger.tally(self.history).plain

    def learn(self, usage: Usage | None) -> bool:
        """Learn from the count of this request; whether it is one to go by (M39).

        False when the count is that of a prompt the server has cut without a word: then the window it really has is
        learned instead, and people are told that the answer lacks the beginning (case 93). Also when the server counted
        only a part of the prompt: nothing is learned from that.
        """
        if usage is None or usage.inp is None:
            return False
        ledger, part = self.session.ledger, self.part
        tools = ledger.tools(part.tools) if part.tools else 0
        counted = self.session.conversation.counted.get(self.host.model, 0)
        least = sum(map(ledger.plain_text, part.texts)) + tools + LEAST_ROOM
        if cut_silently(usage.inp, self.plain, self.meter.window.tokens, counted=counted, least=least):
            text = (
                f"The server saw {usage.inp} tokens of a prompt of about {self.plain}: it cut the rest off without "
                f"saying so, and this answer may lack what stood there. Its window is taken to be {usage.inp} tokens "
                "from now."
            )
            hint = "Load the model with a larger context (num_ctx, --ctx-size), or set `window` to what it has."
            self.bus.emit(Notice("warning", text, hint))
            self.host.window_learned(usage.inp, told=False)
            return False
        self.host.window_held(usage.inp)
        if implausible(usage.inp, self.plain):
            return False
        ledger.learn(usage.inp, sum(map(ledger.text, part.texts)) + ledger.tally(self.history).total + tools)
        return True
