"""A recorded conversation playing the model and the tools of the real engine (`marextui replay`)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace

from marextui.context.budget import UNKNOWN_WINDOW, Window
from marextui.context.messages import Content, Message, Part, TextPart
from marextui.context.shape_parts import is_thinking
from marextui.models.slots import SlotFacts, Slots
from marextui.models.types import (
    Accepted,
    ChatModel,
    ChatRequest,
    Chunk,
    Connection,
    Finished,
    LoadProgress,
    ModelChoice,
    ReasoningChunk,
    SlotStates,
    TextChunk,
    ToolCallChunk,
)
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

RECORDING = ModelChoice("endpoint", "recording", "recording", local=False)
NO_RESULT = "No result was recorded for this call."


@dataclass(slots=True)
class Step:
    """One recorded model answer and the results of its calls; `at` are positions in the recording (−1: none)."""

    assistant: Message
    at: int
    results: list[tuple[int, Message]] = field(default_factory=list)


@dataclass(slots=True)
class Turn:
    """A recorded user message (None: the recording has none here) and what followed it."""

    user: Message | None
    at: int
    steps: list[Step] = field(default_factory=list)


def split_turns(messages: Sequence[Message]) -> tuple[str, list[Turn], list[str]]:
    """(system prompt, turns, notes) of a recording. Every oddity is repaired with a note, never an error."""
    system: list[str] = []
    turns: list[Turn] = []
    notes: list[str] = []
    for at, message in enumerate(messages):
        if message.role == "system":
            if turns:
                notes.append(f"message {at}: a system message in mid-conversation; it was added to the system prompt")
            system.append(message.text)
        elif message.role == "user":
            turns.append(Turn(message, at))
        elif message.role == "assistant":
            if not turns:
                notes.append(f"message {at}: the recording starts with the assistant")
                turns.append(Turn(None, -1))
            _add_assistant(turns[-1], message, at, notes)
        else:
            _add_result(turns, message, at, notes)
    for turn in turns:
        for step in turn.steps:
            answered = {m.tool_call_id for _, m in step.results}
            for call in step.assistant.tool_calls:
                if call.id not in answered:
                    notes.append(f"message {step.at}: call {call.id} ({call.name}) was never answered")
    return "\n\n".join(s for s in system if s), turns, notes


def _add_assistant(turn: Turn, message: Message, at: int, notes: list[str]) -> None:
    last = turn.steps[-1] if turn.steps else None
    if last is None or last.assistant.tool_calls:
        turn.steps.append(Step(message, at))
        return
    notes.append(f"messages {last.at} and {at}: two assistant messages in a row were joined")
    text = "\n\n".join(t for t in (last.assistant.text, message.text) if t)
    reasoning = "\n\n".join(t for t in (last.assistant.reasoning, message.reasoning) if t)
    thinking = (*thinking_parts(last.assistant), *thinking_parts(message))
    last.assistant = replace(message, content=(*thinking, TextPart(text)) if thinking else text, reasoning=reasoning)
    last.at = at


def thinking_parts(message: Message) -> tuple[Part, ...]:
    """The blocks of signed or encrypted thinking a recorded answer holds; the engine's own models send none."""
    return () if isinstance(message.content, str) else tuple(p for p in message.content if is_thinking(p))


def _add_result(turns: list[Turn], message: Message, at: int, notes: list[str]) -> None:
    step = turns[-1].steps[-1] if turns and turns[-1].steps else None
    wanted = {c.id for c in step.assistant.tool_calls} if step else set()
    if step is None or message.tool_call_id not in wanted:
        notes.append(f"message {at}: a tool result without its call was left out")
    elif message.tool_call_id in {m.tool_call_id for _, m in step.results}:
        notes.append(f"message {at}: a second result for the same call was left out")
    else:
        step.results.append((at, message))


@dataclass(slots=True)
class Tape:
    """The part of the recording that plays now; hands out positions of the messages as the engine logs them."""

    steps: deque[Step] = field(default_factory=deque)
    current: Step | None = None
    _results: deque[tuple[int, Message | None]] = field(default_factory=deque)
    now_at: int = -1

    def load(self, turn: Turn) -> None:
        self.steps = deque(turn.steps)
        self.now_at = turn.at

    def next_step(self) -> Step | None:
        """The next recorded answer; its results are then handed out in call order."""
        self.current = self.steps.popleft() if self.steps else None
        self._results.clear()
        if self.current is None:
            return None
        self.now_at = self.current.at
        by_call = {m.tool_call_id: (at, m) for at, m in self.current.results}
        for call in self.current.assistant.tool_calls:
            self._results.append(by_call.get(call.id, (-1, None)))
        return self.current

    def next_result(self) -> Message | None:
        at, message = self._results.popleft() if self._results else (-1, None)
        self.now_at = at
        return message


@dataclass(slots=True)
class RecordedModel:
    """`ChatModel` that answers from the tape; summary requests (not streamed) go to `summarizer`."""

    tape: Tape
    summarizer: ChatModel | None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        if not request.stream and self.summarizer is not None:
            async for chunk in self.summarizer.stream(request):
                yield chunk
            return
        yield Accepted()
        step = self.tape.next_step()
        if step is not None:
            if step.assistant.reasoning:
                yield ReasoningChunk(step.assistant.reasoning)
            if step.assistant.text:
                yield TextChunk(step.assistant.text)
            for index, call in enumerate(step.assistant.tool_calls):
                yield ToolCallChunk(index, call.id, call.name, call.arguments)
        yield Finished("stop", None)


@dataclass(slots=True)
class RecordedTools:
    """`ToolBox` that answers every call with its recorded result. Offers `offered` to the model, runs nothing."""

    tape: Tape
    offered: tuple[ToolSpec, ...]

    def specs(self) -> tuple[ToolSpec, ...]:
        return self.offered

    async def permission(self, name: str, arguments: str) -> PermissionNeed | None:
        return None

    async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult:
        message = self.tape.next_result()
        if message is None:
            return ToolResult(NO_RESULT, is_error=True)
        if isinstance(message.content, str):
            return ToolResult(message.content, message.is_error)
        return ToolResult(message.text, message.is_error, parts=message.content)


@dataclass(slots=True)
class RecordedConnection:
    """`Connection` of a replay; the window comes from the command line (policy override) or stays unknown."""

    chat: ChatModel
    choice: ModelChoice = RECORDING
    window: Window = UNKNOWN_WINDOW
    supports_tools: bool = True
    max_tool_rounds: int | None = None
    alive: bool = True

    slots: Slots = field(default_factory=Slots)
    states: SlotStates | None = None

    async def refresh_window(self) -> Window:
        return self.window

    async def read_slots(self) -> SlotFacts:
        return SlotFacts()

    async def aclose(self) -> None:
        return None


@dataclass(slots=True)
class RecordedHub:
    """`ModelHub` with the recording as its only model."""

    connection: Connection

    async def choices(self) -> list[ModelChoice]:
        return [self.connection.choice]

    async def default(self) -> ModelChoice | None:
        return self.connection.choice

    async def connect(self, choice: ModelChoice, progress: Callable[[LoadProgress], None]) -> Connection:
        return self.connection


def content_of(message: Message | None) -> Content:
    """What is submitted for a recorded user message; an empty one still opens its turn, in words."""
    if message is None:
        return "(the conversation starts here)"
    if isinstance(message.content, str):
        return message.content if message.content.strip() else "(empty message)"
    return message.content or (TextPart("(empty message)"),)
