"""Log entries and their JSON form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from marextui.context.entries import (
    CompactionChecked,
    CompactionCommitted,
    CompactionUndone,
    Entry,
    FileSeen,
    FilesSeen,
    InputRef,
    InputsOmitted,
    MessageAdded,
    NoticeLogged,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    ReasoningDropped,
    ShortenedRef,
    Summary,
    SummaryItem,
    SummarySection,
    TextsShortened,
    TurnClosed,
    TurnOpened,
    UsageMeasured,
)
from marextui.context.entry_codec import UnknownEntry, decode, encode
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json
from tests.property.histories import Log, logs

ITEM = SummaryItem("kept café", "a.py", 1, 3, ("m1", "m2"), "superseded")
ENTRIES: list[Entry] = [
    MessageAdded(
        Message(
            "m1",
            "assistant",
            (TextPart("日本"), ImagePart("data:,", "low"), OtherPart('{"type":"x","n":1}')),
            (ToolCall("c1", "Read", '{"broken'),),
            reasoning="because",
            origin="model",
            turn=3,
        )
    ),
    MessageAdded(Message("m2", "tool", "out", tool_call_id="c1", name="Read", is_error=True, origin="tool")),
    OutputStored(OmissionRef("m2", -1, "omitted-001", 601)),
    OutputsOmitted(4, (OmissionRef("m2", -1, "omitted-001", 601), OmissionRef("m3", 2, "omitted-1000", 9))),
    OutputsOmitted(4, (OmissionRef("m1", 1, "omitted-002", 90, "image, PNG 2×2, 1 kB"),), "images"),
    InputsOmitted(5, (InputRef("m1", 0, ("edits", 1, "new"), "omitted-003", 700), InputRef("m1", 1, (), "x", 9))),
    TextsShortened(5, (ShortenedRef("m4", -1, "omitted-005", 9000, 800, "message"),)),
    ReasoningDropped(5, "m4"),
    CompactionCommitted(2, "manual", "m1", Summary((SummarySection("S", (ITEM,)),)), "m", 9, 3, 100, 40, 1.25),
    CompactionUndone(2),
    FilesSeen((FileSeen("/p/日本", 1_700_000_000_000_000_000, 12, "ab" * 32), FileSeen("/p/caf", 1, 2, "")), True),
    CompactionChecked(2, 38, 1, ("src/été.py (artifact: Which file?)",), 40),
    TurnOpened(4),
    TurnClosed(4, "error", None, 12, 0, 0.5, "m", "refused"),
    NoticeLogged("warning", "a\u2028b"),
    UsageMeasured("m2", 900, 40, "m"),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: type(e).__name__)
def test_round_trip_through_json(entry: Entry) -> None:
    kind, payload = encode(entry)
    assert decode(kind, json.loads(canonical_json(payload))) == entry


@given(logs(max_turns=3))
def test_any_log_survives_its_json_form(log: Log) -> None:
    told = [json.loads(canonical_json(encode(e))) for e in log.entries]
    assert tuple(decode(kind, payload) for kind, payload in told) == log.entries


def test_a_kind_of_a_newer_version_is_named() -> None:
    with pytest.raises(UnknownEntry, match="HologramAdded"):
        decode("HologramAdded", {})


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    kind, payload = encode(TurnOpened(7))
    assert decode(kind, {**payload, "mood": "good"}) == TurnOpened(7)
