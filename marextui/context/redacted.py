"""Log entries without secrets: text is redacted, what only a provider can read stays byte for byte (case 135; I10).

The live conversation keeps what was said; this is what the disk gets, so a resumed conversation sees placeholders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from marextui.context.entries import Entry, MessageAdded
from marextui.context.messages import (
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCall,
    canonical_json,
)
from marextui.context.redaction import redact, redact_value

_OPAQUE_NAMES = """
    signature thoughtSignature thought_signature encrypted_content encryptedContent encrypted_reasoning data file_data
    image_data b64_json bytes inlineData id call_id tool_use_id tool_call_id item_id type role format
"""
_OPAQUE_KEYS = frozenset(_OPAQUE_NAMES.split())
_OPAQUE_TYPES = frozenset({"redacted_thinking", "reasoning.encrypted", "compaction"})

_DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*[;,]")


def redacted_message(message: Message) -> Message:
    """`message` without secrets in its text, reasoning and call arguments; the same object when there are none.

    Opaque fields (signatures, encrypted reasoning, image data, ids) are never touched. A signature over a text that
    held a secret no longer fits it: a view made from the disk must not send it (cases 26, 30).
    """
    content = message.content
    clean = redact(content) if isinstance(content, str) else tuple(map(_part, content))
    reasoning = redact(message.reasoning)
    calls = tuple(map(_call, message.tool_calls))
    if clean == content and reasoning == message.reasoning and calls == message.tool_calls:
        return message
    return replace(message, content=clean, reasoning=reasoning, tool_calls=calls)


def redacted_entry(entry: Entry) -> Entry:
    """`entry` as it may be written to disk; the same object when it holds no secret."""
    if isinstance(entry, MessageAdded):
        message = redacted_message(entry.message)
        return entry if message is entry.message else MessageAdded(message)
    return cast(Entry, _texts(entry))


def redacted_arguments(arguments: str) -> str:
    """The arguments of a call: valid JSON stays valid, and untouched to the byte without a secret in it."""
    return _redacted_json(arguments, frozenset())


def holds_secret(value: Any) -> bool:
    """Whether anything in a JSON value would be redacted."""
    return bool(_json(value, "", frozenset()) != value)


def _redacted_json(text: str, opaque: frozenset[str]) -> str:
    try:
        loaded = json.loads(text)
        clean = _json(loaded, "", opaque)
        changed = clean != loaded
    except (ValueError, RecursionError):  # malformed, or deeper than anything a tool takes
        return redact(text)
    return canonical_json(clean) if changed else text


def _call(call: ToolCall) -> ToolCall:
    arguments = redacted_arguments(call.arguments)
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _part(part: Part) -> Part:
    if isinstance(part, TextPart):
        text = redact(part.text)
        return part if text == part.text else TextPart(text)
    if isinstance(part, ImagePart):
        url = part.url if _DATA_URL.match(part.url) else redact(part.url)
        return part if url == part.url else replace(part, url=url)
    raw = _redacted_json(part.raw, _OPAQUE_KEYS)
    return part if raw == part.raw else OtherPart(raw)


def _json(value: Any, key: str, opaque: frozenset[str]) -> Any:
    if isinstance(value, str):
        return value if key in opaque or _DATA_URL.match(value) else redact_value(key, value)
    if isinstance(value, list):
        return [_json(inner, key, opaque) for inner in value]
    if isinstance(value, Mapping):
        kind = value.get("type")
        if opaque and isinstance(kind, str) and kind in _OPAQUE_TYPES:
            return value
        return {name: _json(inner, name, opaque) for name, inner in value.items()}
    return value


def _texts(value: Any) -> Any:
    """Redact every text of a decision or event; their ids and keys hold nothing that looks like a secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, tuple):
        clean = tuple(map(_texts, value))
        return value if clean == value else clean
    if is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: new for f in fields(value) if (new := _texts(old := getattr(value, f.name))) != old}
        return replace(value, **changed) if changed else value
    return value
