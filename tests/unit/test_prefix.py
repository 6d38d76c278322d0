"""What broke the prefix, in words: each cause by its name, none where the prefix is whole (I7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from marextui.context.marks import NOTES_HEAD, PROJECT_CLOSE, PROJECT_OPEN, RULES_HEAD
from marextui.context.omission import marker
from marextui.context.prefix import SERVER_FORGOT, Given, Prompt, first_break, why_computed


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}, **more}}


def system(base: str = "Base.", rules: str = "be brief", notes: str = "a fact") -> dict[str, Any]:
    return {"role": "system", "content": f"{base}\n\n{RULES_HEAD}\n{rules}\n\n{NOTES_HEAD}\n{notes}"}


def block(text: str) -> str:
    return f"{PROJECT_OPEN}\n{text}\n{PROJECT_CLOSE}\n\n"


CALL = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": '{"path": "a"}'}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}
BEFORE = Prompt(
    model="m",
    conversation="c",
    messages=(
        system(),
        {"role": "user", "content": f"{block('A parser.')}Look."},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
        {"role": "tool", "content": "line\n" * 200, "tool_call_id": "c"},
        {"role": "assistant", "content": "Seen."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, PICTURE]},
    ),
    ids=("u1", "a1", "t1", "a2", "u2"),
    tools=(tool("Look"), tool("Read")),
)
TURNS = {"u1": 12, "a1": 12, "t1": 12, "a2": 12, "u2": 13, "a3": 13}


def turn_of(message_id: str) -> int:
    return TURNS.get(message_id, 0)


def with_message(at: int, **fields: Any) -> Prompt:
    messages = [*BEFORE.messages]
    messages[at] = {**messages[at], **fields}
    return replace(BEFORE, messages=tuple(messages))


def viewed(*ids: str) -> Prompt:
    """A view of these messages; those that `BEFORE` does not have say their id."""
    known = dict(zip(BEFORE.ids, BEFORE.messages[1:], strict=True))
    messages = [known.get(i, {"role": "user", "content": i}) for i in ids]
    return replace(BEFORE, messages=(BEFORE.messages[0], *messages), ids=ids)


OMITTED = marker("omitted-003", 1_000)
CAUSES: dict[str, Prompt] = {
    "another model": replace(BEFORE, model="n", tools=()),
    "chat_template_kwargs changed": replace(BEFORE, rendering={"chat_template_kwargs": {"enable_thinking": False}}),
    "reasoning_effort changed": replace(BEFORE, rendering={"reasoning_effort": "low"}),
    "tool list changed (MemoryPage came)": replace(BEFORE, tools=(tool("Look"), tool("MemoryPage"), tool("Read"))),
    "tool list changed (Look, Read went)": replace(BEFORE, tools=()),
    "tool list changed": replace(BEFORE, tools=(tool("Read"), tool("Look"))),
    "system text changed (base prompt)": with_message(0, content=system("Other.")["content"]),
    "system text changed (project rules)": with_message(0, content=system(rules="be exact")["content"]),
    "system text changed (memory)": with_message(0, content=system(notes="another fact")["content"]),
    "another conversation was asked in between": replace(viewed("x1"), conversation="d"),
    "the project context changed": with_message(1, content=f"{block('A lexer.')}Look."),
    "a message of turn 12 was changed": with_message(1, content=f"{block('A parser.')}Look!"),
    "inputs of calls in turn 12 were put aside": with_message(2, tool_calls=[{**CALL, "function": {}}]),
    "reasoning of turn 12 left the view": with_message(2, reasoning_content=""),
    "omission of turn 12": with_message(3, content=OMITTED),
    "an output of turn 12 was shortened": with_message(3, content=f"line\n{OMITTED}"),
    "an answer of turn 12 was changed": with_message(4, content="Not seen."),
    "a picture of turn 13 was put aside": with_message(5, content=[{"type": "text", "text": OMITTED}]),
    "compaction 3": viewed("summary-3", "summary-3-ack", "u2"),
    "a message of turn 12 left the view": viewed("u1", "a2", "u2"),
    "a message came into turn 13": viewed("u1", "a1", "t1", "a3", "a2", "u2"),
    "the order of messages in turn 12": viewed("u1", "t1", "a1", "a2", "u2"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_its_name(cause: str) -> None:
    """Issue 4, section 4: the gauge names what broke the prefix."""
    assert first_break(BEFORE, CAUSES[cause], turn_of) == cause


def test_compactions_and_undos_are_told_apart() -> None:
    """M13: the ids of the pair hold the cycle."""
    first, second = viewed("summary-1", "summary-1-ack", "u2"), viewed("summary-2", "summary-2-ack")
    assert first_break(first, second, turn_of) == "compaction 2"
    assert first_break(second, first, turn_of) == "undo of compaction 2"
    assert first_break(first, BEFORE, turn_of) == "undo of compaction 1"


def test_memory_that_a_compaction_added_to_is_put_down_to_it() -> None:
    """M12, I7: the notes stand before the summary, and change in the same rewrite."""
    compacted = viewed("summary-3", "summary-3-ack", "u2")
    fed = replace(compacted, messages=(system(notes="a fact\nanother"), *compacted.messages[1:]))
    assert first_break(BEFORE, fed, turn_of) == "compaction 3, which added to memory"
    assert first_break(compacted, fed, turn_of) == "system text changed (memory)"


def test_a_longer_and_a_shorter_view_break_nothing() -> None:
    """Retrying sends the same, or less: all of it is cached."""
    longer = replace(BEFORE, messages=(*BEFORE.messages, {"role": "user", "content": "x"}), ids=(*BEFORE.ids, "u9"))
    assert first_break(BEFORE, longer, turn_of) == first_break(longer, BEFORE, turn_of) == ""
    assert first_break(BEFORE, BEFORE, turn_of) == ""


def test_another_conversation_is_no_cause_where_it_shares_all_there_is() -> None:
    """A new conversation begins with the same system text and tools."""
    empty = replace(BEFORE, messages=BEFORE.messages[:1], ids=(), conversation="d")
    assert first_break(empty, BEFORE, turn_of) == ""


@pytest.mark.parametrize(
    ("given", "cached", "why"),
    [
        (Given(BEFORE, 1_000), 999, ""),
        (Given(BEFORE, 1_000), 500, ""),
        (Given(BEFORE, 1_000), 499, SERVER_FORGOT),
        (Given(BEFORE, 1_000), 0, SERVER_FORGOT),
        (Given(BEFORE, 1_000), None, ""),
        (Given(BEFORE, None), 0, ""),
        (Given(BEFORE, 1_000, "a verification was sent in between"), 10, "a verification was sent in between"),
        (Given(BEFORE, 1_000, "a verification was sent in between"), 999, ""),
    ],
)
def test_a_server_that_has_forgotten_is_blamed_only_by_its_own_count(
    given: Given, cached: int | None, why: str
) -> None:
    """The request went on exactly; unknown is not 0 (M38)."""
    assert why_computed(given, BEFORE, cached, turn_of) == why


@pytest.mark.parametrize(("cached", "named"), [(None, True), (100, True), (600, False)])
def test_a_conversation_whose_own_prompt_was_brought_back_lost_nothing(cached: int | None, named: bool) -> None:
    """Section 7: warm resume, a second slot, or the server's own memory for prompts."""
    other = Given(replace(viewed("x1"), conversation="d"), 900)
    assert bool(why_computed(other, BEFORE, cached, turn_of, total=1_000)) == named


def test_what_we_sent_otherwise_comes_before_what_may_have_happened() -> None:
    given = Given(BEFORE, 1_000, "a verification was sent in between")
    assert why_computed(given, CAUSES["omission of turn 12"], 0, turn_of) == "omission of turn 12"


@pytest.mark.parametrize(("cached", "named"), [(None, True), (300, True), (999, True), (1_000, False), (1_300, False)])
def test_what_a_prewarm_has_paid_for_is_not_blamed(cached: int | None, named: bool) -> None:
    """The tools changed, and a prewarm has computed the new prompt while a person read."""
    given = Given(BEFORE, 1_000)
    assert bool(why_computed(given, CAUSES["tool list changed"], cached, turn_of, total=1_400)) == named
