"""Message values: what a conversation is made of, and their OpenAI chat wire form.

A `Message` is immutable and is the unit of the log. Text is kept raw here, exactly as received;
sanitising happens where text meets a screen (`context.sanitise`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Origin = Literal["system", "user", "model", "tool", "summary", "repair"]
"""Who wrote a message. `summary` and `repair` are synthetic: never a cut point (M7), never the user's request."""

SYNTHETIC: frozenset[Origin] = frozenset({"summary", "repair"})


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text part of a multi-part content."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image part; `url` is a `data:` or `https:` URL, kept verbatim."""

    url: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A part of a kind we do not know, kept verbatim as canonical JSON so that nothing is lost."""

    raw: str


Part = TextPart | ImagePart | OtherPart
Content = str | tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of an assistant message; `arguments` is the raw JSON text the model wrote (maybe malformed)."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the log.

    `id` is unique in its conversation and stable for life. `turn` is the 1-based turn it belongs to (0: none).
    `reasoning` is the model's thinking, kept but only echoed to providers that want it.
    """

    id: str
    role: Role
    content: Content = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""
    is_error: bool = False
    origin: Origin = "user"
    turn: int = 0

    def __hash__(self) -> int:
        """Of the id alone: what is remembered of a message is looked up at every step, for the whole view."""
        return hash(self.id)

    @property
    def text(self) -> str:
        """All text of the content, parts joined by newlines; images and unknown parts contribute nothing."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(p.text for p in self.content if isinstance(p, TextPart))

    @property
    def synthetic(self) -> bool:
        """True for messages that no person, model or tool wrote (summary pairs, repairs)."""
        return self.origin in SYNTHETIC


def canonical_json(value: object) -> str:
    """The one JSON writer for request bodies and the log: insertion order, compact separators, UTF-8 unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_SURROGATE = re.compile("[\ud800-\udfff]")


def file_json(value: object) -> str:
    """As `canonical_json`, for files: halves of surrogate pairs, which UTF-8 cannot hold, as their JSON escapes."""
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", canonical_json(value))


def part_to_wire(part: Part) -> dict[str, Any]:
    """OpenAI content part of `part`."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        image: dict[str, Any] = {"url": part.url}
        if part.detail:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    loaded: dict[str, Any] = json.loads(part.raw)
    return loaded


def to_wire(message: Message, *, echo_reasoning: bool = False) -> dict[str, Any]:
    """OpenAI chat form of `message`, keys in a fixed order (prefix stability, I7).

    An assistant message with calls and no text has `content: null`, as providers send it.
    """
    wire: dict[str, Any] = {"role": message.role}
    if isinstance(message.content, str):
        empty_call = message.role == "assistant" and message.tool_calls and not message.content
        wire["content"] = None if empty_call else message.content
    else:
        wire["content"] = [part_to_wire(p) for p in message.content]
    if echo_reasoning and message.reasoning:
        wire["reasoning_content"] = message.reasoning
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.tool_calls
        ]
    if message.role == "tool":
        wire["tool_call_id"] = message.tool_call_id
        if message.name:
            wire["name"] = message.name
    return wire


def part_from_wire(raw: object) -> Part:
    """Read one content part leniently; an unknown kind becomes an `OtherPart`, never an error."""
    if isinstance(raw, str):
        return TextPart(raw)
    if isinstance(raw, Mapping):
        kind = raw.get("type")
        if kind in ("text", "input_text", "output_text") and isinstance(raw.get("text"), str):
            return TextPart(raw["text"])
        if kind == "image_url":
            image = raw.get("image_url")
            if isinstance(image, Mapping) and isinstance(image.get("url"), str):
                return ImagePart(image["url"], str(image.get("detail") or ""))
            if isinstance(image, str):
                return ImagePart(image)
    return OtherPart(canonical_json(raw))
