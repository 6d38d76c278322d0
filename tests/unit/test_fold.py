"""The view as a fold of the log, case by case (M13, M14, M23, M24, B6, B13, cases 19, 22, 46, 113)."""

from __future__ import annotations

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    Summary,
    SummaryItem,
    SummarySection,
    TurnClosed,
    TurnOpened,
    UsageMeasured,
)
from marextui.context.fold import Conversation, fold
from marextui.context.marks import SUMMARY_MARK
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall, to_wire
from marextui.context.summary_pair import summary_pair
from marextui.context.validate import strict_violations


def user(id: str, text: str = "ask") -> MessageAdded:
    return MessageAdded(Message(id, "user", text))


def says(id: str, text: str = "say", reasoning: str = "") -> MessageAdded:
    return MessageAdded(Message(id, "assistant", text, origin="model", reasoning=reasoning))


def calls(id: str, *ids: str) -> MessageAdded:
    return MessageAdded(Message(id, "assistant", "", tuple(ToolCall(c, "Read", "{}") for c in ids), origin="model"))


def result(id: str, call: str, text: str = "out") -> MessageAdded:
    return MessageAdded(Message(id, "tool", text, tool_call_id=call, origin="tool"))


def compaction(cycle: int, cut: str) -> CompactionCommitted:
    summary = Summary((SummarySection("Current State", (SummaryItem(f"state {cycle}"),)),))
    return CompactionCommitted(cycle, "threshold", cut, summary, "m", 9, 3, 1000, 100, 1.0)


def closed(turn: int) -> TurnClosed:
    return TurnClosed(turn, "done", 1, 1, None, 1.0, "m")


def ids(conversation: Conversation) -> list[str]:
    return [m.id for m in conversation.history()]


TWO_TURNS: list[Entry] = [user("u1"), says("a1"), user("u2"), says("a2")]


def test_an_empty_log_is_an_empty_view() -> None:
    assert fold([]).history() == ()
    assert fold([]).measured is None


def test_without_decisions_the_view_is_the_log() -> None:
    assert ids(fold(TWO_TURNS)) == ["u1", "a1", "u2", "a2"]


def test_a_compaction_puts_a_pair_in_front_of_what_is_kept() -> None:
    """M13, B6: the marker is alone on the first line, user and assistant alternate."""
    state = fold([*TWO_TURNS, compaction(1, "u2")])
    first, second = state.history()[:2]
    assert ids(state) == ["summary-1", "summary-1-ack", "u2", "a2"]
    assert first.text.split("\n")[0] == SUMMARY_MARK == "[Earlier conversation summary]"
    assert "state 1" in first.text
    assert (first.role, second.role, first.origin) == ("user", "assistant", "summary")
    assert [m.id for m in state.dropped()] == ["u1", "a1"]
    assert [m.id for m in state.kept()] == ["u2", "a2"]


def test_the_pair_depends_on_its_cycle_and_text_only() -> None:
    assert summary_pair("x", 3) == summary_pair("x", 3)
    assert {m.id for m in summary_pair("x", 3)}.isdisjoint(m.id for m in summary_pair("x", 4))


def test_a_later_compaction_replaces_the_block() -> None:
    """P5: one block, the latest."""
    state = fold([*TWO_TURNS, compaction(1, "u2"), user("u3"), says("a3"), compaction(2, "u3")])
    assert ids(state) == ["summary-2", "summary-2-ack", "u3", "a3"]
    assert [c.cycle for c in state.compactions] == [1, 2]


def test_undo_restores_the_view_and_never_reuses_a_cycle() -> None:
    """Case 113: undoing cycle 1 undoes the later one too; the log keeps everything."""
    log: list[Entry] = [*TWO_TURNS, compaction(1, "u2"), user("u3"), says("a3"), compaction(2, "u3")]
    assert ids(fold([*log, CompactionUndone(2)])) == ["summary-1", "summary-1-ack", "u2", "a2", "u3", "a3"]
    both = fold([*log, CompactionUndone(1)])
    assert ids(both) == ["u1", "a1", "u2", "a2", "u3", "a3"]
    assert (both.compactions, both.cycle) == ([], 2)


