"""Who may do what: asks people through events, remembers "for this conversation"; never derives it from text (I13)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from marextui.engine.bus import Bus
from marextui.engine.events import PermissionAsked, PermissionSettled
from marextui.engine.ports import Ids
from marextui.tools.types import PermissionNeed


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person answered; `reason` may go with a denial."""

    answer: Literal["once", "conversation", "deny"]
    reason: str = ""


@dataclass(slots=True)
class Permissions:
    """Grants of one conversation, in memory only: a resumed conversation asks again.

    `unattended` is what to answer when there is nobody to ask (`-p`): a decision per kind, or None to ask.
    """

    bus: Bus
    ids: Ids
    unattended: dict[str, Decision] | None = None
    granted: set[tuple[str, str]] = field(default_factory=set)
    _pending: dict[str, asyncio.Future[Decision]] = field(default_factory=dict)

    async def ask(self, need: PermissionNeed, *, call_id: str, tool: str) -> Decision:
        """Wait for a person's answer; cancelling withdraws the question."""
        key = (need.kind, need.scope)
        if key in self.granted:
            return Decision("conversation")
        if self.unattended is not None:
            return self.unattended.get(
                need.kind,
                Decision("deny", f"nobody can be asked here, and {need.kind} was not allowed on the command line"),
            )
        request_id = self.ids.new("p")
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = future
        self.bus.enter("permission", need.title)
        self.bus.emit(
            PermissionAsked(request_id, call_id, tool, need.kind, need.title, need.detail, need.scope, need.diff)
        )
        try:
            decision = await future
        except asyncio.CancelledError:
            self.bus.emit(PermissionSettled(request_id, "withdrawn"))
            raise
        finally:
            del self._pending[request_id]
        if decision.answer == "conversation":
            self.granted.add(key)
        self.bus.emit(PermissionSettled(request_id, decision.answer))
        return decision

    def answer(self, request_id: str, decision: Decision) -> bool:
        """Deliver a person's answer; False when the question is no longer open."""
        future = self._pending.get(request_id)
        if future is None or future.done():
            return False
        future.set_result(decision)
        return True
