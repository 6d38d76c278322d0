"""The breakdown of a request: each part counted once, rows that sum to the header (I8; cases 86, 87)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.breakdown import HISTORY_CATEGORIES, SYSTEM_CATEGORIES, Breakdown, breakdown
from marextui.context.fold import fold
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json
from marextui.context.summary_pair import summary_pair
from marextui.context.tokens import IMAGE_TOKENS, MESSAGE_TOKENS, TokenLedger
from tests.property.histories import Log, logs


def four(text: str) -> int:
    return -(-len(text) // 4)


def spec(name: str, size: int = 40) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d" * size, "parameters": {}}}


def broken(
    *history: Message,
    ledger: TokenLedger | None = None,
    used: int | None = None,
    rules: str = "",
    memory: str = "",
    tools: tuple[dict[str, Any], ...] = (),
) -> Breakdown:
    ledger = ledger or TokenLedger(four)
    return breakdown(
        base="You help.",
        rules=rules,
        memory=memory,
        tools=tools,
        history=history,
        ledger=ledger,
        used=ledger.messages(history) if used is None else used,
    )


def user(text: str) -> Message:
    return Message("u", "user", text)


def test_each_category_has_its_tokens() -> None:
    call = Message("a", "assistant", "I look.", (ToolCall("c", "Read", '{"path":"a.py"}'),), origin="model")
    output = Message("t", "tool", "x" * 400, tool_call_id="c", name="Read", origin="tool")
    b = broken(*summary_pair("s" * 200, 1), user("y" * 40), call, output, Message("z", "assistant", "w" * 80))
    assert b.tokens("user") == 10 + MESSAGE_TOKENS
    assert b.tokens("outputs") == 100 + MESSAGE_TOKENS
    assert b.tokens("assistant") == 20 + MESSAGE_TOKENS + four("I look.") + MESSAGE_TOKENS
    assert b.tokens("calls") == four("Read") + four('{"path":"a.py"}')
    assert b.tokens("summary") > 50
    assert b.residual == 0
    assert [(s.label, s.count) for s in b.of("outputs")] == [("Read", 1)]


def test_the_system_part_is_split_as_it_is_sent() -> None:
    """System, rules, memory and each schema; together S exactly."""
    tools = (spec("Read"), spec("Bash", 400))
    ledger = TokenLedger(four)
    b = broken(rules="# Rules\nbe kind", memory="# Notes\nport 8443", tools=tools, ledger=ledger)
    assert [s.label for s in b.of("tools")] == ["Bash", "Read"]
    assert b.tokens("tools") == ledger.tools(tools)
    assert b.tokens("rules") > 0
    assert b.system_part == MESSAGE_TOKENS + ledger.text("You help.\n\n# Rules\nbe kind") + ledger.text(
        "\n\n# Notes\nport 8443"
    ) + ledger.tools(tools)
    assert b.tokens(*SYSTEM_CATEGORIES) == b.system_part


def test_only_the_tools_that_are_sent_are_counted() -> None:
    """Case 86: 15 of 428; nothing is counted that is not in the request."""
    many = tuple(spec(f"T{n}") for n in range(15))
    assert len(broken(tools=many).of("tools")) == 15
    assert broken().of("tools") == ()


def test_a_message_that_only_calls_is_no_answer() -> None:
    """Its separators belong to its calls: "answers" counts only what was said."""
    call = Message("a", "assistant", "", (ToolCall("c", "Read", '{"path":"a.py"}'),), origin="model")
    b = broken(call)
    assert b.of("assistant") == ()
    assert b.tokens("calls") == MESSAGE_TOKENS + four("Read") + four('{"path":"a.py"}')


def test_images_and_unknown_parts_are_named_never_lost() -> None:
    """Case 87: an unknown kind of part stands under "other", with its binary at the flat cost."""
    audio = OtherPart(canonical_json({"type": "input_audio", "input_audio": {"data": "QUJD" * 100}}))
    odd = OtherPart('{"note":"hello there"}')
    message = Message("u", "user", (TextPart("look at this"), ImagePart("data:image/png;base64,AAAA"), audio))
    b = broken(message, Message("v", "user", (odd,)))
    assert b.tokens("images") == IMAGE_TOKENS
    assert b.of("images")[0].count == 1
    assert {s.label for s in b.of("other")} == {"input_audio part", "unknown part"}
    assert b.of("other")[0].tokens > IMAGE_TOKENS
    assert b.residual == 0


def test_reasoning_counts_only_where_it_is_sent_back() -> None:
    thinker = Message("a", "assistant", "yes", reasoning="r" * 400, origin="model")
    assert broken(thinker).tokens("reasoning") == 0
    assert broken(thinker, ledger=TokenLedger(four, echo_reasoning=True)).tokens("reasoning") == 100


def test_what_a_repair_added_is_no_ones_message() -> None:
    b = broken(user("hi"), Message("r", "tool", "interrupted", tool_call_id="c", origin="repair"))
    assert b.tokens("user") == 1 + MESSAGE_TOKENS
    assert b.of("outputs") == ()
    assert b.tokens("other") > 0


def test_the_residual_is_what_the_server_counted_more_or_less() -> None:
    assert broken(user("y" * 40), used=100).residual == 100 - 14
    assert broken(user("y" * 40), used=9).residual == 9 - 14


@given(logs(), st.sampled_from([1.0, 1.37, 3.0]), st.booleans(), st.integers(0, 100_000) | st.none())
def test_the_rows_always_sum_to_the_header(log: Log, factor: float, echo: bool, used: int | None) -> None:
    """I8: exact, for any history, correction factor and measure."""
    history = fold(log.entries).history()
    ledger = TokenLedger(four, factor, echo_reasoning=echo)
    b = broken(*history, ledger=ledger, used=used, rules="r", memory="m", tools=(spec("Read"),))
    assert sum(s.tokens for s in b.shares) + b.residual == b.total
    assert b.tokens(*HISTORY_CATEGORIES) == ledger.messages(history)
    assert all(s.tokens >= 0 for s in b.shares)
    parts = sum(isinstance(p, ImagePart) for m in history for p in m.content if not isinstance(m.content, str))
    assert sum(s.count for s in b.of("images")) == parts
