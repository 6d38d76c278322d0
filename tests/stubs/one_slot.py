"""A scripted model that counts like a server with one slot: what a request shares with the one before is cached."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from marextui.context.messages import canonical_json
from marextui.models.types import ChatRequest, Chunk, Finished, TextChunk, Usage
from tests.stubs.scripted_model import ScriptedChat


def tokens(message: Mapping[str, Any]) -> int:
    """The tests' token, four characters, and four a message."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else canonical_json(content)
    calls = "".join(c["function"]["name"] + c["function"]["arguments"] for c in message.get("tool_calls") or ())
    return 4 + -(-len(text) // 4) + -(-len(calls) // 4)


@dataclass
class OneSlotChat(ScriptedChat):
    """`ScriptedChat` whose replies carry usage: input, answer, and what was in the slot. `counts` off: no usage."""

    counts: bool = True
    _slot: list[Mapping[str, Any]] = field(default_factory=list)

    def forget(self) -> None:
        """The server has lost what it held."""
        self._slot = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        said = 0
        async for chunk in super().stream(request):
            if isinstance(chunk, TextChunk):
                said += -(-len(chunk.text) // 4)
            if isinstance(chunk, Finished) and chunk.usage is None and self.counts:
                chunk = replace(chunk, usage=self._usage(request, said))
            yield chunk

    def _usage(self, request: ChatRequest, said: int) -> Usage:
        held, self._slot = self._slot, [*request.tools, *request.messages]
        same = 0
        for old, new in zip(held, self._slot, strict=False):
            if old != new:
                break
            same += 1
        total = sum(map(tokens, request.messages)) + sum(-(-len(canonical_json(t)) // 4) for t in request.tools)
        cached = sum(map(tokens, self._slot[len(request.tools) : same]))
        cached += sum(-(-len(canonical_json(t)) // 4) for t in request.tools[:same])
        return Usage(inp=total, out=said, cache_read=min(cached, total - 1))
