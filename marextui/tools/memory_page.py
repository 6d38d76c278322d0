"""MemoryPage: pages of long-term memory, whose titles every conversation of the project is told (issue 4 §3; B11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from marextui.context.project import Page, page_line, plain_name
from marextui.tools.diffs import unified
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

SCOPE = "pages of this project's memory"
"""What "for this conversation" allows: every change of a page, none of anything else."""


class Pages(Protocol):
    """Where pages are kept (`store.pages.PageStore`); given from outside. All raise OSError."""

    async def all(self) -> Sequence[Page]: ...
    async def read(self, name: str) -> str | None: ...
    async def write(self, name: str, text: str) -> str: ...
    async def delete(self, name: str) -> bool: ...


class MemoryPage:
    """Listing and reading need no permission. A change does: what is written there is told in later conversations."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "MemoryPage",
            "Pages of lasting notes about this project. list; read or delete the page name; write content (Markdown: "
            "# Title, then a line that sums it up) as the page name.",
            {
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["list", "read", "write", "delete"]},
                    "name": {"type": "string"},
                    "content": {"type": "string"},
                },
                "required": ["action"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        action, name = _action(args), plain_name(args.get("name", ""))
        if action not in ("write", "delete") or not name or (action == "write" and not args.get("content", "").strip()):
            return None
        try:
            before = await self._pages.read(args["name"])
        except OSError:
            before = None
        if action == "delete":
            if before is None:
                return None
            return PermissionNeed("memory", f"memory page {name}: delete it", before[:2_000], SCOPE)
        diff = unified(before or "", args.get("content", "").strip() + "\n", f"{name}.md")
        return PermissionNeed("memory", f"memory page {name}", "", SCOPE, diff) if diff else None

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        action, name = _action(args), args.get("name", "")
        try:
            if action == "list":
                return await self._list()
            if action in ("read", "write", "delete") and not plain_name(name):
                return _failed(f"MemoryPage: {action} needs the name of a page.", "no name")
            if action == "read":
                text = await self._pages.read(name)
                return ToolResult(text, summary=plain_name(name)) if text is not None else await self._missing(name)
            if action == "delete":
                if not await self._pages.delete(name):
                    return await self._missing(name)
                return ToolResult(f"The page {plain_name(name)} was deleted.", summary="deleted")
            if action == "write":
                return await self._write(name, args.get("content", ""))
        except OSError as problem:
            return _failed(f"MemoryPage: the pages cannot be used: {problem.strerror or problem}", "disk error")
        return _failed(f"MemoryPage: {action[:40]!r} is no action; use list, read, write or delete.", "unknown action")

    async def _list(self) -> ToolResult:
        pages = await self._pages.all()
        listed = "\n".join(f"- {page_line(p)}" for p in pages)
        return ToolResult(listed or "There are no pages yet.", summary=f"{len(pages)} pages")

    async def _missing(self, name: str) -> ToolResult:
        names = ", ".join(p.name for p in await self._pages.all()) or "none"
        return _failed(f"MemoryPage: there is no page {name[:80]!r}. The pages are: {names}.", "not there")

    async def _write(self, name: str, content: str) -> ToolResult:
        if not content.strip():
            return _failed("MemoryPage: write needs content; delete takes a page away.", "no content")
        before = await self._pages.read(name) or ""
        problem = await self._pages.write(name, content)
        if problem:
            return _failed(f"MemoryPage: {problem}.", "not written")
        after = await self._pages.read(name) or ""
        safe = plain_name(name)
        diff = unified(before, after, f"{safe}.md")
        return ToolResult(f"The page {safe} was written.", summary=f"{safe}.md written", diff=diff)


def _action(args: Mapping[str, Any]) -> str:
    return str(args["action"]).strip().lower()


def _failed(text: str, summary: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary)
