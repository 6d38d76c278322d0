"""One recorded message in any dialect of the chat form, read leniently into a `Message` (cases 17–21, 87)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marextui.context.messages import (
    Content,
    ImagePart,
    Message,
    Origin,
    OtherPart,
    Part,
    Role,
    TextPart,
    ToolCall,
    canonical_json,
    part_from_wire,
)

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_ORIGINS: Mapping[Role, Origin] = {"system": "system", "user": "user", "assistant": "model", "tool": "tool"}


def message_from_wire(raw: Mapping[str, Any], *, id: str, turn: int) -> tuple[Message | None, list[str]]:
    """One message in wire form, and notes on what was odd about it; (None, notes) when nothing in it is usable.

    Reads the OpenAI form, its legacy `function_call`, and content blocks of the Anthropic form (`tool_use`,
    `thinking`, `image`); signed and encrypted thinking is also kept as it is. A `tool_result` block becomes a message
    of its own in `read_recording`, not here.
    """
    notes: list[str] = []
    if not any(raw.get(k) for k in ("role", "content", "tool_calls", "function_call", "tool_call_id")):
        return None, ["neither role nor content, skipped"]
    role = _role(raw, notes)
    reasoning = _reasoning(raw, notes)
    calls: list[ToolCall] = []
    content = _content(raw.get("content"), role, calls, reasoning, notes)
    calls.extend(_calls(raw, notes))
    if calls and role != "assistant":
        notes.append(f"tool calls in a {role} message left out")
        calls = []
    if not content and not calls and not (role == "tool" and raw.get("content") == ""):
        notes.append(f"{role} message without content")
    error = raw.get("error") or raw.get("is_error")
    message = Message(
        id=id,
        role=role,
        content=content,
        tool_calls=tuple(calls),
        tool_call_id=_word(raw.get("tool_call_id")) if role == "tool" else "",
        name=_word(raw.get("name")),
        reasoning="\n\n".join(reasoning),
        is_error=role == "tool" and bool(error),
        origin=_ORIGINS[role],
        turn=turn,
    )
    return message, notes


def _role(raw: Mapping[str, Any], notes: list[str]) -> Role:
    named = raw.get("role")
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is not None:
        if named in {"developer", "function"}:
            notes.append(f"role {named} read as {role}")
        return role
    guess: Role = "user"
    if raw.get("tool_call_id"):
        guess = "tool"
    elif raw.get("tool_calls") or raw.get("function_call"):
        guess = "assistant"
    notes.append(f"{'no role' if named is None else f'unknown role {named!r:.40}'}, read as {guess}")
    return guess


def _reasoning(raw: Mapping[str, Any], notes: list[str]) -> list[str]:
    for key in ("reasoning_content", "reasoning", "thinking"):
        value = raw.get(key)
        if isinstance(value, str) and value:
            return [value]
        if value:
            notes.append(f"{key} is not text, left out")
    return []


def _content(raw: object, role: Role, calls: list[ToolCall], reasoning: list[str], notes: list[str]) -> Content:
    """The content; blocks that are calls or reasoning go to those lists."""
    if raw is None or isinstance(raw, str):
        return raw or ""
    if isinstance(raw, Mapping):
        notes.append("content is one block, not a list")
        raw = [raw]
    if not isinstance(raw, list):
        notes.append(f"content is {type(raw).__name__}, not text")
        return canonical_json(raw)
    parts: list[Part] = []
    for block in raw:
        kind = _word(block.get("type")) if isinstance(block, Mapping) else ""
        if isinstance(block, Mapping) and kind == "tool_use":
            calls.append(_call(block, notes))
        elif isinstance(block, Mapping) and kind in {"thinking", "reasoning"}:
            thought = block.get("thinking") or block.get("text") or block.get("reasoning")
            if isinstance(thought, str):
                reasoning.append(thought)
            if role == "assistant" and isinstance(block.get("signature"), str):
                parts.append(OtherPart(canonical_json(block)))  # only whole does its provider take it back (case 25)
        elif isinstance(block, Mapping) and kind == "redacted_thinking" and role == "assistant":
            parts.append(OtherPart(canonical_json(block)))
        else:
            parts.append(_part(block, notes))
    if role != "user" and len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return tuple(parts)


def _part(block: object, notes: list[str]) -> Part:
    if not isinstance(block, Mapping):
        if not isinstance(block, str):
            notes.append(f"a content part is {type(block).__name__}, read as text")
        return TextPart(block if isinstance(block, str) else canonical_json(block))
    kind = _word(block.get("type"))
    source = block.get("source")
    if kind == "image" and isinstance(source, Mapping):
        if source.get("type") == "base64" and isinstance(source.get("data"), str):
            return ImagePart(f"data:{_word(source.get('media_type')) or 'image/png'};base64,{source['data']}")
        if isinstance(source.get("url"), str):
            return ImagePart(source["url"])
    if kind == "input_image" and isinstance(block.get("image_url"), str):
        return ImagePart(block["image_url"])
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return TextPart(block["refusal"])
    part = part_from_wire(block)
    if not isinstance(part, TextPart | ImagePart):
        notes.append(f"a content part of kind {_word(kind)[:40] or 'unknown'} kept as it is")
    return part


def _calls(raw: Mapping[str, Any], notes: list[str]) -> list[ToolCall]:
    found: list[ToolCall] = []
    listed = raw.get("tool_calls")
    if isinstance(listed, Mapping):
        listed = [listed]
    if listed and not isinstance(listed, list):
        notes.append("tool_calls is not a list, left out")
        listed = None
    for call in listed or ():
        if isinstance(call, Mapping):
            found.append(_call(call, notes))
        else:
            notes.append("a tool call is not an object, left out")
    legacy = raw.get("function_call")
    if isinstance(legacy, Mapping):
        notes.append("legacy function_call read as a tool call")
        found.append(_call(legacy, notes))
    return found


def _call(raw: Mapping[str, Any], notes: list[str]) -> ToolCall:
    """A call as `{id, function: {name, arguments}}`, or flat, or as a `tool_use` block."""
    function = raw.get("function")
    inner = function if isinstance(function, Mapping) else raw
    name = _word(inner.get("name"))
    arguments = inner.get("arguments", inner.get("input"))
    if not name:
        notes.append("a tool call has no name")
    if isinstance(arguments, str):
        return ToolCall(_word(raw.get("id")), name, arguments)
    if raw.get("type") != "tool_use":
        notes.append(f"the arguments of {name or 'a call'} are {type(arguments).__name__}, not text")
    return ToolCall(_word(raw.get("id")), name, "{}" if arguments is None else canonical_json(arguments))


def _word(value: object) -> str:
    """A name or id as text; numbers are written out, anything else is no name."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
