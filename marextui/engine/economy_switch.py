"""Offers the three features that save a local engine work, once, and switches them on or off for good."""

from __future__ import annotations

from dataclasses import dataclass, replace

from marextui.engine.events import Notice
from marextui.engine.prewarm import Prewarmer
from marextui.engine.setup import Setup
from marextui.engine.state import EngineState

OFFER = (
    "This engine is your own machine, and can be saved work. compact_continuation: a summary goes on with the "
    "conversation. prewarm: the next prompt is computed while you read. proj_snapshot: of the project only changes are "
    "sent."
)
OFFER_HINT = "/economy on or /economy off, and you are not asked again."
"""Short: it comes under the first answer, which somebody is reading."""


@dataclass(slots=True)
class EconomySwitch:
    """The keys `compact_continuation`, `prewarm` and `proj_snapshot` as one switch. Nothing runs while it is thrown."""

    state: EngineState
    prewarm: Prewarmer
    setup: Setup
    _offered: bool = False

    def rested(self) -> None:
        """After the first turn that a local engine has answered: offer the switch to who has not chosen yet.

        Not before: a first message is not to be disturbed. Once a start, until it is answered.
        """
        state, turns = self.state, self.state.session.conversation.turns
        if self._offered or not state.policy.offer_economy or not state.economy_allowed():
            return
        if turns and turns[-1].end == "done":
            self._offered = True
            state.bus.emit(Notice("info", OFFER, OFFER_HINT))

    async def throw(self, on: bool) -> None:
        """Switch all three, from now on and at every later start (`/economy on`, `/economy off`)."""
        state, policy = self.state, self.state.policy
        self._offered = True
        if not on:
            await self.prewarm.stop()
        ahead = policy.prewarm if on and policy.prewarm != "off" else "on" if on else "off"
        state.policy = replace(policy, compact_continuation=on, prewarm=ahead, proj_snapshot=on)
        going_on = state.compactor.summariser.continuation
        if going_on is not None:
            going_on.wanted = on
        connection = state.control.connection
        state.settle_window(connection)
        if on and connection is not None and connection.slots.last_step is not None:
            connection.slots.forget("no step was sent since it was switched on")
        state.refresh_gauge()
        said = "Summaries go on with the conversation, prompts are computed ahead, the project is told by a dated copy."
        if on and state.control.choice is not None and not state.economy_allowed():
            said = f"{state.control.label} is not a local engine, so nothing changes yet; with a local one: {said}"
        if not on:
            said = "The three switches for local engines are off: every prompt is computed when you send a message."
        problem = await self.setup.save({"compact_continuation": on, "prewarm": ahead, "proj_snapshot": on})
        if problem:
            state.bus.emit(Notice("warning", f"{said} Only until you leave: {problem}"))
        else:
            state.bus.emit(Notice("info", said, "Saved in your settings; /status says how each of them stands."))
