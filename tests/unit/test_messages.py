"""Message values and their wire form."""

from __future__ import annotations

import json

import pytest

from marextui.context.messages import (
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCall,
    canonical_json,
    part_from_wire,
    part_to_wire,
    to_wire,
)


def test_canonical_json_is_compact_ordered_and_unescaped() -> None:
    assert canonical_json({"b": "é日", "a": [1, None]}) == '{"b":"é日","a":[1,null]}'


def test_wire_of_a_call_has_null_content_and_a_fixed_key_order() -> None:
    """I7: the order of keys is part of the prefix."""
    message = Message("m", "assistant", "", (ToolCall("c1", "Read", '{"p":1}'),), reasoning="why")
    assert canonical_json(to_wire(message)) == (
        '{"role":"assistant","content":null,"tool_calls":'
        '[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\\"p\\":1}"}}]}'
    )
    assert list(to_wire(message, echo_reasoning=True)) == ["role", "content", "reasoning_content", "tool_calls"]


def test_wire_of_a_result() -> None:
    assert to_wire(Message("m", "tool", "", tool_call_id="c1")) == {"role": "tool", "content": "", "tool_call_id": "c1"}
    assert to_wire(Message("m", "tool", "x", tool_call_id="c1", name="Read"))["name"] == "Read"


def test_reasoning_stays_home_unless_asked_for() -> None:
    assert "reasoning_content" not in to_wire(Message("m", "assistant", "x", reasoning="secret"))


@pytest.mark.parametrize(
    "part",
    [
        TextPart("a"),
        TextPart(""),
        ImagePart("https://x/y.png"),
        ImagePart("data:image/png;base64,AA", "high"),
        OtherPart('{"type":"file","file":{"id":"f"}}'),
    ],
)
def test_parts_round_trip(part: Part) -> None:
    assert part_from_wire(json.loads(canonical_json(part_to_wire(part)))) == part


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ("bare", TextPart("bare")),
        ({"type": "input_text", "text": "x"}, TextPart("x")),
        ({"type": "image_url", "image_url": "https://x"}, ImagePart("https://x")),
        ({"type": "text", "text": 3}, OtherPart('{"type":"text","text":3}')),
        ({"type": "hologram"}, OtherPart('{"type":"hologram"}')),
    ],
)
def test_odd_parts_are_read_leniently(raw: object, part: Part) -> None:
    assert part_from_wire(raw) == part


def test_text_joins_text_parts_only() -> None:
    assert Message("m", "user", (TextPart("a"), ImagePart("x"), TextPart("b"))).text == "a\nb"


def test_synthetic() -> None:
    assert Message("m", "user", origin="summary").synthetic
    assert Message("m", "user", origin="repair").synthetic
    assert not Message("m", "user").synthetic
