"""The slot ledger of a connection: every request to the model passes here, whoever sends it (L16–L19, L36).

All decisions are synchronous: they run between two awaits of one event-loop thread, so nothing can leave between
reading the ledger and writing it, and no lock is needed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

from marextui.context.slot_ledger import KIND_WORDS, Departure, RequestKind, SlotLedger
from marextui.models.types import Accepted, ChatModel, ChatRequest, Chunk, Finished, ModelError, Usage

BeforeDeparture = Callable[[ChatRequest], Awaitable[None]]
"""Awaited when a request is entered as departed and none of its bytes went out yet: it cancels a prewarm, or lets it
finish (L36, L37). Gets every request, its own too, and must not raise."""

_GONE = ("network", "loading", "server")
"""Errors after which the server may have been started anew, with an empty cache."""


@dataclass(frozen=True, slots=True)
class SentStep:
    """The last accepted step of a turn, as it left; `usage` None: not counted (yet)."""

    departure: Departure
    request: ChatRequest
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """A prompt of a turn, or of its prewarm, that the server took; `usage` None: not counted (yet).

    `since` is what may have replaced it in the cache after that, as part of a sentence; "": nothing that we know of.
    """

    departure: Departure
    request: ChatRequest
    usage: Usage | None = None
    since: str = ""


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """What a server tells of its slots, without being made to compute; None: it does not say.

    `total` slots, whether it sleeps (its cache is gone), whether any slot is at work, and the tokens in each slot that
    was used: its last prompt, in some versions with the answer. `window` is what a slot holds, in tokens; `model` what
    the server itself calls its model, "" where it does not say.
    """

    total: int | None = None
    sleeping: bool = False
    busy: bool | None = None
    prompts: tuple[int, ...] | None = None
    window: int | None = None
    model: str = ""


@dataclass(slots=True)
class Slots:
    """Mutable holder of one connection's `SlotLedger`.

    `stamping` off (the default): no stamp is ever set (L2). `last_step` is the last accepted step of any conversation,
    whether the slot still holds it or not. `given` is the last prompt the server took for a turn or its prewarm, and
    `before` the one that the last step followed: what it shares with it need not be computed again (I7).
    """

    ledger: SlotLedger = field(default_factory=SlotLedger)
    stamping: bool = False
    before_departure: list[BeforeDeparture] = field(default_factory=list)
    last_step: SentStep | None = None
    given: GivenPrompt | None = None
    before: GivenPrompt | None = None

    @property
    def idle(self) -> bool:
        """No request of ours is under way."""
        return not self.ledger.in_flight

    def settle(self, model: str, window: int | None) -> None:
        """The model and the window (tokens) in force."""
        self.ledger = self.ledger.settled(model, window)

    def forget(self, why: str) -> None:
        """The server has lost what it held; `why` is part of a sentence."""
        self.ledger = self.ledger.forgotten(why)
        if self.given is not None:
            self.given = replace(self.given, since=why)

    def held(self, conversation: str) -> SentStep | None:
        """The last step of `conversation` as it left, when the slot still holds its prompt; else None (L19)."""
        return self.last_step if self.ledger.held_by(conversation) else None

    def why_not(self, conversation: str) -> str:
        """Why `held` gives None, as part of a sentence; "" when it does not."""
        return self.ledger.why_not(conversation)

    def depart(self, request: ChatRequest) -> Departure:
        """`request` leaves now."""
        self.ledger = self.ledger.departed(request.kind, request.conversation)
        departure = self.ledger.last
        assert departure is not None
        return departure

    def accept(self, departure: Departure, request: ChatRequest) -> None:
        """The server answered 200."""
        if departure.kind == "main":
            self.last_step, self.before = SentStep(departure, request), self.given
        if departure.kind in ("main", "prewarm"):
            self.given = GivenPrompt(departure, request)
        else:
            self._came_between(departure.kind)
        if self.stamping:
            self.ledger = self.ledger.accepted(departure)

    def _came_between(self, kind: RequestKind) -> None:
        if self.given is not None:
            self.given = replace(self.given, since=f"{KIND_WORDS[kind]} was sent in between")

    def count(self, departure: Departure, usage: Usage | None) -> None:
        """The server counted the request."""
        if self.last_step is not None and self.last_step.departure == departure:
            self.last_step = replace(self.last_step, usage=usage)
        if self.given is not None and self.given.departure == departure:
            self.given = replace(self.given, usage=usage)

    def end(self, departure: Departure) -> None:
        """The request is over."""
        self.ledger = self.ledger.ended(departure)

    @asynccontextmanager
    async def occupied(self, kind: RequestKind) -> AsyncGenerator[None, None]:
        """Requests that do not pass here use the slots: they count as one of `kind`, and what makes way does so."""
        request = ChatRequest((), kind=kind)
        departure = self.depart(request)
        try:
            for make_way in tuple(self.before_departure):
                await make_way(request)
            self._came_between(kind)
            yield
        finally:
            self.end(departure)


class TrackedChat:
    """A `ChatModel` whose every request is entered in `slots`: what a connection hands out."""

    def __init__(self, inner: ChatModel, slots: Slots) -> None:
        self._inner = inner
        self._slots = slots

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """As the inner model's `stream`; first lets `before_departure` make way."""
        slots = self._slots
        departure = slots.depart(request)
        try:
            for make_way in tuple(slots.before_departure):
                await make_way(request)
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, Accepted):
                        slots.accept(departure, request)
                    elif isinstance(chunk, Finished):
                        slots.count(departure, chunk.usage)
                    yield chunk
        except ModelError as problem:
            if problem.kind in _GONE:
                slots.forget("the server stopped answering in between")
            raise
        finally:
            slots.end(departure)
