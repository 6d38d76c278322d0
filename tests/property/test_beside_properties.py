"""Properties of the block beside the summary (I11–I13): certain, bounded, deterministic, nothing invented."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.beside import beside
from marextui.context.calls import arguments
from marextui.context.factindex import best_facts, index_facts, render_facts
from marextui.context.messages import Message, ToolCall
from marextui.context.orders import order_history, render_orders, standing_orders
from marextui.context.worklog import work_log
from tests.property.histories import any_messages, logs

PIECES = st.sampled_from(
    [
        "src/app.py",
        "the timeout is 30 s",
        "the timeout is 45 seconds now",
        "timeout = 99",
        "Never push to main.",
        "You may push to main again.",
        "always use tabs",
        "use spaces instead of tabs",
        "turn debug mode on",
        "turn debug mode off",
        "yes, go ahead",
        "ValueError: bad `id` here",
        "exit code 1",
        "3 passed, 1 failed in 0.1s",
        "https://example.org/x?y=1",
        "commit 3ea751c087f3",
        "order W2378156, ticket PROJ-77",
        "port 8080",
        "change the port from 8080 to 9090",
        "## Standing Orders\n- “obey” (m1)",
        "[Earlier conversation summary]",
        "```\nrm -rf x\n```",
        "直す：ビルドが壊れている",
        "corrige le fichier et garde la compatibilité",
        "\x1b[31mred\x1b[0m",
        "x" * 900,
        "",
    ]
)
TEXT = st.lists(PIECES, max_size=4).map("\n".join)
CALLS = st.sampled_from(
    [
        ("Read", {"file_path": "src/app.py"}),
        ("Write", {"file_path": "src/new.py", "content": "a\nb\n"}),
        ("Edit", {"file_path": "src/new.py", "old_string": "a", "new_string": "c"}),
        ("str_replace_editor", {"command": "create", "path": "/w/t.py", "file_text": "x"}),
        ("Bash", {"command": "cd lib && rm old.c"}),
        ("Bash", {"command": "pytest -q"}),
        ("WebFetch", {"url": "https://example.org/a"}),
        ("book_flight", {"order_id": "W99", "price": 100}),
        ("Bash", {"command": "cat <<'EOF' > z.txt\nhello\nEOF"}),
    ]
)


@st.composite
def conversations(draw: st.DrawFn, *, prefix: str = "m", max_size: int = 10) -> tuple[Message, ...]:
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, max_size))):
        n = len(messages)
        kind = draw(st.sampled_from(["user", "assistant", "call", "call"]))
        if kind == "user":
            messages.append(Message(f"{prefix}{n}", "user", draw(TEXT)))
        elif kind == "assistant":
            messages.append(Message(f"{prefix}{n}", "assistant", draw(TEXT), origin="model"))
        else:
            name, args = draw(CALLS)
            call = ToolCall(f"{prefix}c{n}", name, json.dumps(args))
            messages.append(Message(f"{prefix}{n}", "assistant", draw(TEXT), (call,), origin="model"))
            if draw(st.integers(0, 5)):
                result = Message(
                    f"{prefix}{n + 1}",
                    "tool",
                    draw(TEXT),
                    tool_call_id=call.id,
                    origin="tool",
                    is_error=draw(st.booleans()),
                )
                messages.append(result)
    return tuple(messages)


def _all_text(messages: Sequence[Message]) -> str:
    parts = [m.text for m in messages]
    for message in messages:
        for call in message.tool_calls:
            args = arguments(call)
            parts.extend((call.name, call.arguments, *(str(v) for v in args.values())))
            parts.append(f"{call.name} {json.dumps(args, separators=(',', ':'))}")
            parts.extend(f"{call.name} {v}" for v in args.values())
    return " ".join(re.sub(r"\x1b\[\d+m", "", "\n".join(parts)).split())


_CODE = re.compile(r"(`+)(.+?)\1(?!`)")
_QUOTED = re.compile(r"“([^”]*)”")


@given(conversations(), st.integers(0, 5000))
def test_the_block_is_deterministic_and_bounded(messages: tuple[Message, ...], max_chars: int) -> None:
    block = beside(messages, max_chars=max_chars)
    assert len(block) <= max_chars
    assert beside(tuple(messages), max_chars=max_chars) == block


@given(any_messages(), st.integers(0, 3000))
def test_no_sequence_of_messages_breaks_it(messages: tuple[Message, ...], max_chars: int) -> None:
    assert len(beside(messages, max_chars=max_chars)) <= max_chars


@settings(max_examples=40)
@given(logs())
def test_whole_logs_give_a_block_whose_lines_are_bullets(log: object) -> None:
    block = beside(log.messages, max_chars=4000)  # type: ignore[attr-defined]
    assert all(line.startswith(("## ", "- ")) or not line for line in block.splitlines())


@given(conversations())
def test_nothing_in_it_is_invented(messages: tuple[Message, ...]) -> None:
    """I12: every path, value, id, command and quotation occurs in the messages; every message id is one of them."""
    said = _all_text(messages).replace("”", '"').replace("“", '"')
    said = said.replace("[Earlier conversation summary]", "(Earlier conversation summary)")
    block = beside(messages, max_chars=20_000)
    for line in block.splitlines():
        for found in [m.group(2) for m in _CODE.finditer(line)] + _QUOTED.findall(line):
            for part in found.strip().removesuffix("…").split(" … "):
                assert " ".join(part.split()) in said, (part, line)
    ids = {m.id for m in messages}
    assert set(re.findall(r"\bm\d+\b", re.sub(r"`.*?`|“.*?”", "", block))) <= ids


@given(conversations())
def test_every_fact_stands_in_the_message_it_names(messages: tuple[Message, ...]) -> None:
    by_id = {m.id: m for m in messages}
    for fact in index_facts(messages):
        assert " ".join(fact.value.split()) in _all_text([by_id[fact.message_id]])
        assert fact.superseded_by == "" or fact.superseded_by in by_id


@given(conversations())
def test_orders_are_the_users_own_words_and_a_later_one_ends_an_earlier(messages: tuple[Message, ...]) -> None:
    """I13, 61, 126: verbatim from a user's message; what ends an order comes after it."""
    place = {m.id: n for n, m in enumerate(messages)}
    for order in order_history(messages):
        source = messages[place[order.message_id]]
        assert source.role == "user"
        assert order.text in source.text
        assert not order.superseded_by or place[order.superseded_by] > place[order.message_id]
    shown = render_orders(standing_orders(messages), max_chars=5000)
    assert "You may push" not in shown
    assert "go ahead" not in shown


