"""Computes the next turn's prompt on the local engine while the person still reads (L30–L50).

Never ahead of real work: it is sent only while nothing else runs, waits or is in flight, and whatever else leaves for
the server ends it first. It changes nothing anybody sees but the server's cache, and every failure of it is dropped.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from marextui.context.prewarm import (
    SWITCH_PAUSE,
    Rest,
    goes_on,
    lost_in_between,
    prompt_of,
    why_not_now,
    why_not_there,
)
from marextui.engine.economy import EconomyLine
from marextui.engine.events import Event, Notice, PrewarmChanged, PrewarmState, TurnFinished
from marextui.engine.ports import Clock
from marextui.engine.rehearsal import NotForeseen, prewarm_request
from marextui.engine.state import EngineState
from marextui.engine.summariser import Cost
from marextui.models.slots import SentStep, SlotFacts
from marextui.models.types import ChatRequest, Connection, Finished, ModelError, Usage
from marextui.store.database import uninterrupted

log = logging.getLogger("marextui.engine")

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

END_WAIT = 5.0
"""Seconds that a prewarm which was told to end may take for it (L40)."""
FOLLOW_WAIT = 120.0
"""Seconds that a turn waits for the prewarm it goes on from; a server that is not through by then goes on with the turn
itself from where it is, and tells how far it got."""
BUSY_PAUSE = 2.0
"""Seconds after which a busy server is asked once more: it may only not have noticed yet that a request was closed."""
LONGEST = 900.0
"""Seconds after which a prewarm is given up (L44)."""
MOST_KNOWN = 64
"""Conversations whose last turn is remembered (L48)."""

ADVICE = "The server gave up this conversation's prompt while it worked on something else, and had to compute it again."
ADVICE_HINT = "Give it more memory for prompts (llama.cpp: --cache-ram), where there is some."


def seconds_to_midnight(clock: Clock) -> float:
    """Seconds that will have passed at the next local midnight, also on a day that is shorter or longer (L42)."""
    now = clock.now()
    tomorrow = datetime.datetime.fromtimestamp(now).date() + datetime.timedelta(days=1)
    return datetime.datetime.combine(tomorrow, datetime.time()).timestamp() - now


@dataclass(slots=True)
class _Flight:
    """A prewarm that was sent on `connection`. `over` once the server is left alone; `departures` counts what had left
    then, itself included; `before` is the last counted step before it."""

    request: ChatRequest
    connection: Connection
    before: SentStep | None
    task: asyncio.Task[None] | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    departures: int = 0
    told: PrewarmChanged = field(default_factory=lambda: PrewarmChanged("warming"))

    @property
    def holds(self) -> bool:
        """It is under way, or the server still has what it computed."""
        if not self.over.is_set():
            return True
        return self.told.state == "ready" and self.connection.slots.ledger.departures == self.departures


@dataclass(slots=True)
class Prewarmer:
    """Prewarms the open conversation. `spawn` runs a task beside everything else, `at_rest` says that the engine has
    nothing to do and nothing waits for it."""

    state: EngineState
    spawn: Spawn
    at_rest: Callable[[], bool]
    now: PrewarmChanged = field(default_factory=lambda: PrewarmChanged("idle", "no turn was run yet"))
    _thinking: asyncio.Task[None] | None = None
    _flight: _Flight | None = None
    _known: dict[str, str] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)
    _advised: bool = False

    def __post_init__(self) -> None:
        self.state.bus.subscribe(self._hear)

    @property
    def wanted(self) -> bool:
        """The key is set (L30); without it nothing here does anything (L31)."""
        return self.state.policy.prewarm != "off"

    # -- what the engine tells -----------------------------------------------------------------------------------------

    def rested(self) -> None:
        """The last thing to do is done: a turn, a compaction, an undo (L32, L46)."""
        if self.wanted:
            self._think(0.0)

    def work_began(self) -> None:
        """What is not sent yet will not be; what is under way goes on until a request leaves."""
        self._stop_thinking()
        if self._flight is None or self._flight.over.is_set():
            self._tell("idle", "other work is under way")

    def conversation_opened(self) -> None:
        """With `full`, the new conversation is prewarmed unless it is left at once (L47)."""
        if self.state.policy.prewarm == "full":
            self._think(SWITCH_PAUSE)

    async def stop(self) -> None:
        """End everything at once: the conversation is left, or its model, or the engine (L47)."""
        self._stop_thinking()
        await self._end_flight()
        self._tell("idle", "the conversation or its model was left")

    async def make_way(self, request: ChatRequest) -> None:
        """Before the first byte of `request`, which has left in our books: it ends the prewarm, or follows it where it
        goes on from the same prompt (L36, L37). Never raises."""
        flight = self._flight
        if flight is None or request is flight.request:
            return
        if not flight.over.is_set() and request.kind == "main" and _goes_on(request, flight.request):
            self.state.bus.enter("connecting", "its prompt is being computed already")
            await _within(FOLLOW_WAIT, flight)
            self.state.bus.enter("connecting")
        await self._end_flight()
        if self.now.state != "idle":
            self._tell("idle", "a request was sent since")

    def _hear(self, event: Event) -> None:
        """A turn that ended says what the next one of its conversation will be like (L48)."""
        if isinstance(event, TurnFinished) and event.end in ("done", "interrupted"):
            conversation = self.state.session.id
            self._known.pop(conversation, None)
            self._known[conversation] = self.state.model
            while len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _think(self, pause: float) -> None:
        self._stop_thinking()
        self._thinking = self.spawn(self._consider(pause))

    def _stop_thinking(self) -> None:
        if self._thinking is not None:
            self._thinking.cancel()
            self._thinking = None

    async def _consider(self, pause: float) -> None:
        if pause:
            await self.state.clock.sleep(pause)
        try:
            connection = self._usable()
            request = await prewarm_request(self.state, connection)
            if self._flight is not None and self._flight.holds and self._flight.request == request:
                self._say(self._flight.told)
                return
            if not await self._end_flight():
                raise NotForeseen("the one before it does not end")
            window = self.state.meter.window
            facts = await self._facts(connection)
            if self.state.meter.window != window:  # the server was swapped: what fits is another question now
                request = await prewarm_request(self.state, connection)
            self._tell_of_slots(connection, facts.total)
            if why := why_not_there(total=facts.total, sleeping=facts.sleeping, busy=facts.busy):
                raise NotForeseen(why)
        except NotForeseen as reason:
            if self.at_rest():
                self._tell("refused", str(reason))
                await self._end_flight()
            return
        self._send(request, connection)

    async def _facts(self, connection: Connection) -> SlotFacts:
        facts = await self.state.control.read_slots(connection)
        if facts.busy and facts.total == 1:
            await self.state.clock.sleep(BUSY_PAUSE)
            facts = await self.state.control.read_slots(connection)
        return facts

    def _tell_of_slots(self, connection: Connection, total: int | None) -> None:
        """Once: people may have several slots without having asked for them (D2)."""
        if total is not None and total > 1:
            self.state.bus.warn_once(
                f"{connection.choice.label} has {total} slots: nothing is computed ahead there, for nobody knows in "
                "which of them the next turn lands.",
                "Start it with one slot (llama.cpp: -np 1) to have prompts computed ahead.",
                level="info",
            )

    def _usable(self) -> Connection:
        """The model to prewarm on. Raises `NotForeseen`."""
        state, connection = self.state, self.state.control.connection
        session = state.session
        rest = Rest(
            model="" if connection is None else connection.choice.label,
            local=state.economy_allowed(),
            at_rest=self.at_rest(),
            failed=state.retryable == "turn",
            said=bool(session.conversation.messages),
            known=self._known.get(session.id) == state.model,
            day_left=None if state.telling().on else seconds_to_midnight(state.clock),
        )
        why = why_not_now(rest)
        if why or connection is None:
            raise NotForeseen(why)
        return connection

    async def _end_flight(self) -> bool:
        """End the prewarm under way, if there is one; False when it did not end in time (L40)."""
        flight, self._flight = self._flight, None
        if flight is None or flight.over.is_set() or flight.task is None:
            return True
        flight.task.cancel()
        return await _within(END_WAIT, flight)

    # -- sending -------------------------------------------------------------------------------------------------------

    def _send(self, request: ChatRequest, connection: Connection) -> None:
        slots = connection.slots
        if self.make_way not in slots.before_departure:
            slots.before_departure.append(self.make_way)
        flight = self._flight = _Flight(request, connection, slots.last_step)
        flight.task = self.spawn(self._fly(flight))
        flight.task.add_done_callback(lambda _: flight.over.set())  # also of one that was ended before it began

    async def _fly(self, flight: _Flight) -> None:
        """Send it raw: no compaction, no retry, nothing counted or remembered of it (L43, L45)."""
        slots, clock = flight.connection.slots, self.state.clock
        if not (self.at_rest() and slots.idle):
            self._landed(flight, PrewarmChanged("idle", "there is other work to do"))
            return
        self._say(flight.told)
        flight.departures = slots.ledger.departures + 1
        started, finished, why = clock.monotonic(), None, "the server gave no answer"
        try:
            async with asyncio.timeout(LONGEST), aclosing(flight.connection.chat.stream(flight.request)) as chunks:
                async for chunk in chunks:
                    finished = chunk if isinstance(chunk, Finished) else finished
        except ModelError as problem:
            why = self._dropped(str(problem.status or problem.kind), problem.message)
        except TimeoutError:
            why = self._dropped("timeout", f"no answer in {LONGEST / 60:.0f} minutes")
        finally:
            flight.over.set()
        if finished is None:
            self._landed(flight, PrewarmChanged("refused", why))
            return
        usage = finished.usage or Usage()
        self._landed(flight, PrewarmChanged("ready", "", usage.computed, usage.cache_read))
        self._advise(flight, usage)
        cost = Cost("ahead", finished.usage, finished.timings, clock.monotonic() - started)
        turn, model = self.state.session.conversation.turn, flight.connection.choice.label
        booked = self.state.usage.prewarm(cost, flight.request.conversation, turn, model)
        self.state.bus.warn_once(await uninterrupted(booked))

    def _landed(self, flight: _Flight, change: PrewarmChanged) -> None:
        flight.told = change
        if flight is self._flight:
            self._say(change)

    def _dropped(self, kind: str, message: str) -> str:
        """One line in the log file for each status, and no word to anybody else (L44)."""
        if kind not in self._logged:
            self._logged.add(kind)
            log.warning("a prewarm was dropped (%s): %s", kind, message)
        return f"the server did not take it ({kind})"

    def _advise(self, flight: _Flight, usage: Usage) -> None:
        """Once a launch: something else was sent between the last step and this, and its prompt is gone (L50)."""
        step = flight.before
        if self._advised or step is None or step.departure.sequence + 1 == flight.departures or step.usage is None:
            return
        same = len(step.request.messages)
        repeats = flight.request.messages[:same] == step.request.messages
        if repeats and lost_in_between(earlier=step.usage.inp, cached=usage.cache_read):
            self._advised = True
            self.state.bus.emit(Notice("info", ADVICE, ADVICE_HINT))

    # -- telling -------------------------------------------------------------------------------------------------------

    def _tell(self, state: PrewarmState, why: str = "") -> None:
        self._say(PrewarmChanged(state, why))

    def _say(self, change: PrewarmChanged) -> None:
        if self.wanted and change != self.now:
            self.now = change
            self.state.bus.emit(change)

    def status(self) -> EconomyLine:
        """Where it stands, for `/status` (issue 4, section 5)."""
        key, connection = "prewarm", self.state.control.connection
        if not self.wanted:
            return EconomyLine(key, "off", "Not switched on: a prompt is computed when you send your message.")
        if connection is not None and not connection.choice.local:
            return EconomyLine(
                key, "off", f"{connection.choice.label} is not a local engine: nothing is computed ahead."
            )
        now = self.now
        if now.state == "warming":
            return EconomyLine(key, "on", "The next turn's prompt is being computed.")
        if now.state == "ready":
            known = now.computed is not None and now.cached is not None
            told = f": {now.computed} tokens computed ahead, {now.cached} were in the cache" if known else ""
            return EconomyLine(key, "on", f"The next turn's prompt is computed{told}.")
        if now.state == "refused":
            return EconomyLine(key, "suspended", f"Nothing is computed ahead: {now.why}.")
        return EconomyLine(key, "on", f"Nothing is computed ahead now: {now.why}.")


def _goes_on(turn: ChatRequest, prewarm: ChatRequest) -> bool:
    warmed = prompt_of(prewarm.messages[:-1], prewarm.tools, prewarm.extra)
    return goes_on(prompt_of(turn.messages, turn.tools, turn.extra), warmed)


async def _within(seconds: float, flight: _Flight) -> bool:
    """Wait until `flight` is over, so long at most; True when it is."""
    try:
        async with asyncio.timeout(seconds):
            await flight.over.wait()
    except TimeoutError:
        return False
    return True
