"""Grep: lines that match a regular expression, by ripgrep where it is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marextui.tools.capture import SEARCH_SECONDS, Captured, capture
from marextui.tools.globs import BadPattern, compile_glob
from marextui.tools.listing import list_files, skip_globs
from marextui.tools.names import count, show_name
from marextui.tools.offload import look
from marextui.tools.outside import outside_need
from marextui.tools.process import Clock, RealClock
from marextui.tools.read import missing
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import PathRefused, Target, Workspace

MAX_LINES = 300
LINE_CHARS = 300
MAX_CONTEXT = 20
_RECORD_BYTES = 1 << 20
_WORKER = Path(__file__).with_name("grep_worker.py")


@dataclass(frozen=True, slots=True)
class _Query:
    """A search: `base` is the directory it starts in, `name` a single file in it or ""."""

    pattern: str
    base: Path
    name: str
    glob: str
    fold: bool
    context: int
    literal: bool = False


@dataclass(slots=True)
class _Lines:
    """Parses `path NUL number mark text` records; file names may hold line feeds, the program's remarks hold no NUL."""

    prefix: str
    lines: list[str] = field(default_factory=list)
    matches: int = 0
    full: bool = False
    binary: bool = False
    _rest: bytes = b""

    def take(self, data: bytes) -> bool:
        """False when there are enough lines."""
        self._rest += data
        while not self.full and self._next():
            pass
        if len(self._rest) > _RECORD_BYTES:  # a remark or a name of no sane length
            self._rest = b""
        return not self.full

    def _next(self) -> bool:
        if self._rest.startswith(b"--\n"):
            self._rest = self._rest[3:]
            self._add("--")
            return True
        line_end = self._rest.find(b"\n")
        if line_end >= 0 and b"binary file matches" in self._rest[:line_end] and b"\0" not in self._rest[:line_end]:
            self._rest = self._rest[line_end + 1 :]
            self.binary = True
            return True
        name_end = self._rest.find(b"\0")
        line_end = self._rest.find(b"\n", name_end)
        if name_end < 0 or line_end < 0:
            return False
        name = show_name(os.path.normpath(os.path.join(self.prefix, os.fsdecode(self._rest[:name_end]))))
        text = self._rest[name_end + 1 : line_end].decode("utf-8", "replace").removesuffix("\r")
        self._rest = self._rest[line_end + 1 :]
        number = text[: len(text) - len(text.lstrip("0123456789"))]
        mark, shown = text[len(number) : len(number) + 1], text[len(number) + 1 :]
        if len(shown) > LINE_CHARS:
            shown = shown[:LINE_CHARS] + "…"
        self._add(f"{name}{mark}{number}{mark}{shown}", mark == ":")
        return True

    def _add(self, line: str, is_match: bool = False) -> None:
        if len(self.lines) >= MAX_LINES:
            self.full = True
        else:
            self.lines.append(line)
            self.matches += is_match


