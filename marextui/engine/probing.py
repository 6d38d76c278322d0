"""Checks of compactions: the free one after each, and `/probe`, which asks the model outside the conversation (P17)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from marextui.context.checking import QUIZ_LIMIT, aftermaths, check_compaction, grade, probes_of, quiz
from marextui.context.messages import Message
from marextui.context.reply_check import without_wrapping
from marextui.context.validate import repair
from marextui.engine.assembly import summary_extra, wire_view
from marextui.engine.bus import Bus
from marextui.engine.events import CompactionProbed, Notice, ProbesAnswered
from marextui.engine.reply import Reply
from marextui.engine.session import Session
from marextui.engine.state import EngineState
from marextui.models.types import ChatRequest
from marextui.store.database import StoreError

ANSWER_TOKENS = 1_500
"""Most tokens of a reply to the questions."""


@dataclass(slots=True)
class Probing:
    """Probes compactions of the conversation that `state` has open."""

    state: EngineState

    async def check(self, session: Session, cycle: int) -> None:
        """Look for the facts of the span in view and log, off the loop; log and announce what was found.

        A compaction before this one that seems to have lost something is told now (P20). An error of the log is a
        warning: the compaction itself stands.
        """
        state = self.state
        try:
            entries = [r.entry for r in await state.archive.store.records(session.id)]
            found = await asyncio.to_thread(check_compaction, entries, cycle)
            if found is None or not found.total:
                return
            await session.append(found)
        except StoreError as problem:
            state.bus.warn_once(f"The compaction could not be checked: {problem}")
            return
        if state.archive.session is not session:
            return
        state.bus.emit(CompactionProbed(found))
        if found.lost:
            text = f"Compaction {cycle} lost {len(found.lost)} of {found.total} facts that were looked for."
            hint = "Open its card to see which; /compact undo takes it back."
            state.bus.emit(Notice("warning", text, hint))
        for before in await asyncio.to_thread(aftermaths, entries):
            if before.cycle == cycle - 1 and before.fetches is not None and before.fetches.loss_sign:
                fetches = before.fetches
                text = (
                    f"After compaction {before.cycle}, {len(fetches.refetched)} of {fetches.fetches} reads fetched "
                    "again what it had cut away: its summary was too thin."
                )
                state.bus.emit(Notice("warning", text))

    async def ask(self) -> None:
        """`/probe`: ask the questions in one request that never enters the conversation. Raises `ModelError`,
        `modelctl.NoModel`, `StoreError`."""
        state, session = self.state, self.state.session
        live = session.conversation.compactions
        if not live:
            state.bus.emit(Notice("info", "There is nothing to probe: no compaction is in force."))
            return
        cycle = live[-1].cycle
        entries = [r.entry for r in await state.archive.store.records(session.id)]
        probes = await asyncio.to_thread(probes_of, entries, cycle, limit=QUIZ_LIMIT)
        if not probes:
            state.bus.emit(Notice("info", f"Compaction {cycle} cut away nothing that could be asked for."))
            return
        connection = await state.connected()
        part, question = state.system_part(), Message("probe", "user", quiz(probes))
        reading, size = state.reading(), session.ledger.message(question)
        if reading.budget is not None and reading.used + size > reading.budget:
            text = (
                f"The questions do not fit: they take {size} tokens, {max(0, reading.budget - reading.used)} are left."
            )
            state.bus.emit(Notice("warning", text, "Compact first, then probe."))
            return
        view = repair((*session.history(), question))[0]
        local = connection.choice.local
        request = ChatRequest(
            messages=wire_view(part, view, echo_reasoning=session.ledger.echo_reasoning),
            tools=part.tools,
            max_tokens=min(ANSWER_TOKENS, state.meter.reserve() or ANSWER_TOKENS),
            temperature=0.0,
            stream=False,
            # The tools stay in the prompt, whose cached beginning this request shares, but may not be called.
            extra={**summary_extra(local), **({"tool_choice": "none"} if part.tools else {})},
            kind="probe",
            conversation=session.id,
        )
        state.bus.enter("probing")
        reply = Reply("probe", 0, Bus())
        async with aclosing(connection.chat.stream(request)) as chunks:
            async for chunk in chunks:
                reply.feed(chunk)
        if reply.usage is not None:
            turn = session.conversation.turn
            state.bus.warn_once(
                await state.usage.extra("probe", reply.usage, session.id, turn, connection.choice.label)
            )
        answered = without_wrapping(reply.body)
        if not answered.strip():
            state.bus.emit(Notice("warning", "The model gave no answer to the questions.", "/probe asks again."))
            return
        state.bus.emit(ProbesAnswered(cycle, grade(probes, answered)))