def test_undoing_what_is_not_in_force_changes_nothing() -> None:
    state = fold([*TWO_TURNS, compaction(1, "u2"), UsageMeasured("a2", 10, 1, "m"), CompactionUndone(5)])
    assert ids(state)[0] == "summary-1"
    assert state.measured is not None


def test_a_cut_that_keeps_nothing_keeps_what_comes_after() -> None:
    state = fold([*TWO_TURNS, compaction(1, "")])
    assert ids(state) == ["summary-1", "summary-1-ack"]
    state.apply(user("u3"))
    assert ids(state) == ["summary-1", "summary-1-ack", "u3"]


def test_a_stale_compaction_inside_a_pair_keeps_the_pair() -> None:
    """Case 19: log [A C1, COMPACTION(first kept = R1), R1]; the pending request stands before the tail (B13)."""
    state = fold([user("u1", "do it"), calls("a1", "c1"), compaction(1, "r1"), result("r1", "c1")])
    assert ids(state) == ["summary-1", "summary-1-ack", "u1", "a1", "r1"]
    assert strict_violations(state.history(), with_system=False) == ()


def test_a_compaction_with_a_cut_the_log_does_not_hold_is_passed_over() -> None:
    state = fold([*TWO_TURNS, compaction(1, "u2"), compaction(2, "gone")])
    assert ids(state)[0] == "summary-1"
    assert state.cycle == 2


def test_a_cut_inside_a_turn_repeats_the_pending_request() -> None:
    """B13, I2: verbatim, right before the kept tail."""
    log = [user("u1", "first"), says("a1"), user("u2", "the task"), calls("a2", "c1"), result("r1", "c1")]
    state = fold([TurnOpened(2), *log, calls("a3", "c2"), result("r2", "c2"), compaction(1, "a3")])
    assert ids(state) == ["summary-1", "summary-1-ack", "u2", "a3", "r2"]
    assert state.history()[2] is state.message("u2")
    assert strict_violations(state.history(), with_system=False) == ()


def test_omitted_outputs_stand_as_markers_in_the_view_only() -> None:
    """M23, M24: exactly the marker, in string contents and part by part; the log keeps the text."""
    parts = MessageAdded(
        Message("r2", "tool", (TextPart("x" * 700), ImagePart("i"), TextPart("short")), tool_call_id="c2")
    )
    log: list[Entry] = [user("u1"), calls("a1", "c1", "c2"), result("r1", "c1", "y" * 12_480), parts, says("a2")]
    refs = (OmissionRef("r1", -1, "omitted-003", 12_480), OmissionRef("r2", 0, "omitted-004", 700))
    state = fold([*log, OutputsOmitted(3, refs)])
    shown = {m.id: m.content for m in state.history()}
    assert shown["r1"] == (
        '[omitted omitted-003: tool output, 12 480 chars — retrieve with ReadOmittedContent content_id="omitted-003"]'
    )
    assert isinstance(shown["r2"], tuple)
    assert shown["r2"][1:] == (ImagePart("i"), TextPart("short"))
    assert "omitted-004" in shown["r2"][0].text  # type: ignore[union-attr]
    assert state.messages[2].text == "y" * 12_480
    assert state.shown()[2].content == shown["r1"]


def test_an_omission_is_never_given_a_second_id() -> None:
    """M23: already-marked payloads never again; same bytes in every later request."""
    log: list[Entry] = [user("u1"), calls("a1", "c1"), result("r1", "c1", "y" * 700), says("a2")]
    once = [*log, OutputsOmitted(3, (OmissionRef("r1", -1, "omitted-001", 700),))]
    twice = [*once, OutputsOmitted(4, (OmissionRef("r1", -1, "omitted-002", 700),))]
    assert fold(once).history() == fold(twice).history()


