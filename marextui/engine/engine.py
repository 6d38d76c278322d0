"""The engine: one conversation, one activity at a time, everything else queued. Implements `engine.api.EngineApi`."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.compaction_diff import CompactionDiff
from marextui.context.messages import Content
from marextui.context.preview import CompactionPreview
from marextui.context.probes import Check
from marextui.context.sanitise import one_line
from marextui.engine.activities import Activities
from marextui.engine.api import (
    Answer,
    ContextReport,
    ConversationInfo,
    HistoryPage,
    ModelOption,
    SetupReport,
    StatusReport,
)
from marextui.engine.economy_switch import EconomySwitch
from marextui.engine.event_values import MemoryReport, OmissionInfo, QueuedPrompt
from marextui.engine.events import CompactionFinished, ConversationRenamed, Event, Notice
from marextui.engine.inspection import Inspection
from marextui.engine.permissions import Decision
from marextui.engine.prewarm import Prewarmer
from marextui.engine.probing import Probing
from marextui.engine.queue import PromptQueue
from marextui.engine.session import Session
from marextui.engine.setup import Setup
from marextui.engine.state import EngineState
from marextui.store.database import StoreError

log = logging.getLogger("marextui.engine")

Job = Coroutine[Any, Any, None]


@dataclass(frozen=True, slots=True)
class _Order:
    """What a person asked for that has to wait its turn."""

    name: str
    job: Callable[[], Job]


class Engine:
    """Takes commands, runs activities. Create it with `engine.build.build_engine`."""

    def __init__(self, state: EngineState, setup: Setup) -> None:
        self.state = state
        self._setup = setup
        self._queue = PromptQueue(state.bus, state.ids)
        self._do = Activities(state, self._queue)
        self._look = Inspection(state)
        self._asked: deque[_Order] = deque()
        self._retry_asked: Literal["", "turn", "model"] = ""
        self._wake = asyncio.Event()
        self._activity: asyncio.Task[None] | None = None
        self._interrupted = False
        self._worker: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._closing = False
        self._leaving = False
        self._checks = 0
        self._prewarm = Prewarmer(state, self._spawn, self._at_rest)
        state.control.leaving = self._prewarm.stop
        self._economy = EconomySwitch(state, self._prewarm, setup)
        if state.policy.check_compactions:
            state.bus.subscribe(self._check_compaction)

    # -- life --------------------------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        return self.state.bus.subscribe(listener)

    @property
    def session(self) -> Session:
        return self.state.session

    @property
    def busy(self) -> bool:
        return self._activity is not None

    async def start(self, *, connect: bool = True) -> None:
        """Open the conversation, paint the gauge, then make the model ready in the background."""
        await self.state.archive.open_first()
        await self.state.opened()
        self._worker = asyncio.create_task(self._work(), name="engine worker")
        if connect:
            self._spawn(self._do.connect())

    async def close(self) -> None:
        """Interrupt what runs and let it write its end; then close the model and the log."""
        self._closing = True
        await self._stop_activity()
        tasks = [t for t in (self._worker, *self._background) if t is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.state.leave_slot()
        await self.state.control.drop()
        await self.state.archive.close()

    @asynccontextmanager
    async def _left(self) -> AsyncIterator[None]:
        """The conversation or its model is about to change: nothing runs for it any more, and nothing begins inside."""
        self._leaving = True
        try:
            await self._prewarm.stop()
            await self._stop_activity()
            await self.state.leave_slot()
            yield
        finally:
            self._leaving = False

    async def _stop_activity(self) -> None:
        self._interrupt()
        if self._activity is not None:
            await asyncio.wait({self._activity})

    def _spawn(self, work: Job) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(self._report_crash)
        return task

    def _report_crash(self, task: asyncio.Task[None]) -> None:
        """A defect of ours must be seen, not swallowed: it becomes an error people can report."""
        problem = None if task.cancelled() else task.exception()
        if problem is None:
            return
        log.error("internal error", exc_info=problem)
        text = f"Internal error: {type(problem).__name__}: {problem}"
        hint = "Your conversation is saved up to the last message. Please report this."
        self.state.bus.emit(Notice("error", text, hint, "retry" if self.state.retryable else ""))

    def _check_compaction(self, event: Event) -> None:
        """After each compaction, beside whatever goes on: see what survived it."""
        if isinstance(event, CompactionFinished):
            self._spawn(self._check(self.session, event.entry.cycle))

    async def _check(self, session: Session, cycle: int) -> None:
        self._checks += 1
        try:
            await Probing(self.state).check(session, cycle)
        finally:
            self._checks -= 1

    @property
    def checking(self) -> bool:
        """A check of a compaction is under way; it never holds up anything."""
        return self._checks > 0

    # -- the worker --------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            worked = False
            while not self._closing and (job := self._next_job()) is not None:
                worked, self._interrupted = True, False
                self._prewarm.work_began()
                self._activity = asyncio.create_task(job, name="engine activity")
                self._activity.add_done_callback(self._report_crash)  # also when closing no longer lets us go on here
                await asyncio.wait({self._activity})
                self._activity = None
                if self._interrupted and self._queue.paused and len(self._queue):
                    text = f"Stopped; {len(self._queue)} queued message(s) wait."
                    hint = "Send a message or retry to go on, or drop them from the queue."
                    self.state.bus.emit(Notice("info", text, hint, "retry"))
                self.state.bus.enter("idle")
            if worked:
                self._prewarm.rested()
                self._economy.rested()

    def _at_rest(self) -> bool:
        """Nothing runs, and nothing waits for it."""
        return not (self._closing or self._leaving or self.busy or self._asked or self._retry_asked or len(self._queue))

    def _next_job(self) -> Job | None:
        if self._asked:
            return self._asked.popleft().job()
        if self._retry_asked:
            what, self._retry_asked = self._retry_asked, ""
            return self._do.retry(what)
        prompt = self._queue.take()
        return self._do.prompt(prompt.content) if prompt else None

    # -- commands ----------------------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        self.submit_content(text)

    def submit_content(self, content: Content) -> None:
        """As `submit`, for contents with parts (images)."""
        if self._queue.add(content, announce=self.busy):
            self._wake.set()

    def edit_queued(self, prompt_id: str, text: str) -> bool:
        return self._queue.edit(prompt_id, text)

    def drop_queued(self, prompt_id: str) -> QueuedPrompt | None:
        return self._queue.drop(prompt_id)

    def interrupt(self) -> None:
        if self.state.control.stop_waiting():
            self.state.refresh_gauge()  # its window is no longer to come
        self._interrupt()

    def _interrupt(self) -> None:
        if self._activity is None or self._interrupted:
            return
        self._interrupted = True
        self._queue.paused = len(self._queue) > 0  # what is sent from now on was meant to be sent
        self.state.bus.enter("interrupting")
        self._activity.cancel()

    def retry(self) -> None:
        """Try the failed turn or model start again; with nothing failed, let a paused queue go on."""
        if self.state.retryable:
            self._retry_asked, self.state.retryable = self.state.retryable, ""
        elif self.state.control.failed:
            self._retry_asked = "model"
        self._queue.paused = False
        self._wake.set()

    def compact(self, *, offline: bool = False) -> None:
        order = _Order(f"compact {offline}", lambda: self._do.compact(offline=offline))
        self._ask(order, "Compaction will run when this turn has ended.")

    def undo_compaction(self, *, force: bool = False) -> None:
        order = _Order("undo", lambda: self._do.undo(force=force))
        self._ask(order, "The compaction will be undone when this turn has ended.", again=True)

    def begin_phase(self, name: str) -> None:
        order = _Order(f"phase {name}", lambda: self._do.phase(name))
        self._ask(order, "The phase will begin when this turn has ended.")

    def probe(self) -> None:
        order = _Order("probe", lambda: self._do.probe())
        self._ask(order, "The questions will be asked when this turn has ended.")

    def examine(self, *, agreed: bool = False) -> None:
        if self.busy or self._asked:
            text = "The server is not examined while something else runs: it would be measured busy."
            self.state.bus.emit(Notice("warning", text, "/doctor, when this has ended."))
            return
        self._ask(_Order("doctor", lambda: self._do.examine(self._setup.config_file, agreed=agreed)), "")

    def switch_economy(self, on: bool) -> None:
        order = _Order(f"economy {on}", lambda: self._economy.throw(on))
        self._ask(order, "It will be switched when this turn has ended.")

    def _ask(self, order: _Order, waiting: str, *, again: bool = False) -> None:
        """Run `order` when its turn comes; what is asked for twice while busy still runs once, unless `again`."""
        if again or not self._asked or self._asked[-1].name != order.name:
            self._asked.append(order)
        if self.busy:
            self.state.bus.emit(Notice("info", waiting))
        self._wake.set()

    def answer_permission(self, request_id: str, answer: Answer, reason: str = "") -> None:
        self.state.permissions.answer(request_id, Decision(answer, reason))

    # -- conversations -----------------------------------------------------------------------------------------------

    async def open_conversation(self, conversation_id: str | None) -> None:
        archive = self.state.archive
        try:
            row = None if conversation_id is None else await archive.find(conversation_id)
            if row is not None and row.id == self.session.id:
                self.state.bus.emit(Notice("info", "This conversation is open already."))
                return
            if row is not None:
                archive.claim(row)
            self._asked.clear()  # what was asked for belongs to the conversation that is left
            async with self._left():
                await archive.open(row)
        except StoreError as problem:
            self.state.bus.emit(Notice("error", f"The conversation could not be opened: {problem}"))
            return
        if len(self._queue):  # written for the conversation that is left: not sent unless a person wants it so
            self._queue.paused = True
            self._queue.announce()
        await self.state.opened()
        if self.state.control.connection is not None:
            self.state.enter_slot()
        self._prewarm.conversation_opened()

    async def rename(self, title: str) -> None:
        cleaned = one_line(title.strip(), 200)
        if not cleaned:
            self.state.bus.emit(Notice("warning", "A title needs some text.", "/rename My title"))
            return
        try:
            await self.state.archive.ensure_created(self.state.clock.now())
            await self.state.archive.rename(cleaned)
        except StoreError as problem:
            self.state.store_failed(problem)
            return
        self.state.bus.emit(ConversationRenamed(self.session.id, cleaned))

    async def page(self, before_seq: int | None, limit: int) -> HistoryPage:
        return await self.state.archive.page(before_seq, limit)

    async def conversations(self, query: str = "") -> list[ConversationInfo]:
        return await self.state.archive.conversations(query)

    async def export(self, path: str, *, fmt: Literal["markdown", "json"] = "markdown", replace: bool = False) -> str:
        return await self.state.archive.export(path, fmt, replace=replace)

    async def message_text(self, message_id: str) -> str:
        message = self.session.conversation.message(message_id)
        return message.text if message else ""

    # -- models ------------------------------------------------------------------------------------------------------

    async def models(self) -> list[ModelOption]:
        return await self.state.control.options()

    async def select_model(self, option_id: str) -> None:
        async with self._left():
            found = await self.state.control.select(option_id)
        if not found:
            self.state.bus.emit(Notice("warning", "That model is no longer there.", "Open /model again."))
            return
        self._model_changed()

    async def configure_endpoint(self, base_url: str, api_key: str, model: str) -> str:
        problem, choice = await self._setup.configure(base_url, api_key, model)
        if problem or choice is None:
            return problem
        async with self._left():
            await self.state.control.use(choice)
        self._model_changed()
        return ""

    def _model_changed(self) -> None:
        self.state.forget_window()
        self.state.refresh_gauge()
        self._spawn(self._do.connect())

    async def setup(self) -> SetupReport:
        return await self._setup.report(await self.state.control.options())

    # -- looking -----------------------------------------------------------------------------------------------------

    async def status(self) -> StatusReport:
        return await self._look.status(self._prewarm.status())

    async def context_check(self) -> tuple[Check, ...]:
        return await self._look.checks()

    async def preview_compaction(self) -> CompactionPreview:
        return self._look.preview()

    async def context(self) -> ContextReport:
        return self._look.context()

    async def compaction_diff(self, cycle: int) -> CompactionDiff | None:
        return await self._look.diff(cycle)

    async def omissions(self) -> list[OmissionInfo]:
        return await self.state.omitter.list(self.session)

    async def read_omission(self, omission_id: str) -> str | None:
        return await self.state.originals.open(omission_id)

    async def memory(self) -> MemoryReport:
        return await self.state.desk.report(self.state.meter.window.tokens)

    async def clear_memory(self) -> None:
        try:
            await self.state.desk.memory.clear()
        except OSError as problem:
            text = f"MEMORY.md could not be cleared: {problem.strerror or problem}"
            self.state.bus.emit(Notice("error", text))
        await self.reload_memory()

    async def reload_memory(self) -> None:
        await self.state.desk.refresh()
        await self.state.desk.announce(self.state.meter.window.tokens)
        if not self.busy:
            self.state.refresh_gauge()
            self._prewarm.rested()  # the next prompt may begin otherwise now

    async def page_text(self, name: str) -> str | None:
        return await self.state.project.page_text(name)

    async def save_page(self, name: str, text: str) -> str:
        return await self._remembered(self.state.project.save_page(name, text))

    async def delete_page(self, name: str) -> str:
        return await self._remembered(self.state.project.delete_page(name))

    async def set_tracker(self, slug: str, value: str, unit: str) -> str:
        return await self._remembered(self.state.project.set_tracker(slug, value, unit))

    async def delete_tracker(self, slug: str) -> str:
        return await self._remembered(self.state.project.delete_tracker(slug))

    async def _remembered(self, change: Coroutine[Any, Any, str]) -> str:
        problem = await change
        await self.reload_memory()
        return problem

    async def project_files(self) -> tuple[str, ...]:
        return await self._setup.project_files()
