"""Rewrites of the view as blocks of the conversation: what was put aside, and where it can be read (I6, I7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from marextui.engine import events as ev
from marextui.tui.items import AsideRow, ReductionItem

if TYPE_CHECKING:
    from marextui.context import entries as log

Ref: TypeAlias = "log.OmissionRef | log.InputRef | log.ShortenedRef"
Title = Callable[[str, int], str]
"""(message id, number of the call or -1) to what people know that text as; "" when it is not loaded."""


def from_event(event: ev.OutputsReplaced | ev.ViewReduced, key: str) -> ReductionItem:
    """The block for a rewrite that happens now."""
    if isinstance(event, ev.OutputsReplaced):
        return _item(key, event.why, event.refs, event.tokens_freed)
    return _item(key, event.kind, event.refs, event.tokens_freed)


def from_entry(
    entry: log.OutputsOmitted | log.InputsOmitted | log.TextsShortened | log.ReasoningDropped, key: str
) -> ReductionItem | None:
    """The block for a rewrite as the log tells it. None for an output capped at birth: its card shows it."""
    from marextui.context import entries as log  # there is nothing to read at the first paint

    match entry:
        case log.OutputsOmitted():
            return _item(key, entry.why, entry.refs, entry.freed)
        case log.InputsOmitted():
            return _item(key, "inputs", entry.refs, entry.freed)
        case log.TextsShortened():
            stored = tuple(r for r in entry.refs if r.omission_id)
            return _item(key, "texts", stored, entry.freed) if stored else None
        case log.ReasoningDropped():
            return _item(key, "reasoning", (), entry.freed)


def _item(key: str, why: str, refs: Iterable[Ref], freed: int) -> ReductionItem:
    rows = [AsideRow(r.omission_id, r.chars, r.message_id, getattr(r, "call", -1)) for r in refs]
    return ReductionItem(key=key, why=why, rows=rows, freed=freed)


def name_rows(item: ReductionItem, title: Title) -> None:
    """Give the rows the titles that are known by now."""
    for row in item.rows:
        if not row.title and (found := title(row.message_id, row.call)):
            row.title = found
            item.version += 1


_WORDS: dict[str, tuple[str, str]] = {
    "age": ("1 old output was put aside", "{} old outputs were put aside"),
    "repeat": ("1 output that was read again later was put aside", "{} outputs that were read again were put aside"),
    "room": ("1 output was put aside to make room", "{} outputs were put aside to make room"),
    "images": ("1 older image is now a description", "{} older images are now descriptions"),
    "inputs": ("1 long input of a tool call was put aside", "{} long inputs of tool calls were put aside"),
    "texts": ("1 long text is sent as its beginning and end", "{} long texts are sent as their beginnings and ends"),
}


def headline(item: ReductionItem) -> str:
    """ "3 old outputs were put aside", without the tokens."""
    if item.why not in _WORDS:
        return "Old reasoning is no longer sent"
    one, many = _WORDS[item.why]
    return one if len(item.rows) == 1 else many.format(len(item.rows))
