"""Everything around the open conversation that its activities share: the parts, the window in force, the gauge."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Literal

from marextui.context.budget import UNKNOWN_WINDOW, late_trigger_warning, settle_window
from marextui.context.bulk import MEGABYTE
from marextui.context.calibration import Calibration
from marextui.context.policy import MIN_MESSAGES, Attempts, already_tried, given_up, why_no_compaction
from marextui.context.project_block import SYSTEM_LINE
from marextui.context.sanitise import one_line
from marextui.context.triggers import Moment, Trigger, moment_of
from marextui.engine.archive import Archive
from marextui.engine.assembly import Limits, turn_request
from marextui.engine.bus import Bus
from marextui.engine.cache_watch import CacheWatch
from marextui.engine.compactor import Compactor
from marextui.engine.desk import Desk
from marextui.engine.economy import EconomyLine
from marextui.engine.event_values import Gauge
from marextui.engine.events import GaugeChanged, Notice
from marextui.engine.meter import Meter, Reading
from marextui.engine.modelctl import ModelControl
from marextui.engine.omitter import DAY, Omitter
from marextui.engine.originals import Originals
from marextui.engine.permissions import Permissions
from marextui.engine.policy import Policy
from marextui.engine.ports import CalibrationFile, Clock, Ids
from marextui.engine.project import ProjectDesk, Telling
from marextui.engine.prompt import BASE_PROMPT, BASE_PROMPT_NO_TOOLS, SystemPart
from marextui.engine.session import Session
from marextui.engine.toolrun import ToolRunner
from marextui.engine.turn_terms import ViewListener
from marextui.engine.usage import UsageBook
from marextui.engine.warm import WarmResume
from marextui.models.types import ChatRequest, Connection, Usage
from marextui.store.database import StoreError

FREE_DISK = "Free disk space, then retry."

PROJECT_TOOLS = frozenset({"MemoryPage", "Tracker"})
"""Tools that are offered only where a project uses them: their schemas are sent with every request."""

SAVE_FROM = 0.02
"""Least change of a model's factor that is written to disk."""


