"""`/compact undo`: the view as it was before the latest compaction in force, as one more entry of the log."""

from __future__ import annotations

from marextui.context.entries import CompactionUndone
from marextui.context.policy import after_undo
from marextui.context.tokens import history_tokens
from marextui.engine.events import CompactionReverted, Notice
from marextui.engine.state import EngineState


async def undo(state: EngineState, *, force: bool = False) -> bool:
    """Undo the latest compaction in force; True when it was undone. Raises `StoreError`.

    A restored view that would exceed the budget could not be sent: that is refused with its figures, unless `force`
    (a person may want to read it, or to choose a model with a larger window next). What the compaction added to
    MEMORY.md stays: it is true still. Undoing again goes one compaction further back.
    """
    session = state.session
    live = session.conversation.compactions
    if not live:
        state.bus.emit(Notice("info", "There is no compaction to undo: none is in force."))
        return False
    cycle = live[-1].cycle
    before = state.reading()
    used, _ = history_tokens(session.conversation.without(cycle), session.ledger, before.system_part)
    if not force and before.budget is not None and used > before.budget:
        text = (
            f"Compaction {cycle} was not undone: without it the conversation takes {used} tokens, and the budget is "
            f"{before.budget}. Nothing more could be sent."
        )
        hint = "Choose a model with a larger window (/model) first, or do it all the same with /compact undo force."
        state.bus.emit(Notice("warning", text, hint))
        return False
    await session.commit(CompactionUndone(cycle))
    conversation = session.conversation
    state.meter.rewritten()
    after = state.reading()
    state.compactor.attempts = after_undo(
        state.compactor.attempts, messages=len(conversation.messages), used=after.used, turn=conversation.turn
    )
    state.bus.emit(CompactionReverted(cycle, before.used, after.used, len(session.history())))
    state.gauge_changed(after)
    if after.over_threshold and state.policy.auto_compress:
        text = "The restored conversation is over the threshold: your next message will have it compacted again."
        state.bus.emit(Notice("info", text, "auto_compress = false in the settings keeps it as it is."))
    return True
