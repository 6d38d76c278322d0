"""A fork of a conversation is the same state and goes its own way (L34)."""

from __future__ import annotations

from hypothesis import given, settings

from marextui.context.entries import InputRef, InputsOmitted, MessageAdded
from marextui.context.fold import Conversation, fold
from marextui.context.messages import Message, ToolCall
from tests.property.histories import Log, logs


def state(conversation: Conversation) -> dict[str, object]:
    return {name: value for name, value in vars(conversation).items() if name not in {"_history", "_marks", "_growing"}}


@settings(max_examples=150, deadline=None)
@given(logs())
def test_what_a_fork_takes_in_leaves_the_original_as_it_was(drawn: Log) -> None:
    """L34: forked anywhere, both then have the state that a fold of their own entries gives."""
    log = drawn.entries
    half = len(log) // 2
    original = fold(log[:half])
    before = original.history()
    fork = original.fork()
    for entry in log[half:]:
        fork.apply(entry)
    assert fork.history() == fold(log).history()
    assert state(fork) == state(fold(log))
    assert state(original) == state(fold(log[:half]))
    assert original.history() == before
    for entry in log[half:]:
        original.apply(entry)
    assert state(original) == state(fork)


def test_an_argument_that_a_fork_omits_stands_in_the_original() -> None:
    """L34: several arguments of one call become markers one after the other."""
    call = ToolCall("c", "Write", '{"path": "a.py", "text": "x", "note": "y"}')
    original = fold([MessageAdded(Message("m", "assistant", "", (call,), origin="model"))])
    original.apply(InputsOmitted(2, (InputRef("m", 0, ("text",), "omitted-001", 1),)))
    before = original.shown()
    fork = original.fork()
    fork.apply(InputsOmitted(3, (InputRef("m", 0, ("note",), "omitted-002", 1),)))
    assert "omitted-002" in fork.shown()[0].tool_calls[0].arguments
    assert original.shown() == before
    assert list(original.inputs["m", 0]) == [("text",)]
