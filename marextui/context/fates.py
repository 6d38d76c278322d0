"""What a compaction does to each message of a view: kept, condensed, omitted, superseded (P18; cases 12, 113)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.fold import Conversation
from marextui.context.messages import ImagePart, Message
from marextui.context.summary_pair import compaction_pair

Fate = Literal["kept", "condensed", "omitted", "superseded"]
FATES: tuple[Fate, ...] = ("condensed", "omitted", "superseded", "kept")
"""In the order people read them: what goes first."""

LINE_CHARS = 160
"""Most characters of the one line that stands for a message."""
_LOOKED_AT = 2_000
"""Characters of a message looked at for its one line: a line does not need more, and an output may be huge."""

Count = Callable[[Message], int]
"""Tokens of one message."""


@dataclass(frozen=True, slots=True)
class FateRow:
    """What becomes of one message of the view.

    kept: word for word; condensed: the summary stands for it; omitted: its bulk is (or stays) out of the view but
    can be read back by `omission_id`; superseded: an earlier summary that the new one takes in. `line` is raw text of
    the message on one line, `tokens` what it takes in the view before.
    """

    message_id: str
    role: str
    line: str
    tokens: int
    fate: Fate
    omission_id: str = ""


def headline(message: Message) -> str:
    """One line for a message: the start of its text, or the calls it makes."""
    text = " ".join(message.text[:_LOOKED_AT].split())
    calls = ", ".join(f"{c.name} {' '.join(c.arguments[:_LOOKED_AT].split())}" for c in message.tool_calls)
    if message.role == "tool" and message.name:
        text = f"{message.name}: {text}"
    if not isinstance(message.content, str):
        images = sum(isinstance(p, ImagePart) for p in message.content)
        if images:
            text = f"[{images} image{'s' if images > 1 else ''}] {text}"
    said = " | ".join(part for part in (text.strip(), calls and f"calls {calls}") if part) or "(empty)"
    return said if len(said) <= LINE_CHARS else said[: LINE_CHARS - 1].rstrip() + "…"


def fates(before: Conversation, cut: int, count: Count) -> tuple[FateRow, ...]:
    """A row for each message of the view of `before`, oldest first, under a cut that keeps `before.kept()[cut:]`.

    A cut before an assistant repeats the pending request ahead of what is kept (B13): that request is kept too.
    """
    rows: list[FateRow] = []
    shown = before.shown()
    if before.compactions:
        last = before.compactions[-1]
        rows += [FateRow(m.id, m.role, headline(m), count(m), "superseded") for m in compaction_pair(last)]
    repeated = _repeated(before, shown, cut)
    pending = before.pending()
    if pending is not None:
        fate: Fate = "kept" if pending.id == repeated else "condensed"
        rows.append(FateRow(pending.id, pending.role, headline(pending), count(pending), fate))
    for at, message in enumerate(shown):
        kept = at >= cut or message.id == repeated
        omission = _omission(before, message, stored=not kept)
        fate = "omitted" if omission else "kept" if kept else "condensed"
        rows.append(FateRow(message.id, message.role, headline(message), count(message), fate, omission))
    return tuple(rows)


def _repeated(before: Conversation, shown: Sequence[Message], cut: int) -> str:
    if not 0 < cut < len(shown) or shown[cut].role == "user":
        return ""
    pending = _asked((*before.dropped(), *shown[:cut]))
    return pending.id if pending is not None else ""


def _asked(messages: Sequence[Message]) -> Message | None:
    return next((m for m in reversed(messages) if m.role == "user" and not m.synthetic), None)


def _omission(before: Conversation, message: Message, *, stored: bool) -> str:
    """The id under which what `message` lacks can be read back: a marker's, or (`stored`) one kept at its birth."""
    parts = range(-1, 0 if isinstance(message.content, str) else len(message.content))
    for part in parts:
        at = (message.id, part)
        ref = before.omitted.get(at) or before.shortened.get(at) or (before.stored.get(at) if stored else None)
        if ref is not None:
            return ref.omission_id
    for number in range(len(message.tool_calls)):
        for argument in before.inputs.get((message.id, number), {}).values():
            return argument.omission_id
    return ""


def totals(rows: Sequence[FateRow]) -> dict[Fate, tuple[int, int]]:
    """(messages, tokens) of each fate that occurs, in the order of `FATES`."""
    found: dict[Fate, tuple[int, int]] = {}
    for fate in FATES:
        mine = [r.tokens for r in rows if r.fate == fate]
        if mine:
            found[fate] = len(mine), sum(mine)
    return found
