"""Lenient reader of recorded conversations in OpenAI chat form, for `marextui replay` (cases 17–21, 87).

Nothing in a recording's *content* is an error: what is odd is read as well as it can be, and noted. Only a file that
is no recording at all raises. The messages still want `validate.repair` before a model is sent them.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marextui.context.dialects import message_from_wire
from marextui.context.messages import Message, ToolCall
from marextui.context.project_delta import without_update

__all__ = ["MAX_BYTES", "Recording", "RecordingError", "message_from_wire", "read_recording"]

MAX_BYTES = 256 * 1024 * 1024
"""Most bytes of an unpacked recording: a small gzip file must not fill the memory."""


class RecordingError(Exception):
    """The file is not a recording at all; the text is one line for a person."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was read: messages in order (not yet repaired) and one note per oddity."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...]


def read_recording(data: bytes, *, name: str) -> Recording:
    """The conversation in `data`: a JSON array, an object with `messages`, or JSON lines; gzipped or not.

    Message ids are `m1`, `m2`, …; a turn begins with a user message that follows another role. Call ids that occur
    twice are made unique, results without an id go to the call they must belong to. `name` is for the text of
    `RecordingError`, raised when there is no conversation to read.
    """
    notes: list[str] = []
    messages: list[Message] = []
    turn = 0
    for where, item in _items(_text(data, name, notes), name, notes):
        try:
            wires = _separated(_sound(item, where, notes))
            for wire in wires:
                role = wire.get("role")
                if role == "user" and (not messages or messages[-1].role != "user"):
                    turn += 1
                message, odd = message_from_wire(wire, id=f"m{len(messages) + 1}", turn=turn)
                notes.extend(f"{where}: {o}" for o in odd)
                if message is not None:
                    messages.append(_of_the_user(message, where, notes) if role == "user" else message)
        except RecursionError:
            notes.append(f"{where}: nested too deeply, skipped")
    if not messages:
        raise RecordingError(f"{name} holds no messages (looked for OpenAI chat messages with a role).")
    return Recording(tuple(_linked(messages, notes)), tuple(notes))


def _of_the_user(message: Message, where: str, notes: list[str]) -> Message:
    """What the user wrote: an update that an application put at its head is not theirs (L65, L66)."""
    content = without_update(message.content)
    if content == message.content or not content:
        return message
    notes.append(f"{where}: a context update of the application was taken off the user's message")
    return replace(message, content=content)


