"""One turn: steps of model call and tool calls until the final answer, the budget looked at before every call (M2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from marextui.context.entries import MessageAdded, Trigger, TurnEnd, UsageMeasured
from marextui.context.messages import Message, to_wire
from marextui.context.validate import violations
from marextui.engine.bus import Bus
from marextui.engine.compactor import Compactor
from marextui.engine.events import StepRefused, StepStarted, StreamDropped
from marextui.engine.meter import Meter, Reading
from marextui.engine.omitter import Omitter
from marextui.engine.ports import Clock, Ids
from marextui.engine.prompt import SystemPart
from marextui.engine.refusal import refusal
from marextui.engine.reply import Reply
from marextui.engine.session import Session
from marextui.engine.toolrun import ToolRunner
from marextui.models.types import ChatModel, ChatRequest, ModelError, Usage

ViewListener = Callable[[tuple[dict[str, Any], ...], Reading, bool], None]
"""Sees every view as it is about to be sent: wire messages, its figures, whether it is valid."""


class Host(Protocol):
    """What a turn asks of the engine around it."""

    def system_part(self) -> SystemPart: ...

    def gauge_changed(self, reading: Reading) -> None: ...

    def why_not(self, reading: Reading) -> str: ...

    def window_learned(self, tokens: int) -> None: ...

    def today(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Fixed figures of a turn: `tool_rounds` most steps with tools; `max_tokens` of an answer (None: provider's)."""

    tool_rounds: int
    max_tokens: int | None
    temperature: float | None
    local: bool
    tools: bool
    on_refused: Literal["stop", "play_on"] = "stop"
    offline_summaries: bool = False


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


