"""The only place that turns an engine event into a change of the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from marextui.engine import events as ev
from marextui.engine.api import EngineApi
from marextui.engine.economy import CacheState
from marextui.engine.event_values import Gauge, MemoryReport, OmissionInfo, QueuedPrompt
from marextui.tui.status import Status
from marextui.tui.viewmodel import ViewModel

PAGE = 120
"""Log records asked for at a time."""


class ScreenView(Protocol):
    """What the adapter needs of a screen; tests give it one that only records."""

    def conversation_reset(self) -> None: ...
    def conversation_changed(self) -> None: ...
    def show_title(self, title: str) -> None: ...
    def show_status(self, status: Status) -> None: ...
    def show_queue(self, items: tuple[QueuedPrompt, ...]) -> None: ...
    def show_gauge(self, gauge: Gauge) -> None: ...
    def show_cache(self, cache: CacheState) -> None: ...
    def show_prewarm(self, prewarm: ev.PrewarmChanged) -> None: ...
    def show_memory(self, report: MemoryReport) -> None: ...
    def show_omissions(self, items: Sequence[OmissionInfo]) -> None: ...
    def omission_stored(self, info: OmissionInfo) -> None: ...
    def omission_read(self, omission_id: str, reads: int) -> None: ...
    def outputs_omitted(self, omission_ids: Sequence[str]) -> None: ...
    def ask_permission(self, request: ev.PermissionAsked) -> None: ...
    def settle_permission(self, request_id: str) -> None: ...
    def probes_answered(self, answers: ev.ProbesAnswered) -> None: ...
    def server_examined(self, text: str) -> None: ...
    def model_needed(self) -> None: ...
    def opened(self) -> None:
        """Another conversation is shown: load its end (`Adapter.load_tail`)."""
        ...


class Adapter:
    """Feeds events to the view-model and tells the screen which parts of it changed."""

    def __init__(self, engine: EngineApi, model: ViewModel, view: ScreenView) -> None:
        self._engine = engine
        self._model = model
        self._view = view
        self._stop: Callable[[], None] | None = None
        self._loading = False

    def start(self) -> None:
        self._stop = self._engine.subscribe(self.on_event)

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None

    def on_event(self, event: ev.Event) -> None:
        """One event, in the loop's thread."""
        changed = self._model.apply(event)
        view = self._view
        if "reset" in changed:
            view.conversation_reset()
        if "items" in changed:
            view.conversation_changed()
        if "title" in changed:
            view.show_title(self._model.title)
        if "status" in changed:
            view.show_status(self._model.status)
        if "queue" in changed:
            view.show_queue(self._model.queue)
        match event:
            case ev.GaugeChanged():
                view.show_gauge(event.gauge)
            case ev.CacheChanged():
                view.show_cache(event.cache)
            case ev.PrewarmChanged():
                view.show_prewarm(event)
            case ev.MemoryChanged():
                view.show_memory(event.report)
            case ev.OmissionStored():
                view.omission_stored(event.info)
            case ev.OmissionRead():
                view.omission_read(event.id, event.reads)
            case ev.OutputsReplaced() | ev.ViewReduced():
                view.outputs_omitted([ref.omission_id for ref in event.refs])
            case ev.PermissionAsked():
                view.ask_permission(event)
            case ev.PermissionSettled():
                view.settle_permission(event.request_id)
            case ev.ProbesAnswered():
                view.probes_answered(event)
            case ev.ServerExamined():
                view.server_examined(event.text)
            case ev.ModelNeeded():
                view.model_needed()
            case ev.ConversationOpened():
                view.opened()

    async def load_tail(self) -> None:
        """The newest page of the conversation that was opened, and the omissions and memory that go with it."""
        opened = self._model.conversation_id
        self._view.show_omissions(await self._engine.omissions())
        if self._model.more and self._model.conversation_id == opened:
            await self._load(None)

    async def load_older(self) -> bool:
        """One page more of the past; False when there is none, or one is on its way."""
        if self._loading or not self._model.more or self._model.first_seq is None:
            return False
        return await self._load(self._model.first_seq)

    async def _load(self, before: int | None) -> bool:
        conversation = self._model.conversation_id
        self._loading = True
        try:
            page = await self._engine.page(before, PAGE)
        finally:
            self._loading = False
        if conversation != self._model.conversation_id:
            return False
        grown = self._model.prepend(page)
        self._view.conversation_changed()
        return grown > 0 or page.more
