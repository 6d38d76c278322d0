"""Undo restores the view byte for byte, over any log (cases 12, 113)."""

from __future__ import annotations

from hypothesis import given

from marextui.context.entries import CompactionCommitted, CompactionUndone, MessageAdded, OutputsOmitted
from marextui.context.fates import fates, headline
from marextui.context.fold import Conversation, fold
from marextui.context.messages import canonical_json, to_wire
from tests.property.histories import Log, logs


def sent(conversation: Conversation) -> list[str]:
    return [canonical_json(to_wire(m)) for m in conversation.history()]


@given(logs())
def test_undoing_a_compaction_gives_back_the_view_before_it(log: Log) -> None:
    """And the provider's count of it, so that the gauge says what it said."""
    state = Conversation()
    for n, entry in enumerate(log.entries):
        if isinstance(entry, CompactionCommitted):
            before, measured = sent(state), state.measured
            undone = fold([*log.entries[: n + 1], CompactionUndone(entry.cycle)])
            assert sent(undone) == before
            assert undone.measured == measured
            assert undone.unmeasured() == state.unmeasured()
        state.apply(entry)


@given(logs())
def test_undoing_all_compactions_gives_the_view_of_a_log_without_any(log: Log) -> None:
    """Whatever was said and omitted between them: every undo only takes its own compaction away."""
    whole = fold(log.entries)
    while whole.compactions:
        whole = whole.without(whole.compactions[-1].cycle)
    plain = fold(e for e in log.entries if not isinstance(e, CompactionCommitted | CompactionUndone))
    assert sent(whole) == sent(plain)


@given(logs())
def test_looking_at_an_undo_changes_nothing(log: Log) -> None:
    state = fold(log.entries)
    before, live = sent(state), list(state.compactions)
    if live:
        state.without(live[0].cycle).apply(OutputsOmitted(99, ()))
    assert sent(state) == before
    assert state.compactions == live


@given(logs())
def test_every_message_of_the_view_has_one_fate(log: Log) -> None:
    """Rows are the view's messages in order, whatever the cut; the kept ones are those of the view after it."""
    state = Conversation()
    for entry in log.entries:
        if isinstance(entry, CompactionCommitted):
            kept = state.kept()
            cut = next((i for i, m in enumerate(kept) if m.id == entry.cut), len(kept))
            rows = fates(state, cut, lambda m: 1)
            after = fold([*log.entries[: log.entries.index(entry)], entry])
            still = {m.id for m in after.kept()}
            assert {r.message_id for r in rows if r.fate == "kept"} <= still
            assert still <= {r.message_id for r in rows if r.fate in ("kept", "omitted")}
            assert len(rows) >= len(kept)
        state.apply(entry)


@given(logs(max_turns=3))
def test_a_headline_is_one_short_line(log: Log) -> None:
    for entry in log.entries:
        if isinstance(entry, MessageAdded):
            assert 0 < len(headline(entry.message)) <= 160
            assert "\n" not in headline(entry.message)
