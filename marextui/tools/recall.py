"""Recall: search in everything said and stored, also in what was summarised away (issue section 2; Part 2, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marextui.tools.types import PermissionNeed, RecallHit, ToolContext, ToolResult, ToolSpec

MOST_HITS = 3
HIT_CHARS = 2_000
_HEAD_CHARS = 400
"""Characters kept free in an answer for the lines above and below each result."""
_NOTE_CHARS = 300


class Recall:
    """Looks through the engine's own log and store: reads only, so it never needs permission."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Recall",
            "Search everything said and every stored tool output of this conversation, also what was summarised away.",
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return None

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        query = args["query"].strip()
        if not query:
            return ToolResult("Recall: give the words to look for.", is_error=True, summary="no query")
        if ctx.recaller is None:
            return ToolResult("Recall: there is nothing to search in this conversation.", True, "nothing to search")
        room = min(HIT_CHARS, max(200, (ctx.limit_chars - MOST_HITS * _HEAD_CHARS) // MOST_HITS))
        hits = (await ctx.recaller.search(query, max_chars=room))[:MOST_HITS]
        if not hits:
            return ToolResult(
                "Nothing found. It may never have been said here; try other words, a name or a path.",
                summary="nothing found",
            )
        answer = "\n\n".join(_shown(n, hit, room) for n, hit in enumerate(hits, 1))
        return ToolResult(answer, summary=f"{len(hits)} found")


def _shown(number: int, hit: RecallHit, room: int) -> str:
    note = f"\n[note: {hit.note}]" if hit.note else ""
    return f"[{number}] {hit.role}, message {hit.message_id}, {hit.when}\n{hit.text[:room]}{note[:_NOTE_CHARS]}"
