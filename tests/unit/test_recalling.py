"""What Recall looks through, and what it says of values that were changed later (Part 2, 2)."""

from __future__ import annotations

from marextui.context.messages import Message, ToolCall
from marextui.context.recalling import GAP, IN_PIECES, changes, facts_around, pieces, recall_text


def said(n: int, text: str, role: str = "user") -> Message:
    return Message(f"m{n}", role, text, origin="user" if role == "user" else "model", turn=n)  # type: ignore[arg-type]


def test_a_corrected_value_is_told_beside_the_earlier_one() -> None:
    messages = [
        said(1, "The retry limit of billing is 37."),
        said(2, "The retry limit is 37.", "assistant"),
        said(3, "The retry limit of billing is 42 now."),
    ]
    facts = facts_around(messages)
    note = changes(messages[0].text, "m1", facts)
    assert "37 was later changed to 42" in note
    assert "message m3" in note
    assert changes(messages[2].text, "m3", facts) == ""
    assert changes("nothing of it is shown", "m1", facts) == ""


def test_repetitions_and_made_up_messages_are_not_looked_through() -> None:
    """A result of Recall would only echo; the call itself holds the question."""
    assert recall_text(Message("a", "tool", "found", name="Recall")) == ""
    assert recall_text(Message("b", "tool", "whole", name="ReadOmittedContent")) == ""
    assert recall_text(Message("c", "user", "summary", origin="summary")) == ""
    assert recall_text(Message("d", "system", "prompt")) == ""
    calls = (ToolCall("1", "Recall", '{"query":"port"}'), ToolCall("2", "Bash", '{"command":"ls"}'))
    text = recall_text(Message("e", "assistant", "I look.", calls))
    assert "I look." in text
    assert "ls" in text
    assert "port" not in text


def test_a_stored_output_takes_the_place_of_what_is_shown() -> None:
    assert recall_text(Message("t", "tool", "part", name="Bash"), "the whole") == "the whole"


def test_of_a_long_text_the_places_that_were_found_are_looked_at() -> None:
    """Case 83: in the order of the text, none twice; a short text, or one of which no place is known, whole."""
    text = "".join(f"line {n}\n" for n in range(20_000))
    assert pieces(text, ()) == text
    assert pieces(text[:IN_PIECES], [40_000]) == text[:IN_PIECES]
    first, last = text.index("line 5000\n"), text.index("line 19000\n")
    shown = pieces(text, [last, first, first + 100])
    assert shown.count(GAP) == 1
    assert shown.index("line 5000\n") < shown.index("line 19000\n")
    assert shown.count("line 5005\n") == 1
    assert len(shown) < 15_000
