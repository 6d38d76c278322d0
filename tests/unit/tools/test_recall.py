"""Recall: results cite their messages, are bounded, and "nothing" is said plainly (issue section 2)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from marextui.tools.box import Box
from marextui.tools.types import RecallHit, ToolContext, ToolResult


@dataclass
class FakeRecaller:
    hits: tuple[RecallHit, ...] = ()
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def search(self, query: str, *, max_chars: int = 2_000) -> tuple[RecallHit, ...]:
        self.asked.append((query, max_chars))
        return self.hits


async def _recall(
    box: Box, recaller: FakeRecaller | None, limit_chars: int = 30_000, **arguments: object
) -> ToolResult:
    return await box.run("Recall", json.dumps(arguments), ToolContext(recaller=recaller, limit_chars=limit_chars))


async def test_results_cite_their_messages(box: Box) -> None:
    hits = (
        RecallHit("m-3", "turn 1, 2026-01-31 09:30 UTC", "user", "port 8080", "port 8080 was later changed to 8443"),
        RecallHit("m-9", "turn 4", "output of Bash", "listening"),
    )
    recaller = FakeRecaller(hits)
    result = await _recall(box, recaller, query=" port ")
    assert result.text == (
        "[1] user, message m-3, turn 1, 2026-01-31 09:30 UTC\nport 8080\n[note: port 8080 was later changed to 8443]"
        "\n\n[2] output of Bash, message m-9, turn 4\nlistening"
    )
    assert (result.is_error, result.summary) == (False, "2 found")
    assert recaller.asked == [("port", 2_000)]


async def test_nothing_found_is_said(box: Box) -> None:
    result = await _recall(box, FakeRecaller(), query="xylophone")
    assert result.text.startswith("Nothing found.")
    assert not result.is_error
    assert (await _recall(box, None, query="x")).is_error
    assert (await _recall(box, FakeRecaller(), query="  ")).is_error


@pytest.mark.parametrize("limit", [655, 1310, 5242, 30_000])
async def test_an_answer_stays_within_the_cap(box: Box, limit: int) -> None:
    """M30: three results of at most 2 000 characters, fewer in a small window."""
    hits = tuple(RecallHit(f"m-{n}", "turn 1", "user", "x" * 9_000, "y" * 9_000) for n in range(9))
    recaller = FakeRecaller(hits)
    result = await _recall(box, recaller, limit, query="x")
    assert result.text.count("message m-") == 3
    assert len(result.text) <= max(limit, 3 * 700)
    assert recaller.asked[0][1] <= 2_000


async def test_it_never_asks(box: Box) -> None:
    assert await box.permission("Recall", '{"query": "x"}') is None
