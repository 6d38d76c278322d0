"""Glob: files by the pattern of their names."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import Any

from marextui.tools.globs import BadPattern, Matcher, compile_glob, split_base
from marextui.tools.listing import list_files
from marextui.tools.names import count, show_name
from marextui.tools.offload import Abandoned, Stop, look
from marextui.tools.outside import outside_need
from marextui.tools.process import Clock
from marextui.tools.read import missing
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import PathRefused, Target, Workspace

MAX_MATCHES = 200


class Glob:
    """Files whose path matches, newest first; ignored files are left out."""

    def __init__(self, workspace: Workspace, clock: Clock | None = None) -> None:
        self._workspace = workspace
        self._clock = clock

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Glob",
            "Find files by name pattern, like `**/*.py`; newest first, ignored files left out.",
            {
                "type": "object",
                "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
                "required": ["pattern"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        try:
            written, _ = _where(args)
        except BadPattern:
            return None
        return await look(lambda _stop: outside_need(self._workspace, written, "Search"))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        try:
            written, pattern = _where(args)
            matcher = compile_glob(pattern)
            base = await look(lambda _stop: self._base(written))
            listing = await list_files(base.real, clock=self._clock)
        except BadPattern as error:
            return _failed(f"Glob: {args['pattern']!r} cannot be used: {error}.", "bad pattern")
        except PathRefused as error:
            return _failed(str(error), "not found")
        except OSError as error:
            return _failed(f"Glob: {show_name(written)} cannot be searched: {error.strerror}.", "cannot be searched")
        found = await look(lambda stop: _newest_first(base, listing.files, matcher, stop))
        note = ""
        if not found and "/" not in pattern.strip("/"):
            deeper = compile_glob(f"**/{pattern}")
            found = await look(lambda stop: _newest_first(base, listing.files, deeper, stop))
            note = f"none directly in {base.display}; these are deeper" if found else ""
        return self._result(args["pattern"], base, found, note, listing.complete)

    def _base(self, written: str) -> Target:
        """The directory to search. Raises `PathRefused` with the whole sentence."""
        try:
            target = self._workspace.resolve(written)
        except PathRefused as error:
            raise PathRefused(f"Glob: {written!r} cannot be searched: {error}.") from None
        if target.kind == "missing":
            raise PathRefused(missing(self._workspace, target, "Glob"))
        if target.kind == "file":
            raise PathRefused(f"Glob: {target.display} is a file, not a directory.")
        return target

    def _result(self, pattern: str, base: Target, found: Sequence[str], note: str, complete: bool) -> ToolResult:
        notes = [note] if note else []
        if not complete:
            notes.append("the directory is too large to be searched whole: give a path")
        if not found:
            text = f"No files match {pattern} in {base.display} (ignored files are not searched)."
            return ToolResult("\n".join([text, *(f"[{one}]" for one in notes)]), summary="no files")
        lines = [self._workspace.display(base.real / name) for name in found[:MAX_MATCHES]]
        if len(found) > MAX_MATCHES:
            notes.append(f"{count(len(found) - MAX_MATCHES, 'more file')} not shown; use a narrower pattern or path")
        if notes:
            lines.append(f"[{'; '.join(notes)}]")
        return ToolResult("\n".join(lines), summary=count(len(found), "file"))


def _where(args: Mapping[str, Any]) -> tuple[str, str]:
    """(directory as written, pattern below it). Raises `BadPattern`."""
    base, pattern = split_base(args["pattern"].strip())
    path = args.get("path") or "."
    return (os.path.join(path, base) if base else path), pattern


def _newest_first(base: Target, files: Sequence[str], matcher: Matcher, stop: Stop) -> list[str]:
    dated: list[tuple[int, str]] = []
    for name in files:
        if stop:
            raise Abandoned
        if not matcher(name):
            continue
        try:
            status = os.lstat(base.real / name)
        except OSError:  # git still lists deleted files
            continue
        if stat.S_ISREG(status.st_mode):
            dated.append((-status.st_mtime_ns, name))
    return [name for _, name in sorted(dated)]


def _failed(text: str, summary: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary)
