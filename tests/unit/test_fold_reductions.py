"""What the ladder replaced, as the view shows it: arguments, texts, images, reasoning (Part 2, 5; I1, I6, I7)."""

from __future__ import annotations

import json

from marextui.context.entries import (
    CompactionUndone,
    Entry,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    ReasoningDropped,
    ShortenedRef,
    TextsShortened,
    UsageMeasured,
)
from marextui.context.fold import fold
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall
from marextui.context.omission import marker, parse_marker
from marextui.context.validate import strict_violations
from tests.unit.test_fold import TWO_TURNS, compaction, says, user

EDITS = {"path": "a.py", "edits": [{"old": "é" * 9, "new": "n" * 700}], "n": 3}


def writes(id: str, arguments: str) -> list[Entry]:
    call = ToolCall("c1", "Edit", arguments)
    return [
        MessageAdded(Message(id, "assistant", "I edit.", (call,), reasoning="why", origin="model")),
        MessageAdded(Message(f"{id}r", "tool", "done", tool_call_id="c1", origin="tool")),
    ]


def test_an_argument_becomes_a_marker_and_the_rest_of_the_arguments_stays() -> None:
    log = [user("u1"), *writes("w", json.dumps(EDITS)), says("a")]
    state = fold([*log, InputsOmitted(2, (InputRef("w", 0, ("edits", 0, "new"), "omitted-007", 700),))])
    [call] = state.history()[1].tool_calls
    shown = json.loads(call.arguments)
    assert shown["edits"][0]["new"] == marker("omitted-007", 700, "tool input")
    assert parse_marker(shown["edits"][0]["new"]) == "omitted-007"
    shown["edits"][0]["new"] = "n" * 700
    assert shown == EDITS
    assert state.messages[1].tool_calls[0].arguments == json.dumps(EDITS)  # the log keeps what was said
    assert strict_violations(state.history(), with_system=False) == ()
    assert state.replaced_ids() == {"omitted-007"}


def test_arguments_that_are_no_json_become_an_object_with_a_marker() -> None:
    log = [user("u1"), *writes("w", '{"path": "a.py", "content": "' + "x" * 900), says("a")]
    state = fold([*log, InputsOmitted(2, (InputRef("w", 0, (), "omitted-007", 929),))])
    [call] = state.history()[1].tool_calls
    assert json.loads(call.arguments) == {"malformed": marker("omitted-007", 929, "tool input")}


def test_a_path_that_leads_nowhere_never_breaks_the_view() -> None:
    """Case 19: a log of another version must open."""
    log = [user("u1"), *writes("w", json.dumps(EDITS)), says("a")]
    refs = tuple(
        InputRef("w", 0, p, "omitted-007", 1) for p in (("edits", 9, "new"), ("n", "deeper"), ("gone",), ("n",))
    )
    [call] = fold([*log, InputsOmitted(2, refs[:3])]).history()[1].tool_calls
    assert json.loads(call.arguments) == EDITS
    [call] = fold([*log, InputsOmitted(2, refs)]).history()[1].tool_calls
    assert json.loads(call.arguments) == EDITS  # only texts are replaced


def test_a_shortened_message_keeps_head_and_tail_and_names_the_whole() -> None:
    text = "first line\n" + "middle\n" * 400 + "last line"
    state = fold([user("u1", text), TextsShortened(1, (ShortenedRef("u1", -1, "omitted-001", len(text), 100),))])
    [shown] = state.history()
    assert shown.text.startswith("first line\n")
    assert "last line\n[omitted omitted-001: message, " in shown.text
    assert len(shown.text) < 350
    again = state.history()[0].text
    state.apply(TextsShortened(2, (ShortenedRef("u1", -1, "omitted-001", len(text), 60),)))
    assert len(state.history()[0].text) < len(again)


def test_a_request_repeated_ahead_of_the_tail_is_shown_shortened_too() -> None:
    text = "do this " * 500
    log: list[Entry] = [user("u1", text), *writes("w", "{}"), *writes("v", "{}")]
    log += [compaction(1, "v"), TextsShortened(1, (ShortenedRef("u1", -1, "omitted-001", len(text), 80),))]
    state = fold(log)
    pending = state.pending()
    assert pending is not None
    assert len(pending.text) < 300
    assert pending.text in state.history()[0].text + state.history()[2].text
    assert fold([user("u1"), says("a1")]).pending() is None


def test_an_image_becomes_its_description() -> None:
    parts = (TextPart("look"), ImagePart("data:image/png;base64,AAAA"), ImagePart("data:,x"))
    log: list[Entry] = [MessageAdded(Message("u1", "user", parts))]
    label = "image, PNG, 1 kB"
    state = fold([*log, OutputsOmitted(2, (OmissionRef("u1", 1, "omitted-002", 26, label),), "images")])
    shown = state.history()[0].content
    assert shown == (parts[0], TextPart(marker("omitted-002", 26, label)), parts[2])


def test_reasoning_is_dropped_before_a_message_and_kept_from_it_on() -> None:
    log: list[Entry] = [user("u1"), says("a1", reasoning="old"), user("u2"), says("a2", reasoning="new")]
    state = fold([*log, ReasoningDropped(2, "u2")])
    assert [m.reasoning for m in state.history()] == ["", "", "", "new"]
    assert fold([*log, ReasoningDropped(2, "unknown")]).history()[1].reasoning == "old"


def test_each_of_them_voids_the_measure_for_good() -> None:
    """Also the one an undo would bring back: it was taken of another view."""
    for entry in (
        InputsOmitted(2, (InputRef("a1", 0, (), "omitted-001", 9),)),
        TextsShortened(2, (ShortenedRef("u1", -1, "omitted-001", 900, 80),)),
        ReasoningDropped(2, "u2"),
    ):
        log = [*TWO_TURNS, UsageMeasured("u2", 90, 10, "m"), compaction(1, "u2"), entry, CompactionUndone(1)]
        assert fold(log).measured is None
