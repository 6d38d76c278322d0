"""A view as the messages of an OpenAI chat request: every one of them legal, pictures of tool results included (I1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from marextui.context.messages import ImagePart, Message, Part, TextPart, to_wire
from marextui.context.shape_parts import instead, parts_of
from marextui.context.validate import NO_REPLY

IMAGE_FOLLOWS = "[image: in the next user message]"
"""Stands in a tool result whose image had to move: OpenAI takes images from users only."""
IMAGES_HERE = "[the images of the tool results above]"


def wire_messages(view: Sequence[Message], *, echo_reasoning: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """(id, wire form) of each message of `view`; a pure function of the messages read left to right (I7).

    The content of a tool result is text: its images stand in a user message after the last result of their round
    (case 22: with a reply between them), before what the user says next if that comes at once.
    """
    owner = ""
    moved: list[Part] = []
    for message in view:
        if message.role == "tool" and not isinstance(message.content, str):
            pictures = [p for p in message.content if isinstance(p, ImagePart)]
            if pictures:
                owner = message.id
                moved += pictures
            yield message.id, to_wire(replace(message, content=_as_text(message)))
            continue
        if moved and message.role == "user":
            message = replace(message, content=(TextPart(IMAGES_HERE), *moved, *parts_of(message)))
            moved = []
        elif moved and message.role == "assistant":
            yield from _shown(owner, moved)
            moved = []
        yield message.id, to_wire(message, echo_reasoning=echo_reasoning)
    if moved:
        yield from _shown(owner, moved)


def _as_text(message: Message) -> str:
    parts = (
        IMAGE_FOLLOWS if isinstance(p, ImagePart) else p.text if isinstance(p, TextPart) else instead(p)
        for p in message.content
        if not isinstance(p, str)
    )
    return "\n".join(p for p in parts if p)


def _shown(owner: str, pictures: Sequence[Part]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A user message after a result is a second one in a row for strict templates, unless a reply stands between."""
    for message in (
        Message(f"{owner}-reply", "assistant", NO_REPLY, origin="repair"),
        Message(f"{owner}-images", "user", (TextPart(IMAGES_HERE), *pictures), origin="repair"),
    ):
        yield message.id, to_wire(message)
