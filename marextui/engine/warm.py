"""Warm resume: what a local server has computed for a conversation is kept when it is left, and brought back when it is
resumed (issue 4, section 7). It saves time or does nothing: whatever goes wrong, the prompt is computed as ever."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from marextui.context.redacted import holds_secret
from marextui.context.warm import DAY, LEAST_TOKENS, KeptState, file_at, file_for, outlived, pieces, worth_restoring
from marextui.engine.economy import EconomyLine
from marextui.engine.modelctl import ModelControl
from marextui.engine.ports import Clock
from marextui.models.types import ChatRequest, Connection, SlotStates

LEAVE_SECONDS = 5.0
"""Longest that leaving a conversation, or the program, may take for this."""
WAIT_SECONDS = 5.0
"""Longest that a request waits for a state that is being brought back."""
BUSY_PAUSE = 1.2
"""Seconds after which a busy server is asked once more."""
KEPT_DAYS = 14
"""Days after which a state is deleted."""
MEGABYTE = 1_000_000

WarmMode = Literal["off", "on", "all"]


class StateFiles(Protocol):
    """The part of `store.warm.WarmStates` that is used here. Everything raises OSError."""

    async def all(self) -> tuple[KeptState, ...]: ...

    async def record(self, state: KeptState) -> None: ...

    async def intact(self, state: KeptState) -> bool: ...

    async def forget(self, states: Iterable[KeptState]) -> None: ...

    async def make_room(self, file: str) -> None: ...

    async def discard(self, file: str) -> None: ...

    async def sweep(self, before: float) -> None: ...


class _Not(Exception):
    """There is nothing to save or to bring back; the text is a sentence for `/status`."""


@dataclass(slots=True)
class WarmResume:
    """States of the model in use. `mode` "on": the embedded engine's; "all": also those of other local llama.cpp
    servers that were started with a folder for them."""

    mode: WarmMode
    most_mb: int
    files: StateFiles
    control: ModelControl
    clock: Clock
    last: str = ""
    """What was done last, in a sentence."""
    connection: Connection | None = None
    """The one whose slot is followed."""
    _in_slot: str = ""
    _restoring: asyncio.Task[None] | None = field(default=None)

    # -- going and coming ------------------------------------------------------------------------------------------

    async def leave(self, conversation: str, view: Callable[[Connection], ChatRequest]) -> None:
        """Save what the slot holds of `conversation`, whose next request would be `view`. Never raises."""
        if self._restoring is not None and not self._restoring.done():
            self._restoring.cancel()
            await asyncio.wait({self._restoring})
        try:
            states, connection = self._usable()
            async with asyncio.timeout(LEAVE_SECONDS):
                self.last = await self._save(states, connection, conversation, view(connection))
        except _Not as why:
            self.last = str(why)
        except TimeoutError:
            self.last = "Nothing was saved: the server did not answer in time."
        except OSError as problem:
            self.last = f"Nothing was saved: {problem.strerror or problem}."

    def enter(self, conversation: str, view: Callable[[Connection], ChatRequest]) -> None:
        """Begin to bring back the state of `conversation`, if one was saved and its next request goes on with it.

        A request that leaves from now on waits for it, at most `WAIT_SECONDS`.
        """
        try:
            states, connection = self._usable()
            if not connection.slots.idle:
                raise _Not("Nothing was brought back: a request was under way.")
        except _Not as why:
            self.last = str(why)
            return
        under_way = self._restoring is not None and not self._restoring.done()
        if self._in_slot != conversation and not under_way:
            self._restoring = asyncio.create_task(self._enter(states, connection, conversation, view(connection)))

    async def _enter(
        self, states: SlotStates, connection: Connection, conversation: str, next_one: ChatRequest
    ) -> None:
        try:
            self.last = await self._restore(states, connection, conversation, next_one)
        except _Not as why:
            self.last = str(why)
        except OSError as problem:
            self.last = f"Nothing was brought back: {problem.strerror or problem}."

    def _usable(self) -> tuple[SlotStates, Connection]:
        connection = self.control.connection
        if self.mode == "off":
            raise _Not("Not switched on: a resumed conversation is computed anew.")
        if connection is None or not connection.alive:
            raise _Not("No model is ready.")
        states = connection.states
        if states is None or not connection.choice.local:
            raise _Not("This server cannot keep what it has computed.")
        if states.folder is None and self.mode != "all":
            raise _Not("Only the embedded engine's work is kept; set warm_resume to all for servers that can.")
        return states, connection

    def follow(self, connection: Connection) -> None:
        """What the slot of `connection` holds is known from the requests that leave from now on."""
        self.connection, self._in_slot = connection, ""
        connection.slots.before_departure.append(self._departs)

    async def _departs(self, request: ChatRequest) -> None:
        restoring = self._restoring
        if restoring is not None and not restoring.done():
            await asyncio.wait({restoring}, timeout=WAIT_SECONDS)
        if request.kind == "main":
            self._in_slot = request.conversation
        elif request.kind != "prewarm" or request.conversation != self._in_slot:
            self._in_slot = ""

    # -- saving ------------------------------------------------------------------------------------------------------

    async def _save(self, states: SlotStates, connection: Connection, conversation: str, view: ChatRequest) -> str:
        step = connection.slots.last_step
        if self._in_slot != conversation or step is None or step.request.conversation != conversation:
            raise _Not("Nothing was saved: the server holds no step of this conversation.")
        if not connection.slots.idle:
            raise _Not("Nothing was saved: a request was under way.")
        await self._one_free_slot(connection)
        # a state holds every token of its prompt: what no other write to disk may hold
        if await asyncio.to_thread(holds_secret, [*step.request.messages, *view.messages]):
            raise _Not(
                "Nothing was saved: the conversation holds what looks like a secret, and none is written to disk."
            )
        engine = await states.engine()
        if not engine:
            raise _Not("Nothing was saved: the server does not tell which model and build it is.")
        ours = states.folder is not None
        file = file_for(conversation) if ours else file_at(_place(), conversation, await self.files.all())
        await self.files.make_room(file)
        kept = False
        try:
            tokens, size = await self._written(states, file)
            seen = size if ours else None
            state = KeptState(file, conversation, engine, _prompt(step.request), tokens, seen, self.clock.now())
            await self.files.record(state)
            kept = True
        finally:
            if ours and not kept:  # a full disk has half of it
                await self.files.discard(file)
        await self._tidy()
        return f"{tokens} computed tokens were saved ({size / MEGABYTE:.0f} MB) when the conversation was left."

    async def _written(self, states: SlotStates, file: str) -> tuple[int, int]:
        """(tokens, bytes) of the state written as `file`, if it is one worth keeping."""
        saved = await states.save(file)
        if saved is None:
            raise _Not(
                "Nothing was saved: the server keeps no states (llama.cpp's --slot-save-path), was busy or has no room."
            )
        if saved[0] < LEAST_TOKENS:
            raise _Not(f"Nothing was saved: {saved[0]} tokens are computed again sooner.")
        return saved

    async def _tidy(self) -> tuple[KeptState, ...]:
        """Delete what is too old or too much; returns what is left."""
        now = self.clock.now()
        kept = await self.files.all()
        gone = outlived(kept, now=now, days=KEPT_DAYS, most_bytes=self.most_mb * MEGABYTE)
        await self.files.forget(gone)
        await self.files.sweep(now - DAY)
        return tuple(state for state in kept if state not in gone)

    # -- bringing back -----------------------------------------------------------------------------------------------

    async def _restore(
        self, states: SlotStates, connection: Connection, conversation: str, next_one: ChatRequest
    ) -> str:
        kept = [k for k in await self._tidy() if k.conversation == conversation]
        if not kept:
            raise _Not("Nothing was saved of this conversation.")
        engine, prompt = await states.engine(), _prompt(next_one)
        state = max(kept, key=lambda k: k.saved_at)
        if not worth_restoring(state, engine, prompt):
            await self.files.forget((state,))
            raise _Not("What was saved of this conversation is of another model or beginning; it is computed anew.")
        await self._one_free_slot(connection)
        whole = await self.files.intact(state)
        tokens = await states.restore(state.file) if whole else None
        if tokens != state.tokens:
            await self.files.forget((state,))
            raise _Not("The server did not take what was saved of this conversation; it is computed anew.")
        self._in_slot = conversation
        return f"{tokens} computed tokens were brought back when the conversation was resumed."

    async def _one_free_slot(self, connection: Connection) -> None:
        """With several slots nobody knows which one is whose; one at work answers when it is done."""
        facts = await self.control.read_slots(connection)
        if facts.total != 1:
            raise _Not("The server has several slots, or does not tell: nothing is kept.")
        if facts.busy:  # it may only not have noticed yet that a prewarm was closed
            await self.clock.sleep(BUSY_PAUSE)
            facts = await self.control.read_slots(connection)
        if facts.busy:
            raise _Not("The server is busy with something else.")

    # -- telling -----------------------------------------------------------------------------------------------------

    def status(self) -> EconomyLine:
        """For `/status` (issue 4, section 5)."""
        try:
            self._usable()
        except _Not as why:
            return EconomyLine("warm_resume", "off" if self.mode == "off" else "suspended", str(why))
        fresh = "What is computed for a conversation is saved when it is left."
        return EconomyLine("warm_resume", "on", self.last or fresh)


def _prompt(request: ChatRequest) -> tuple[str, ...]:
    return pieces(request.messages, request.tools, request.extra.get("chat_template_kwargs") or {})


def _place() -> str:
    return platform.node()
