"""The engine's commands before there is an engine: the screen is painted first, and what is asked meanwhile waits.

Loading the engine takes several times as long as painting the screen. `LateEngine` takes its place from the first paint
on and makes it in the background. Messages sent meanwhile are queued where people see, edit and drop them; other
commands are carried out in their order; questions are answered when there is somebody to answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

from marextui.engine.api import (
    Answer,
    ContextReport,
    ConversationInfo,
    EngineApi,
    HistoryPage,
    ModelOption,
    SetupReport,
    StatusReport,
)
from marextui.engine.bus import Bus
from marextui.engine.event_values import MemoryReport, OmissionInfo, QueuedPrompt
from marextui.engine.events import Event, PhaseChanged
from marextui.engine.ports import Ids
from marextui.engine.queue import PromptQueue

if TYPE_CHECKING:
    from marextui.context.compaction_diff import CompactionDiff
    from marextui.context.preview import CompactionPreview
    from marextui.context.probes import Check

Build = Callable[[], Coroutine[Any, Any, EngineApi]]


class LateEngine:
    """Implements `engine.api.EngineApi` over an engine that `build` makes when `after` is over."""

    def __init__(self, build: Build, ids: Ids, *, after: Callable[[], Awaitable[object]]) -> None:
        self._build = build
        self._after = after
        self._bus = Bus()
        self._queue = PromptQueue(self._bus, ids)
        self._orders: list[Callable[[EngineApi], None]] = []
        self._making: asyncio.Task[None] | None = None
        self._made: EngineApi | None = None
        self._engine: EngineApi | None = None
        """The one that was made, once it has started."""
        self._closing = False
        self._ready = asyncio.Event()

    # -- life --------------------------------------------------------------------------------------------------------

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """As `EngineApi.subscribe`; before the engine is there, the listener is told at once that it is starting."""
        if self._engine is None:
            listener(PhaseChanged("starting"))
        return self._bus.subscribe(listener)

    async def start(self) -> None:
        """Make the engine, start it, then hand over what was asked for. Raises what `build` raises (`CannotStart`)."""
        await self._after()
        if not self._closing:
            self._making = asyncio.create_task(self._make(), name="making the engine")
            await asyncio.shield(self._making)

    async def _make(self) -> None:
        engine = self._made = await self._build()
        if self._closing:
            return
        engine.subscribe(self._bus.emit)
        await engine.start()
        self._engine = engine
        while (prompt := self._queue.take()) is not None:
            engine.submit(prompt.text)
        for order in self._orders:
            order(engine)
        self._ready.set()

    async def close(self) -> None:
        """Close the engine; one that is being made is waited for, as its open log would outlive us."""
        self._closing = True
        if self._making is not None:
            await asyncio.wait({self._making})
        if self._made is not None:
            await self._made.close()

    async def _there(self) -> EngineApi:
        await self._ready.wait()
        assert self._engine is not None
        return self._engine

    def _order(self, order: Callable[[EngineApi], None]) -> None:
        if self._engine is None:
            self._orders.append(order)
        else:
            order(self._engine)

    @property
    def busy(self) -> bool:
        return self._engine is not None and self._engine.busy

    # -- messages ----------------------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        if self._engine is None:
            self._queue.add(text, announce=True)
        else:
            self._engine.submit(text)

    def edit_queued(self, prompt_id: str, text: str) -> bool:
        return (self._engine.edit_queued if self._engine else self._queue.edit)(prompt_id, text)

    def drop_queued(self, prompt_id: str) -> QueuedPrompt | None:
        return (self._engine.drop_queued if self._engine else self._queue.drop)(prompt_id)

    def interrupt(self) -> None:
        if self._engine is not None:
            self._engine.interrupt()

    # -- orders ------------------------------------------------------------------------------------------------------

    def retry(self) -> None:
        self._order(lambda engine: engine.retry())

    def compact(self, *, offline: bool = False) -> None:
        self._order(lambda engine: engine.compact(offline=offline))

    def undo_compaction(self, *, force: bool = False) -> None:
        self._order(lambda engine: engine.undo_compaction(force=force))

    def begin_phase(self, name: str) -> None:
        self._order(lambda engine: engine.begin_phase(name))

    def probe(self) -> None:
        self._order(lambda engine: engine.probe())

    def examine(self, *, agreed: bool = False) -> None:
        self._order(lambda engine: engine.examine(agreed=agreed))

    def switch_economy(self, on: bool) -> None:
        self._order(lambda engine: engine.switch_economy(on))

    def answer_permission(self, request_id: str, answer: Answer, reason: str = "") -> None:
        self._order(lambda engine: engine.answer_permission(request_id, answer, reason))

    # -- questions ---------------------------------------------------------------------------------------------------

    async def preview_compaction(self) -> CompactionPreview:
        return await (await self._there()).preview_compaction()

    async def compaction_diff(self, cycle: int) -> CompactionDiff | None:
        return await (await self._there()).compaction_diff(cycle)

    async def context(self) -> ContextReport:
        return await (await self._there()).context()

    async def context_check(self) -> tuple[Check, ...]:
        return await (await self._there()).context_check()

    async def status(self) -> StatusReport:
        return await (await self._there()).status()

    async def page(self, before_seq: int | None, limit: int) -> HistoryPage:
        return await (await self._there()).page(before_seq, limit)

    async def conversations(self, query: str = "") -> list[ConversationInfo]:
        return await (await self._there()).conversations(query)

    async def open_conversation(self, conversation_id: str | None) -> None:
        await (await self._there()).open_conversation(conversation_id)

    async def rename(self, title: str) -> None:
        await (await self._there()).rename(title)

    async def export(self, path: str, *, fmt: Literal["markdown", "json"] = "markdown", replace: bool = False) -> str:
        return await (await self._there()).export(path, fmt=fmt, replace=replace)

    async def models(self) -> list[ModelOption]:
        return await (await self._there()).models()

    async def select_model(self, option_id: str) -> None:
        await (await self._there()).select_model(option_id)

    async def configure_endpoint(self, base_url: str, api_key: str, model: str) -> str:
        return await (await self._there()).configure_endpoint(base_url, api_key, model)

    async def setup(self) -> SetupReport:
        return await (await self._there()).setup()

    async def omissions(self) -> list[OmissionInfo]:
        return await (await self._there()).omissions()

    async def read_omission(self, omission_id: str) -> str | None:
        return await (await self._there()).read_omission(omission_id)

    async def memory(self) -> MemoryReport:
        return await (await self._there()).memory()

    async def clear_memory(self) -> None:
        await (await self._there()).clear_memory()

    async def reload_memory(self) -> None:
        await (await self._there()).reload_memory()

    async def page_text(self, name: str) -> str | None:
        return await (await self._there()).page_text(name)

    async def save_page(self, name: str, text: str) -> str:
        return await (await self._there()).save_page(name, text)

    async def delete_page(self, name: str) -> str:
        return await (await self._there()).delete_page(name)

    async def set_tracker(self, slug: str, value: str, unit: str) -> str:
        return await (await self._there()).set_tracker(slug, value, unit)

    async def delete_tracker(self, slug: str) -> str:
        return await (await self._there()).delete_tracker(slug)

    async def project_files(self) -> tuple[str, ...]:
        return await (await self._there()).project_files()

    async def message_text(self, message_id: str) -> str:
        return await (await self._there()).message_text(message_id)
