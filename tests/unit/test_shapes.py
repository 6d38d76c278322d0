"""Views in provider shapes, example by example (I1; cases 17–27)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marextui.context.messages import ImagePart, Message, OtherPart, Role, TextPart, ToolCall
from marextui.context.shapes import SHAPES, Shape, shape_violations, to_shape, write_shape
from marextui.context.validate import NO_REPLY

PNG = "data:image/png;base64,iVBORw0KGgo="


def user(text: str, n: int = 0) -> Message:
    return Message(f"u{n}", "user", text)


def asks(*ids: str, text: str = "", n: int = 0) -> Message:
    calls = tuple(ToolCall(i, "Read", f'{{"path":"{i}.py"}}') for i in ids)
    return Message(f"a{n}", "assistant", text, calls, origin="model")


def result(call_id: str, text: str = "ok", **more: Any) -> Message:
    return Message(f"r-{call_id}", "tool", text, tool_call_id=call_id, origin="tool", **more)


SYSTEM = Message("s", "system", "Be exact.", origin="system")
VIEW = (SYSTEM, user("go"), asks("c1", "c2", text="reading"), result("c1"), result("c2", "no", is_error=True))


def test_openai() -> None:
    system, request, calls, first, second = to_shape(VIEW, "openai")
    assert system == {"role": "system", "content": "Be exact."}
    assert request == {"role": "user", "content": "go"}
    function = {"name": "Read", "arguments": '{"path":"c1.py"}'}
    assert calls["tool_calls"][0] == {"id": "c1", "type": "function", "function": function}
    assert calls["content"] == "reading"
    assert first == {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    assert second["tool_call_id"] == "c2"


def test_anthropic_puts_the_results_of_a_group_into_one_user_message() -> None:
    """Case 17."""
    value = to_shape(VIEW, "anthropic")
    assert value["system"] == "Be exact."
    assert value["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "c1.py"}},
                {"type": "tool_use", "id": "c2", "name": "Read", "input": {"path": "c2.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "ok"}]},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                },
            ],
        },
    ]


def test_gemini_answers_as_many_calls_as_were_made() -> None:
    """Case 18: function responses are user content, counted against the calls before them."""
    value = to_shape(VIEW, "gemini")
    assert value["systemInstruction"] == {"parts": [{"text": "Be exact."}]}
    assert [c["role"] for c in value["contents"]] == ["user", "model", "user"]
    calls, answers = value["contents"][1]["parts"], value["contents"][2]["parts"]
    assert calls[1] == {"functionCall": {"id": "c1", "name": "Read", "args": {"path": "c1.py"}}}
    assert answers == [
        {"functionResponse": {"id": "c1", "name": "Read", "response": {"result": "ok"}}},
        {"functionResponse": {"id": "c2", "name": "Read", "response": {"error": "no"}}},
    ]


def test_mistral_ids_are_nine_letters_and_digits_and_the_same_each_time() -> None:
    first = to_shape(VIEW, "strict")
    ids = [c["id"] for c in first[2]["tool_calls"]]
    assert all(len(i) == 9 and i.isascii() and i.isalnum() for i in ids)
    assert [m["tool_call_id"] for m in first[3:]] == ids
    assert to_shape(VIEW[1:], "strict")[1]["tool_calls"][0]["id"] == ids[0]
    assert first[3]["name"] == "Read"


def test_an_id_that_fits_is_kept() -> None:
    view = (user("go"), asks("abcDEF123"), result("abcDEF123"))
    for shape in SHAPES:
        assert "abcDEF123" in json.dumps(to_shape(view, shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_ids_that_repeat_every_round_are_told_apart(shape: Shape) -> None:
    """Some servers count from call_0 in every round; the earlier round keeps its id (I7)."""
    first = (user("go"), asks("call_0", n=1), result("call_0"))
    both = (*first, asks("call_0", n=2), Message("r2", "tool", "two", tool_call_id="call_0"))
    value = to_shape(both, shape)
    assert shape_violations(value, shape) == ()
    assert write_shape(both, shape)[:3] == write_shape(first, shape)


@pytest.mark.parametrize("shape", ["openai", "strict"])
def test_an_image_of_a_tool_goes_to_a_user_message_where_only_users_show_images(shape: Shape) -> None:
    shown = Message("r", "tool", (TextPart("a chart"), ImagePart(PNG)), tool_call_id="c1", origin="tool")
    value = to_shape((user("go"), asks("c1"), shown, user("and?", 1)), shape)
    assert shape_violations(value, shape) == ()
    tool = next(m for m in value if m["role"] == "tool")
    assert tool["content"] == "a chart\n[image: in the next user message]"
    moved = value[value.index(tool) + (2 if shape == "strict" else 1)]
    assert moved == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}


def test_an_image_of_a_tool_stays_in_its_result_where_it_may() -> None:
    shown = Message("r", "tool", (ImagePart(PNG), TextPart("a chart")), tool_call_id="c1", origin="tool")
    view = (user("go"), asks("c1", "c2"), shown, result("c2"))
    block = to_shape(view, "anthropic")["messages"][2]["content"][0]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert block["content"][0] == {"type": "image", "source": source}
    parts = to_shape(view, "gemini")["contents"][2]["parts"]
    assert [next(iter(p)) for p in parts] == ["functionResponse", "functionResponse", "inlineData"]


@pytest.mark.parametrize(
    ("shape", "url", "said"),
    [
        ("anthropic", "data:image/svg+xml;base64,PHN2Zy8+", "[image left out: image/svg+xml]"),
        ("gemini", "data:image/gif;base64,R0lGODlh", "[image left out: image/gif]"),
        ("gemini", "https://example.org/cat", "[image left out: https://example.org/cat]"),
        ("openai", "file:///etc/passwd", "[image left out: file:///etc/passwd]"),
    ],
)
def test_an_image_the_provider_refuses_is_named_instead(shape: Shape, url: str, said: str) -> None:
    value = to_shape([Message("u", "user", (TextPart("look"), ImagePart(url)))], shape)
    assert said in json.dumps(value)
    assert shape_violations(value, shape) == ()


def thought(text: str, **more: str) -> OtherPart:
    return OtherPart(json.dumps({"type": "thinking", "thinking": text, **more}))


SIGNED = thought("hm", signature="c2ln")


def thinks(*parts: OtherPart | TextPart, call: str = "", n: int = 0) -> Message:
    calls = (ToolCall(call, "Read", "{}"),) if call else ()
    return Message(f"t{n}", "assistant", parts, calls, origin="model")


def thoughts(view: list[Message]) -> list[int]:
    """Indices of messages with thinking in the Anthropic form."""
    messages = to_shape(view, "anthropic")["messages"]
    assert shape_violations({"messages": messages}, "anthropic") == ()
    return [i for i, m in enumerate(messages) if any(b["type"] == "thinking" for b in m["content"])]


def test_signed_thinking_of_the_running_loop_is_sent_as_it_is_and_no_other() -> None:
    """Case 25: byte-identical in the loop at the end; earlier turns do without."""
    old = [user("a"), thinks(SIGNED, TextPart("fine"), n=1)]
    loop = [user("b", 1), thinks(SIGNED, call="c1", n=2), result("c1")]
    assert thoughts([*old, *loop]) == [3]
    block = to_shape([*old, *loop], "anthropic")["messages"][3]["content"][0]
    assert block == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.mark.parametrize(
    "first",
    [
        thinks(thought("hm"), call="c1"),
        thinks(TextPart("so"), SIGNED, call="c1"),
        thinks(TextPart("no thinking"), call="c1"),
    ],
    ids=["unsigned", "not first", "first reply without"],
)
def test_a_loop_whose_thinking_is_not_whole_goes_without_any(first: Message) -> None:
    """Cases 25, 26."""
    view = [user("b"), first, result("c1"), thinks(SIGNED, call="c2", n=3), result("c2")]
    assert thoughts(view) == []


def test_reasoning_is_never_sent() -> None:
    """Case 27: text of another model's thinking is no signed block."""
    view = (user("go"), Message("a", "assistant", "done", reasoning="SECRET THOUGHT", origin="model"))
    for shape in SHAPES:
        assert "SECRET" not in json.dumps(to_shape(view, shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_of_thinking_alone_still_says_something(shape: Shape) -> None:
    value = to_shape([user("go"), thinks(SIGNED)], shape)
    assert shape_violations(value, shape) == ()
    assert NO_REPLY in json.dumps(value)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_failed_call_without_words_is_still_a_failure(shape: Shape) -> None:
    value = to_shape((user("go"), asks("c1"), result("c1", "", is_error=True)), shape)
    assert shape_violations(value, shape) == ()


def test_written_one_message_a_line_with_the_system_part_first() -> None:
    assert [sorted(line) for line in write_shape(VIEW, "anthropic")] == [["system"]] + [["content", "role"]] * 3
    assert [sorted(line) for line in write_shape(VIEW, "gemini")] == [["systemInstruction"]] + [["parts", "role"]] * 3
    assert write_shape(VIEW, "openai") == to_shape(VIEW, "openai")


@pytest.mark.parametrize(("depth", "kept"), [(60, True), (90, False)])
def test_arguments_nested_beyond_what_protocol_buffers_take_are_sent_as_text(depth: int, kept: bool) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    view = (user("go"), Message("a", "assistant", "", (ToolCall("c1", "Read", deep),), origin="model"), result("c1"))
    args = to_shape(view, "gemini")["contents"][1]["parts"][0]["functionCall"]["args"]
    assert ("malformed" not in args) == kept
    assert kept or args["malformed"] == deep


# The validators, one broken fragment per rule


def said(role: Role, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": "x", **more}


def calling(*ids: str, arguments: str = "{}", name: str = "Read") -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


def picture(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


U, A = said("user"), said("assistant")


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ([A], "opens with"),
        ([U, said("system")], "after the first place"),
        ([{"role": "user", "content": " "}], "empty user"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "empty text part"),
        ([U, {"role": "assistant", "content": ""}], "empty assistant"),
        ([U, {"role": "assistant", "content": None}], "without text or calls"),
        ([U, calling("a", "b"), answer("a")], "without a result"),
        ([U, calling("a", "b"), answer("b"), answer("a")], "not in call order"),
        ([U, calling("a"), answer("a"), answer("a")], "without its call"),
        ([U, answer("a")], "without its call"),
        ([U, calling("a"), answer("a"), calling("a"), answer("a")], "used before"),
        ([U, calling("é"), answer("é")], "letters or length"),
        ([U, calling("a", arguments="[1]"), answer("a")], "JSON object"),
        ([U, calling("a", name="a b"), answer("a")], "tool name"),
        ([picture("data:image/svg+xml;base64,QUJD")], "media type"),
        ([picture("data:image/png;base64,Q")], "base64"),
        ([said("user", reasoning_content="hm")], "unknown key"),
        ([U, said("function")], "unknown role"),  # type: ignore[arg-type]
        ("text", "not a list"),
        ([said("user", content="\ud800")], "not JSON"),
        ([said("user", content=float("nan"))], "not JSON"),
    ],
)
def test_openai_rules(value: Any, rule: str) -> None:
    assert any(rule in v for v in shape_violations(value, "openai"))


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ([U, calling("callAAAA1"), answer("callAAAA1"), U], "user where"),
        ([U, A, A], "assistant where"),
        ([U, U], "user where"),
        ([U, calling("call_1234"), answer("call_1234")], "letters or length"),
    ],
)
def test_strict_rules(value: Any, rule: str) -> None:
    """Cases 22, 23: a user message after a tool result is two users in a row for such templates."""
    assert any(rule in v for v in shape_violations(value, "strict"))