def test_an_omission_survives_compaction_and_undo() -> None:
    log: list[Entry] = [user("u1"), calls("a1", "c1"), result("r1", "c1", "y" * 700), says("a2"), user("u2")]
    state = fold(
        [
            *log,
            OutputsOmitted(3, (OmissionRef("r1", -1, "omitted-001", 700),)),
            compaction(1, "u2"),
            CompactionUndone(1),
        ]
    )
    assert "omitted-001" in state.history()[2].text


def test_turns() -> None:
    state = fold([TurnOpened(1), user("u1")])
    assert (state.turn, state.open_turn, state.turns) == (1, True, [])
    state.apply(closed(1))
    assert (state.turn, state.open_turn, state.turns) == (1, False, [closed(1)])


def test_an_unanswered_call_waits_while_the_turn_is_open() -> None:
    """Case 17: during the turn it is being answered, afterwards it never was."""
    log: list[Entry] = [TurnOpened(1), user("u1"), calls("a1", "c1")]
    assert ids(fold(log)) == ["u1", "a1"]
    assert ids(fold([*log, closed(1)])) == ["u1", "a1", "repair:a1:0"]


def test_history_is_computed_once_per_state_and_never_mutates() -> None:
    state = fold([*TWO_TURNS, compaction(1, "u2")])
    before = list(state.messages)
    assert state.history() is state.history()
    assert state.messages == before
    state.apply(user("u3"))
    assert ids(state)[-1] == "u3"


def test_what_a_rewrite_does_to_the_measure() -> None:
    """The measured prefix is gone after a compaction, an undo, an omission."""
    measured = UsageMeasured("u2", 900, 40, "m")
    base: list[Entry] = [*TWO_TURNS, compaction(1, "u2"), measured]
    assert fold(base).measured == measured
    for rewrite in (compaction(2, "u2"), CompactionUndone(1), OutputsOmitted(3, (OmissionRef("x", -1, "o", 1),))):
        assert fold([*base, rewrite]).measured is None


def test_what_the_measure_has_not_seen() -> None:
    """Whether the count is logged before or after its reply."""
    measured = UsageMeasured("u2", 900, 40, "m")
    before = fold([user("u1"), says("a1"), user("u2"), measured, calls("a2", "c1"), result("r1", "c1")])
    after = fold([user("u1"), says("a1"), user("u2"), calls("a2", "c1"), measured, result("r1", "c1")])
    for state in (before, after):
        assert [m.id for m in state.unmeasured()] == ["r1"]
        reply = state.measured_reply()
        assert reply is not None
        assert reply.id == "a2"
    silent = fold([user("u1"), says("a1"), user("u2"), measured, user("u3")])
    assert [m.id for m in silent.unmeasured()] == ["u3"]
    assert silent.measured_reply() is None
    assert [m.id for m in fold([user("u1"), says("a1")]).unmeasured()] == ["u1", "a1"]


def test_a_measure_of_joined_messages_or_made_up_results_still_holds() -> None:
    """The view's last id may be the first of two joined messages, or one the log does not hold."""
    joined = fold([user("u1"), user("u2"), UsageMeasured("u1", 9, 1, "m"), says("a2"), user("u3")])
    assert [m.id for m in joined.unmeasured()] == ["u3"]
    made_up = fold([user("u1"), calls("a1", "c1"), UsageMeasured("repair:a1:0", 9, 1, "m"), says("a2"), user("u3")])
    assert [m.id for m in made_up.unmeasured()] == ["u3"]


def test_the_system_message_is_not_part_of_the_history() -> None:
    """M14: it is put first by the engine, so no view may carry another."""
    state = fold([*TWO_TURNS, compaction(1, "u2"), user("u3")])
    assert "system" not in {to_wire(m)["role"] for m in state.history()}
