"""A chat model, a hub and a toolbox that do exactly what a test scripts, and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marextui.context.budget import Window
from marextui.models.slots import SlotFacts, Slots, TrackedChat
from marextui.models.types import (
    Accepted,
    ChatModel,
    ChatRequest,
    Chunk,
    Connection,
    Finished,
    LoadProgress,
    ModelChoice,
    ModelError,
    SlotStates,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

CHOICE = ModelChoice("endpoint", "scripted", "scripted", base_url="http://127.0.0.1:1", local=True)


@dataclass
class Hold:
    """A point in a reply where the model waits: `reached` is set there, the test sets `go` (or interrupts)."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


Piece = Chunk | Hold | ModelError


def say(text: str, usage: Usage | None = None, reason: str = "stop") -> list[Piece]:
    """A reply in words, in two pieces."""
    half = len(text) // 2
    return [Accepted(), TextChunk(text[:half]), TextChunk(text[half:]), Finished(reason, usage)]


def call(*calls: tuple[str, str], text: str = "", usage: Usage | None = None, ids: Sequence[str] = ()) -> list[Piece]:
    """A reply that calls tools: (name, JSON arguments) each."""
    pieces: list[Piece] = [Accepted()]
    if text:
        pieces.append(TextChunk(text))
    for i, (name, arguments) in enumerate(calls):
        pieces.append(ToolCallChunk(i, ids[i] if ids else f"call-{i}", name, arguments))
    return [*pieces, Finished("tool_calls", usage)]


@dataclass
class ScriptedChat:
    """Answers streamed requests from `replies`, summary requests (not streamed) from `summaries`; in order."""

    replies: list[list[Piece]] = field(default_factory=list)
    summaries: list[list[Piece]] = field(default_factory=list)
    requests: list[ChatRequest] = field(default_factory=list)
    closed: int = 0

    @property
    def turns(self) -> list[ChatRequest]:
        return [r for r in self.requests if r.stream]

    @property
    def summary_requests(self) -> list[ChatRequest]:
        return [r for r in self.requests if not r.stream]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        script = self.replies if request.stream else self.summaries
        pieces = script.pop(0) if script else say("ok")
        try:
            for piece in pieces:
                if isinstance(piece, ModelError):
                    raise piece
                if isinstance(piece, Hold):
                    piece.reached.set()
                    await piece.go.wait()
                else:
                    yield piece
        finally:
            self.closed += 1


@dataclass
class ScriptedConnection:
    script: ScriptedChat
    window: Window
    choice: ModelChoice = CHOICE
    supports_tools: bool = True
    max_tool_rounds: int | None = None
    alive: bool = True
    slots: Slots = field(default_factory=Slots)
    states: SlotStates | None = None
    facts: SlotFacts = field(default_factory=SlotFacts)
    """What the server tells of its slots; `looked` counts how often it was asked."""
    looked: int = 0

    def __post_init__(self) -> None:
        self.chat: ChatModel = TrackedChat(self.script, self.slots)

    async def refresh_window(self) -> Window:
        if self.facts.window is not None:
            self.window = Window(self.facts.window, "discovery")
        return self.window

    async def read_slots(self) -> SlotFacts:
        self.looked += 1
        return self.facts

    async def aclose(self) -> None:
        self.alive = False


@dataclass
class ScriptedHub:
    """Connects to the scripted chat; `failures` are raised first, one per try; `hold` delays connecting."""

    connection: ScriptedConnection
    failures: list[ModelError] = field(default_factory=list)
    hold: Hold | None = None
    nothing: bool = False
    connects: int = 0

    async def choices(self) -> list[ModelChoice]:
        return [] if self.nothing else [self.connection.choice]

    async def default(self) -> ModelChoice | None:
        return None if self.nothing else self.connection.choice

    async def connect(self, choice: ModelChoice, progress: Callable[[LoadProgress], None]) -> Connection:
        self.connects += 1
        progress(LoadProgress("loading", 1, 2))
        if self.hold is not None:
            self.hold.reached.set()
            await self.hold.go.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.connection.alive = True
        return self.connection


@dataclass
class ScriptedTools:
    """`results` by tool name: a text, a ToolResult, or a Hold to wait at; `needs` permission by name."""

    results: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, PermissionNeed] = field(default_factory=dict)
    ran: list[tuple[str, str]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def specs(self) -> tuple[ToolSpec, ...]:
        names = sorted({*self.results, *self.needs}) or ["Look"]
        return tuple(ToolSpec(n, f"{n} things", {"type": "object", "properties": {}}) for n in names)

    async def permission(self, name: str, arguments: str) -> PermissionNeed | None:
        return self.needs.get(name)

    async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult:
        self.ran.append((name, arguments))
        result = self.results.get(name, f"result of {name}")
        if isinstance(result, list):
            result = result.pop(0)
        if isinstance(result, Hold):
            result.reached.set()
            try:
                await result.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            return ToolResult("released")
        if isinstance(result, ToolResult):
            return result
        ctx.emit(str(result)[:10])
        return ToolResult(str(result))
