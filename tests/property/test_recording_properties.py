"""Any JSON can be read as a recording: no exception but the reader's own, every view valid (I1; cases 17–27)."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.recording import RecordingError, read_recording
from marextui.context.shapes import SHAPES, shape_violations, to_shape
from marextui.context.validate import repair, strict_violations

ODD: st.SearchStrategy[Any] = st.sampled_from([None, True, 7, 1.5, "", "x", [], ["x"], {}, {"a": [1]}]).map(
    copy.deepcopy
)
WHOLE: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "fix it"},
    {"role": "system", "content": "be terse"},
    {"role": "assistant", "content": "done", "reasoning_content": "hm"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{}"}}],
    },
    {"role": "assistant", "content": "", "function_call": {"name": "Read", "arguments": "{}"}},
    {"role": "tool", "tool_call_id": "a", "content": "text"},
    {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
    {
        "role": "tool",
        "tool_call_id": "a",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}],
    },
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]},
    {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "x"}}, "bare"]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "eA=="},
            {"type": "tool_use", "id": "b", "name": "Read", "input": {"path": "a"}},
        ],
    },
)


@st.composite
def dented(draw: st.DrawFn) -> Any:
    """A message in one of the dialects, with a value anywhere in it replaced or missing."""
    message = json.loads(json.dumps(draw(st.sampled_from(WHOLE))))
    for _ in range(draw(st.integers(0, 3))):
        place: Any = message
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.booleans()):
                place = place[key]
                continue
            if draw(st.booleans()):
                place[key] = draw(ODD)
            else:
                del place[key]
            break
    return message


@given(st.lists(dented() | ODD, max_size=9))
@settings(max_examples=300, deadline=None)
def test_any_json_is_read_and_makes_valid_views_in_every_shape(recorded: list[Any]) -> None:
    """I1; a kind, an id or a name that is a list must not end a replay with a traceback."""
    try:
        messages = read_recording(json.dumps(recorded).encode(), name="a.json").messages
    except RecordingError:
        return
    assert strict_violations(repair(messages)[0]) == ()
    for shape in SHAPES:
        assert shape_violations(to_shape(messages, shape), shape) == ()


@given(st.lists(dented(), min_size=2, max_size=5))
@settings(max_examples=100, deadline=None)
def test_lines_and_a_list_are_read_alike(recorded: list[Any]) -> None:
    lines = "".join(json.dumps(m) + "\n" for m in recorded).encode()
    try:
        listed = read_recording(json.dumps(recorded).encode(), name="a.json").messages
    except RecordingError:
        return
    assert read_recording(lines, name="a.jsonl").messages == listed
