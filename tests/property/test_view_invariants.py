"""Invariants of every view: valid for strict templates, prefix-stable, nothing split, nothing mutated (I1, I2, I7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.cut import choose_cut, cut_candidates
from marextui.context.entries import CompactionCommitted, CompactionUndone, MessageAdded, OutputsOmitted
from marextui.context.entry_codec import decode, encode
from marextui.context.fold import Conversation, fold
from marextui.context.marks import SUMMARY_MARK
from marextui.context.messages import Message, canonical_json, to_wire
from marextui.context.omission import marker
from marextui.context.validate import repair, strict_violations, violations
from tests.property.histories import Log, any_messages, logs

SYSTEM = Message("system", "system", "You are a test.", origin="system")
REWRITES = (CompactionCommitted, CompactionUndone, OutputsOmitted)


def wire(messages: Sequence[Message]) -> list[str]:
    return [canonical_json(to_wire(m)) for m in messages]


def extends(shorter: Sequence[Message], longer: Sequence[Message]) -> bool:
    """Whether the bytes of `shorter` begin `longer`, but for the end of a text message at its very end."""
    settled = len(shorter)
    if shorter and shorter[-1].role != "tool" and not shorter[-1].tool_calls:
        settled -= 1
    if wire(shorter[:settled]) != wire(longer[:settled]) or len(longer) < len(shorter):
        return False
    if settled == len(shorter):
        return True
    old, new = shorter[-1], longer[settled]
    same_start = new.text.startswith(old.text) or not old.text
    return (new.id, new.role) == (old.id, old.role) and same_start


@given(any_messages())
def test_repair_leaves_no_violation_even_of_the_strict_shape(messages: tuple[Message, ...]) -> None:
    view, notes = repair(messages)
    assert strict_violations(view) == ()
    assert bool(notes) == (view != messages)


@given(any_messages(), st.booleans())
def test_repair_is_idempotent(messages: tuple[Message, ...], closed: bool) -> None:
    view, _ = repair(messages, closed=closed)
    assert repair(view, closed=closed) == (view, ())


@given(any_messages())
def test_repair_changes_nothing_valid(messages: tuple[Message, ...]) -> None:
    view, _ = repair(messages)
    again, notes = repair(view)
    assert notes == ()
    assert all(a is b for a, b in zip(view, again, strict=True))


@given(any_messages())
def test_repair_is_prefix_stable_message_by_message(messages: tuple[Message, ...]) -> None:
    """I7: whatever is appended, the repaired beginning stays."""
    shorter: tuple[Message, ...] = ()
    for n in range(len(messages) + 1):
        longer, _ = repair(messages[:n], closed=False)
        assert extends(shorter, longer)
        shorter = longer


@given(any_messages())
def test_repair_keeps_what_people_wrote(messages: tuple[Message, ...]) -> None:
    view, _ = repair(messages)
    sent = "\n".join(m.text for m in view if m.role == "user")
    for message in messages:
        for line in message.text.splitlines():
            if message.role == "user" and line.strip():
                assert line in sent


@given(any_messages())
def test_results_of_a_valid_view_follow_their_calls(messages: tuple[Message, ...]) -> None:
    """Checked without `violations`: for each group the ids answered are the ids asked, in order (cases 17, 18)."""
    view, _ = repair(messages)
    for i, message in enumerate(view):
        asked = [c.id for c in message.tool_calls]
        following = [m.tool_call_id for m in view[i + 1 : i + 1 + len(asked)] if m.role == "tool"]
        assert following == asked
    assert sum(m.role == "tool" for m in view) == sum(len(m.tool_calls) for m in view)


@given(logs())
def test_every_view_of_a_log_is_valid(log: Log) -> None:
    """I1, at every request and at the end."""
    state = Conversation()
    for entry, requested in zip(log.entries, log.requests, strict=True):
        state.apply(entry)
        if requested:
            assert strict_violations((SYSTEM, *state.history())) == ()
            assert state.history()[-1].role in {"user", "tool"}
    assert strict_violations(state.history(), with_system=False) == ()


@given(logs())
def test_a_request_extends_the_one_before_it_between_rewrites(log: Log) -> None:
    """I7, case 107."""
    state, last = Conversation(), None
    for entry, requested in zip(log.entries, log.requests, strict=True):
        state.apply(entry)
        if isinstance(entry, REWRITES):
            last = None
        if requested:
            assert last is None or extends(last, state.history())
            last = state.history()


@given(logs())
def test_an_omission_step_rewrites_only_from_its_first_output_on(log: Log) -> None:
    """I7: what stands before the oldest output omitted keeps its bytes."""
    state = Conversation()
    for entry in log.entries:
        before = state.history()
        state.apply(entry)
        if isinstance(entry, OutputsOmitted):
            after = state.history()
            touched = {r.message_id for r in entry.refs}
            first = next((i for i, m in enumerate(before) if m.id in touched), len(before))
            assert wire(before[:first]) == wire(after[:first])
            shown = {m.id: m.text for m in after}
            for ref in entry.refs:
                assert shown.get(ref.message_id, marker(ref.omission_id, ref.chars)) == marker(
                    ref.omission_id, ref.chars
                )


@given(logs())
def test_the_fold_is_a_pure_function_of_the_entries(log: Log) -> None:
    """Same entries, same view — also after a round trip through their JSON form, and however often it is asked."""
    state = fold(log.entries)
    again = fold(decode(*encode(e)) for e in log.entries)
    assert state.history() == again.history() == state.history()
    assert state.messages == list(log.messages)
    assert (state.omitted, state.cycle, state.turn) == (again.omitted, again.cycle, again.turn)


@given(logs())
def test_kept_and_dropped_make_the_log(log: Log) -> None:
    state = fold(log.entries)
    assert state.dropped() + state.kept() == log.messages


@given(logs())
def test_at_most_one_summary_pair_and_it_comes_first(log: Log) -> None:
    """M13, M14: one block, ahead of every kept message, whatever was compacted and undone."""
    state = fold(log.entries)
    marked = [i for i, m in enumerate(state.history()) if m.text.startswith(SUMMARY_MARK)]
    assert marked == ([0] if state.compactions else [])


@given(logs(), st.integers(0, 9))
def test_undo_brings_back_the_view_as_if_never_compacted(log: Log, pick: int) -> None:
    """Case 113: undoing a cycle gives the view of the same log without that compaction and the later ones."""
    cycles = [e.cycle for e in log.entries if isinstance(e, CompactionCommitted)]
    if not cycles:
        return
    cycle = cycles[pick % len(cycles)]
    undone = fold([*log.entries, CompactionUndone(cycle)])
    without = fold(e for e in log.entries if not (isinstance(e, CompactionCommitted) and e.cycle >= cycle))
    assert undone.history() == without.history()
    assert undone.cycle == max(cycles)


@given(logs(), st.booleans())
@settings(max_examples=200)
def test_no_cut_splits_a_call_from_its_result(log: Log, mid_turn: bool) -> None:
    """M8, also with parallel, aborted and repeated ids: judged by pairs found without the code under test."""
    messages = log.messages
    pairs: list[tuple[int, int]] = []
    askers: dict[str, int] = {}
    for i, message in enumerate(messages):
        askers.update({c.id: i for c in message.tool_calls})
        if message.role == "tool":
            pairs.append((askers[message.tool_call_id], i))
    for cut in cut_candidates(messages, mid_turn=mid_turn):
        assert 0 < cut < len(messages)
        assert not [p for p in pairs if p[0] < cut <= p[1]]
        allowed = {"user", "assistant"} if mid_turn else {"user"}
        assert messages[cut].role in allowed


@given(any_messages())
@settings(max_examples=200)
def test_no_cut_of_a_disordered_history_leaves_a_result_behind_its_call(messages: tuple[Message, ...]) -> None:
    """M8 on recordings: a kept result always has its call kept too, if the call is in the history before it."""
    for cut in cut_candidates(messages):
        asked_before = {c.id for m in messages[:cut] for c in m.tool_calls}
        asked_after = {c.id for m in messages[cut:] for c in m.tool_calls}
        orphaned = {m.tool_call_id for m in messages[cut:] if m.role == "tool"} & asked_before - asked_after
        assert not orphaned


@given(logs(), st.data())
def test_a_chosen_cut_pays_and_none_means_none_pays(log: Log, data: st.DataObject) -> None:
    """M10, B3, I3: judged by trying every candidate."""
    messages = log.messages
    counts = data.draw(st.lists(st.integers(0, 500), min_size=len(messages), max_size=len(messages)))
    target = data.draw(st.floats(1, 4000))
    cap, used = 100, sum(counts)
    fair = {
        i: cap + sum(counts[i:])
        for i in cut_candidates(messages)
        if cap + sum(counts[i:]) < target and cap + sum(counts[i:]) <= 0.8 * used
    }
    cut = choose_cut(messages, counts, summary_tokens=cap, target=target, used=used)
    assert (cut is None) == (not fair)
    if cut is not None:
        assert fair[cut.index] == cut.projected == cut.kept_tokens + cap
        low = [i for i, projected in fair.items() if projected <= target / 2]
        assert cut.index == min(low) if low else cut.projected == min(fair.values())


@given(logs())
def test_kept_messages_are_the_logged_ones_byte_for_byte(log: Log) -> None:
    """M9, I2: a compaction takes messages away from the front and changes none."""
    state = Conversation()
    for entry in log.entries:
        before = state.kept()
        state.apply(entry)
        if isinstance(entry, CompactionCommitted):
            kept = state.kept()
            assert kept == before[len(before) - len(kept) :]
            assert kept[0].id == entry.cut


@given(logs())
def test_notices_and_usage_never_change_a_view(log: Log) -> None:
    """Cases 11 and 49: errors and counts are events, not history."""
    told = {"MessageAdded", "OutputsOmitted", "CompactionCommitted", "CompactionUndone", "TurnOpened", "TurnClosed"}
    assert fold(log.entries).history() == fold(e for e in log.entries if type(e).__name__ in told).history()


@given(logs())
def test_a_message_written_twice_counts_once(log: Log) -> None:
    doubled = [e for entry in log.entries for e in ((entry, entry) if isinstance(entry, MessageAdded) else (entry,))]
    assert fold(doubled).history() == fold(log.entries).history()


@given(any_messages())
def test_violations_see_what_repair_mends(messages: tuple[Message, ...]) -> None:
    """The validator is not blind: breaking a valid view is seen (no result, second result, swapped roles)."""
    view, _ = repair(messages)
    for i, message in enumerate(view):
        if message.role == "tool":
            assert violations((*view[:i], *view[i + 1 :]))
            assert violations((*view[: i + 1], message, *view[i + 1 :]))
        if message.role == "user":
            assert violations((*view[:i], replace(message, content=" "), *view[i + 1 :]))


@given(logs())
def test_a_view_looked_at_after_each_entry_is_the_view_of_the_whole_log(log: Log) -> None:
    """What a view remembers of the one before it never shows: a growing view, rewrites, undos, forks."""
    grown = Conversation()
    for n, entry in enumerate(log.entries, 1):
        grown.apply(entry)
        fresh = fold(log.entries[:n])
        assert grown.history() == fresh.history()
        assert grown.fork().history() == fresh.history()
        if grown.compactions:
            cycle = grown.compactions[-1].cycle
            assert grown.without(cycle).history() == fresh.without(cycle).history()
            assert grown.history() == fresh.history()