@dataclass(slots=True)
class TurnRunner:
    """Runs the steps of one turn of `session`."""

    session: Session
    chat: ChatModel
    host: Host
    meter: Meter
    omitter: Omitter
    compactor: Compactor
    tools: ToolRunner
    bus: Bus
    clock: Clock
    ids: Ids
    limits: Limits
    on_view: ViewListener | None = None
    totals: Totals = field(default_factory=Totals)
    _reply: Reply | None = None

    async def run(self, turn: int) -> None:
        """Steps until the final answer. Raises `TurnFailed`; cancelling leaves a valid log (partial text kept)."""
        await self.omitter.at_turn_start(self.session, turn)
        step = 0
        while True:
            step += 1
            self.totals.steps = step
            asked = step <= self.limits.tool_rounds or not self.limits.tools
            message = await self._step(turn, step, may_call=asked)
            if message is None or not message.tool_calls:
                return
            await self.tools.run_all(self.session, message.tool_calls, turn=turn, window=self.meter.window.tokens)

    async def _prepare(self, turn: int, step: int) -> tuple[SystemPart, Reading]:
        """Measure, compact when due, make room when it would not fit (M2, M5, M10).

        After the first step the cut may also fall inside the turn, before an assistant that opens a tool group (B13).
        """
        self.bus.enter("preparing")
        part = self.host.system_part()
        reading = self.meter.read(self.session, part)
        if (
            reading.over_threshold
            and not self.host.why_not(reading)
            and await self._compact(reading, mid_turn=step > 1)
        ):
            part = self.host.system_part()
            reading = self.meter.read(self.session, part)
        if reading.over_budget and await self.omitter.make_room(self.session, turn, reading.over_budget):
            reading = self.meter.read(self.session, part)
        self.host.gauge_changed(reading)
        return part, reading

    async def _compact(self, reading: Reading, *, trigger: Trigger = "threshold", mid_turn: bool = False) -> bool:
        done = await self.compactor.compact(
            self.session,
            reading,
            trigger=trigger,
            chat=None if self.limits.offline_summaries else self.chat,
            offline=self.limits.offline_summaries,
            extra=summary_extra(self.limits.local),
            dated=self.host.today(),
            mid_turn=mid_turn,
        )
        self.totals.compacted = self.totals.compacted or done
        return done

    async def _step(self, turn: int, step: int, *, may_call: bool, resent: bool = False) -> Message | None:
        part, reading = await self._prepare(turn, step)
        history = self.session.history()
        wire: tuple[dict[str, Any], ...] = (part.wire(), *(to_wire(m) for m in history))
        self.bus.emit(
            StepStarted(
                turn,
                step,
                reading.used,
                reading.budget,
                None if reading.threshold is None else int(reading.threshold),
                reading.estimated,
                len(wire),
            )
        )
        if self.on_view is not None:
            system = Message("system", "system", part.text, origin="system")
            self.on_view(wire, reading, not violations((system, *history)))
        if reading.over_budget and reading.budget is not None:
            reason = refusal(history, reading, self.session.ledger)
            self.bus.emit(StepRefused(turn, step, reading.used, reading.budget, reason))
            if self.limits.on_refused == "stop":
                raise TurnFailed(
                    "refused", reason, "Shorten the message, use a larger window, or start /new.", retry=False
                )
        extra = turn_extra(self.limits, may_call=may_call)
        request = ChatRequest(
            messages=wire,
            tools=part.tools,
            max_tokens=self.limits.max_tokens,
            temperature=self.limits.temperature,
            stream=True,
            extra=extra,
        )
        try:
            return await self._ask(request, turn, part, may_call)
        except ModelError as problem:
            if problem.kind == "overflow" and not resent:
                if problem.n_ctx:
                    self.host.window_learned(problem.n_ctx)
                if await self._shrink_after_overflow(turn, part):
                    return await self._step(turn, step, may_call=may_call, resent=True)
            raise TurnFailed("error", problem.message, problem.hint) from problem

    async def _shrink_after_overflow(self, turn: int, part: SystemPart) -> bool:
        """The server said the prompt is too long: compact or omit once, True when something got smaller (B17)."""
        reading = self.meter.read(self.session, part)
        before = reading.used
        if reading.threshold is not None and await self._compact(reading, trigger="overflow", mid_turn=True):
            return True
        return await self.omitter.make_room(self.session, turn, max(1, before // 2)) > 0

    async def _ask(self, request: ChatRequest, turn: int, part: SystemPart, may_call: bool) -> Message | None:
        """Send one request and log what it gives. Raises `ModelError`; text that arrived before an error is kept."""
        reply = self._reply = Reply(self.ids.new("m"), turn, self.bus)
        history = self.session.history()
        sent_at = self.clock.monotonic()
        self.bus.enter("connecting")
        stream = self.chat.stream(request)
        try:
            async for chunk in stream:
                reply.feed(chunk)
                if reply.streamed and self.totals.first_token_ms is None:
                    self.totals.first_token_ms = int((self.clock.monotonic() - sent_at) * 1000)
        except (ModelError, asyncio.CancelledError):
            await self._keep_partial(reply)
            raise
        finally:
            await _close(stream)
        self.totals.add(reply.usage)
        speed = reply.timings.get("predicted_per_second")
        self.totals.predicted_per_second = speed if speed else self.totals.predicted_per_second
        taken = frozenset(c.id for m in history for c in m.tool_calls)
        message = reply.message(taken_ids=taken, drop_repeats=self.limits.local)
        if message is None:
            self.bus.emit(StreamDropped(reply.message_id))
            if reply.finish_reason == "length":
                raise TurnFailed("error", "The answer was cut off before any text: the output limit was spent.")
            return None
        if not may_call and message.tool_calls:
            raise TurnFailed(
                "error",
                f"The model kept calling tools after {self.limits.tool_rounds} rounds; the turn was ended.",
                "Ask again more narrowly, or raise max_tool_rounds.",
            )
        await self.session.append(MessageAdded(message))
        self._measure(reply, history, request, part)
        if reply.usage is not None and reply.usage.inp:
            await self.session.append(
                UsageMeasured(history[-1].id if history else "", reply.usage.inp, reply.usage.out or 0, "")
            )
        return message

    def _measure(self, reply: Reply, history: tuple[Message, ...], request: ChatRequest, part: SystemPart) -> None:
        """Learn from what the provider counted: the factor of the estimate, cached and computed tokens (M39)."""
        usage = reply.usage
        if usage is None or usage.inp is None:
            self.meter.cached = self.meter.computed = None
            return
        self.meter.cached = usage.cache_read
        self.meter.computed = None if usage.cache_read is None else max(0, usage.inp - usage.cache_read)
        ledger = self.session.ledger
        estimated = ledger.text(part.text) + ledger.messages(history) + (ledger.tools(part.tools) if part.tools else 0)
        ledger.learn(usage.inp, estimated)

    async def _keep_partial(self, reply: Reply) -> None:
        """Log the text that had arrived: nothing a person has read may vanish."""
        message = reply.partial()
        if message is None:
            self.bus.emit(StreamDropped(reply.message_id))
            return
        await self.session.append(MessageAdded(message))


async def _close(stream: Any) -> None:
    closing = getattr(stream, "aclose", None)
    if closing is not None:
        await closing()


def turn_extra(limits: Limits, *, may_call: bool) -> dict[str, Any]:
    """Body fields of a turn beside the usual ones. After the last tool round the tools stay in the prompt (the cached
    prefix must not change) but may not be called."""
    extra: dict[str, Any] = {}
    if limits.local:
        extra["return_progress"] = True
    if not may_call:
        extra["tool_choice"] = "none"
    return extra


def summary_extra(local: bool) -> dict[str, Any]:
    """Body fields of a summary request: thinking off where the engine is local and understands it (M12)."""
    return {"chat_template_kwargs": {"enable_thinking": False}} if local else {}
