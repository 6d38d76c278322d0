"""ReadOmittedContent: a stored tool output, read back whole, in parts, or by what it holds (M26, cases 70, 78, 83)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from marextui.context.bulk import image_label
from marextui.context.messages import ImagePart, TextPart
from marextui.context.omission import grouped, read_slice
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

_QUICK_CHARS = 200_000
"""Characters up to which a text is searched at once; longer ones beside the loop."""
_ID = re.compile(r"omitted-\d{3,}", re.ASCII)


class ReadOmittedContent:
    """Reads the engine's own store: never needs permission, and its result is not omitted again in its turn."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "ReadOmittedContent",
            "Read what an [omitted …] marker or the summary names by an id: whole, by offset and length, or only the "
            "lines that match query.",
            {
                "type": "object",
                "properties": {
                    "content_id": {"type": "string", "description": "like omitted-003"},
                    "offset": {"type": "integer", "description": "in characters, from 0"},
                    "length": {"type": "integer"},
                    "query": {"type": "string"},
                },
                "required": ["content_id"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return None

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        content_id = parse_id(args["content_id"])
        if content_id is None:
            return _failed(
                f"ReadOmittedContent: {args['content_id'][:80]!r} is not a content id. "
                "Use the one in the marker, like omitted-003.",
                "bad id",
            )
        if ctx.omitted is None:
            return _failed("ReadOmittedContent: no outputs are stored in this conversation.", "nothing stored")
        try:
            text = await ctx.omitted.read(content_id)
        except OSError as error:
            return _failed(f"ReadOmittedContent: {content_id} cannot be read: {error.strerror or error}.", "unreadable")
        if text is None:
            reason = await ctx.omitted.why_missing(content_id)
            return _failed(f"ReadOmittedContent: {reason}", "not there")
        about = await ctx.omitted.about(content_id)
        note = f"\n[{about}]" if about else ""
        if text.startswith("data:image/") and not any(args.get(k) for k in ("offset", "length", "query")):
            await ctx.omitted.count_read(content_id)
            return _picture(content_id, text, note)
        look = partial(
            read_slice,
            text,
            offset=args.get("offset"),
            length=args.get("length") or None,  # small models write 0 for what they leave open
            query=args.get("query"),
            limit_chars=max(1, ctx.limit_chars - len(note)),
        )
        shown = look() if len(text) <= _QUICK_CHARS else await asyncio.to_thread(look)
        if not shown.found:
            return ToolResult(shown.text + note, summary=f"{content_id}, nothing there", exempt_from_omission=True)
        await ctx.omitted.count_read(content_id)
        return ToolResult(
            shown.text + note,
            summary=f"{content_id}, {grouped(len(shown.text))} of {grouped(len(text))} chars",
            exempt_from_omission=True,
        )


def _picture(content_id: str, url: str, note: str) -> ToolResult:
    """An image is shown again: its encoded bytes would tell a model nothing (case 103)."""
    text = f"[{image_label(url)}]{note}"
    return ToolResult(
        text,
        summary=f"{content_id}, {image_label(url)}",
        parts=(TextPart(text), ImagePart(url)),
        exempt_from_omission=True,
    )


def parse_id(written: str) -> str | None:
    """The id in `written`: the bare id, or a marker (or more) pasted whole. None unless it names exactly one."""
    found = set(_ID.findall(written))
    return found.pop() if len(found) == 1 else None


def _failed(text: str, summary: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary, exempt_from_omission=True)
