"""Finds out what the next turn will send, by running the turn's own preparation on a draft of the engine (L34, L41).

The draft shares what is only read (the model, the token counts, the rules of the settings) and has a copy of all that a
turn changes. Its log, its bus and its omission store lead nowhere: nothing it decides can reach the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from marextui.context.entries import Entry, MessageAdded, Record, TurnOpened
from marextui.context.messages import Message, to_wire
from marextui.context.prewarm import SENTINEL
from marextui.context.summary_check import Checked
from marextui.engine.activities import turn_runner
from marextui.engine.bus import Bus
from marextui.engine.omitter import StoredOutput
from marextui.engine.quota import WithinQuota
from marextui.engine.state import EngineState
from marextui.engine.summariser import Summariser, Task
from marextui.engine.turn_terms import TurnFailed
from marextui.models.types import ChatRequest, Connection

SENTINEL_ID = "prewarm"


class NotForeseen(Exception):
    """What the next turn sends is not known before it begins; the text says why, as part of a sentence."""


async def prewarm_request(state: EngineState, connection: Connection) -> ChatRequest:
    """The first request of the next turn as it would leave now, the sentinel in the place of the user's message (L32).

    Everything is as in the turn but `max_tokens` 1 and no stream (L33). Touches nothing of `state`. Raises
    `NotForeseen`.
    """
    draft = _draft(state)
    await draft.desk.refresh()  # a turn starts with what is on disk then
    session = draft.session
    turn = session.conversation.turn + 1
    sentinel = Message(SENTINEL_ID, "user", SENTINEL, origin="user", turn=turn)
    await session.append(TurnOpened(turn), MessageAdded(sentinel))
    draft.project.carrier = sentinel.id
    try:
        await turn_runner(draft, connection).rehearse(turn)
    except TurnFailed as problem:
        raise NotForeseen(f"the next turn could not be sent: {problem.reason}") from problem
    request = draft.dry_request(connection)
    if request.message_ids[-1:] != (SENTINEL_ID,):
        raise NotForeseen("your last message was not answered, and the next one joins it")
    return replace(
        request,
        messages=(*request.messages[:-1], to_wire(sentinel)),  # without what comes at its head: that is dated
        max_tokens=1,
        stream=False,
        kind="prewarm",
        message_ids=request.message_ids[:-1],
    )


def _draft(state: EngineState) -> EngineState:
    bus = Bus()
    session = replace(
        state.session,
        log=_DraftLog(state.session.seq),
        bus=bus,
        conversation=state.session.conversation.fork(),
        refills=deepcopy(state.session.refills),
        _writing=asyncio.Lock(),
    )
    omitter = replace(state.omitter, store=_NothingStored(state.omitter.store, bus, _nobody), bus=bus)
    return replace(
        state,
        bus=bus,
        archive=replace(state.archive, _session=session),
        omitter=omitter,
        cache=replace(state.cache, bus=bus),
        desk=replace(state.desk, omitter=omitter, bus=bus, about=replace(state.project, bus=bus)),
        compactor=replace(state.compactor, bus=bus, summariser=_NoSummary()),
        on_view=None,
    )


@dataclass(slots=True)
class _DraftLog:
    """A log that keeps nothing; `seq` is its last entry."""

    seq: int

    async def append(
        self, conversation_id: str, entries: Sequence[Entry], *, at: float, after: int | None = None
    ) -> tuple[Record, ...]:
        records = tuple(Record(self.seq + n, at, entry) for n, entry in enumerate(entries, 1))
        self.seq += len(records)
        return records

    async def since(self, conversation_id: str, after: int) -> tuple[Record, ...]:
        return ()


class _NothingStored(WithinQuota):
    """What would have to be stored gets an id nobody knows yet."""

    async def put(
        self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str, file: str = ""
    ) -> StoredOutput:
        raise NotForeseen("the next turn puts something aside that is not stored yet")


async def _nobody() -> Collection[str]:
    return ()


class _NoSummary(Summariser):
    """What a model would write is not known."""

    async def summarise(self, task: Task) -> Checked:
        raise NotForeseen("the next turn will compact the conversation first")
