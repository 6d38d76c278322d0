"""One turn: steps of model call and tool calls until the final answer, the budget looked at before every call (M2)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from marextui.context.bulk import MEGABYTE
from marextui.context.calibration import raised
from marextui.context.entries import MessageAdded, UsageMeasured
from marextui.context.messages import Message
from marextui.context.triggers import OVERFLOW, THRESHOLD, Trigger
from marextui.engine.assembly import Limits, summary_extra, turn_request
from marextui.engine.bus import Bus
from marextui.engine.compactor import Compactor
from marextui.engine.counting import Counting
from marextui.engine.events import Notice, StepRefused, StepStarted, StreamDropped
from marextui.engine.meter import Meter, Reading
from marextui.engine.omitter import Omitter
from marextui.engine.ports import Clock, Ids
from marextui.engine.prompt import SystemPart
from marextui.engine.reducer import Reducer
from marextui.engine.refusal import floor, refusal, too_heavy
from marextui.engine.reply import Reply
from marextui.engine.session import Session
from marextui.engine.toolrun import ToolRunner
from marextui.engine.turn_terms import Host, Totals, TurnFailed, ViewListener
from marextui.engine.unfinished import Unfinished
from marextui.models.types import ChatModel, ChatRequest, ModelError
from marextui.models.usage import with_cache

MAX_REDUCTIONS = 2
"""Most times one step is sent again after a server found it too large; each time smaller (B17, case 43)."""
OVERFLOW_SHARE = 0.6
"""Share of the window that a reduction after an overflow aims at (B17)."""
RETRY_SHARES = (0.8, 0.5)
"""Most of the former history that the first and the second retry may still have."""

REFILL_HINT = "Ask for less at once, or take a model with a larger window (/model); /compact goes on all the same."


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
    unfinished: Unfinished
    on_view: ViewListener | None = None
    totals: Totals = field(default_factory=Totals)
    reducer: Reducer = field(init=False)
    _reply: Reply | None = None
    _told_refills: bool = False

    def __post_init__(self) -> None:
        self.reducer = Reducer(self.session, self.host, self.meter, self.omitter, self.compactor, self.bus)

    async def run(self, turn: int) -> None:
        """Steps until the final answer. Raises `TurnFailed`; cancelling leaves a valid log (partial text kept)."""
        await self._begin(turn)
        step = 0
        while True:
            step += 1
            self.totals.steps = step
            message = await self._step(turn, step, may_call=self.limits.may_call(step))
            if message is None or not message.tool_calls:
                return
            await self.tools.run_all(
                self.session,
                message.tool_calls,
                turn=turn,
                window=self.meter.window.tokens,
                cut_off=self._reply is not None and self._reply.cut_off,
            )

    async def rehearse(self, turn: int) -> None:
        """What goes before the first request, and no request: on a draft of the engine, to know what it will be (L34).

        Raises `TurnFailed` where none would be sent.
        """
        await self._begin(turn)
        self._refuse(turn, 1, *await self._prepare(turn, 1))

    async def ahead(self, turn: int) -> None:
        """What the turn after `turn` would begin with, when it would begin by making room (L46)."""
        reading = self.reducer.reading()
        if self.host.may_summarise() and (reading.over_threshold or self._due(reading)):
            await self._begin(turn + 1)
            with self._storing():
                await self._reduce(turn + 1, 1)

    async def _begin(self, turn: int) -> None:
        with self._storing():
            await self.omitter.at_turn_start(self.session, turn)

    async def _prepare(self, turn: int, step: int) -> tuple[SystemPart, Reading]:
        """Measure, make smaller what has to be, measure again (M2, M5, M10).

        At the threshold old bulk goes first; a summary is asked for only when that is not enough (P22) and a cut is
        known to help (I3). After the first step the cut may also fall inside the turn, before an assistant that opens
        a tool group (B13). Over the budget the ladder goes on without a model.
        """
        self.bus.enter("preparing")
        with self._storing():
            await self._reduce(turn, step)
            if await self.host.settle_project(turn) and self.reducer.reading().over_budget:
                await self._reduce(turn, step)
                await self.host.settle_project(turn)
        part = self.host.system_part()
        reading = self.meter.read(self.session, part)
        self.host.gauge_changed(reading)
        return part, reading

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """What cannot be stored may not leave the view; the turn goes on with it."""
        try:
            yield
        except OSError as problem:
            text = f"Outputs could not be stored, so none were omitted: {problem.strerror or problem}"
            self.bus.emit(Notice("warning", text, "Free disk space; until then the conversation only grows."))

    async def _reduce(self, turn: int, step: int) -> None:
        await self.reducer.thin_images(turn, self.host.keep_images, starts=step == 1)
        reading = self.reducer.reading()
        if reading.over_threshold and self.host.may_summarise() and await self.reducer.relieve(turn, reading):
            reading = self.reducer.reading()
        if reading.over_threshold and self.host.may_summarise():
            self._tell_refills()
        if reading.over_threshold and not self.host.why_not(reading):
            await self.reducer.clear_for_cut(turn, reading, mid_turn=step > 1)
            await self._compact(self.reducer.reading(), mid_turn=step > 1)
            reading = self.reducer.reading()
        elif step == 1 and self._due(reading):
            await self._compact(reading, trigger=self.host.trigger)
            reading = self.reducer.reading()
        if reading.over_budget and reading.budget is not None:
            await self.reducer.fit(turn, reading.budget)
        excess = self.meter.weigh(self.session, self.host.system_part()) - self.host.max_request_bytes
        if excess > 0:
            await self.reducer.lighten(turn, excess)

    def _due(self, reading: Reading) -> bool:
        """Whether a turn's start is where the chosen trigger compacts, and that helps enough (P13, P14)."""
        trigger = self.host.trigger
        if not trigger.due(self.host.moment(reading)) or self.host.why_not(reading):
            return False
        return self.compactor.cut(self.session, reading, trigger=trigger) is not None

    def _tell_refills(self) -> None:
        """Say that compactions are in vain, and end a turn that goes round in circles. Raises `TurnFailed` (case 9)."""
        refills = self.session.refills
        if not refills.in_vain:
            return
        if refills.loops and self.limits.on_refused == "stop":
            raise TurnFailed(
                "error", f"The turn was stopped: it goes round in circles. {refills.sentence()}", REFILL_HINT
            )
        if not self._told_refills:
            self._told_refills = True
            self.bus.emit(Notice("warning", f"{refills.sentence()} Nothing is compacted for that again.", REFILL_HINT))

    async def _compact(
        self,
        reading: Reading,
        *,
        trigger: Trigger = THRESHOLD,
        mid_turn: bool = False,
        ceiling: float | None = None,
    ) -> bool:
        done = await self.compactor.compact(
            self.session,
            reading,
            trigger=trigger,
            chat=None if self.limits.offline_summaries else self.chat,
            offline=self.limits.offline_summaries,
            extra=summary_extra(self.limits.local),
            dated=self.host.today(),
            mid_turn=mid_turn,
            ceiling=ceiling,
        )
        self.totals.compacted = self.totals.compacted or done
        return done

    def _request(self, part: SystemPart, may_call: bool) -> ChatRequest:
        """The next request, as it would leave now."""
        return turn_request(
            part,
            self.session.history(),
            self.limits,
            echo_reasoning=self.session.ledger.echo_reasoning,
            may_call=may_call,
            conversation=self.session.id,
        )

    async def _step(self, turn: int, step: int, *, may_call: bool) -> Message | None:
        part, reading = await self._prepare(turn, step)
        reductions = 0
        while True:
            request = self._request(part, may_call)
            self._announce(turn, step, reading, request)
            self._refuse(turn, step, part, reading)
            try:
                return await self._ask(request, turn, part, may_call)
            except ModelError as problem:
                smaller = False
                if reductions < MAX_REDUCTIONS:
                    with self._storing():
                        smaller = await self._shrink(turn, problem, reductions, request)
                if not smaller:
                    raise TurnFailed("error", problem.message, problem.hint) from problem
                reductions += 1
                await self.host.settle_project(turn)
                part = self.host.system_part()
                reading = self.meter.read(self.session, part)
                self.host.gauge_changed(reading)

    def _announce(self, turn: int, step: int, reading: Reading, request: ChatRequest) -> None:
        wire = request.messages
        threshold = None if reading.threshold is None else int(reading.threshold)
        self.bus.emit(StepStarted(turn, step, reading.used, reading.budget, threshold, reading.estimated, len(wire)))
        if self.on_view is not None:
            self.on_view(wire, reading)

    def _refuse(self, turn: int, step: int, part: SystemPart, reading: Reading) -> None:
        """Say so instead of sending what is over a budget (case 2). Raises `TurnFailed`, unless a replay plays on."""
        history = self.session.history()
        weight, most = self.meter.weigh(self.session, part), self.host.max_request_bytes
        if reading.over_budget and reading.budget is not None:
            held = self.reducer.ladder(turn).newest_turn_tokens()
            reason = refusal(history, reading, self.session.ledger, held)
            self.bus.emit(StepRefused(turn, step, reading.used, reading.budget, reason, floor(reading, held)))
            hint = "Shorten the message or the rules, use a larger window (/model), or start /new."
            if not self.host.may_summarise():
                hint = "Automatic compaction is off; /compact makes room now."
        elif weight > most:
            reason = too_heavy(history, self.meter.scales, weight, most)
            self.bus.emit(StepRefused(turn, step, weight, most, reason, (("the request in bytes", weight),)))
            hint = f"max_request_mb = {most // MEGABYTE} sets the limit; send fewer or smaller pictures."
        else:
            return
        if self.limits.on_refused == "stop":
            raise TurnFailed("refused", reason, hint, retry=False)

    async def _shrink(self, turn: int, problem: ModelError, reductions: int, sent: ChatRequest) -> bool:
        """A server found the request too large: make it smaller. True when the next one differs (B17, case 43).

        One that wants past reasoning, or does not, gets the request the other way round, once. Tokens go only when it
        was about tokens: too many bytes (413) take bytes away, and no other error takes anything (case 105).
        """
        if problem.kind == "overflow":
            await self._shrink_tokens(turn, problem, reductions)
        elif problem.about == "bytes" or problem.status == 413:
            await self.reducer.lighten(turn, self.meter.weigh(self.session, self.host.system_part()) // 2)
        elif problem.about == "images":
            await self.reducer.spare_images(turn)
        elif problem.about == "reasoning" and not reductions:
            self.meter.echo_reasoning(not self.session.ledger.echo_reasoning)
        else:
            return False
        return self._request(self.host.system_part(), may_call=True).messages != sent.messages

    async def _shrink_tokens(self, turn: int, problem: ModelError, reductions: int) -> None:
        """One compaction at first, then forced reductions; sizes are corrected by what the server counted."""
        if problem.n_ctx:
            self.host.window_learned(problem.n_ctx)
        ledger = self.session.ledger
        part = self.host.system_part()
        reading = self.meter.read(self.session, part)
        window = reading.window.tokens
        if problem.n_prompt:
            ledger.factor = raised(ledger.factor, problem.n_prompt, self._estimate(part))
            await self.host.calibrated()
            reading = self.meter.read(self.session, part)
        used = ledger.tally(self.session.history()).total
        room = int(used * RETRY_SHARES[min(reductions, len(RETRY_SHARES) - 1)])
        if window:
            room = min(room, int(OVERFLOW_SHARE * window) - reading.system_part)
        if room <= 0:
            return
        await self.reducer.shed(turn, room)
        reading = self.reducer.reading()
        due = reductions == 0 and reading.used > room and not self.host.why_not(reading)
        if due and await self._compact(reading, trigger=OVERFLOW, mid_turn=True, ceiling=room):
            return
        await self.reducer.fit(turn, room)

    def _estimate(self, part: SystemPart) -> int:
        """Tokens of the whole next request by our own count."""
        ledger = self.session.ledger
        tools = ledger.tools(part.tools) if part.tools else 0
        return sum(map(ledger.text, part.texts)) + ledger.tally(self.session.history()).total + tools

    async def _ask(self, request: ChatRequest, turn: int, part: SystemPart, may_call: bool) -> Message | None:
        """Send one request and log what it gives. Raises `ModelError`; text that arrived before an error is kept."""
        reply = self._reply = Reply(self.ids.new("m"), turn, self.bus)
        history = self.session.history()
        counting = Counting(self.session, self.meter, self.host, self.bus, part)
        sent_at = self.clock.monotonic()
        self.bus.enter("connecting")
        self.unfinished.begin()
        try:
            async with aclosing(self.chat.stream(request)) as chunks:
                async for chunk in chunks:
                    reply.feed(chunk)
                    self.unfinished.heard(reply)
                    if reply.streamed and self.totals.first_token_ms is None:
                        self.totals.first_token_ms = int((self.clock.monotonic() - sent_at) * 1000)
        except (ModelError, asyncio.CancelledError):
            await self._keep_partial(reply)
            raise
        finally:
            await self.unfinished.end()
        if reply.usage is not None:
            reply.usage = with_cache(reply.usage, counting.plain)
        self.totals.add(reply.usage)
        self.host.counted(reply.usage)
        speed = reply.timings.get("predicted_per_second")
        self.totals.predicted_per_second = speed if speed else self.totals.predicted_per_second
        taken = frozenset(c.id for m in history for c in m.tool_calls)
        message = reply.message(taken_ids=taken, drop_repeats=self.limits.local)
        if message is None:
            self.bus.emit(StreamDropped(reply.message_id))
            if reply.cut_off:
                raise TurnFailed("error", "The answer was cut off before any text: the output limit was spent.")
            thought = " It thought, and wrote no answer." if reply.reasoning else ""
            self.bus.emit(Notice("warning", f"The model answered nothing.{thought}", "Retry, or say it another way."))
            return None
        if not may_call and message.tool_calls:
            raise TurnFailed(
                "error",
                f"The model kept calling tools after {self.limits.tool_rounds} rounds; the turn was ended.",
                "Ask again more narrowly, or raise max_tool_rounds.",
            )
        await self.session.append(MessageAdded(message))
        if reply.cut_off and not message.tool_calls:
            hint = "Say “go on” for the rest; max_output sets the limit."
            self.bus.emit(Notice("warning", "The answer was cut off: the limit on its length was reached.", hint))
        if counting.learn(reply.usage) and reply.usage is not None and reply.usage.inp:
            await self.host.calibrated()
            await self.session.append(
                UsageMeasured(history[-1].id if history else "", reply.usage.inp, reply.usage.out or 0, self.host.model)
            )
            self.meter.counted(self.session, part)
        return message

    async def _keep_partial(self, reply: Reply) -> None:
        """Log the text that had arrived: nothing a person has read may vanish."""
        message = reply.partial()
        if message is None:
            self.bus.emit(StreamDropped(reply.message_id))
            return
        await self.session.append(MessageAdded(message))
