"""Keeps the connection to the chosen model: starts it in the background, restarts it on retry, switches it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from marextui.engine.api import ModelOption
from marextui.engine.bus import Bus
from marextui.engine.events import ModelFailed, ModelLoading, ModelNeeded, ModelReady
from marextui.engine.ports import Clock
from marextui.models.slots import SlotFacts
from marextui.models.types import Connection, LoadProgress, ModelChoice, ModelError, ModelHub

SERVER_LOADS = "the server is loading its model"
"""What the phase says meanwhile."""
LOADING_PAUSE = 2.0
"""Seconds between two questions to a server that is loading its model."""
LONGEST_LOADING = 600.0
"""Seconds that a server may take for that."""


class NoModel(Exception):
    """Nothing is configured, installed or running."""


def option_id(choice: ModelChoice) -> str:
    """The opaque id a screen picks `choice` by."""
    return f"{choice.kind}|{choice.base_url}|{choice.name}"


@dataclass(slots=True)
class ModelControl:
    """One connection at a time. `ensure` is single-flight: the background start and a first prompt share it."""

    hub: ModelHub
    bus: Bus
    clock: Clock
    choice: ModelChoice | None = None
    connection: Connection | None = None
    failed: str = ""
    nothing: bool = False
    """There is no model to use at all."""
    leaving: Callable[[], Awaitable[None]] | None = None
    """Awaited before a connection is closed: it ends what still uses it."""
    swapped: Callable[[Connection, int | None, str], Awaitable[None]] | None = None
    """Awaited when the server was found to hold another model or window: told the window of before (tokens; None: not
    known) and the new model's own name ("": the same, or not said)."""
    _task: asyncio.Task[Connection] | None = None
    _waiting: bool = False
    """The server is loading its model; it is asked again."""
    _served: str = ""
    """What the server called its model when its slots were last looked at."""
    _known: dict[str, ModelChoice] = field(default_factory=dict)

    @property
    def loading(self) -> bool:
        """A model is about to be made ready, or being so: it will say its window."""
        return self.connection is None and not self.failed and not self.nothing

    @property
    def label(self) -> str:
        return self.choice.label if self.choice else ""

    async def ensure(self) -> Connection:
        """The ready connection, connecting if needed. Raises `ModelError`, `NoModel`.

        Cancelling the caller does not stop a start under way: the model will be there for the next try.
        """
        if self.connection is not None:
            return self.connection
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._connect())
        return await asyncio.shield(self._task)

    async def _connect(self) -> Connection:
        if self.choice is None:
            self.choice = await self.hub.default()
        self.nothing = self.choice is None
        if self.choice is None:
            self.bus.emit(ModelNeeded())
            raise NoModel("no model is configured, installed or running")
        choice = self.choice
        self.bus.emit(ModelLoading(choice.label, "connecting"))

        try:
            connection = await self._patiently(choice)
        except ModelError as problem:
            self.failed = problem.message
            self.bus.emit(ModelFailed(choice.label, problem.message, problem.hint))
            raise
        self.failed = ""
        self.connection = connection
        window = connection.window
        self.bus.emit(ModelReady(choice.label, choice.local, connection.supports_tools, window.tokens, window.source))
        return connection

    async def _patiently(self, choice: ModelChoice) -> Connection:
        """Connect; a server that says it is loading its model is asked again until it has, or for ten minutes."""

        def progress(p: LoadProgress) -> None:
            if not self._waiting:
                self.bus.emit(ModelLoading(choice.label, p.stage, p.done, p.total))

        until = self.clock.monotonic() + LONGEST_LOADING
        try:
            while True:
                try:
                    return await self.hub.connect(choice, progress)
                except ModelError as problem:
                    patient = problem.kind == "loading" and choice.kind == "endpoint"
                    if not patient or self.clock.monotonic() >= until:
                        raise
                self._waiting = True
                self.bus.emit(ModelLoading(choice.label, SERVER_LOADS))
                await self.clock.sleep(LOADING_PAUSE)
        finally:
            self._waiting = False

    def stop_waiting(self) -> bool:
        """Wait no longer for a server that is loading its model; True when it was waited for."""
        if not self._waiting or self._task is None:
            return False
        self._task.cancel()
        self._task, self._waiting = None, False
        self.failed = "The server is still loading its model."
        self.bus.emit(ModelFailed(self.label, self.failed, "Retry, or send a message, to wait for it again."))
        return True

    async def read_slots(self, connection: Connection) -> SlotFacts:
        """What the server tells of its slots. One that was swapped under its address is noticed: its window is asked
        for anew, and it holds nothing of ours (L18)."""
        facts = await connection.read_slots()
        before = connection.window
        if before.source != "override" and facts.window not in (None, before.tokens):
            await connection.refresh_window()
        served, self._served = self._served, facts.model or self._served
        name = facts.model if served and facts.model != served else ""
        if connection is self.connection and (name or connection.window.tokens != before.tokens):
            connection.slots.forget("the server was started anew, with another model or window")
            if self.swapped is not None:
                await self.swapped(connection, before.tokens, name)
        return facts

    async def drop(self) -> None:
        """Close the connection (ends a child process); the next `ensure` connects again."""
        if self.leaving is not None:
            await self.leaving()
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
        connection, self.connection, self._served = self.connection, None, ""
        if connection is not None:
            await connection.aclose()

    async def options(self) -> list[ModelOption]:
        """Everything usable now, for the picker; remembers the choices behind the ids."""
        choices = await self.hub.choices()
        if self.choice is not None and option_id(self.choice) not in {option_id(c) for c in choices}:
            choices = [self.choice, *choices]
        self._known = {option_id(c): c for c in choices}
        current = option_id(self.choice) if self.choice else ""
        return [ModelOption(key, c.label, c.detail, c.kind, c.local, key == current) for key, c in self._known.items()]

    async def select(self, key: str) -> bool:
        """Switch to the option `key`; False when it is not known. Connects in the background."""
        choice = self._known.get(key)
        if choice is None:
            return False
        await self.use(choice)
        return True

    async def use(self, choice: ModelChoice) -> None:
        """Switch to `choice`."""
        await self.drop()
        self.choice = choice
