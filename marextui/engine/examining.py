"""`/doctor`: examines the server of the model in use, outside the conversation (issue 4, section 6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from marextui.context.doctor_report import report, statement
from marextui.engine.doctor import NothingToExamine, Visit, address_in_use
from marextui.engine.events import Notice, ServerExamined
from marextui.engine.state import EngineState
from marextui.models.types import Usage

WIDTH = 72
"""Cells of a line of the report: a viewer on a small terminal shows it unbroken."""


@dataclass(slots=True)
class Examining:
    """Examines the server for the conversation that `state` has open. `config` is the settings file."""

    state: EngineState
    config: Path

    async def examine(self, *, agreed: bool) -> None:
        """Announce what was found; cancelling it, what is known so far. Raises `ModelError`, `modelctl.NoModel`."""
        state, bus = self.state, self.state.bus
        connection = await state.connected()
        try:
            address = address_in_use(connection)
        except NothingToExamine as problem:
            bus.emit(Notice("info", str(problem)))
            return
        visit = Visit(address, now=state.clock.monotonic)
        stated = " ".join(x.text for x in statement(address.shown, visit.limit, local=address.local))
        if not address.local and not agreed:
            bus.emit(Notice("warning", stated, "/doctor yes sends it."))
            return
        bus.emit(Notice("info", stated))
        bus.enter("examining")
        try:
            async with connection.slots.occupied("doctor"):
                await visit.examine(lambda step: bus.enter("examining", step))
        except asyncio.CancelledError:
            bus.emit(Notice("info", "The examination was stopped; what is known so far is shown."))
        chart = visit.chart
        if chart is None:  # stopped before anything was sent
            return
        found = report(chart, visit.advice(state.policy), config=str(self.config), width=WIDTH)
        bus.emit(ServerExamined("\n".join(x.text for x in found)))
        if chart.counted:
            spent, turn = Usage(inp=chart.counted), state.session.conversation.turn
            bus.warn_once(await state.usage.extra("doctor", spent, state.session.id, turn, connection.choice.label))
