"""Write: a whole file, new or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marextui.tools import textfile
from marextui.tools.changes import Changes, Plan, Refusal
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec


class Write:
    """Writes a whole file, making its directories. An existing file must have been read and be unchanged since."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Write",
            "Write a whole file; directories are made. An existing file must have been Read first; prefer Edit there.",
            {
                "type": "object",
                "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["file_path", "content"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return await self._changes.permission("write", lambda: self._plan(args))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await self._changes.run("Write", lambda: self._plan(args))

    def _plan(self, args: Mapping[str, Any]) -> Plan:
        """Encoding, BOM and line ends of an existing file are kept: the model could not see them when it read it."""
        target = self._changes.target(args["file_path"])
        content: str = args["content"]
        if target.kind == "missing":
            plan = Plan(target, "", content, textfile.UTF8, None, "")
            plan.data()  # refuses text that cannot be stored before anybody is asked
            return plan
        before, encoding, status = self._changes.load(target)
        note = ""
        if "\n" in content and "\r" not in content and textfile.only_crlf(before):
            content, note = textfile.to_crlf(content), "CRLF line ends kept"
        plan = Plan(target, before, content, encoding, status, note)
        plan.data()
        if before == content:
            raise Refusal(f"{target.display} already has exactly this content; nothing was written.", "unchanged")
        return plan
