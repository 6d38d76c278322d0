"""Every view in every provider's shape, judged by validators that share no code with the conversion (I1)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.entries import CompactionCommitted, CompactionUndone, OutputsOmitted
from marextui.context.fold import Conversation
from marextui.context.messages import ImagePart, Message, OtherPart, Part, TextPart, ToolCall
from marextui.context.shapes import SHAPES, Shape, shape_violations, to_shape, write_shape
from marextui.context.validate import repair
from tests.property.histories import ARGUMENTS, CONTENTS, Log, any_messages, logs

SYSTEM = Message("system", "system", "You are a test.", origin="system")
REWRITES = (CompactionCommitted, CompactionUndone, OutputsOmitted)
SHAPE = st.sampled_from(SHAPES)

IDS = st.one_of(
    st.sampled_from(["call_1", "abcDEF123", "functions.Read:0", "x" * 80, "é", "a b", "toolu_01-x", ""]),
    st.text(max_size=12),
)
URLS = st.sampled_from(
    [
        "data:image/png;base64,iVBORw0KGgo=",
        "data:image/jpg;base64,/9j/4AAQ",
        "data:image/gif;base64,R0lGODlh",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png;base64,not base64!",
        "https://example.org/cat.png?x=1",
        "https://example.org/cat",
        "file:///etc/passwd",
        "",
    ]
)
RAW = st.sampled_from(
    [
        '{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}',
        '{"type":"input_audio","input_audio":{"data":"?"}}',
        '{"type":"input_audio","input_audio":{"data":"UklGR"}}',
        '{"type":"input_audio","input_audio":{"data":"","format":["wav"]}}',
        '{"type":"file","file":{"file_id":"f1"}}',
        '{"type":"document","source":{"type":"text","data":"x"}}',
        '{"type":"thinking","thinking":"hm","signature":"c2ln"}',
        '{"type":"thinking","thinking":"hm"}',
        '{"type":"redacted_thinking","data":"ZW5j"}',
        '{"type":7}',
        "[1]",
    ]
)
ODD_PARTS: st.SearchStrategy[tuple[Part, ...]] = st.lists(
    st.one_of(st.text(max_size=6).map(TextPart), URLS.map(ImagePart), RAW.map(OtherPart)), max_size=4
).map(tuple)
ODD_ARGUMENTS = ARGUMENTS | st.sampled_from(['{"a":1e999}', '{"a":"\\ud800"}', '{"a":' * 90 + "1" + "}" * 90])


@st.composite
def odd_messages(draw: st.DrawFn) -> tuple[Message, ...]:
    """As `any_messages`, with what providers dislike: strange ids and names, images and attachments everywhere."""
    messages: list[Message] = []
    ids = draw(st.lists(IDS, min_size=1, max_size=3))
    for n in range(draw(st.integers(0, 10))):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system"]))
        content = draw(st.one_of(CONTENTS, ODD_PARTS, st.text(max_size=5)))
        call_id = draw(st.sampled_from(ids))
        calls: tuple[ToolCall, ...] = ()
        if role == "assistant":
            names = st.sampled_from(["Read", "mcp.tool/x", "1st", "名", "", "n" * 90])
            calls = tuple(
                ToolCall(draw(st.sampled_from(ids)), draw(names), draw(ODD_ARGUMENTS))
                for _ in range(draw(st.integers(0, 3)))
            )
        messages.append(
            Message(
                f"m{n}",
                role,  # type: ignore[arg-type]
                content,
                calls,
                tool_call_id=call_id if role == "tool" else "",
                is_error=draw(st.booleans()),
                reasoning=draw(st.sampled_from(["", "hm"])),
            )
        )
    return tuple(messages)


@given(logs(), SHAPE)
@settings(max_examples=200, deadline=None)
def test_every_view_of_a_log_is_valid_in_every_shape(log: Log, shape: Shape) -> None:
    """I1: at every request and at the end; parallel and aborted calls, images, reasoning, compactions, undo."""
    state = Conversation()
    for entry, requested in zip(log.entries, log.requests, strict=True):
        state.apply(entry)
        if requested:
            assert shape_violations(to_shape((SYSTEM, *state.history()), shape), shape) == ()
    assert shape_violations(to_shape(state.history(), shape), shape) == ()


@given(any_messages() | odd_messages(), SHAPE)
@settings(max_examples=300, deadline=None)
def test_conversion_is_total(messages: tuple[Message, ...], shape: Shape) -> None:
    """I1, cases 17–21, 87: disorder, strange ids, unknown parts, hostile arguments."""
    assert shape_violations(to_shape(messages, shape), shape) == ()


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


@given(logs(), SHAPE)
@settings(deadline=None)
def test_no_text_of_a_view_is_lost_by_conversion(log: Log, shape: Shape) -> None:
    """Case 87: every solid text, and every image that the provider takes, stands in the fragment."""
    state = Conversation()
    for entry in log.entries:
        state.apply(entry)
    sent = "\n".join(_strings(to_shape(state.history(), shape)))
    for message in repair(state.history())[0]:
        parts = [TextPart(message.content)] if isinstance(message.content, str) else message.content
        for part in parts:
            if isinstance(part, TextPart) and part.text.strip():
                assert part.text.rstrip() in sent
            if isinstance(part, ImagePart) and message.role != "assistant":
                assert part.url.partition(",")[2] in sent


@given(logs(), SHAPE)
@settings(deadline=None)
def test_a_request_begins_with_the_one_before_it_in_every_shape(log: Log, shape: Shape) -> None:
    """I7, case 107: message by message, but for the text at the very end, which may grow."""
    state, last = Conversation(), None
    for entry, requested in zip(log.entries, log.requests, strict=True):
        state.apply(entry)
        if isinstance(entry, REWRITES):
            last = None
        if requested:
            lines = write_shape(state.history(), shape)
            assert last is None or lines[: len(last) - 1] == last[:-1]
            last = lines


@given(logs(), SHAPE)
@settings(deadline=None)
def test_conversion_is_deterministic_and_leaves_the_messages_alone(log: Log, shape: Shape) -> None:
    state = Conversation()
    for entry in log.entries:
        state.apply(entry)
    view = state.history()
    before = copy.deepcopy(view)
    first = to_shape(view, shape)
    assert json.dumps(first) == json.dumps(to_shape(view, shape))
    assert view == before


def _groups(value: Any, shape: Shape) -> list[tuple[int, int]]:
    """(calls, results right after) of each message with calls, counted without the validators."""
    items = value if isinstance(value, list) else value.get("messages", value.get("contents"))
    found = []
    for i, item in enumerate(items):
        if shape in {"openai", "strict"}:
            calls = len(item.get("tool_calls") or ())
            after: Sequence[Any] = items[i + 1 : i + 1 + calls]
            results = sum(m["role"] == "tool" for m in after)
        else:
            key, answer = ("content", "tool_result") if shape == "anthropic" else ("parts", "functionResponse")
            calls = sum(b.get("type") == "tool_use" or "functionCall" in b for b in item[key])
            following = items[i + 1][key] if i + 1 < len(items) else []
            results = sum(b.get("type") == answer or answer in b for b in following)
        if calls:
            found.append((calls, results))
    return found


@given(logs(), SHAPE)
@settings(deadline=None)
def test_calls_and_results_are_equal_in_number(log: Log, shape: Shape) -> None:
    """Cases 17, 18: counted by hand; none vanishes on the way."""
    state = Conversation()
    for entry in log.entries:
        state.apply(entry)
    view = repair(state.history())[0]
    groups = _groups(to_shape(view, shape), shape)
    assert all(calls == results for calls, results in groups)
    assert [calls for calls, _ in groups] == [len(m.tool_calls) for m in view if m.tool_calls]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, list):
        for i, inner in enumerate(value):
            yield (*path, i)
            yield from _places(inner, (*path, i))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))


@given(logs(max_turns=3), SHAPE, st.data())
@settings(max_examples=200, deadline=None)
def test_validators_see_a_missing_tool_message_or_a_repeated_one(log: Log, shape: Shape, data: st.DataObject) -> None:
    """The validators are not blind: a call or result taken out or doubled is always seen."""
    state = Conversation()
    for entry in log.entries:
        state.apply(entry)
    value = to_shape(state.history(), shape)
    tool_places = [p for p in _places(value) if isinstance(at(value, p), dict) and _is_tool(at(value, p))]
    if not tool_places:
        return
    place = data.draw(st.sampled_from(tool_places))
    for double in (False, True):
        broken = copy.deepcopy(value)
        parent = at(broken, place[:-1])
        if double:
            parent.insert(place[-1], copy.deepcopy(parent[place[-1]]))
        else:
            del parent[place[-1]]
        assert shape_violations(broken, shape)


def at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def _is_tool(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    return (
        kind in {"tool_use", "tool_result", "function"}
        or item.get("role") == "tool"
        or bool({"functionCall", "functionResponse"} & item.keys())
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "content", "parts", "messages", "contents", "tool_calls", "type", "text", "source"]
                ),
                inner | st.sampled_from(["user", "assistant", "tool", "model", "text", "image", "tool_result"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    SHAPE,
)
@settings(deadline=None)
def test_validators_answer_for_any_value(value: object, shape: Shape) -> None:
    """Files may hold anything: sentences, never an exception."""
    assert all(isinstance(v, str) and v for v in shape_violations(value, shape))


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="no shape"):
        shape_violations([], "xml")
