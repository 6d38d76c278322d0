"""A view in the request shape of a provider: OpenAI, Anthropic, Gemini, strict alternation (I1; cases 17–27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from marextui.context.messages import Message
from marextui.context.shape_rules import shape_violations

Shape = Literal["openai", "anthropic", "gemini", "strict"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


def to_shape(messages: Sequence[Message], shape: Shape) -> Any:
    """The JSON-able request fragment of `messages` for `shape`."""
    raise NotImplementedError


def write_shape(messages: Sequence[Message], shape: Shape) -> list[dict[str, Any]]:
    """`to_shape` as one JSON object per line of a file: the system part (if any), then each message or content."""
    raise NotImplementedError


__all__ = ["SHAPES", "Shape", "shape_violations", "to_shape", "write_shape"]
