"""Rewrites of the view as blocks of the conversation: what was put aside, and where it can be read (I6, I7)."""

from __future__ import annotations

from collections.abc import Iterable

from marextui.context import entries as log
from marextui.engine import events as ev
from marextui.tui.items import AsideRow, ReductionItem


def item_of(change: ev.OutputsReplaced | ev.ViewReduced | log.Entry, key: str) -> ReductionItem | None:
    """The block for a rewrite that happens now, or as the log tells it.

    None for an output capped at birth, which its own card shows, and for what is no rewrite.
    """
    match change:
        case ev.OutputsReplaced():
            return _item(key, change.why, change.refs, change.tokens_freed)
        case ev.ViewReduced():
            return _item(key, change.kind, change.refs, change.tokens_freed)
        case log.OutputsOmitted():
            return _item(key, change.why, change.refs, change.freed)
        case log.InputsOmitted():
            return _item(key, "inputs", change.refs, change.freed)
        case log.TextsShortened():
            stored = tuple(r for r in change.refs if r.omission_id)
            return _item(key, "texts", stored, change.freed) if stored else None
        case log.ReasoningDropped():
            return _item(key, "reasoning", (), change.freed)
        case _:
            return None


def _item(
    key: str, why: str, refs: Iterable[log.OmissionRef | log.InputRef | log.ShortenedRef], freed: int
) -> ReductionItem:
    rows = [AsideRow(r.omission_id, r.chars, r.message_id, r.call if isinstance(r, log.InputRef) else -1) for r in refs]
    return ReductionItem(key=key, why=why, rows=rows, freed=freed)


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
