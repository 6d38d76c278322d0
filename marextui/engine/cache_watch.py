"""Watches what the model's server has cached: what each step computed, what broke its prefix, what is held (I7)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from marextui.context.prefix import FORGOT_BELOW, RENDERING, SERVER_FORGOT, Given, Prompt, TurnOf, why_computed
from marextui.context.slot_ledger import Departure
from marextui.engine.bus import Bus
from marextui.engine.economy import CacheState
from marextui.engine.events import CacheChanged
from marextui.engine.modelctl import ModelControl
from marextui.models.slots import GivenPrompt
from marextui.models.types import ChatRequest, Connection, Usage

WORTH_TELLING = 1024
"""A prompt of fewer tokens that is computed anew is no loss to speak of."""


@dataclass(slots=True)
class CacheWatch:
    """The cache of the model in use."""

    control: ModelControl
    bus: Bus
    state: CacheState = field(default_factory=CacheState)
    _given: GivenPrompt | None = None
    """What was sent last, also when that was on an earlier connection."""

    def counted(self, usage: Usage | None, turn_of: TurnOf) -> None:
        """The server counted the step that was just answered; None: it did not."""
        connection = self.control.connection
        if connection is None:
            return
        usage = usage or Usage()
        broke = self._broke(connection, usage, turn_of)
        self._set(replace(self.state, cached=usage.cache_read, computed=usage.computed, broke=broke))
        if broke == SERVER_FORGOT and connection.choice.local:
            self._warn(connection)

    def _broke(self, connection: Connection, usage: Usage, turn_of: TurnOf) -> str:
        slots, earlier, cached = connection.slots, self._given, usage.cache_read
        step, before, self._given = slots.last_step, slots.before, slots.given
        anew = before is None and earlier is not None
        if anew and earlier is not None:
            before = replace(earlier, since="the engine was started anew")
        if step is None or before is None:
            return ""
        tokens = before.usage.inp if before.usage is not None else None
        if anew and cached is not None and cached >= FORGOT_BELOW * (tokens or 0):
            return ""  # a server that was left and came back to has kept it
        given = Given(prompt_of(before.departure, before.request), tokens, before.since)
        why = why_computed(given, prompt_of(step.departure, step.request), cached, turn_of, total=usage.inp)
        return "" if why == SERVER_FORGOT and not connection.choice.local else why

    def _warn(self, connection: Connection) -> None:
        before = connection.slots.before
        inp = before.usage.inp if before is not None and before.usage is not None else None
        if inp is None or inp < WORTH_TELLING:
            return
        self.bus.warn_once(
            f"{connection.choice.label} forgot the conversation between two requests and computed it anew, although "
            "the second one began exactly as the first.",
            "Another program may use the server, or it unloads its model when it is idle; llama.cpp keeps more with a "
            "larger --cache-ram. Until then each message costs the whole conversation.",
        )

    def look(self, conversation: str) -> None:
        """Tell what the server holds of `conversation` now, when that has changed."""
        connection = self.control.connection
        if connection is None or not connection.slots.stamping or connection.slots.last_step is None:
            self._set(replace(self.state, held=None, lost=""))
            return
        lost = connection.slots.why_not(conversation)
        self._set(replace(self.state, held=not lost, lost=lost))

    def forget(self) -> None:
        """Another conversation or another model: the last request was none of its."""
        self._set(CacheState())

    def _set(self, state: CacheState) -> None:
        if state != self.state:
            self.state = state
            self.bus.emit(CacheChanged(state))


def prompt_of(departure: Departure, request: ChatRequest) -> Prompt:
    """What the server renders of `request`; of a prewarm without its last message, which stands for the next one."""
    return Prompt(
        model=departure.model,
        conversation=departure.conversation,
        messages=request.messages[:-1] if departure.kind == "prewarm" else request.messages,
        ids=request.message_ids,
        tools=request.tools,
        rendering={name: request.extra[name] for name in RENDERING if name in request.extra},
    )
