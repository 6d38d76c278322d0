"""One reply, chunk by chunk: provider JSON in, `Chunk`s out. No I/O; the network's bytes are fed in (section C)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from marextui.context.messages import canonical_json
from marextui.models.lenient import as_float, as_int, as_text, at, items
from marextui.models.types import (
    Chunk,
    Finished,
    PromptProgress,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from marextui.models.usage import timings_from, usage_from


@dataclass(slots=True)
class _Call:
    index: int
    id: str = ""
    name: str = ""
    has_arguments: bool = False


class ToolCalls:
    """Puts fragments of parallel calls in order, for servers that number them, forget to, or send them whole.

    `taken` are ids already used in the conversation: a generated id ("call_1") never repeats one.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._taken = set(taken)

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, fragment: object) -> Iterator[ToolCallChunk]:
        """The chunk for one entry of `tool_calls`; nothing when it says nothing."""
        if not isinstance(fragment, Mapping):
            return
        function = fragment.get("function")
        source: Mapping[str, object] = function if isinstance(function, Mapping) else fragment
        call_id, name = as_text(fragment.get("id")), as_text(source.get("name"))
        arguments = _arguments(source.get("arguments"))
        call = self._call_for(as_int(fragment.get("index")), call_id, name)
        if call is None:
            if not (call_id or name or arguments):
                return
            call = self._open()
        number = as_int(fragment.get("index"))
        if number is not None:
            self._by_index[number] = call
        new_id = call_id if call_id and not call.id else ""
        new_name = name if name and not call.name else ""
        call.id, call.name = call.id or new_id, call.name or new_name
        call.has_arguments = call.has_arguments or bool(arguments)
        if new_id or new_name or arguments:
            yield ToolCallChunk(call.index, new_id, new_name, arguments)

    def close(self) -> Iterator[ToolCallChunk]:
        """Ids for the calls that came without one, deterministic: call_1, call_2, … skipping ids already taken."""
        used = self._taken | {c.id for c in self._calls}
        number = 0
        for call in self._calls:
            if call.id:
                continue
            number += 1
            while f"call_{number}" in used:
                number += 1
            call.id = f"call_{number}"
            used.add(call.id)
            yield ToolCallChunk(call.index, call.id)

    def _call_for(self, number: int | None, call_id: str, name: str) -> _Call | None:
        """The open call this fragment goes on with; None: it starts a new one."""
        if number is not None:
            call = self._by_index.get(number)
            # Some servers number every whole call 0: another id with another name is another call.
            return None if call and call_id and call.id and call_id != call.id and name else call
        if call_id:
            return next((c for c in self._calls if c.id == call_id), None)
        if name or not self._calls:
            last = self._calls[-1] if self._calls else None
            return last if last and not last.name else None
        return self._calls[-1]

    def _open(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call


def _arguments(value: object) -> str:
    """Argument text; servers that send an object get it written out."""
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value)


def _content(value: object) -> Iterator[TextChunk | ReasoningChunk]:
    """Text of a content string or of content parts (Mistral sends thinking as a part)."""
    if isinstance(value, str):
        if value:
            yield TextChunk(value)
        return
    for part in items(value):
        if isinstance(part, str) and part:
            yield TextChunk(part)
        elif as_text(at(part, "text")):
            yield TextChunk(part["text"])
        elif at(part, "type") in {"thinking", "reasoning"}:
            inner = part.get("thinking") or part.get("reasoning")
            text = inner if isinstance(inner, str) else "".join(as_text(at(p, "text")) for p in items(inner))
            if text:
                yield ReasoningChunk(text)


class Reply:
    """Accumulates what only the end can tell: finish reason, usage, timings, generated ids."""

    def __init__(self, taken_ids: Collection[str] = ()) -> None:
        self.calls = ToolCalls(taken_ids)
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.timings: Mapping[str, float] = {}
        self._deltas = 0

    @property
    def ended(self) -> bool:
        """Whether the server said that the reply is over, or counted it (usage comes last)."""
        return bool(self.finish_reason) or self.usage is not None

    def feed(self, chunk: Mapping[str, object]) -> Iterator[Chunk]:
        """Chunks for one parsed JSON object of the stream, or for a whole non-streamed answer."""
        self._count(chunk)
        progress = chunk.get("prompt_progress")
        if isinstance(progress, Mapping):
            total, done = as_int(progress.get("total")), as_int(progress.get("processed"))
            if total is not None and done is not None:
                ms = as_float(progress.get("time_ms"))
                seconds = None if ms is None or ms < 0 else ms / 1000
                yield PromptProgress(total, as_int(progress.get("cache")) or 0, min(done, total), seconds)
        for choice in items(chunk.get("choices")):
            if not isinstance(choice, Mapping) or (as_int(choice.get("index")) or 0) != 0:
                continue
            delta = choice.get("delta")
            if not isinstance(delta, Mapping):
                # A whole message: the only thing a non-streamed answer has; a repetition after deltas.
                delta = choice.get("message") if not self._deltas else None
            if isinstance(delta, Mapping):
                yield from self._delta(delta)
            elif isinstance(choice.get("text"), str) and choice["text"]:
                self._deltas += 1
                yield TextChunk(choice["text"])
            self.finish_reason = as_text(choice.get("finish_reason")) or self.finish_reason

    def _delta(self, delta: Mapping[str, object]) -> Iterator[Chunk]:
        for key in ("reasoning_content", "reasoning"):  # servers that send both repeat themselves
            if thought := as_text(delta.get(key)):
                self._deltas += 1
                yield ReasoningChunk(thought)
                break
        for piece in (*_content(delta.get("content")), *_content(delta.get("refusal"))):
            self._deltas += 1
            yield piece
        for fragment in items(delta.get("tool_calls")):
            for call in self.calls.feed(fragment):
                self._deltas += 1
                yield call
        if isinstance(delta.get("function_call"), Mapping):
            for call in self.calls.feed({"index": 0, "function": delta["function_call"]}):
                self._deltas += 1
                yield call

    def _count(self, chunk: Mapping[str, object]) -> None:
        timings = chunk.get("timings")
        raw = chunk.get("usage") or at(chunk, "x_groq", "usage") or at(chunk, "choices", 0, "usage")
        self.timings = timings_from(timings) or self.timings
        self.usage = usage_from(raw, timings) or self.usage

    def close(self) -> Iterator[Chunk]:
        """The last chunks: missing call ids, then `Finished`."""
        yield from self.calls.close()
        yield Finished(self.finish_reason, self.usage, self.timings)
