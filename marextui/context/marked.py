"""What stands in a message where something of it left the view, and what that stands for (M24, cases 31, 34)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marextui.context.entries import InputRef, OmissionRef, ShortenedRef
from marextui.context.messages import ImagePart, Message, TextPart, canonical_json
from marextui.context.omission import marker

AnyRef = OmissionRef | InputRef | ShortenedRef

INPUT_LABEL = "tool input"
"""What markers call an argument of a call."""


def original(message: Message, ref: AnyRef) -> str | None:
    """The text of `message` that `ref` stands for; None when it has none there (any more)."""
    if isinstance(ref, InputRef):
        return _argument(message, ref)
    if isinstance(message.content, str):
        return message.content if ref.part == -1 else None
    part = message.content[ref.part] if 0 <= ref.part < len(message.content) else None
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ImagePart):
        return part.url
    return None if part is None else part.raw


def _argument(message: Message, ref: InputRef) -> str | None:
    if not 0 <= ref.call < len(message.tool_calls):
        return None
    value: Any = message.tool_calls[ref.call].arguments
    if not ref.path:
        return str(value)
    try:
        value = json.loads(value)
        for step in ref.path:
            value = value[step]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return value if isinstance(value, str) else None


def arguments_marked(arguments: str, by_path: Mapping[tuple[str | int, ...], InputRef]) -> str:
    """JSON arguments with the texts at those paths replaced by markers; a valid JSON object whatever `arguments` is."""
    whole = by_path.get(())
    if whole is not None:
        return canonical_json({"malformed": marker(whole.omission_id, whole.chars, INPUT_LABEL)})
    value: Any = json.loads(arguments)
    for path, ref in by_path.items():
        value = _placed(value, path, marker(ref.omission_id, ref.chars, INPUT_LABEL))
    return canonical_json(value)


def _placed(value: Any, path: tuple[str | int, ...], text: str) -> Any:
    """`value` with the text at `path` replaced; as it is where the path leads nowhere."""
    if not path:
        return text if isinstance(value, str) else value
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and step in value:
        return {k: _placed(v, rest, text) if k == step else v for k, v in value.items()}
    if isinstance(value, list) and isinstance(step, int):
        return [_placed(v, rest, text) if i == step else v for i, v in enumerate(value)]
    return value
