"""Collects the chunks of one reply into an assistant message, announcing text as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from marextui.context.messages import Message, ToolCall
from marextui.engine.bus import Bus
from marextui.engine.events import PromptProcessed, ReasoningStreamed, TextStreamed
from marextui.models.types import (
    Accepted,
    Chunk,
    Finished,
    PromptProgress,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Reply:
    """A reply under way. `first_at` is the clock reading of the first content chunk (time to first token)."""

    message_id: str
    turn: int
    bus: Bus
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish_reason: str = ""
    usage: Usage | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    finished: bool = False
    streamed: bool = False

    def feed(self, chunk: Chunk) -> None:
        """Take one chunk in."""
        match chunk:
            case TextChunk(text):
                if not text:
                    return
                if not self.streamed or not self.text:
                    self.bus.enter("streaming")
                self.streamed = True
                self.text.append(text)
                self.bus.emit(TextStreamed(self.message_id, text))
            case ReasoningChunk(text):
                if not text:
                    return
                if not self.streamed:
                    self.bus.enter("streaming", "thinking")
                self.streamed = True
                self.reasoning.append(text)
                self.bus.emit(ReasoningStreamed(self.message_id, text))
            case ToolCallChunk(index, call_id, name, arguments):
                if self.bus.phase == "prompt":
                    self.bus.enter("streaming", "a call")
                call = self.calls.setdefault(index, _Call())
                call.id = call.id or call_id
                call.name = call.name or name
                call.arguments.append(arguments)
            case PromptProgress(total, cached, done, seconds):
                self.bus.emit(PromptProcessed(total, cached, done, seconds))
            case Accepted():
                self.bus.enter("prompt")
            case Finished(reason, usage, timings):
                self.finish_reason, self.usage, self.timings = reason, usage, timings
                self.finished = True

    @property
    def cut_off(self) -> bool:
        """Whether it ended because it may not be longer: its last call or sentence is incomplete."""
        return self.finish_reason in {"length", "max_tokens"}

    @property
    def body(self) -> str:
        return "".join(self.text)

    def message(self, *, taken_ids: frozenset[str], drop_repeats: bool = False) -> Message | None:
        """The finished assistant message, or None when nothing worth logging came.

        `drop_repeats`: small models write the same call many times over in one reply; one of each is enough.
        Calls get an id of their own where the provider gave none or one that this view already uses (pairing, I1).
        """
        calls: list[ToolCall] = []
        used = set(taken_ids)
        seen: set[tuple[str, str]] = set()
        for index in sorted(self.calls):
            raw = self.calls[index]
            what = (raw.name, "".join(raw.arguments))
            if not raw.name or (drop_repeats and what in seen):
                continue
            seen.add(what)
            call_id = raw.id
            if not call_id or call_id in used:
                call_id = f"{self.message_id}-call-{index + 1}"
            used.add(call_id)
            calls.append(ToolCall(call_id, raw.name, "".join(raw.arguments)))
        if not calls and not self.body.strip():
            return None
        return Message(
            id=self.message_id,
            role="assistant",
            content=self.body,
            tool_calls=tuple(calls),
            reasoning="".join(self.reasoning),
            origin="model",
            turn=self.turn,
        )

    def partial(self) -> Message | None:
        """What to keep when the reply was cut off: its text so far; unfinished calls are left out."""
        if not self.body.strip():
            return None
        return Message(
            id=self.message_id,
            role="assistant",
            content=self.body,
            reasoning="".join(self.reasoning),
            origin="model",
            turn=self.turn,
        )