def _text(data: bytes, name: str, notes: list[str]) -> str:
    """`data` unpacked and decoded."""
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as e:
            raise RecordingError(f"{name} is a damaged gzip file ({e}).") from e
    if len(data) > MAX_BYTES:
        raise RecordingError(f"{name} is larger than {MAX_BYTES // 1024**2} MiB unpacked.")
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    text = data.decode(encoding, errors="replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        notes.append("bytes that are not UTF-8 were replaced")
    if not text.strip():
        raise RecordingError(f"{name} is empty.")
    return text


def _items(text: str, name: str, notes: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where it stands, raw message) of everything in the file that may be a message."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(text, name, notes)
        return
    if isinstance(whole, Mapping) and not isinstance(whole.get("messages"), list) and not _message_like(whole):
        raise RecordingError(f"{name} is JSON but no conversation: expected a list of messages, or `messages`.")
    if not isinstance(whole, Mapping | list):
        raise RecordingError(f"{name} is JSON but no conversation: it holds a single {type(whole).__name__}.")
    yield from _unwrapped("message", whole, notes)


def _lines(text: str, name: str, notes: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    objects = 0
    odd: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            odd.append(f"line {number} is not JSON, skipped")
            continue
        if not isinstance(value, Mapping):
            odd.append(f"line {number} is not an object, skipped")
            continue
        objects += 1
        yield from _unwrapped(f"line {number}", value, notes)
    if objects == 0:
        raise RecordingError(f"{name} is not a recording: neither JSON nor JSON lines.")
    notes.extend(odd)


def _message_like(value: Mapping[str, Any]) -> bool:
    return "role" in value or isinstance(value.get("message"), Mapping)


def _unwrapped(
    where: str, value: Mapping[str, Any] | Sequence[Any], notes: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Messages of a list, of an object with `messages` or `message`, or the object itself."""
    if isinstance(value, Mapping):
        inner = value.get("messages")
        if not isinstance(inner, list) or "role" in value:
            nested = value.get("message")
            yield where, nested if isinstance(nested, Mapping) and "role" not in value else value
            return
        value = inner
    for number, item in enumerate(value, 1):
        here = f"message {number}" if where == "message" else f"{where}, message {number}"
        if isinstance(item, Mapping):
            yield from _unwrapped(here, item, notes) if "messages" not in item else [(here, item)]
        else:
            notes.append(f"{here} is not an object, skipped")


def _sound(item: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, Any]:
    """`item` with halves of surrogate pairs replaced: JSON can spell them, but no request can carry them."""
    replaced = 0

    def walk(value: Any) -> Any:
        nonlocal replaced
        if isinstance(value, str):
            if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value):
                return value
            replaced += 1
            return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
        if isinstance(value, Mapping):
            return {walk(k): walk(v) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v) for v in value]
        return value

    sound: dict[str, Any] = walk(item)
    if replaced:
        notes.append(f"{where}: halves of surrogate pairs replaced")
    return sound


def _separated(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """`raw`, after the tool results found among its content blocks as messages of their own (case 21)."""
    content = raw.get("content")
    if not isinstance(content, list) or raw.get("role") == "tool":
        return [raw]
    results = [b for b in content if isinstance(b, Mapping) and b.get("type") == "tool_result"]
    if not results:
        return [raw]
    wires: list[Mapping[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": b.get("tool_use_id"),
            "content": b.get("content"),
            "is_error": b.get("is_error"),
        }
        for b in results
    ]
    rest = [b for b in content if not (isinstance(b, Mapping) and b.get("type") == "tool_result")]
    if rest:
        wires.append({**raw, "content": rest})
    return wires


@dataclass(slots=True)
class _Asked:
    """A call waiting for its result: its id in the file, its unique id, its tool."""

    recorded: str
    id: str
    name: str


def _linked(messages: Sequence[Message], notes: list[str]) -> Iterator[Message]:
    """`messages` with unique call ids, and results pointing at them; notes on what has no counterpart."""
    used: set[str] = set()
    waiting: list[_Asked] = []
    for message in messages:
        if message.role == "tool":
            match = _match(message, waiting)
            if match is None:
                notes.append(f"{message.id}: a tool result without its call")
            else:
                waiting.remove(match)
                if not message.tool_call_id:
                    notes.append(f"{message.id}: no call id, taken as the result of {match.name or match.id}")
                message = replace(message, tool_call_id=match.id)
            yield message
            continue
        _unanswered(waiting, notes)
        if message.tool_calls:
            calls: list[ToolCall] = []
            for i, call in enumerate(message.tool_calls, 1):
                unique = call.id
                if not call.id or call.id in used:
                    unique = f"{call.id or 'call'}-{message.id}-{i}"
                    notes.append(f"{message.id}: call id {call.id or '(none)'} renamed to {unique}")
                used.add(unique)
                waiting.append(_Asked(call.id, unique, call.name))
                calls.append(replace(call, id=unique))
            message = replace(message, tool_calls=tuple(calls))
        yield message
    _unanswered(waiting, notes)


def _unanswered(waiting: list[_Asked], notes: list[str]) -> None:
    notes.extend(f"call {asked.id} ({asked.name or 'unnamed'}) has no result" for asked in waiting)
    waiting.clear()


def _match(result: Message, waiting: Sequence[_Asked]) -> _Asked | None:
    """The call a result answers: by id, else (a result without id) by tool name, else the first one waiting."""
    if result.tool_call_id:
        return next((a for a in waiting if a.recorded == result.tool_call_id), None)
    return next((a for a in waiting if a.name == result.name), waiting[0] if waiting else None)