class Grep:
    """Searches file contents. Ignored, binary and linked files are left out; lines and their number are bounded."""

    def __init__(self, workspace: Workspace, clock: Clock | None = None) -> None:
        self._workspace = workspace
        self._clock = clock if clock is not None else RealClock()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Grep",
            "Search file contents, line by line, for a regular expression. Gives path:line:text.",
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string"},
                    "path": {"type": "string", "description": "file or directory"},
                    "glob": {"type": "string", "description": "only such files, like *.py"},
                    "ignore_case": {"type": "boolean"},
                    "context": {"type": "integer", "description": "lines around"},
                },
                "required": ["pattern"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return await look(lambda _stop: outside_need(self._workspace, args.get("path") or ".", "Search"))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        written = args.get("path") or "."
        try:
            target = await look(lambda _stop: self._workspace.resolve(written))
        except PathRefused as error:
            return _failed(f"Grep: {written!r} cannot be searched: {error}.", "refused")
        if target.kind == "missing":
            return _failed(await look(lambda _stop: missing(self._workspace, target, "Grep")), "not found")
        query = _query(args, target)
        if not query.pattern or "\0" in query.pattern or "\0" in query.glob:
            return _failed("Grep: the pattern is empty or holds a NUL character.", "bad pattern")
        prefix = self._workspace.display(query.base)
        try:
            found, ended = await self._search(query, prefix)
            remark = ""
            if ended.code == 2 and _is_parse_error(ended.stderr) and not found.lines:
                remark = f"not a valid regular expression ({_reason(ended.stderr)}): searched for it as plain text"
                found, ended = await self._search(_literal(query), prefix)
        except BadPattern as error:
            return _failed(f"Grep: glob {query.glob!r} cannot be used: {error}.", "bad glob")
        except (OSError, ValueError) as error:
            return _failed(f"Grep: the search could not be started: {error}.", "not run")
        return _result(query, target, found, ended, remark)

    async def _search(self, query: _Query, prefix: str) -> tuple[_Lines, Captured]:
        found = _Lines(prefix)
        rg = shutil.which("rg")
        if rg is not None:
            argv, given = _rg(rg, query), b""
        else:
            names = [query.name] if query.name else await self._names(query)
            argv = [sys.executable, "-I", "-S", str(_WORKER), query.pattern]
            argv += ["literal" if query.literal else "regex", "fold" if query.fold else "exact", str(query.context)]
            given = b"\0".join(os.fsencode(f"./{name}") for name in names)
        return found, await capture(argv, cwd=query.base, clock=self._clock, take=found.take, given=given)

    async def _names(self, query: _Query) -> Sequence[str]:
        listing = await list_files(query.base, clock=self._clock)
        names = [name for name in sorted(listing.files) if not os.path.islink(query.base / name)]
        if not query.glob:
            return names
        wanted = query.glob.removeprefix("!")
        matches = compile_glob(wanted if "/" in wanted.strip("/") else f"**/{wanted}")
        return [name for name in names if matches(name) != query.glob.startswith("!")]


def _query(args: Mapping[str, Any], target: Target) -> _Query:
    single = target.kind == "file"
    return _Query(
        pattern=args["pattern"],
        base=target.real.parent if single else target.real,
        name=target.real.name if single else "",
        glob=(args.get("glob") or "").strip(),
        fold=bool(args.get("ignore_case", False)),
        context=max(0, min(args.get("context", 0), MAX_CONTEXT)),
    )


def _literal(query: _Query) -> _Query:
    return _Query(query.pattern, query.base, query.name, query.glob, query.fold, query.context, literal=True)


def _rg(rg: str, query: _Query) -> list[str]:
    argv = [rg, "--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--line-number"]
    argv += ["--null", "--hidden", "--sort=path", f"--max-columns={LINE_CHARS * 4}", "--max-columns-preview"]
    if query.literal:
        argv.append("--fixed-strings")
    argv.append("--ignore-case" if query.fold else "--case-sensitive")
    if query.context:
        argv.append(f"--context={query.context}")
    if query.glob:
        argv.append(f"--glob={query.glob}")
    return [*argv, *skip_globs(), f"--regexp={query.pattern}", "--", f"./{query.name}"]


def _is_parse_error(stderr: str) -> bool:
    return "regex parse error" in stderr or "is not allowed in a regex" in stderr or "regex could not be" in stderr


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if line.startswith("error:")), lines[0] if lines else "")
    return told.removeprefix("error:").removeprefix("regex parse error:").strip()[:160]


def _result(query: _Query, target: Target, found: _Lines, ended: Captured, remark: str) -> ToolResult:
    notes = [remark] if remark else []
    if found.full:
        notes.append(f"stopped after {MAX_LINES} lines: use a narrower pattern, path or glob")
    if ended.timed_out:
        notes.append(f"stopped after {SEARCH_SECONDS} seconds: search a smaller path")
    failed = ended.code not in {0, 1, None} and not found.lines
    if failed:
        return _failed(f"Grep: the search failed: {ended.stderr[:300] or f'exit code {ended.code}'}", "failed")
    if found.binary:
        notes.append("a binary file matches; its lines are not shown")
    if not found.lines:
        unsearched = " (ignored files are not searched)" if target.kind == "dir" else ""
        where = f"{target.display}{f' ({query.glob})' if query.glob else ''}"
        notes.insert(0, f"No matches for {query.pattern} in {where}{unsearched}.")
        return ToolResult(
            "\n".join([notes[0], *(f"[{note}]" for note in notes[1:])]),
            is_error=bool(remark) or ended.timed_out,
            summary="no matches",
        )
    text = "\n".join(found.lines)
    if notes:
        text += "".join(f"\n[{note}]" for note in notes)
    return ToolResult(text, summary=count(found.matches, "match") + (" so far" if found.full else ""))


def _failed(text: str, summary: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary)
