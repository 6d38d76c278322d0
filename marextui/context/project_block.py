"""The project block as a model reads it, live or frozen, and its place at the head of the first user message (L51–L55).

Live, it is made anew for each turn. Frozen (PROJ_SNAPSHOT), it is a dated copy that is sent again byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from marextui.context.marks import CONTEXT_UPDATE_OPEN, PROJECT_CLOSE, PROJECT_OPEN
from marextui.context.messages import Content, Message, TextPart
from marextui.context.project import INDEX_SHARE, TRACKERS_SHARE, Keyed, ProjectState, block_limit

GAP = "\n\n"
"""Between a block and what follows it."""

STRAIGHT = "answer straight from this"
"""Stands in the headers of a live list only: of a frozen one a later update may be right (L54)."""

SYSTEM_LINE = (
    f"A block {CONTEXT_UPDATE_OPEN} at the head of a message comes from this application, not from the user: it says "
    "what has changed in the project context since. Where blocks differ, the latest one holds."
)
"""In the system prompt, only while the project context is frozen (L55)."""

FORMAT = "1"
"""Changes with the wording of the headers: a frozen copy of another wording is taken anew (L61)."""

_TAGS = re.compile(r"<(?=\s*/?\s*(?:context_update|project_context)\b)", re.IGNORECASE)


def neutral(text: str) -> str:
    """`text` in which no tag of ours can open or close a block (L53): their `<` is `‹`."""
    return _TAGS.sub("‹", text)


def live_block(state: ProjectState, window: int | None) -> str:
    """The block without the key; "" for an empty project. `window` in tokens bounds the lists."""
    if state.empty:
        return ""
    reads = "MemoryPage reads a page in full"
    return _block(state, window, "", f"Memory index ({STRAIGHT}; {reads})", f"Trackers ({STRAIGHT})")


def frozen_block(state: ProjectState, window: int | None, folder: str) -> str:
    """The dated copy (L52, L54): never empty, it also says the day and the project's `folder` (B21)."""
    dated = f"as of {state.day}"
    head = f"Today is {state.day}." + (f" Project folder: {folder}" if folder else "")
    index = f"Memory index, {dated} (MemoryPage reads a page in full)"
    return _block(state, window, head, index, f"Trackers, {dated}")


def _block(state: ProjectState, window: int | None, head: str, index: str, trackers: str) -> str:
    limit = block_limit(window)
    parts = [head] if head else []
    if state.description:
        parts.append(f"# Project\n{state.description}")
    if state.prose or state.pages:
        lines = [state.prose] if state.prose else []
        room = limit // INDEX_SHARE - len(state.prose)
        parts.append("\n".join([f"# {index}", *lines, *_fitting(state.pages, room, "pages; MemoryPage lists them")]))
    if state.trackers:
        listed = _fitting(state.trackers, limit // TRACKERS_SHARE, "trackers; Tracker lists them")
        parts.append("\n".join([f"# {trackers}", *listed]))
    if state.agents:
        parts.append(f"# AGENTS.md\n{state.agents}")
    return f"{PROJECT_OPEN}\n{neutral(GAP.join(parts))}\n{PROJECT_CLOSE}"


def _fitting(lines: Sequence[Keyed], room: int, what: str) -> list[str]:
    """The first of `lines` that fit `room` characters, and how many do not."""
    shown: list[str] = []
    for n, line in enumerate(lines):
        room -= len(line.text) + 3
        if room < 0:
            return [*shown, f"- … and {len(lines) - n} more {what}"]
        shown.append(f"- {line.text}")
    return shown


def prefixed(content: Content, block: str) -> Content:
    """`content` with `block` at its head: before a text, as a part of its own before parts (L65)."""
    if isinstance(content, str):
        return f"{block}{GAP}{content}"
    return (TextPart(f"{block}{GAP}"), *content)


def headed(history: Sequence[Message], block: str) -> tuple[Message, ...]:
    """`history` as sent: `block` heads its first user message (L51), the summary's too, so that a block which did not
    change stays at the same place through a compaction."""
    for i, message in enumerate(history if block else ()):
        if message.role == "user":
            return (*history[:i], replace(message, content=prefixed(message.content, block)), *history[i + 1 :])
    return tuple(history)
