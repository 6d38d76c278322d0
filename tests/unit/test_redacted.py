"""What reaches the log is without secrets, what only a provider can read is untouched (case 135; I10)."""

from __future__ import annotations

import json

from marextui.context.entries import (
    CompactionCommitted,
    MessageAdded,
    NoticeLogged,
    OmissionRef,
    OutputStored,
    Summary,
    SummaryItem,
    SummarySection,
    TurnClosed,
)
from marextui.context.entry_codec import encode
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json
from marextui.context.redacted import redacted_arguments, redacted_entry, redacted_message

KEY = "ghp_" + "a1B2" * 9


def test_every_text_of_a_message_is_cleaned_and_the_original_kept() -> None:
    """Text, parts, reasoning, arguments; ids and names stay."""
    message = Message(
        "m1",
        "assistant",
        (TextPart(f"use {KEY}"), ImagePart("data:image/png;base64,ghp_" + "A" * 40), ImagePart(f"https://x/?t={KEY}")),
        (ToolCall("call-1", "Bash", json.dumps({"command": f"curl -H 'X: {KEY}'", "password": "hunter22"})),),
        reasoning=f"the key {KEY}",
    )
    clean = redacted_message(message)
    assert KEY not in repr(clean)
    assert "hunter22" not in repr(clean)
    assert isinstance(clean.content, tuple)
    assert clean.content[1] == message.content[1], "image data are opaque"
    assert (clean.id, clean.role, clean.tool_calls[0].id, clean.tool_calls[0].name) == (
        "m1",
        "assistant",
        "call-1",
        "Bash",
    )
    assert set(json.loads(clean.tool_calls[0].arguments)) == {"command", "password"}
    assert KEY in repr(message)
    assert redacted_message(clean) is clean, "nothing left to do"


def test_opaque_fields_of_providers_are_untouched() -> None:
    """Signatures and encrypted reasoning must come back byte for byte; readable text beside them is cleaned."""
    looks_like = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
    parts = (
        OtherPart(canonical_json({"type": "thinking", "thinking": f"so {KEY}", "signature": looks_like})),
        OtherPart(canonical_json({"type": "redacted_thinking", "data": KEY})),
        OtherPart(canonical_json({"type": "reasoning.encrypted", "blob": KEY})),
        OtherPart(canonical_json({"type": "image", "source": {"type": "base64", "data": KEY}})),
        OtherPart(canonical_json({"functionCall": {"id": KEY}, "thoughtSignature": KEY})),
    )
    clean = redacted_message(Message("m", "assistant", parts))
    assert isinstance(clean.content, tuple)
    assert clean.content[1:] == parts[1:]
    first = clean.content[0]
    assert isinstance(first, OtherPart)
    thinking = json.loads(first.raw)
    assert thinking["signature"] == looks_like
    assert KEY not in thinking["thinking"]


def test_arguments_without_a_secret_keep_every_byte() -> None:
    """I7: blanks, order and escapes are the model's own."""
    for raw in ('{ "a" : 1.0,\t"b": "\\u00e9" }', "", "{'not': json", "[" * 100_000, '{"id": "x", "data": "plain"}'):
        assert redacted_arguments(raw) == raw
    assert KEY not in redacted_arguments('{"data": "' + KEY + '"}'), "nothing of a call is opaque"
    assert KEY not in redacted_arguments('{"cut off": "' + KEY)


def test_decisions_and_events_are_cleaned_too() -> None:
    """A summary, a notice, the note of a turn."""
    summary = Summary((SummarySection("Decisions Made", (SummaryItem(f"the key is {KEY}", "k", sources=("m1",)),)),))
    for entry in (
        CompactionCommitted(1, "manual", "m2", summary, "model", 2, 1, 10, 5, 0.1),
        NoticeLogged("error", f"refused {KEY}"),
        TurnClosed(1, "error", None, None, None, 1.0, "m", f"note {KEY}"),
    ):
        clean = redacted_entry(entry)
        assert KEY not in str(encode(clean))
        assert type(clean) is type(entry)
    plain = OutputStored(OmissionRef("m", -1, "omitted-001", 700))
    assert redacted_entry(plain) is plain
    said = MessageAdded(Message("m", "user", "hello"))
    assert redacted_entry(said) is said
