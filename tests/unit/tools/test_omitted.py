"""ReadOmittedContent: the whole text, a page, a match, and a sentence for everything else (M26)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from marextui.tools.box import Box
from marextui.tools.types import ToolContext, ToolResult


@dataclass
class FakeOmitted:
    texts: dict[str, str] = field(default_factory=dict)
    read_ids: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    counted: list[str] = field(default_factory=list)

    async def read(self, omission_id: str) -> str | None:
        self.read_ids.append(omission_id)
        return self.texts.get(omission_id)

    async def count_read(self, omission_id: str) -> None:
        self.counted.append(omission_id)

    async def why_missing(self, omission_id: str) -> str:
        return f"{omission_id} expired after 30 days."

    async def about(self, omission_id: str) -> str:
        return self.notes.get(omission_id, "")


async def _read(box: Box, omitted: FakeOmitted | None, limit_chars: int = 30_000, **arguments: object) -> ToolResult:
    context = ToolContext(omitted=omitted, limit_chars=limit_chars)
    return await box.run("ReadOmittedContent", json.dumps(arguments), context)


async def test_the_whole_text_comes_back_equal(box: Box) -> None:
    text = "x" * 12_480
    result = await _read(box, FakeOmitted({"omitted-003": text}), content_id="omitted-003")
    assert result.text == text
    assert (result.is_error, result.exempt_from_omission) == (False, True)
    assert result.summary == "omitted-003, 12 480 of 12 480 chars"


@pytest.mark.parametrize(
    "written",
    [
        " omitted-003 ",
        '[omitted omitted-003: tool output, 12 480 chars — retrieve with ReadOmittedContent content_id="omitted-003"]',
        'content_id="omitted-003"',
    ],
)
async def test_the_marker_pasted_whole_is_understood(box: Box, written: str) -> None:
    omitted = FakeOmitted({"omitted-003": "hello"})
    assert (await _read(box, omitted, content_id=written)).text == "hello"
    assert omitted.read_ids == ["omitted-003"]


@pytest.mark.parametrize("written", ["", "3", "omitted-3", "../omitted", "omitted-003 omitted-004", "omitted-٣٣٣"])
async def test_what_is_no_id_never_reaches_the_store(box: Box, written: str) -> None:
    omitted = FakeOmitted()
    result = await _read(box, omitted, content_id=written)
    assert result.is_error
    assert "like omitted-003" in result.text
    assert omitted.read_ids == []


async def test_missing_content_says_why(box: Box) -> None:
    result = await _read(box, FakeOmitted(), content_id="omitted-9999")
    assert (result.is_error, result.exempt_from_omission) == (True, True)
    assert result.text == "ReadOmittedContent: omitted-9999 expired after 30 days."
    assert (await _read(box, None, content_id="omitted-001")).is_error


async def test_pages_and_queries_stay_within_the_cap(box: Box) -> None:
    """Case 83: a needle in the middle of a large output, within the cap of M30."""
    text = "\n".join(f"line {n}" for n in range(20_000)).replace("line 9876\n", "line needle\n")
    omitted = FakeOmitted({"omitted-001": text})
    whole = await _read(box, omitted, 1310, content_id="omitted-001")
    assert len(whole.text) <= 1310
    assert "continue with offset=" in whole.text
    page = await _read(box, omitted, 1310, content_id="omitted-001", offset=5, length=6)
    assert page.text.startswith("0\nline")
    found = await _read(box, omitted, 1310, id="omitted-001", query="needle")
    assert "line needle" in found.text
    assert len(found.text) <= 1310


async def test_zeros_and_blanks_are_what_was_left_open(box: Box) -> None:
    """As the embedded 1.5B really calls it: every optional argument filled."""
    omitted = FakeOmitted({"omitted-001": "PORT = 8417"})
    read = await _read(box, omitted, content_id="omitted-001", offset=0, length=0, query="")
    assert read.text == "PORT = 8417"


async def test_it_never_asks(box: Box) -> None:
    """Case 78: reading back needs no permission."""
    assert await box.permission("ReadOmittedContent", '{"content_id": "omitted-001"}') is None


async def test_what_the_store_knows_of_the_entry_is_said_last(box: Box) -> None:
    """Cases 70, 83: a changed file, a middle that was not kept; within the cap."""
    omitted = FakeOmitted({"omitted-001": "word " * 2000}, notes={"omitted-001": "a.py has changed on disk."})
    for arguments in ({}, {"query": "word"}, {"offset": 9_990}):
        result = await _read(box, omitted, 1310, content_id="omitted-001", **arguments)
        assert result.text.endswith("\n[a.py has changed on disk.]")
        assert len(result.text) <= 1310


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        ({}, 1),
        ({"offset": 2, "length": 3}, 1),
        ({"query": "hello"}, 1),
        ({"query": "zebra"}, 0),
        ({"offset": 99}, 0),
        ({"query": "hello", "offset": 99}, 0),
        ({"length": -1}, 0),
    ],
)
async def test_only_what_showed_something_counts_as_read_back(
    box: Box, arguments: dict[str, object], counts: int
) -> None:
    omitted = FakeOmitted({"omitted-001": "hello"})
    await _read(box, omitted, content_id="omitted-001", **arguments)
    assert len(omitted.counted) == counts


async def test_what_is_missing_is_not_counted(box: Box) -> None:
    omitted = FakeOmitted()
    await _read(box, omitted, content_id="omitted-001")
    assert omitted.counted == []


async def test_a_disk_that_cannot_be_read_is_said_to_the_model(box: Box) -> None:
    class Broken(FakeOmitted):
        async def read(self, omission_id: str) -> str | None:
            raise OSError(5, "Input/output error")

    result = await _read(box, Broken(), content_id="omitted-001")
    assert result.is_error
    assert "Input/output error" in result.text