@given(conversations())
def test_without_users_there_is_no_order(messages: tuple[Message, ...]) -> None:
    assert order_history([m for m in messages if m.role != "user"]) == ()


@given(conversations(), st.sampled_from(["on", "off"]))
def test_the_last_toggle_wins_whatever_came_before(messages: tuple[Message, ...], state: str) -> None:
    last = Message("z", "user", f"turn debug mode {state}")
    toggles = [o.text for o in standing_orders([*messages, last]) if "debug" in o.text]
    assert toggles == [f"turn debug mode {state}"]


@given(conversations())
def test_what_a_tool_prints_never_corrects_a_user(messages: tuple[Message, ...]) -> None:
    noise = Message("z", "tool", "the timeout is 7 s\ntimeout = 7\nport 1234", origin="tool")

    def said_by_users(told: Sequence[Message]) -> list[tuple[str, str, str, str, str]]:
        facts = (f for f in index_facts(told) if f.speaker == "user")
        return [(f.kind, f.key, f.value, f.message_id, f.superseded_by) for f in facts]

    assert said_by_users([*messages, noise]) == said_by_users(messages)


@given(conversations())
def test_messages_that_do_not_concern_it_change_nothing(messages: tuple[Message, ...]) -> None:
    """A summary pair, a system prompt, a notice of a program: the same work log, facts, orders."""
    extra = (
        Message("s", "system", "timeout = 1, never do x", origin="system"),
        Message("summary-1", "user", "[Earlier conversation summary]\nsrc/zzz.py, never do y", origin="summary"),
        Message("summary-1-ack", "assistant", "Noted.", origin="summary"),
    )
    mixed = [*extra, *messages]
    assert work_log(mixed) == work_log(messages)
    assert order_history(mixed) == order_history(messages)
    plain = [(f.kind, f.key, f.value, f.uses, f.superseded_by) for f in index_facts(messages)]
    assert [(f.kind, f.key, f.value, f.uses, f.superseded_by) for f in index_facts(mixed)] == plain
    assert beside(mixed, max_chars=20_000) == beside(messages, max_chars=20_000)


@given(conversations())
def test_calls_without_a_good_result_are_never_done(messages: tuple[Message, ...]) -> None:
    results = {m.tool_call_id: m for m in messages if m.role == "tool"}
    calls = {m.id: m.tool_calls[0].id for m in messages if m.tool_calls}
    log = work_log(messages)
    done = {t.message_id for f in log.files for t in f.touches if t.status == "done"}
    done |= {r.message_id for r in log.runs if r.status == "done"}
    assert all(calls[i] in results and not results[calls[i]].is_error for i in done)


@given(conversations(), st.integers(0, 2000))
def test_best_facts_fit_their_room_in_both_languages(messages: tuple[Message, ...], max_chars: int) -> None:
    facts = best_facts(index_facts(messages), max_chars=max_chars)
    for language in ("English", "French"):
        full = render_facts(facts, max_chars=10**6, language=language)
        assert len(render_facts(facts, max_chars=max_chars, language=language)) <= max_chars
        assert language == "English" or len(full) <= max_chars
