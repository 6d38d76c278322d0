"""Ls: what is in one directory."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marextui.tools.names import count, human_size, show_name
from marextui.tools.offload import Abandoned, Stop, look
from marextui.tools.outside import outside_need
from marextui.tools.read import missing
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import PathRefused, Workspace

MAX_ENTRIES = 500


class Ls:
    """Lists a directory: directories first, then files with their sizes; hidden and ignored ones too."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Ls",
            "List one directory (default: the project), hidden and ignored files too.",
            {"type": "object", "properties": {"path": {"type": "string"}}},
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return await look(lambda _stop: outside_need(self._workspace, args.get("path") or ".", "List"))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await look(lambda stop: self._list(args.get("path") or ".", stop))

    def _list(self, written: str, stop: Stop) -> ToolResult:
        try:
            target = self._workspace.resolve(written)
        except PathRefused as error:
            return ToolResult(f"Ls: {written!r} cannot be listed: {error}.", is_error=True, summary="refused")
        if target.kind == "missing":
            return ToolResult(missing(self._workspace, target, "Ls"), is_error=True, summary="not found")
        if target.kind == "file":
            size = human_size(os.stat(target.real).st_size)
            return ToolResult(f"{target.display} is a file ({size}). Use Read to see it.", summary="a file")
        try:
            names, total = _first_names(target.real, stop)
        except OSError as error:
            return ToolResult(
                f"Ls: {target.display} cannot be listed: {error.strerror}.", is_error=True, summary="cannot be listed"
            )
        head = f"{target.display.rstrip('/')}/ ({count(total, 'entry')}, hidden and ignored ones included)"
        lines = [head, *(_line(target.real, name) for name in names)]
        if total > len(names):
            lines.append(f"[{count(total - len(names), 'more entry')} not shown; use Glob to narrow it down]")
        return ToolResult("\n".join(lines), summary=count(total, "entry"))


def _first_names(folder: Path, stop: Stop) -> tuple[list[str], int]:
    """The first names in order (directories, then the rest) and how many there are: never sorts all of a huge one."""
    total = 0

    def keyed() -> Any:
        nonlocal total
        with os.scandir(folder) as entries:
            for entry in entries:
                if stop:
                    raise Abandoned
                total += 1
                try:
                    is_dir = entry.is_dir()
                except OSError:  # a link that goes round in a circle
                    is_dir = False
                yield (not is_dir, entry.name.lower(), entry.name)

    chosen = heapq.nsmallest(MAX_ENTRIES, keyed())
    return [name for _, _, name in chosen], total


def _line(folder: Path, name: str) -> str:
    path = folder / name
    shown = show_name(name)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return f"{shown}{'/' if path.is_dir() else ''} -> {show_name(os.readlink(path))}"
    except OSError as error:
        return f"{shown}  ({error.strerror})"
    if stat.S_ISDIR(status.st_mode):
        return f"{shown}/"
    if stat.S_ISREG(status.st_mode):
        return f"{shown}  {human_size(status.st_size)}"
    return f"{shown}  (not a regular file)"
