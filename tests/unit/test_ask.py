"""`replay --ask`: reading questions, checking answers (issue section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from marextui.context.ask import AnswerCheck, Question, check, read_questions, searchable
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall
from marextui.context.search import Doc


def test_questions_are_read() -> None:
    """A list, or a single regex without its list."""
    raw = [
        {"question": "Which port?", "accept": ["84\\d3", "9090"]},
        {"question": "Who?", "accept": "Annika", "more": 1},
    ]
    assert read_questions(raw) == (Question("Which port?", ("84\\d3", "9090")), Question("Who?", ("Annika",)))
    assert read_questions({"questions": raw}) == read_questions(raw)
    assert read_questions([]) == ()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("text", "JSON list"),
        (None, "JSON list"),
        ({"question": "x"}, "JSON list"),
        (["x"], "Question 1 is not an object"),
        ([{"accept": ["x"]}], "no text"),
        ([{"question": " ", "accept": ["x"]}], "no text"),
        ([{"question": "x", "accept": ["a"]}, {"question": "y"}], "Question 2 needs at least one"),
        ([{"question": "x", "accept": []}], "at least one"),
        ([{"question": "x", "accept": [3]}], "at least one"),
        ([{"question": "x", "accept": [""]}], "at least one"),
        ([{"question": "x", "accept": ["("]}], "“(” is not a regular expression"),
    ],
)
def test_bad_questions_get_a_sentence(raw: Any, says: str) -> None:
    """ValueError names the question and what is wrong with it."""
    with pytest.raises(ValueError) as caught:
        read_questions(raw)
    assert says in str(caught.value)
    assert str(caught.value).endswith(".")


VIEW = [Message("s", "system", "be brief"), Message("v", "user", "the port is 8443")]
DOCS = [Doc("d1", "we took port 8443 for the server"), Doc("d2", "the pool has 37 connections")]


def test_in_view_and_reachable_are_independent() -> None:
    """All four outcomes."""
    questions = [
        Question("Which port for the server?", ("8443",)),
        Question("How many connections in the pool?", ("37",)),
        Question("How terse?", ("brief",)),
        Question("Which colour?", ("mauve",)),
    ]
    found = check(questions, VIEW, DOCS)
    assert [(c.in_view, c.reachable) for c in found] == [(True, True), (False, True), (True, False), (False, False)]
    assert found[0] == AnswerCheck("Which port for the server?", True, True, "view v; search d1")
    assert found[3].where == ""


def test_the_view_is_all_that_is_sent() -> None:
    """Parts, call names and arguments count, also where JSON escapes hide them; images do not."""
    message = Message(
        "a",
        "assistant",
        (TextPart("see"), ImagePart("data:image/png;base64,QUJD")),
        tool_calls=(ToolCall("c", "Write", '{"text": "say \\"hi\\"\\nline two", "n": [42, {"k": "deep"}]}'),),
    )
    text = searchable(message)
    for part in ("see", "Write", 'say "hi"\nline two', "deep", "42"):
        assert part in text
    assert "QUJD" not in text


def test_reachable_means_within_three_results_of_2000_characters() -> None:
    """The fourth best passage is out of reach."""
    docs = [Doc(f"d{n}", f"zebra zebra quota {n} " + "zebra " * (9 - n)) for n in range(9)] + [Doc("x", "answer: 77")]
    wall = [Doc(f"w{n}", "y " * 3000) for n in range(3)]
    assert not check([Question("zebra quota?", ("answer: 77",))], [], [*docs[:6], *wall, docs[-1]])[0].reachable


def test_patterns_are_case_sensitive_as_written() -> None:
    """An answer is not claimed by accident: (?i) is the author's to write."""
    assert not check([Question("q", ("PORT",))], VIEW, [])[0].in_view
    assert check([Question("q", ("(?i)PORT",))], VIEW, [])[0].in_view
