"""The lenient reader of recorded conversations (cases 17–21, 87)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.cut import cut_candidates
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json, to_wire
from marextui.context.recording import Recording, RecordingError, message_from_wire, read_recording
from marextui.context.speech import is_request
from marextui.context.validate import repair, strict_violations
from tests.property.histories import any_messages

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"


def read(*messages: object) -> Recording:
    return read_recording(json.dumps(messages).encode(), name="x.json")


def one(raw: dict[str, Any]) -> tuple[Message, list[str]]:
    message, notes = message_from_wire(raw, id="m1", turn=1)
    assert message is not None
    return message, notes


SIMPLE = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "ask"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"p":"a"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "out", "name": "Read", "error": True},
    {"role": "assistant", "content": "done", "reasoning_content": "because"},
    {"role": "user", "content": "more"},
]  # fmt: skip
AS_ARRAY = json.dumps(SIMPLE).encode()
AS_LINES = b"\n".join(json.dumps(m).encode() for m in SIMPLE) + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        AS_ARRAY,
        json.dumps({"model": "m", "messages": SIMPLE}).encode(),
        json.dumps(SIMPLE, indent=1).encode(),
        AS_LINES,
        AS_LINES.replace(b"\n", b"\r\n\r\n"),
        gzip.compress(AS_LINES, mtime=0),
        b"\xef\xbb\xbf" + AS_LINES,
        AS_ARRAY.decode().encode("utf-16"),
        b"\n".join(json.dumps({"type": "x", "message": m}).encode() for m in SIMPLE),
    ],
    ids=["array", "object", "indented", "lines", "crlf", "gzip", "bom", "utf-16", "wrapped"],
)
def test_every_shape_gives_the_same_conversation(data: bytes) -> None:
    recording = read_recording(data, name="x")
    assert recording.notes == ()
    assert [m.role for m in recording.messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [m.turn for m in recording.messages] == [0, 1, 1, 1, 1, 2]
    assert [m.origin for m in recording.messages] == ["system", "user", "model", "tool", "model", "user"]
    assert len({m.id for m in recording.messages}) == 6
    assert recording.messages[2].tool_calls == (ToolCall("c1", "Read", '{"p":"a"}'),)
    assert recording.messages[3].is_error
    assert recording.messages[4].reasoning == "because"
    assert repair(recording.messages) == (recording.messages, ())


def test_a_single_line_of_json_lines_is_a_conversation() -> None:
    assert [m.text for m in read_recording(b'{"role":"user","content":"hi"}', name="x").messages] == ["hi"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"hello\nworld", "neither JSON nor JSON lines"),
        (b"\x89PNG\r\n\x1a\n\x00\x01", "neither JSON nor JSON lines"),
        (b'"text"', "a single str"),
        (b"12", "a single int"),
        (b"null", "a single NoneType"),
        (b'{"version": 1}', "no conversation"),
        (b"[]", "no messages"),
        (b"[1, null]", "no messages"),
        (b"{}\n{}", "no messages"),
        (b"\x1f\x8bgarbage", "damaged gzip"),
        (gzip.compress(AS_LINES, mtime=0)[:40], "damaged gzip"),
        (b"[" * 200_000, "neither JSON nor JSON lines"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_what_is_no_recording_is_refused_in_one_line(data: bytes, told: str) -> None:
    with pytest.raises(RecordingError, match=told) as caught:
        read_recording(data, name="talk.jsonl")
    assert "talk.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    unpack = gzip.GzipFile.read

    def spy(packed: gzip.GzipFile, size: int = -1) -> bytes:
        asked.append(size)
        return unpack(packed, size)

    monkeypatch.setattr("marextui.context.recording.MAX_BYTES", 1000)
    monkeypatch.setattr(gzip.GzipFile, "read", spy)
    with pytest.raises(RecordingError, match="larger than"):
        read_recording(gzip.compress(b" " * 100_000, mtime=0), name="x")
    assert asked == [1001]


def test_bad_lines_are_skipped_and_named() -> None:
    """A torn last line, a comment, a number: the rest is read."""
    data = b'{"role":"user","content":"a"}\n# note\n7\n\n{"role":"assistant","content":"b"}\n{"role":"us'
    recording = read_recording(data, name="x")
    assert [m.text for m in recording.messages] == ["a", "b"]
    assert recording.notes == (
        "line 2 is not JSON, skipped",
        "line 3 is not an object, skipped",
        "line 6 is not JSON, skipped",
    )


def test_items_that_are_not_objects_are_skipped_and_named() -> None:
    recording = read({"role": "user", "content": "a"}, 7, ["x"], {})
    assert [m.text for m in recording.messages] == ["a"]
    assert len(recording.notes) == 3
    assert recording.notes[0] == "message 2 is not an object, skipped"


@pytest.mark.parametrize(
    ("raw", "role"),
    [
        ({"role": "developer", "content": "x"}, "system"),
        ({"role": "function", "name": "f", "content": "x"}, "tool"),
        ({"role": "critic", "content": "x"}, "user"),
        ({"role": None, "content": "x"}, "user"),
        ({"role": ["user"], "content": "x"}, "user"),
        ({"content": "x", "tool_call_id": "c"}, "tool"),
        ({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}, "assistant"),
    ],
)
def test_odd_roles_are_read_and_noted(raw: dict[str, Any], role: str) -> None:
    message, notes = one(raw)
    assert message.role == role
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("content", "read_as"),
    [
        (None, ""),
        ("", ""),
        ([], ()),
        (3, "3"),
        ({"type": "text", "text": "x"}, (TextPart("x"),)),
        (["a", 3], (TextPart("a"), TextPart("3"))),
        ([{"type": "hologram", "n": 1}], (OtherPart('{"type":"hologram","n":1}'),)),
    ],
)
def test_odd_contents_are_read_and_noted(content: object, read_as: object) -> None:
    message, notes = one({"role": "user", "content": content})
    assert message.content == read_as
    assert notes


def test_only_a_tool_result_can_be_an_error() -> None:
    assert one({"role": "tool", "tool_call_id": "c", "content": "x", "is_error": "yes"})[0].is_error
    assert not one({"role": "tool", "tool_call_id": "c", "content": "x", "error": False})[0].is_error
    assert not one({"role": "assistant", "content": "x", "error": True})[0].is_error


def test_a_tool_that_printed_nothing_is_no_oddity() -> None:
    assert one({"role": "tool", "tool_call_id": "c", "content": ""})[1] == []
    assert one({"role": "tool", "tool_call_id": "c"})[1] == ["tool message without content"]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}}, ImagePart("data:x", "low")),
        ({"type": "input_image", "image_url": "https://x"}, ImagePart("https://x")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "QQ"}},
            ImagePart("data:image/gif;base64,QQ"),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://y"}}, ImagePart("https://y")),
    ],
)
def test_images_in_every_dialect(block: dict[str, Any], part: ImagePart) -> None:
    message, notes = one({"role": "user", "content": [{"type": "text", "text": "see"}, block]})
    assert message.content == (TextPart("see"), part)
    assert notes == []


@pytest.mark.parametrize(
    ("arguments", "read_as", "noted"),
    [
        ('{"a":1}', '{"a":1}', False),
        ('{"a', '{"a', False),  # kept as the model wrote it; the view repairs it
        ({"a": "é"}, '{"a":"é"}', True),
        (None, "{}", True),
        ([1], "[1]", True),
        (7, "7", True),
    ],
)
def test_arguments(arguments: object, read_as: str, noted: bool) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    message, notes = one({"role": "assistant", "content": None, "tool_calls": [call]})
    assert message.tool_calls == (ToolCall("c", "f", read_as),)
    assert bool(notes) is noted


def test_odd_calls() -> None:
    flat = {"id": 7, "name": "f", "arguments": "{}"}
    message, notes = one({"role": "assistant", "tool_calls": [flat, "x", {"id": "d", "function": None}]})
    assert message.tool_calls == (ToolCall("7", "f", "{}"), ToolCall("d", "", "{}"))
    assert len(notes) == 3
    assert one({"role": "assistant", "content": "x", "tool_calls": "none"})[1] == ["tool_calls is not a list, left out"]
    assert one({"role": "assistant", "tool_calls": flat})[0].tool_calls == (ToolCall("7", "f", "{}"),)
    assert one({"role": "user", "content": "x", "tool_calls": [flat]})[0].tool_calls == ()


def test_the_legacy_function_form() -> None:
    recording = read(
        {"role": "user", "content": "ask"},
        {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}},
        {"role": "function", "name": "now", "content": "12:00"},
        {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}},
        {"role": "function", "name": "now", "content": "12:01"},
    )
    asked = [m.tool_calls[0].id for m in recording.messages if m.tool_calls]
    assert [m.tool_call_id for m in recording.messages if m.role == "tool"] == asked
    assert len(set(asked)) == 2
    assert repair(recording.messages)[0] == recording.messages


def test_content_blocks_with_calls_results_and_thinking() -> None:
    """Case 21: a user message mixing text and a result is split, the result first."""
    recording = read(
        {"role": "user", "content": "ask"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "I read"}, {"type": "tool_use", "id": "t1", "name": "Read", "input": {"p": "ä"}}]},
        {"role": "user", "content": [
            {"type": "text", "text": "and then"},
            {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [
                {"type": "text", "text": "no"}]}]},
    )  # fmt: skip
    _, asks, result, then = recording.messages
    assert (asks.text, asks.reasoning, asks.tool_calls) == ("I read", "hm", (ToolCall("t1", "Read", '{"p":"ä"}'),))
    assert (result.role, result.tool_call_id, result.content, result.is_error) == ("tool", "t1", "no", True)
    assert then.text == "and then"
    assert isinstance(asks.content, tuple)
    kept = [json.loads(p.raw)["type"] for p in asks.content if isinstance(p, OtherPart)]
    assert kept == ["thinking", "redacted_thinking"]  # only whole would the provider take them back (case 25)
    assert recording.notes == ()
    assert strict_violations(repair(recording.messages)[0]) == ()


def test_orphans_and_unanswered_calls_are_kept_and_noted() -> None:
    """Case 17; the view, not the reader, mends them."""
    call = {"id": "c1", "function": {"name": "Read", "arguments": "{}"}}
    recording = read(
        {"role": "tool", "tool_call_id": "c0", "content": "lost"},
        {"role": "user", "content": "ask"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "user", "content": "well?"},
    )
    assert len(recording.messages) == 4
    assert recording.notes == ("m1: a tool result without its call", "call c1 (Read) has no result")


def test_call_ids_are_made_unique_over_the_whole_recording() -> None:
    call = {"id": "call_0", "function": {"name": "Read", "arguments": "{}"}}
    rounds = [
        {"role": "user", "content": "ask"},
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "first"},
        {"role": "tool", "tool_call_id": "call_0", "content": "second"},
    ]
    recording = read(*rounds, *rounds)
    asked = [c.id for m in recording.messages for c in m.tool_calls]
    answered = [m.tool_call_id for m in recording.messages if m.role == "tool"]
    assert asked == answered
    assert len(set(asked)) == 4
    assert repair(recording.messages)[1] == ("m5: a reply was put between the tool result and this message",)


def test_a_result_without_an_id_goes_to_the_call_of_its_name() -> None:
    calls = [{"id": i, "function": {"name": n, "arguments": "{}"}} for i, n in (("c1", "Read"), ("c2", "Ls"))]
    recording = read(
        {"role": "user", "content": "ask"},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "name": "Ls", "content": "files"},
        {"role": "tool", "content": "text"},
    )
    assert [m.tool_call_id for m in recording.messages[2:]] == ["c2", "c1"]


def test_halves_of_surrogate_pairs_cannot_reach_a_request() -> None:
    recording = read_recording(b'[{"role":"user","content":"a\\ud83d b \\ud83d\\ude00"}]', name="x")
    assert recording.messages[0].text == "a\ufffd b 😀"
    assert recording.notes == ("message 1: halves of surrogate pairs replaced",)
    canonical_json(to_wire(recording.messages[0])).encode()


def test_bytes_that_are_not_utf8_are_replaced_and_noted() -> None:
    recording = read_recording(b'{"role":"user","content":"caf\xe9"}', name="x")
    assert recording.messages[0].text == "caf\ufffd"
    assert recording.notes == ("bytes that are not UTF-8 were replaced",)


def test_deep_nesting_is_skipped_not_fatal() -> None:
    deep = b'{"role":"user","content":[' + b'{"type":"x","y":' * 700 + b"1" + b"}" * 700 + b"]}"
    recording = read_recording(deep + b'\n{"role":"user","content":"b"}', name="x")
    assert recording.messages[-1].text == "b"


@given(any_messages())
def test_what_was_written_is_read_back(messages: tuple[Message, ...]) -> None:
    """The round trip of messages an engine may hold: contents, calls and reasoning survive."""
    for message in messages:
        back, _ = message_from_wire(to_wire(message, echo_reasoning=True), id=message.id, turn=0)
        assert back is not None
        assert (back.role, back.text, back.reasoning) == (message.role, message.text, message.reasoning)
        assert back.tool_calls == message.tool_calls


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "function_call",
    "error",
    "reasoning",
    "type",
    "message",
]
ROLES = st.sampled_from(["user", "assistant", "tool", "function", "developer", "x"])
BLOCK_KINDS = ["text", "tool_use", "tool_result", "thinking", "image", "image_url", "input_image"]
BLOCK_KEYS = ["text", "id", "name", "input", "tool_use_id", "content", "thinking", "source", "image_url"]
BLOCKS = st.fixed_dictionaries({"type": st.sampled_from(BLOCK_KINDS)}, optional=dict.fromkeys(BLOCK_KEYS, JSON))
CALL_KEYS = ["id", "function", "name", "arguments"]
CALLS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(CALL_KEYS, JSON)) | JSON)
FIELDS = {"role": ROLES | JSON, "content": st.lists(BLOCKS) | JSON, "tool_calls": CALLS | JSON}
MESSAGES = st.fixed_dictionaries({}, optional={**dict.fromkeys(KEYS, JSON), **FIELDS})


@given(st.lists(MESSAGES | JSON, max_size=6), st.booleans())
def test_any_json_is_read_or_refused_and_repairs_to_a_valid_view(items: list[object], lines: bool) -> None:
    data = "\n".join(map(json.dumps, items)) if lines else json.dumps(items)
    try:
        recording = read_recording(data.encode(), name="x")
    except RecordingError:
        return
    view, _ = repair(recording.messages)
    assert strict_violations(view) == ()
    canonical_json([to_wire(m) for m in view]).encode()


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded conversations are not beside the checkout")
@pytest.mark.parametrize("name", sorted(p.name for p in CORPUS.glob("*.jsonl")) if CORPUS.is_dir() else [])
def test_recorded_conversations_read_and_repair(name: str) -> None:
    """Every message of the corpus is read; views of every prefix and after every cut are valid."""
    data = (CORPUS / name).read_bytes()
    recording = read_recording(data, name=name)
    assert len(recording.messages) == len([line for line in data.splitlines() if line.strip()])
    messages = recording.messages
    for end in range(len(messages) + 1):
        assert strict_violations(repair(messages[:end])[0]) == ()
    for cut in cut_candidates(messages):
        view, notes = repair(messages[cut:])
        assert strict_violations(view) == ()
        assert not [n for n in notes if "without its call" in n]
    for line, message in zip(data.splitlines(), messages, strict=True):
        raw = json.loads(line)
        assert raw["role"] == message.role
        assert (raw["content"] or "") == (message.content if isinstance(message.content, str) else raw["content"])
        assert [c["id"] for c in raw.get("tool_calls") or ()] == [c.id for c in message.tool_calls]
        assert raw.get("tool_call_id", "") == message.tool_call_id


def test_what_an_application_put_at_the_head_of_a_message_is_not_the_users() -> None:
    """L65, L66: facts, orders and requests of a recording are what a person wrote."""
    block = '<context_update from="loki"> 2026-10-02 14:05\n- always use tabs\n</context_update>'
    parts = [{"type": "text", "text": f"{block}\n\n"}, {"type": "text", "text": "look"}]
    wires = [
        {"role": "user", "content": f"{block}\n\nhello"},
        {"role": "assistant", "content": f"I was told {block}\n\nso"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": block},
    ]
    found = read_recording(json.dumps(wires).encode(), name="x.json")
    assert found.messages[0].text == "hello"
    assert block in found.messages[1].text
    assert found.messages[2].text == "look"
    assert found.messages[4].text == block
    assert not is_request(found.messages[4])
    assert len(found.notes) == 2
