"""Models that answer by rule instead of by list: what an agent does depends on what it is sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from marextui.models.types import ChatRequest, Chunk
from tests.stubs.scripted_model import Hold, ModelError, Piece, ScriptedChat, call, say

Rule = Callable[[ChatRequest], list[Piece]]


@dataclass
class Agent(ScriptedChat):
    """Streamed requests are answered by `reply`, summary requests by `summarise`; both see the request."""

    reply: Rule = field(default=lambda request: say("ok"))
    summarise: Rule = field(default=lambda request: say(plain_summary()))

    async def stream(self, request: ChatRequest) -> AsyncIterator[Chunk]:
        if not self.replies and request.stream:
            self.replies = [self.reply(request)]
        if not self.summaries and not request.stream:
            self.summaries = [self.summarise(request)]
        async for chunk in super().stream(request):
            yield chunk


def plain_summary(*facts: str) -> str:
    """A summary in the five sections that names nothing which has to occur in the span."""
    state = "".join(f"- {f}\n" for f in facts) or "- the work goes on as agreed\n"
    return (
        "## Session Intent\n- carry out what was asked for, step by step\n## Files Modified\nnone\n"
        f"## Decisions Made\nnone\n## Current State\n{state}## Next Steps\n- continue with the next step\n"
    )


def steps(*replies: list[Piece]) -> Rule:
    """Each reply once, in order, then "done" for ever."""
    left = list(replies)
    return lambda request: left.pop(0) if left else say("done")


def reading(*paths: str, tool: str = "Read") -> list[Piece]:
    """One round that reads all of `paths` in parallel."""
    return call(*((tool, json.dumps({"file_path": p})) for p in paths), ids=[f"read-{p}" for p in paths])


def wire_text(request: ChatRequest) -> str:
    """Everything a model is sent as one string."""
    return json.dumps([dict(m) for m in request.messages], ensure_ascii=False)


__all__ = ["Agent", "Any", "Hold", "ModelError", "call", "plain_summary", "reading", "say", "steps", "wire_text"]
