"""Valid views and repairs, case by case (cases 17–26); the general properties are in tests/property."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from marextui.context.messages import ImagePart, Message, TextPart, ToolCall
from marextui.context.validate import (
    CONVERSATION_START,
    EMPTY_MESSAGE,
    INTERRUPTED_RESULT,
    NO_REPLY,
    repair,
    strict_violations,
    violations,
)


def user(id: str, text: str = "ask") -> Message:
    return Message(id, "user", text)


def says(id: str, text: str = "say") -> Message:
    return Message(id, "assistant", text, origin="model")


def calls(id: str, *ids: str, arguments: str = "{}", text: str = "") -> Message:
    return Message(id, "assistant", text, tuple(ToolCall(c, "Read", arguments) for c in ids), origin="model")


def result(id: str, call: str, text: str = "out") -> Message:
    return Message(id, "tool", text, tool_call_id=call, origin="tool")


def rules(messages: Sequence[Message], **kwargs: bool) -> list[tuple[int, str]]:
    return [(v.index, v.rule) for v in violations(messages, **kwargs)]


SYSTEM = Message("s", "system", "be kind", origin="system")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([SYSTEM], []),
        ([SYSTEM, user("u"), calls("a", "1", "2"), result("r", "1"), result("q", "2"), says("b")], []),
        ([user("u"), calls("a", "1"), result("r", "2")], [(2, "orphan_result"), (3, "unanswered_call")]),
        ([user("u"), calls("a", "1"), result("r", "1"), result("q", "1")], [(3, "duplicate_result")]),
        ([user("u"), calls("a", "1"), user("v"), result("r", "1")], [(2, "unanswered_call"), (3, "orphan_result")]),
        (
            [user("u"), calls("a", "1", "2"), result("q", "2"), result("r", "1")],
            [(2, "result_order"), (3, "result_order")],
        ),
        (
            [user("u"), calls("a", "1"), calls("b", "2"), result("r", "1")],
            [(2, "unanswered_call"), (3, "orphan_result"), (4, "unanswered_call")],
        ),
        ([user("u"), result("r", "1")], [(1, "orphan_result")]),
        ([user("u"), SYSTEM], [(1, "system_not_first")]),
        ([SYSTEM, SYSTEM, user("u")], [(1, "system_not_first")]),
        ([SYSTEM, says("a"), user("u")], [(1, "opens_without_user")]),
        ([user("u", " \n")], [(0, "empty_user")]),
        ([Message("u", "user", ())], [(0, "empty_user")]),
        ([Message("u", "user", (TextPart(""), ImagePart("x")))], []),
        ([user("u"), says("a", "")], [(1, "empty_assistant")]),
        ([Message("u", "user", "x", (ToolCall("1", "R", "{}"),))], [(0, "misplaced_calls")]),
        ([user("u"), calls("a", "1", "1"), result("r", "1")], [(1, "duplicate_call_id")]),
        ([user("u"), calls("a", ""), result("r", "")], [(1, "empty_call_id")]),
        ([user("u"), calls("a", "1", arguments="[]"), result("r", "1")], [(1, "bad_arguments")]),
        ([user("u"), calls("a", "1", arguments='{"a":NaN}'), result("r", "1")], [(1, "bad_arguments")]),
        ([user("u"), calls("a", "1", arguments="[" * 100_000), result("r", "1")], [(1, "bad_arguments")]),
    ],
)
def test_violations(messages: list[Message], expected: list[tuple[int, str]]) -> None:
    assert rules(messages) == expected


def test_without_a_system_message_none_may_appear() -> None:
    assert rules([SYSTEM, user("u")], with_system=False) == [(0, "system_not_first")]


def test_an_unknown_role_is_seen() -> None:
    odd = Message("x", "critic", "hm")  # type: ignore[arg-type]
    assert rules([user("u"), odd]) == [(1, "unknown_role")]
    assert repair([user("u"), says("a"), odd])[0][-1].role == "user"


def test_a_group_being_answered_is_only_wrong_when_closed() -> None:
    messages = [user("u"), calls("a", "1", "2"), result("r", "1")]
    assert rules(messages, closed=False) == []
    assert rules(messages) == [(3, "unanswered_call")]


def test_strict_shape_sees_two_users_in_a_row() -> None:
    """Cases 22, 23: also across a tool flow, which strict templates do not look at."""
    assert [v.rule for v in strict_violations([user("u"), user("v")])] == ["alternation"]
    denied = [user("u"), calls("a", "1"), result("r", "1"), user("v")]
    assert violations(denied) == ()
    assert [(v.index, v.rule) for v in strict_violations(denied)] == [(3, "alternation")]
    assert strict_violations([user("u"), calls("a", "1"), result("r", "1"), says("b"), user("v")]) == ()


def test_an_unanswered_call_gets_an_error_result_right_after_its_group() -> None:
    """Case 17: A[C1,C2] R1, then the next question."""
    view, notes = repair([user("u"), calls("a", "1", "2"), result("r", "1"), user("v")])
    made = view[3]
    assert [m.role for m in view] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert (made.tool_call_id, made.text, made.is_error, made.origin) == ("2", INTERRUPTED_RESULT, True, "repair")
    assert view[4].text == NO_REPLY
    assert len(notes) == 2


def test_an_open_group_at_the_end_is_left_alone_until_closed() -> None:
    messages = [user("u"), calls("a", "1", "2"), result("q", "2")]
    assert repair(messages, closed=False)[0] == tuple(messages[:2])  # the first result is still to come
    assert [m.tool_call_id for m in repair(messages)[0][2:]] == ["1", "2"]


def test_results_come_in_call_order() -> None:
    view, notes = repair([user("u"), calls("a", "1", "2", "3"), result("z", "3"), result("x", "1"), result("y", "2")])
    assert [m.id for m in view[2:]] == ["x", "y", "z"]
    assert "order" in notes[0]


def test_orphans_and_second_results_go() -> None:
    view, notes = repair([user("u"), result("o", "9"), calls("a", "1"), result("r", "1"), result("q", "1", "again")])
    assert [m.id for m in view] == ["u", "a", "r"]
    assert len(notes) == 2
    assert notes[0].startswith("o: ")


def test_a_result_after_something_else_is_an_orphan() -> None:
    """Moving it back would rewrite what was sent already (I7)."""
    view, _ = repair([user("u"), calls("a", "1"), user("v"), result("r", "1")])
    assert [m.text for m in view if m.role == "tool"] == [INTERRUPTED_RESULT]


def test_neighbouring_user_messages_are_joined_under_the_first_id() -> None:
    """Case 23: U, (abort), U on a strict template."""
    image = Message("w", "user", (TextPart(""), ImagePart("x")))
    view, _ = repair([user("u", "one"), says("gone", " "), user("v", "two")])
    assert [(m.id, m.content) for m in view] == [("u", "one\n\ntwo")]
    view, _ = repair([user("u", "one"), image, user("v", "two")])
    assert [(m.id, m.content) for m in view] == [("u", (TextPart("one"), ImagePart("x"), TextPart("two")))]


def test_neighbouring_assistant_texts_are_joined_with_the_calls_that_follow() -> None:
    view, _ = repair([user("u"), says("a", "first"), calls("b", "1", text="then"), result("r", "1")])
    assert [(m.id, m.text) for m in view] == [("u", "ask"), ("a", "first\n\nthen"), ("r", "out")]
    assert view[1].tool_calls == (ToolCall("1", "Read", "{}"),)


def test_an_empty_user_message_says_so() -> None:
    assert repair([user("u", "\t")])[0][0].text == EMPTY_MESSAGE


def test_a_history_that_opens_with_the_assistant_gets_an_opening() -> None:
    view, _ = repair([SYSTEM, says("a"), user("u")])
    assert [(m.role, m.text) for m in view[:2]] == [("system", "be kind"), ("user", CONVERSATION_START)]
    assert view[1].synthetic


def test_a_late_system_message_is_read_as_user_but_is_no_request() -> None:
    late = Message("t", "system", "new rule", origin="system")
    view, _ = repair([SYSTEM, user("u"), says("a"), late])
    assert [(m.role, m.text) for m in view[-1:]] == [("user", "new rule")]
    assert view[-1].synthetic
    assert [m.text for m in repair([SYSTEM, late, user("u")])[0]] == ["be kind\n\nnew rule", "ask"]


def test_calls_with_one_id_get_ids_of_their_own_and_results_in_order() -> None:
    view, _ = repair([user("u"), calls("a", "1", "1", ""), result("r", "1"), result("q", "1"), result("p", "")])
    ids = [c.id for c in view[1].tool_calls]
    assert len(set(ids)) == 3
    assert "" not in ids
    assert [(m.id, m.tool_call_id) for m in view[2:]] == list(zip(["r", "q", "p"], ids, strict=True))


@pytest.mark.parametrize(
    ("arguments", "sent"), [("", "{}"), ('{"a', '{"malformed":"{\\"a"}'), ("[1]", '{"malformed":"[1]"}')]
)
def test_arguments_become_an_object(arguments: str, sent: str) -> None:
    """Templates parse them; one malformed call must not brick the conversation."""
    view, _ = repair([user("u"), calls("a", "1", arguments=arguments), result("r", "1")])
    assert view[1].tool_calls[0].arguments == sent


def test_a_valid_view_is_returned_as_it_is() -> None:
    messages = (SYSTEM, user("u"), calls("a", "1"), result("r", "1"), says("b"), user("v"))
    assert repair(messages) == (messages, ())


def test_reasoning_of_a_kept_tool_loop_is_untouched() -> None:
    """Case 25."""
    thinking = Message("a", "assistant", "", (ToolCall("1", "R", "{}"),), reasoning="step\n one ", origin="model")
    assert repair([user("u"), thinking, result("r", "1")])[0][1] is thinking


def test_what_a_joined_message_keeps() -> None:
    """The id of the first, the turn of the last, a person's origin over a made-up one, all of the reasoning."""
    late = Message("t", "system", "note", origin="system", turn=1)
    view, _ = repair([user("u"), says("a"), late, Message("v", "user", "go on", turn=2)])
    assert (view[-1].id, view[-1].turn, view[-1].origin, view[-1].text) == ("t", 2, "user", "note\n\ngo on")
    first = Message("a", "assistant", "one", reasoning="x", origin="model")
    second = Message("b", "assistant", "two", reasoning="y", origin="model")
    assert repair([user("u"), first, second])[0][1].reasoning == "x\n\ny"
    assert repair([user("u"), says("a"), second])[0][1].reasoning == "y"
