"""What the conversation shows of the project context: that the model was told something, and what (L53, L61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marextui.engine import events as ev
from marextui.tui.items import NoticeItem

if TYPE_CHECKING:
    from marextui.context import entries as log


def project_notice(event: ev.ContextUpdatePlaced | ev.ProjectCopied, key: str) -> NoticeItem | None:
    """The line for an event; None when there is nothing to say (the first copy of a conversation)."""
    if isinstance(event, ev.ContextUpdatePlaced):
        text = f"The model is told what changed in the project: {event.words}."
        return NoticeItem(key=key, level="info", text=text, detail=event.text)
    if not event.anew:
        return None
    text = f"The project context is sent anew: {event.why}. It takes about {event.tokens:,} tokens."
    return NoticeItem(key=key, level="info", text=text)


def logged_event(entry: log.ContextUpdated | log.ProjectSnapshotTaken) -> ev.ContextUpdatePlaced | ev.ProjectCopied:
    """The event an entry of the log was announced by."""
    from marextui.context import entries as log
    from marextui.context.project_decision import FIRST
    from marextui.context.project_delta import delta_words, tokens_of

    if isinstance(entry, log.ContextUpdated):
        return ev.ContextUpdatePlaced(entry.turn, entry.message_id, entry.text, delta_words(entry.delta))
    return ev.ProjectCopied(entry.turn, entry.why, tokens_of(entry.text), entry.why != FIRST)
