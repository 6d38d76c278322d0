"""Tracker: values that are followed over time, one line each in what every conversation is told (issue 4 §3; L57)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from marextui.context.project import Tracker as TrackerValue
from marextui.context.project import plain_name, tracker_line, tracker_lines
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

SCOPE = "trackers of this project"
"""What "for this conversation" allows: every change of a tracker, none of anything else."""


class Trackers(Protocol):
    """Where trackers are kept (`store.trackers.TrackerStore`); given from outside. All raise OSError."""

    async def all(self) -> Sequence[TrackerValue]: ...
    async def set(self, tracker: TrackerValue) -> str: ...
    async def delete(self, slug: str) -> bool: ...


class Tracker:
    """Listing never needs permission; a change does. `today` gives the ISO day, for values that come without one."""

    def __init__(self, trackers: Trackers, today: Callable[[], str]) -> None:
        self._trackers = trackers
        self._today = today

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            "Tracker",
            "Values that are followed, like weight = 72.4 kg. list; set name to a value, with its unit; delete name.",
            {
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["list", "set", "delete"]},
                    "name": {"type": "string"},
                    "value": {"type": "string"},
                    "unit": {"type": "string"},
                    "date": {"type": "string", "description": "YYYY-MM-DD, today when left out"},
                },
                "required": ["action"],
            },
        )

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        action, name = _action(args), plain_name(args.get("name", ""))
        if action not in ("set", "delete") or not name or (action == "set" and not args.get("value", "").strip()):
            return None
        before = await self._line(name)
        if action == "delete":
            return PermissionNeed("memory", f"tracker {name}: delete it", before, SCOPE) if before else None
        after = tracker_line(await self._wanted(args))
        return PermissionNeed("memory", f"tracker {name}", f"{before} → {after}" if before else after, SCOPE)

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        action, name = _action(args), args.get("name", "")
        try:
            if action == "list":
                trackers = await self._trackers.all()
                listed = "\n".join(f"- {line.text}" for line in tracker_lines(trackers))
                return ToolResult(listed or "There are no trackers yet.", summary=f"{len(trackers)} trackers")
            if action in ("set", "delete") and not plain_name(name):
                return _failed(f"Tracker: {action} needs a name.", "no name")
            if action == "delete":
                if await self._trackers.delete(name):
                    return ToolResult(f"The tracker {plain_name(name)} was deleted.", summary="deleted")
                names = ", ".join(t.slug for t in await self._trackers.all()) or "none"
                return _failed(f"Tracker: there is no tracker {name[:80]!r}. The trackers are: {names}.", "not there")
            if action == "set":
                return await self._set(args)
        except OSError as problem:
            return _failed(f"Tracker: the trackers cannot be used: {problem.strerror or problem}", "disk error")
        return _failed(f"Tracker: {action[:40]!r} is no action; use list, set or delete.", "unknown action")

    async def _set(self, args: Mapping[str, Any]) -> ToolResult:
        if not args.get("value", "").strip():
            return _failed("Tracker: set needs a value; delete takes a tracker away.", "no value")
        wanted = await self._wanted(args)
        problem = await self._trackers.set(wanted)
        if problem:
            return _failed(f"Tracker: {problem}.", "not set")
        return ToolResult(f"Set: {tracker_line(wanted)}", summary=tracker_line(wanted))

    async def _wanted(self, args: Mapping[str, Any]) -> TrackerValue:
        """The tracker as it would be set: it keeps its unit when none is given."""
        name = plain_name(args["name"])
        unit = args.get("unit")
        if unit is None:
            unit = next((t.unit for t in await self._known() if t.slug == name), "")
        return TrackerValue(name, args.get("value", "").strip(), unit.strip(), args.get("date") or self._today())

    async def _line(self, name: str) -> str:
        return next((tracker_line(t) for t in await self._known() if t.slug == name), "")

    async def _known(self) -> Sequence[TrackerValue]:
        try:
            return await self._trackers.all()
        except OSError:  # said by `run`
            return ()


def _action(args: Mapping[str, Any]) -> str:
    return str(args["action"]).strip().lower()


def _failed(text: str, summary: str) -> ToolResult:
    return ToolResult(text, is_error=True, summary=summary)