def block(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


T = {"type": "text", "text": "x"}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}


def gives(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **more}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([block("assistant", T)], "user must stand"),
        ([block("user", T), block("user", T)], "assistant must stand"),
        ([block("user")], "no content"),
        ([block("user", {"type": "text", "text": " "})], "empty text"),
        ([block("user", T), block("assistant", use("a"))], "without a result"),
        ([block("user", T), block("assistant", use("a")), block("user", T)], "for the calls"),
        ([block("user", T, gives("a"))], "for the calls"),
        ([block("user", T), block("assistant", use("a")), block("user", T, gives("a"))], "come first"),
        ([block("user", T), block("assistant", use("a")), block("user", gives("a", is_error=True))], "says nothing"),
        ([block("user", T), block("assistant", use("a.b")), block("user", gives("a.b"))], "letters or length"),
        ([block("user", T), block("assistant", {**use("a"), "input": "{}"}), block("user", gives("a"))], "object"),
        ([block("user", T), block("assistant", {"type": "text", "text": "x "})], "white space"),
        ([block("user", T), block("assistant", {"type": "image", "source": {}})], "in an assistant message"),
        ([block("user", T), block("assistant", {"type": "thinking", "thinking": "h"}, T)], "signature"),
        ([block("user", T), block("assistant", {"type": "thinking", "signature": "s"})], "must not end"),
        (
            [block("user", T), block("assistant", {"type": "thinking", "signature": "s"}, T), block("user", T)],
            "outside the running",
        ),
        (
            [block("user", {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "QUJD"}})],
            "media type",
        ),
    ],
)
def test_anthropic_rules(messages: Any, rule: str) -> None:
    assert any(rule in v for v in shape_violations({"messages": messages}, "anthropic"))


