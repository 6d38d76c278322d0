"""Whose prompt a server's cache holds, as far as our own requests tell (L16–L19). Pure: values and their transitions.

A llama.cpp slot keeps the tokens of the last prompt it worked on, so a request that goes on with that prompt costs only
what is new. The *stamp* says that the slot still holds the last step of a conversation. Other programs that use the
same server are not seen here; `models.discovery.read_slots` asks the server itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

RequestKind = Literal["main", "subagent", "verify", "task", "compact", "prewarm", "probe", "doctor", "bench", "foreign"]
"""What a request is for. Only "main", a step of a turn, sets the stamp; every one of them takes it away."""

KIND_WORDS: Mapping[RequestKind, str] = {
    "main": "a step of a turn",
    "subagent": "a request of a sub-agent",
    "verify": "a verification",
    "task": "a task",
    "compact": "a summary request",
    "prewarm": "a prewarm",
    "probe": "a question of /probe",
    "doctor": "a check of the server",
    "bench": "a measurement",
    "foreign": "another program's request",
}

NOTHING_SENT = "no step was sent on this connection yet"


@dataclass(frozen=True, slots=True)
class Departure:
    """A request that left: its number on this connection, and the model and window (tokens) it left for."""

    sequence: int
    kind: RequestKind
    conversation: str
    model: str
    window: int | None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The slot holds the prompt of the step `sequence` of `conversation`."""

    sequence: int
    conversation: str
    model: str
    window: int | None


@dataclass(frozen=True, slots=True)
class SlotLedger:
    """What is known of the slot. `departures` counts every request that left; `lost` is why there is no stamp."""

    model: str = ""
    window: int | None = None
    departures: int = 0
    in_flight: tuple[Departure, ...] = ()
    stamp: Stamp | None = None
    lost: str = NOTHING_SENT

    @property
    def last(self) -> Departure | None:
        """The request in flight that left last."""
        return self.in_flight[-1] if self.in_flight else None

    def departed(self, kind: RequestKind, conversation: str) -> SlotLedger:
        """A request leaves: whatever the slot held is about to be replaced (L17). It is `last` of the result."""
        number = self.departures + 1
        departure = Departure(number, kind, conversation, self.model, self.window)
        lost = f"{KIND_WORDS[kind]} was sent since" if self.stamp is not None else self.lost
        return replace(self, departures=number, in_flight=(*self.in_flight, departure), stamp=None, lost=lost)

    def accepted(self, departure: Departure) -> SlotLedger:
        """The server took the request (HTTP 200). A step sets the stamp unless anything left after it (L16)."""
        if departure.kind != "main":
            return self
        if departure.sequence != self.departures:
            return replace(self, stamp=None, lost="another request left before the step was accepted")
        if (departure.model, departure.window) != (self.model, self.window):
            return replace(self, stamp=None, lost="the model or its window changed while the step was sent")
        stamp = Stamp(departure.sequence, departure.conversation, departure.model, departure.window)
        return replace(self, stamp=stamp, lost="")

    def ended(self, departure: Departure) -> SlotLedger:
        """The request is over, however it ended."""
        left = tuple(d for d in self.in_flight if d.sequence != departure.sequence)
        return self if left == self.in_flight else replace(self, in_flight=left)

    def forgotten(self, why: str) -> SlotLedger:
        """The server lost its cache (restart, sleep, death): `why` says so, as part of a sentence (L18)."""
        return replace(self, stamp=None, lost=why)

    def settled(self, model: str, window: int | None) -> SlotLedger:
        """The model and window in force; a change of either loses the stamp (L18)."""
        if (model, window) == (self.model, self.window):
            return self
        what = "the model changed" if model != self.model else "the window changed"
        changed = replace(self, model=model, window=window)
        return changed if self.stamp is None else changed.forgotten(what)

    def held_by(self, conversation: str) -> bool:
        """Whether the slot holds the last step of `conversation`."""
        return self.stamp is not None and self.stamp.conversation == conversation

    def why_not(self, conversation: str) -> str:
        """Why the slot does not hold `conversation`, as part of a sentence; "" when it does."""
        if self.held_by(conversation):
            return ""
        return self.lost if self.stamp is None else "another conversation was asked since"
