"""Warm resume: which saved state of a conversation's cache is worth bringing back, and which may go (issue 4, 7).

A state is the keys and values a server computed for a prompt. It only ever saves work: the server compares its tokens
with those of the next prompt and computes whatever differs, so nothing here can make an answer wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marextui.context.messages import canonical_json

LEAST_TOKENS = 512
"""A shorter prompt is computed again sooner than its state is looked after."""
DAY = 86_400.0
RING = 4
"""Files that may lie on a server's disk."""
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class KeptState:
    """A state that was saved as `file`. `engine` stands for everything it depends on (model, build, cache);
    `prompt` holds a digest of each piece of the prompt in order, see `pieces`. `bytes` None: on a disk of the server's.
    `saved_at` is in seconds since 1970, `checksum` that of the file (CRC-32)."""

    file: str
    conversation: str
    engine: str
    prompt: tuple[str, ...]
    tokens: int
    bytes: int | None
    saved_at: float
    checksum: int = 0

    def to_json(self) -> str:
        """One line."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields)


def from_json(text: str) -> KeptState | None:
    """What `to_json` wrote; None for anything else: then there is no state."""
    try:
        told = json.loads(text)
        prompt = tuple(map(str, told["prompt"]))
        size = None if told["bytes"] is None else int(told["bytes"])
        file, conversation, engine = (str(told[name]) for name in ("file", "conversation", "engine"))
        return KeptState(
            file,
            conversation,
            engine,
            prompt,
            int(told["tokens"]),
            size,
            float(told["saved_at"]),
            int(told["checksum"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def pieces(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], template: Mapping[str, Any]
) -> tuple[str, ...]:
    """A digest of each piece of a prompt in order: tools with the template's arguments, then the messages."""
    head: Any = {"tools": list(tools), "template": dict(template)}
    return tuple(_digest(canonical_json(piece)) for piece in (head, *messages))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def file_for(conversation: str) -> str:
    """The name of the state of `conversation` in a folder of our own."""
    return f"marextui-{_digest(conversation)}.bin"


def file_at(place: str, conversation: str, kept: Sequence[KeptState]) -> str:
    """The name of the state of `conversation` on a disk where nothing can be deleted: one of `RING` names that belong
    to `place`, its own, else a free one, else that of the oldest state."""
    names = [f"marextui-{_digest(place)}-{n}.bin" for n in range(RING)]
    there = {state.file: state for state in kept}
    own = next((n for n in names if n in there and there[n].conversation == conversation), None)
    free = next((n for n in names if n not in there), None)
    return own or free or min(names, key=lambda n: there[n].saved_at)


def worth_restoring(kept: KeptState, engine: str, prompt: Sequence[str]) -> bool:
    """Whether the next prompt begins as the saved one: the same engine, and more than half of its pieces."""
    if not engine or kept.engine != engine:
        return False
    shared = 0
    for old, new in zip(kept.prompt, prompt, strict=False):
        if old != new:
            break
        shared += 1
    return shared * 2 > len(kept.prompt)


def outlived(kept: Sequence[KeptState], *, now: float, days: int, most_bytes: int) -> tuple[KeptState, ...]:
    """The states to delete: those older than `days`, then the oldest until the rest takes at most `most_bytes`."""
    newest_first = sorted(kept, key=lambda k: (-k.saved_at, k.file))
    gone: list[KeptState] = []
    room = most_bytes
    for state in newest_first:
        size = state.bytes or 0
        if now - state.saved_at > days * DAY or size > room:
            gone.append(state)
        else:
            room -= size
    return tuple(gone)