def content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


P = {"text": "x"}


def call(name: str, call_id: str = "c") -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": name, "args": {}}}


def response(name: str, call_id: str = "c") -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": name, "response": {"result": ""}}}


@pytest.mark.parametrize(
    ("contents", "rule"),
    [
        ([content("model", P)], "user must stand"),
        ([content("user")], "no parts"),
        ([content("user", {"text": ""})], "empty text"),
        ([content("user", P), content("model", call("f"))], "without a response"),
        ([content("user", P), content("model", call("f"), call("g", "d")), content("user", response("f"))], "1 resp"),
        ([content("user", P), content("model", call("f")), content("user", response("g"))], "right before"),
        ([content("user", P), content("model", call("f")), content("user", response("f"), P)], "text beside"),
        ([content("user", response("f"))], "1 responses to 0"),
        ([content("user", call("f"))], "in a user content"),
        ([content("user", {"text": "x", "inlineData": {}})], "one thing"),
        ([content("user", {"inlineData": {"mimeType": "image/gif", "data": "QUJD"}})], "media type"),
    ],
)
def test_gemini_rules(contents: Any, rule: str) -> None:
    assert any(rule in v for v in shape_violations({"contents": contents}, "gemini"))


def test_the_system_part_may_not_be_empty() -> None:
    assert shape_violations({"system": "", "messages": []}, "anthropic")
    assert shape_violations({"systemInstruction": {"parts": []}, "contents": []}, "gemini")
    for shape in SHAPES:
        blank = Message("s", "system", (ImagePart(PNG),))
        assert shape_violations(to_shape([blank, user("go")], shape), shape) == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_megabyte_of_image_takes_one_pass(shape: Shape) -> None:
    """Hostile sizes: neither conversion nor validation backtracks over data."""
    url = "data:image/png" + ";a" * 20_000 + ";base64," + "A" * 1_000_000 + "!"
    value = to_shape([Message("u", "user", (TextPart("x"), ImagePart(url)))], shape)
    assert shape_violations(value, shape) == ()
