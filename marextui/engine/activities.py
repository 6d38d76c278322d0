"""What the engine does, one at a time: run a prompt's turn, retry it, compact on demand. Each ends with a valid log."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from marextui.context.entries import Entry, MessageAdded, NoticeLogged, TurnClosed, TurnEnd, TurnOpened
from marextui.context.language import detect_language
from marextui.context.messages import Content, Message
from marextui.context.phrases import go_on, sentence
from marextui.context.sanitise import one_line
from marextui.context.triggers import BY_HAND, PHASE, TASK_SHARE, TaskBoundary, Trigger
from marextui.context.validate import INTERRUPTED_RESULT
from marextui.engine.assembly import summary_extra
from marextui.engine.events import ConversationRenamed, Notice, TurnFinished, TurnStarted
from marextui.engine.modelctl import NoModel
from marextui.engine.patience import Patient
from marextui.engine.probing import Probing
from marextui.engine.queue import PromptQueue
from marextui.engine.state import FREE_DISK, EngineState
from marextui.engine.toolrun import ToolTally
from marextui.engine.turn import TurnRunner
from marextui.engine.turn_terms import TurnFailed
from marextui.engine.undo import undo
from marextui.engine.unfinished import Unfinished
from marextui.models.types import Connection, ModelError
from marextui.store.database import StoreError, uninterrupted

CANCELLED = "Compaction cancelled; nothing was changed."


def turn_runner(state: EngineState, connection: Connection) -> TurnRunner:
    """Runs a turn of the open conversation with that model."""
    return TurnRunner(
        session=state.session,
        chat=Patient(connection.chat, state.bus, state.clock, state.policy.retries),
        host=state,
        meter=state.meter,
        omitter=state.omitter,
        compactor=state.compactor,
        tools=state.runner,
        bus=state.bus,
        clock=state.clock,
        ids=state.ids,
        limits=state.limits(connection),
        unfinished=Unfinished(state.archive.store, state.clock, state.bus, state.session.id),
        on_view=state.on_view,
    )


@dataclass(slots=True)
class Activities:
    """Coroutines the worker runs as tasks; cancelling one is an interrupt."""

    state: EngineState
    queue: PromptQueue

    async def prompt(self, content: Content) -> None:
        """Log a user message as a new turn and run it."""
        state = self.state
        logged = False
        try:
            await state.catch_up()
            message = await self._logged(content)
            logged = True
            state.project.carrier = message.id
            if await self.turn(message.turn, message) == "done":
                await self._ahead(message.turn)
        except StoreError as problem:
            state.store_failed(problem)
        finally:
            if not logged:  # also when it was interrupted here: what was typed is never dropped
                self.queue.put_back(content)

    async def _logged(self, content: Content) -> Message:
        """The user's message, in the log."""
        state = self.state
        turn = state.session.conversation.turn + 1
        message = Message(state.ids.new("m"), "user", content, origin="user", turn=turn)
        await state.archive.ensure_created(state.clock.now())
        await state.session.append(TurnOpened(turn), MessageAdded(message))
        return message

    async def _name_by(self, message: Message) -> None:
        """A conversation without a title takes the first line of its first message."""
        title = one_line(message.text.strip(), 60)
        if self.state.session.title or not title:
            return
        with contextlib.suppress(StoreError):  # a title is a convenience: the turn must not fail for it
            await self.state.archive.rename(title)
            self.state.bus.emit(ConversationRenamed(self.state.session.id, title))

    async def connect(self) -> None:
        """Make the model ready; failures were announced by the control and will be met again by a prompt."""
        try:
            await self.state.connected()
        except (ModelError, NoModel):
            self.state.refresh_gauge()  # its window is no longer to come

    async def retry(self, what: Literal["turn", "model"]) -> None:
        """Run the failed turn again from where it stopped; a model that died is started anew first."""
        state = self.state
        connection = state.control.connection
        if what == "model" or state.control.failed or (connection is not None and not connection.alive):
            await state.control.drop()
        turn = state.session.conversation.turn
        if what != "turn" or not turn:
            await self.connect()
            return
        try:
            await state.catch_up()
            conversation = state.session.conversation
            if conversation.turn != turn or any(t.turn == turn and t.end == "done" for t in conversation.turns):
                text = "There is nothing to retry: another marextui has gone on from here; what it wrote stands above."
                state.bus.emit(Notice("info", text))
                return
            await state.session.append(TurnOpened(turn), *self._mended(turn))
            if await self.turn(turn) == "done":
                await self._ahead(turn)
        except StoreError as problem:
            state.store_failed(problem)

    def _mended(self, turn: int) -> list[Entry]:
        """What a turn that stopped in the middle needs before its next request: a request may not end with an open
        call or with an assistant's text, which some servers refuse and others take for a text to complete."""
        messages = self.state.session.conversation.messages
        at = max((i for i, m in enumerate(messages) if m.role == "assistant" and m.turn == turn), default=-1)
        if at < 0 or messages[-1].role == "user":
            return []
        answered = {m.tool_call_id for m in messages[at + 1 :]}
        mended = [
            Message(
                self.state.ids.new("m"),
                "tool",
                INTERRUPTED_RESULT,
                tool_call_id=call.id,
                name=call.name,
                is_error=True,
                origin="tool",
                turn=turn,
            )
            for call in messages[at].tool_calls
            if call.id not in answered
        ]
        if not messages[at].tool_calls:
            asked = "\n".join(m.text for m in messages if m.role == "user" and not m.synthetic)[-2_000:]
            text = go_on(detect_language(asked))
            mended.append(Message(self.state.ids.new("m"), "user", text, origin="repair", turn=turn))
        return [MessageAdded(m) for m in mended]

    async def turn(self, turn: int, asked: Message | None = None) -> TurnEnd:
        """One turn with every way it can end; its closing entry is always written (I5).

        `asked` is the message that began it, None when it is tried again.
        """
        state = self.state
        started = state.clock.monotonic()
        end: TurnEnd = "error"  # what stands if a defect of ours gets through: the turn is closed all the same
        failure: TurnFailed | None = None
        runner: TurnRunner | None = None
        state.bus.emit(TurnStarted(turn))
        state.runner.tally = ToolTally()
        state.compactor.summariser.costs.clear()
        try:
            if asked is not None:
                await self._name_by(asked)
            await state.purge()
            await state.refresh_memory()
            state.bus.enter("loading")
            runner = turn_runner(state, await state.connected())
            await runner.run(turn)
            end = "done"
        except asyncio.CancelledError:
            end = "interrupted"
        except NoModel as problem:
            failure = TurnFailed("error", f"The message was not sent: {problem}.", "Choose a model with /model.")
        except ModelError as problem:
            failure = TurnFailed("error", problem.message, problem.hint)
        except TurnFailed as problem:
            failure = problem
        except StoreError as problem:
            failure = TurnFailed("error", f"The conversation could not be saved: {problem}", FREE_DISK)
        finally:
            end = failure.end if failure is not None else end
            seconds = state.clock.monotonic() - started
            await uninterrupted(self._close(turn, end, failure, runner, seconds))
        return end

    async def _ahead(self, turn: int) -> None:
        """With `prewarm`, the compaction that the next turn would begin with is made while the person reads, so that
        the prompt after it can be computed ahead too (L46)."""
        state, connection = self.state, self.state.control.connection
        if state.policy.prewarm == "off" or not state.economy_allowed() or len(self.queue):
            return
        if connection is None or not connection.alive:
            return
        state.compactor.summariser.costs.clear()
        cycle = state.session.conversation.cycle
        try:
            await turn_runner(state, connection).ahead(turn)
            if state.session.conversation.cycle != cycle:
                await state.settle_project(turn)
        except asyncio.CancelledError:
            state.bus.emit(Notice("info", CANCELLED))
        except TurnFailed:
            return  # the next turn will say it, if it still holds then
        except StoreError as problem:
            state.store_failed(problem)
        await self._summaries_counted()

    async def _close(
        self, turn: int, end: TurnEnd, failure: TurnFailed | None, runner: TurnRunner | None, seconds: float
    ) -> None:
        state = self.state
        totals = runner.totals if runner else None
        line = state.usage.line(turn, totals, seconds, state.control.choice)
        note = one_line(failure.reason, 500) if failure else ""
        closing = TurnClosed(turn, end, line.inp, line.out, line.cache_read, round(seconds, 3), line.model, note)
        try:
            logged = (NoticeLogged("error", note),) if note else ()
            await state.session.append(*logged, closing)
            if runner is not None:
                await runner.unfinished.drop()
        except StoreError as problem:
            if failure is None:
                state.store_failed(problem)
        if failure is not None:
            state.retryable = "turn" if failure.retry else ""
            state.bus.emit(Notice("error", sentence(failure.reason), failure.hint, "retry" if failure.retry else ""))
        elif end == "done":
            state.retryable = ""
        if await state.project.refresh():  # the turn's own tools may have changed it, and the next request tells it
            await state.desk.announce(state.meter.window.tokens)
        reading = state.reading()
        state.meter.turn_ended(reading.used)
        state.gauge_changed(reading)
        state.bus.emit(TurnFinished(turn, end, line))
        problem_text = await state.usage.record(
            line, state.session.id, end, totals, state.runner.tally, reading, state.compactor.summariser.costs
        )
        state.bus.warn_once(problem_text)

    async def compact(self, *, offline: bool) -> None:
        """`/compact` (M21): forced, whatever the threshold and the number of messages say."""
        await self._summarise(BY_HAND, offline=offline)

    async def phase(self, name: str) -> None:
        """`/phase NAME`: a phase has ended and `name` begins. Logged, and compacted when that is worth it (P14)."""
        state = self.state
        if not state.session.conversation.messages:
            state.bus.emit(Notice("info", "Nothing was said yet: there is no phase to end."))
            return
        moment = state.moment(state.reading())
        worth = TaskBoundary.worthwhile(moment)
        then = "What came before is compacted."
        if not worth and moment.budget is None:
            then = "Nothing is compacted: the window is unknown. /compact does it all the same."
        elif not worth:
            share = f"{float(TASK_SHARE):.0%} of the budget"
            then = f"Nothing is compacted: it is worth it above {share}, and this conversation fills {moment.share}."
        text = f"Phase: {one_line(name.strip(), 60)}. {then}"
        try:
            await state.session.append(NoticeLogged("info", text))
        except StoreError as problem:
            state.store_failed(problem)
            return
        state.bus.emit(Notice("info", text))
        if worth:
            await self._summarise(PHASE)

    async def _summarise(self, trigger: Trigger, *, offline: bool = False) -> None:
        """A compaction that a person asked for; every way it can end is told."""
        state = self.state
        offline = offline or state.policy.offline_summaries
        chat = None
        extra: dict[str, Any] = {}
        state.compactor.summariser.costs.clear()
        try:
            await state.desk.refresh()
            if not offline:
                connection = await state.connected()
                chat, extra = connection.chat, summary_extra(connection.choice.local)
            await state.catch_up()
            await state.compactor.compact(
                state.session,
                state.reading(),
                trigger=trigger,
                chat=chat,
                offline=offline,
                extra=extra,
                dated=state.today(),
            )
            await state.settle_project(state.session.conversation.turn)
        except asyncio.CancelledError:
            state.bus.emit(Notice("info", CANCELLED))
        except (ModelError, NoModel) as problem:
            hint = "/compact offline summarises without a model."
            state.bus.emit(Notice("error", f"Compaction did not run: {problem}", hint))
        except StoreError as problem:
            state.store_failed(problem)
        await self._summaries_counted()

    async def _summaries_counted(self) -> None:
        """After a compaction outside a turn: what it took is in the journal, what it changed on the screen."""
        state = self.state
        costs, turn = state.compactor.summariser.costs, state.session.conversation.turn
        state.bus.warn_once(await state.usage.summaries(costs, state.session.id, turn, state.control.label))
        await state.refresh_memory()
        state.refresh_gauge()

    async def undo(self, *, force: bool) -> None:
        """`/compact undo`; a log that cannot be written leaves the view as it is.

        Whether the restored conversation fits is known with the window only: a model that is still being made ready
        is waited for. Without one, nothing is checked.
        """
        state = self.state
        if not force and state.meter.window.tokens is None and state.session.conversation.compactions:
            try:
                await state.connected()
            except (ModelError, NoModel):
                state.refresh_gauge()  # the failure was announced by the control
            except asyncio.CancelledError:
                state.bus.emit(Notice("info", "Nothing was undone."))
                return
        try:
            await state.catch_up()
            await undo(state, force=force)
        except StoreError as problem:
            state.store_failed(problem)

    async def examine(self, config: Path, *, agreed: bool) -> None:
        """`/doctor`: requests outside the conversation; whatever happens, the conversation is as before."""
        from marextui.engine.examining import Examining  # nobody needs the doctor before the first paint

        bus = self.state.bus
        try:
            await Examining(self.state, config).examine(agreed=agreed)
        except (ModelError, NoModel) as problem:
            bus.emit(Notice("error", f"The server could not be examined: {problem}"))

    async def probe(self) -> None:
        """`/probe`: one request outside the conversation; whatever happens, the conversation is as before."""
        state = self.state
        try:
            await Probing(state).ask()
        except asyncio.CancelledError:
            state.bus.emit(Notice("info", "The questions were cancelled."))
        except (ModelError, NoModel) as problem:
            state.bus.emit(Notice("error", f"The questions could not be asked: {problem}"))
        except StoreError as problem:
            state.store_failed(problem)