@dataclass(slots=True)
class EngineState:
    """The parts of a running engine and the figures they agree on. Implements `turn_terms.Host`."""

    policy: Policy
    bus: Bus
    clock: Clock
    ids: Ids
    control: ModelControl
    archive: Archive
    omitter: Omitter
    originals: Originals
    desk: Desk
    meter: Meter
    runner: ToolRunner
    permissions: Permissions
    usage: UsageBook
    compactor: Compactor
    cache: CacheWatch
    on_view: ViewListener | None = None
    retryable: Literal["", "turn", "model"] = ""
    learned: int | None = None
    calibration_file: CalibrationFile | None = None
    warm: WarmResume | None = None
    calibration: Calibration = field(default_factory=Calibration)
    _saved_factors: Calibration | None = None
    _calibrated_for: str | None = None
    _purged_at: float = 0.0
    _cycle: int = 0

    @property
    def session(self) -> Session:
        return self.archive.session

    # -- the window and the model ------------------------------------------------------------------------------------

    async def connected(self) -> Connection:
        """The ready model; settles the window on the way. Raises `ModelError`, `NoModel`."""
        connection = await self.control.ensure()
        self._use_calibration(connection.choice.name)
        before = self.meter.window
        self.settle_window(connection)
        self.refresh_gauge()
        if self.meter.window != before:  # the excerpt of memory that is injected depends on the window (M35)
            await self.desk.announce(self.meter.window.tokens)
        if self.warm is not None and self.warm.connection is not connection:
            self.warm.follow(connection)
            self.enter_slot()
        return connection

    def settle_window(self, connection: Connection | None) -> None:
        """Override, learned, discovered or known default (M3)."""
        found = connection.window if connection else UNKNOWN_WINDOW
        default = found.source == "known default"
        before = self.meter.window.tokens
        self.meter.window = settle_window(
            self.policy.window_override,
            self.learned,
            None if default else found.tokens,
            found.tokens if default else None,
        )
        if self.meter.window.tokens != before:
            self.compactor.conditions_changed()
        if connection is not None:
            connection.slots.stamping = self.policy.compact_continuation and connection.choice.local
            connection.slots.settle(connection.choice.name, self.meter.window.tokens)

    def economy_allowed(self) -> bool:
        """Whether the features that save a local engine work may run at all: never for an external model (B25)."""
        choice = self.control.choice
        return choice is not None and choice.local

    def economy(self) -> tuple[EconomyLine, ...]:
        """How things stand with each feature that saves a local engine work, for `/status`."""
        going_on = self.compactor.summariser.continuation
        lines = () if going_on is None else (going_on.status(self.session.id),)
        local = None if self.control.choice is None else self.control.choice.local
        warm = () if self.warm is None else (self.warm.status(),)
        return (*lines, self.project.status(self.session, self.policy.proj_snapshot, local), *warm)

    async def leave_slot(self) -> None:
        """The open conversation, or its model, is about to be left: keep what was computed for it."""
        if self.warm is not None and self.archive.is_open and self.session.conversation.messages:
            await self.warm.leave(self.session.id, self.dry_request)

    def enter_slot(self) -> None:
        """A conversation is open and its model is ready: bring back what was computed for it."""
        if self.warm is not None and self.session.conversation.messages:
            self.warm.enter(self.session.id, self.dry_request)

    def forget_window(self) -> None:
        """Another model: what was learned of the former one does not hold."""
        self.learned = None
        self.cache.forget()
        self.settle_window(None)
        self.compactor.conditions_changed()
        self.session.refills.forget()

    def window_learned(self, tokens: int, *, told: bool = True) -> None:
        """A server error named its window: that is discovery, not a guess (M4). `told` False: it was said already."""
        if tokens != self.learned:
            self.learned = tokens
            self.settle_window(self.control.connection)
        else:
            told = False
        if told:
            self.bus.emit(Notice("info", f"The server says its window is {tokens} tokens; the budget follows it."))

    def window_held(self, tokens: int) -> None:
        """The server took a prompt of so many tokens: what was learned of a smaller window was wrong."""
        if self.learned is not None and tokens > self.learned:
            learned, self.learned = self.learned, None
            self.settle_window(self.control.connection)
            text = f"The server took a prompt of {tokens} tokens: its window is not {learned} tokens, as it seemed."
            self.bus.emit(Notice("info", text, "The budget follows what the server or the settings say again."))

    async def server_swapped(self, connection: Connection, before: int | None, name: str) -> None:
        """The server under the same address holds another model or window: the budget follows it (M3)."""
        self.learned = None
        self.settle_window(connection)
        now = connection.window.tokens
        text = f"The server holds another model now: {one_line(name, 60)}." if name else "The server was started anew."
        if now != before:
            known = "not known" if now is None else f"{now} tokens"
            text += f" Its window is {known} now" + ("." if before is None else f"; it was {before} tokens.")
        self.bus.emit(Notice("info", text, "The budget follows it." if now != before else ""))
        self.refresh_gauge()
        await self.desk.announce(self.meter.window.tokens)

    @property
    def model(self) -> str:
        """The name of the model in use, "" for none."""
        return self.control.choice.name if self.control.choice else ""

    # -- other processes ---------------------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Fold in what another process wrote to this conversation: only where no lock could be had (`Archive.opened`).

        Raises `StoreError`.
        """
        if await self.session.catch_up():
            text = "Another marextui has written to this conversation; what it added is taken over."
            self.bus.emit(Notice("info", text))

    async def load_calibration(self) -> None:
        """What earlier runs have learned of models (case 91); a file that cannot be read is learned anew."""
        if self.calibration_file is None or self._saved_factors is not None:
            return
        try:
            self.calibration = await self.calibration_file.load()
        except OSError as problem:
            self.bus.warn_once(f"What was learned of models' counting could not be read: {problem.strerror or problem}")
        self._saved_factors = self.calibration

    def _use_calibration(self, model: str) -> None:
        if self._calibrated_for != model:
            self._calibrated_for = model
            self.meter.ledger.factor = self.calibration.factor(model)

    async def calibrated(self) -> None:
        """The ledger's factor was corrected for the model in use: remember it, on disk when it moved enough."""
        if self._calibrated_for is None:
            return
        model, factor = self._calibrated_for, self.meter.ledger.factor
        if factor != self.calibration.factor(model):
            self.calibration = self.calibration.learned(model, factor)
        saved = self._saved_factors
        if self.calibration_file is None or saved is None or abs(factor - saved.factor(model)) < SAVE_FROM:
            return
        self._saved_factors = self.calibration
        try:
            await self.calibration_file.save(self.calibration)
        except OSError as problem:
            self.bus.warn_once(f"What was learned of this model could not be saved: {problem.strerror or problem}")

    # -- what is sent and how full it is -----------------------------------------------------------------------------

    def system_part(self) -> SystemPart:
        """The system part of the next request: tools only for a model that can call them (B2)."""
        connection = self.control.connection
        may_call = connection is None or connection.supports_tools
        how = self.telling()
        unused = frozenset() if self.project.offers_tools(how) else PROJECT_TOOLS
        tools = tuple(s.wire() for s in self.runner.box.specs() if s.name not in unused) if may_call else ()
        base = self.policy.base_prompt or (BASE_PROMPT if may_call else BASE_PROMPT_NO_TOOLS)
        frozen = how.on and how.told
        if frozen:
            base = f"{base}\n{SYSTEM_LINE}"
        block = self.project.block(self.session, how)
        return self.desk.system_part(how.window, tools, base, block, frozen=frozen)

    @property
    def project(self) -> ProjectDesk:
        return self.desk.about

    def telling(self) -> Telling:
        """How the next request tells of the project: as a copy with the key and a local engine (L70), not at all to a
        model without tools (L69)."""
        connection = self.control.connection
        on = self.policy.proj_snapshot and self.economy_allowed()
        return Telling(on, connection is None or connection.supports_tools, self.meter.window.tokens)

    async def settle_project(self, turn: int) -> bool:
        """Decide what the next request tells of the project, once the view is as it will be sent; True when that
        changed the view. Raises `StoreError`.

        What a compaction has added to memory is read at once: the prompt changes from its beginning now, so that it
        need not change again with the next turn (I7).
        """
        if self._cycle != self.session.conversation.cycle:
            self._cycle = self.session.conversation.cycle
            await self.refresh_memory()
        choice = self.control.choice
        if choice is None or not self.session.conversation.messages:
            return False
        return await self.project.settle(self.session, turn, self.telling(), self.system_part(), choice.name)

    def limits(self, connection: Connection) -> Limits:
        """The fixed figures of a turn with this model."""
        rounds = self.policy.max_tool_rounds
        if connection.max_tool_rounds is not None:
            rounds = min(rounds, connection.max_tool_rounds)
        return Limits(
            tool_rounds=rounds,
            max_tokens=self.meter.reserve() or None,
            temperature=self.policy.temperature,
            local=connection.choice.local,
            tools=connection.supports_tools,
            on_refused=self.policy.on_refused,
            offline_summaries=self.policy.offline_summaries,
        )

    def dry_request(self, connection: Connection) -> ChatRequest:
        """The request a turn's first step would send now, made by the turn's own code; touches nothing (L34)."""
        return turn_request(
            self.system_part(),
            self.session.history(),
            self.limits(connection),
            echo_reasoning=self.session.ledger.echo_reasoning,
            conversation=self.session.id,
        )

    def reading(self) -> Reading:
        """The figures of the next request, as of now."""
        return self.meter.read(self.session, self.system_part())

    def why_not(self, reading: Reading, *, lasting: bool = False) -> str:
        """The first condition that forbids automatic compaction (M18–M20, I4), "" when none does.

        `lasting` leaves out what the next messages will change by themselves (their number, a try already made).
        """
        attempts: Attempts = self.compactor.attempts
        stopped = self.session.refills.sentence() or given_up(attempts)
        return why_no_compaction(
            auto=self.policy.auto_compress,
            messages=max(MIN_MESSAGES if lasting else 0, len(self.session.history())),
            window=reading.window.tokens,
            budget=reading.budget,
            tried=stopped
            if stopped or lasting
            else already_tried(
                attempts,
                messages=len(self.session.conversation.messages),
                used=reading.used,
                turn=self.session.conversation.turn,
                window=reading.window.tokens,
                system=reading.system_part,
                over_budget=reading.over_budget > 0,
            ),
        )

    def moment(self, reading: Reading) -> Moment:
        """What a trigger looks at, as of now."""
        return moment_of(
            self.session.conversation,
            used=reading.used,
            budget=reading.budget,
            over_threshold=reading.over_threshold,
            mark=self.meter.mark,
        )

    @property
    def trigger(self) -> Trigger:
        return self.policy.trigger

    def triggers(self, reading: Reading) -> tuple[str, ...]:
        """When a compaction begins by itself, a clause each; () when it never does."""
        return self.trigger.explain(self.moment(reading)) if self.policy.auto_compress else ()

    def may_summarise(self) -> bool:
        """Whether the view may be summarised without being asked (M18)."""
        return self.policy.auto_compress

    @property
    def keep_images(self) -> int:
        return self.policy.keep_images

    @property
    def max_request_bytes(self) -> int:
        return self.policy.max_request_mb * MEGABYTE

    def gauge_changed(self, reading: Reading) -> None:
        """Tell the screen the figures of `reading`."""
        self.bus.emit(GaugeChanged(self.gauge(reading, self.why_not(reading, lasting=not reading.over_threshold))))
        self.cache.look(self.session.id)
        if reading.window.tokens and reading.budget and reading.budget > 0:
            self.bus.warn_once(
                late_trigger_warning(
                    reading.window.tokens,
                    reading.reserve,
                    reading.system_part,
                    self.policy.compact_at,
                    self.policy.compact_base,
                )
            )

    def gauge(self, reading: Reading, why_not: str) -> Gauge:
        """The picture of `reading`; while a model is being made ready, its window is not unknown but still to come."""
        auto, loading = self.policy.auto_compress, self.control.loading
        return self.meter.gauge(self.session, reading, auto=auto, why_not=why_not, loading=loading)

    def counted(self, usage: Usage | None) -> None:
        """The server counted the step that was just answered, or did not (None)."""
        self.cache.counted(usage, self._turn_of)

    def _turn_of(self, message_id: str) -> int:
        message = self.session.conversation.message(message_id)
        return 0 if message is None else message.turn

    def refresh_gauge(self) -> None:
        self.gauge_changed(self.reading())

    # -- time, disk --------------------------------------------------------------------------------------------------

    def today(self) -> str:
        """The moment as ISO 8601 in UTC, for memory entries."""
        moment = datetime.datetime.fromtimestamp(self.clock.now(), tz=datetime.UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def store_failed(self, problem: StoreError) -> None:
        """The log could not be written: say so; what was typed stays in the queue."""
        self.retryable = self.retryable or "turn"
        self.bus.emit(Notice("error", f"The conversation could not be saved: {problem}", FREE_DISK, "retry"))

    async def purge(self) -> None:
        """Once a day and at start-up: drop outputs past their retention (M29)."""
        now = self.clock.now()
        if now - self._purged_at < DAY:
            return
        self._purged_at = now
        try:
            gone = await self.omitter.store.purge(self.omitter.days)
        except OSError as problem:
            self.bus.emit(Notice("warning", f"Old tool outputs could not be purged: {problem.strerror or problem}"))
            return
        if gone:
            text = f"{len(gone)} tool output(s) older than {self.omitter.days} days were purged."
            self.bus.emit(Notice("info", text))

    async def refresh_memory(self) -> None:
        """Re-read the rules and notes if they changed, and tell the screen (M31)."""
        if await self.desk.refresh():
            await self.desk.announce(self.meter.window.tokens)

    async def opened(self) -> None:
        """Another conversation is open: reset what belonged to the former one, announce the state of this one."""
        await self.load_calibration()
        self.compactor.opened(self.session.id)
        self.project.opened()
        self._cycle = self.session.conversation.cycle
        self.permissions.granted.clear()
        if self.runner.seen is not None:
            self.runner.seen.load(self.session.conversation.files.values())
        self.meter.rewritten()
        self.cache.forget()
        self.retryable = ""
        if self.session.conversation.open_turn:
            self.retryable = "turn"
            hint = "Its last turn was cut off; retry or send a message to go on."
            text = "This conversation was interrupted by a crash; nothing that was logged is lost."
            self.bus.emit(Notice("warning", text, hint, "retry"))
        self.usage.open(self.session.conversation.turns)
        await self.purge()
        await self.desk.refresh()
        self.refresh_gauge()
        await self.desk.announce(self.meter.window.tokens)
