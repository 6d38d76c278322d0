"""Edit: replace an exact text in a file that has been read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from marextui.tools import textfile
from marextui.tools.changes import Changes, Plan, Refusal
from marextui.tools.names import count
from marextui.tools.read import missing
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

CLOSEST_LINES = 3
SEARCHED_LINES = 20_000
SHOWN_LINE_CHARS = 200

_NUMBERED = re.compile(r"^\s*\d+→")


def replaced(text: str, old: str, new: str, *, every: bool) -> tuple[str, int]:
    """`text` with `old` replaced by `new` exactly, and how many times. Raises `Refusal`.

    In a file whose line ends are all CRLF the model's line feeds stand for CRLF, since Read shows no carriage returns.
    """
    if old == new:
        raise Refusal("old_string and new_string are the same.", "nothing to change")
    if not old:
        raise Refusal("old_string is empty. Give the text to replace, or use Write for a whole file.", "no old_string")
    if textfile.only_crlf(text):
        # always: a line feed found behind its carriage return would leave that one behind
        old = textfile.to_crlf(old)
        new = textfile.to_crlf(new)
    found = text.count(old)
    if found == 0:
        raise Refusal(f"old_string was not found.{_why_not(text, old)}", "not found")
    if found > 1 and not every:
        lines = ", ".join(str(n) for n in _line_numbers(text, old, 5))
        raise Refusal(
            f"old_string is there {found} times (lines {lines}{', …' if found > 5 else ''}). "
            "Add surrounding lines to make it unique, or set replace_all.",
            f"{found} matches",
        )
    return text.replace(old, new), found


class Edit:
    """Exact replacement. The file must have been read (or written) in this conversation and be unchanged since."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Edit",
            "Replace an exact text in a file you have Read. old_string must occur exactly once "
            "(add lines around it), unless replace_all.",
            {
                "type": "object",
                "properties": {
                    "file_path": {"type": "string"},
                    "old_string": {"type": "string"},
                    "new_string": {"type": "string"},
                    "replace_all": {"type": "boolean"},
                },
                "required": ["file_path", "old_string", "new_string"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return await self._changes.permission("edit", lambda: self._plan(args))

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await self._changes.run("Edit", lambda: self._plan(args))

    def _plan(self, args: Mapping[str, Any]) -> Plan:
        target = self._changes.target(args["file_path"])
        if target.kind == "missing":
            text = missing(self._changes.workspace, target, "Edit").removeprefix("Edit: ")
            raise Refusal(f"{text} Use Write for a new file.", "not found")
        text, encoding, status = self._changes.load(target)
        after, times = replaced(text, args["old_string"], args["new_string"], every=args.get("replace_all", False))
        plan = Plan(target, text, after, encoding, status, count(times, "replacement") if times > 1 else "")
        plan.data()  # refuses text that cannot be stored before anybody is asked
        return plan


def _line_numbers(text: str, old: str, most: int) -> list[int]:
    numbers: list[int] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < most:
        numbers.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return numbers


def _why_not(text: str, old: str) -> str:
    """What to do about a text that is not there: the usual mistakes first, then the closest lines."""
    wanted = [line for line in old.split("\n") if line.strip()]
    if wanted and all(_NUMBERED.match(line) for line in wanted):
        return " Leave out the line numbers and the → that Read puts before each line."
    lines = text.split("\n")
    if not wanted or len(lines) > SEARCHED_LINES:
        return " Read the file and copy the text exactly."
    stripped = [line.strip() for line in lines]
    first = wanted[0].strip()
    same = [n for n, line in enumerate(stripped) if line == first]
    if same:
        head = (
            " Its first line is there with other blanks or what follows differs:"
            if len(wanted) > 1
            else (" The same line with other blanks is at:")
        )
        near = same[:CLOSEST_LINES]
    else:
        candidates = {line: n for n, line in reversed(list(enumerate(stripped))) if line and len(line) <= 400}
        close = difflib.get_close_matches(first[:400], list(candidates), n=CLOSEST_LINES, cutoff=0.6)
        near = sorted(candidates[line] for line in close)
        head = " The closest lines are:"
    if not near:
        return " Nothing in the file is close to it. Read the file and copy the text exactly."
    return head + "".join(f"\n{n + 1:>5}→{textfile.shown(lines[n].rstrip())[:SHOWN_LINE_CHARS]}" for n in near)
