"""Asks again when a server had no time just then: refused for the moment, or hung up before a word of the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from marextui.context.sanitise import one_line
from marextui.engine.bus import Bus
from marextui.engine.ports import Clock
from marextui.models.types import Accepted, ChatModel, ChatRequest, Chunk, ModelError, PromptProgress

LONGEST_WAIT = 60.0
"""Seconds that a server may ask us to wait; when it asks for more, the turn ends and says so."""
FIRST_WAIT = 1.0
"""Seconds before the first retry where the server names none; twice as many before each further one."""


@dataclass(frozen=True, slots=True)
class Patient:
    """`chat`, where a turn's request that failed in passing is sent again, at most `retries` times.

    Only before anything of an answer has arrived: what a person has read is never asked for twice. Cancelling ends the
    waiting at once.
    """

    chat: ChatModel
    bus: Bus
    clock: Clock
    retries: int

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """As `ChatModel.stream`. Raises the last `ModelError` when patience has not helped."""
        tried, answering = 0, False
        while True:
            try:
                async with aclosing(self.chat.stream(request)) as chunks:
                    async for chunk in chunks:
                        answering = answering or not isinstance(chunk, Accepted | PromptProgress)
                        yield chunk
                return
            except ModelError as problem:
                wait = problem.retry_after if problem.retry_after is not None else FIRST_WAIT * 2**tried
                may = problem.passing and request.kind == "main" and not answering
                if not may or tried >= self.retries or wait > LONGEST_WAIT:
                    raise
                why = one_line(f"{problem.status or ''} {problem.message}", 60)
            tried += 1
            self.bus.enter("connecting", f"retrying in {wait:g} s: {why}")
            await self.clock.sleep(wait)
            self.bus.enter("connecting")
