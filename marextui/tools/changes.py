"""Changing files: worked out first, shown, then worked out again and made in one step. Shared by Edit and Write."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from marextui.tools import textfile
from marextui.tools.atomic import Moved, replace_content
from marextui.tools.diffs import added_removed, unified
from marextui.tools.offload import Stop, change, look
from marextui.tools.outside import write_need
from marextui.tools.read_state import ReadState, mark_of
from marextui.tools.types import PermissionNeed, ToolResult
from marextui.tools.workspace import PathRefused, Target, Workspace


class Refusal(ValueError):
    """The change cannot be made; the text is for the model, `summary` for the card."""

    def __init__(self, text: str, summary: str) -> None:
        super().__init__(text)
        self.summary = summary


@dataclass(frozen=True, slots=True)
class Plan:
    """A change worked out and not yet made. `status` is the file's when it was read (None: a new file)."""

    target: Target
    before: str
    after: str
    encoding: textfile.Encoding
    status: os.stat_result | None
    note: str

    def data(self) -> bytes:
        """The bytes to write. Raises `Refusal` when the encoding cannot hold the text."""
        try:
            return textfile.encode(self.after, self.encoding)
        except UnicodeEncodeError:
            raise Refusal(
                f"the new text holds a lone surrogate, which {self.encoding.label} cannot store.", "not valid text"
            ) from None


class Changes:
    """Makes changes one after the other, however many calls run at once; keeps `state` true to what was written."""

    def __init__(self, workspace: Workspace, state: ReadState) -> None:
        self.workspace = workspace
        self._state = state
        self._lock = asyncio.Lock()

    def target(self, written: str) -> Target:
        """The target of a path to be written. Raises `Refusal` for directories and for what is no file."""
        try:
            target = self.workspace.resolve(written)
        except PathRefused as error:
            raise Refusal(f"{written!r} cannot be written: {error}.", "refused") from None
        if target.kind == "dir":
            raise Refusal(f"{target.display} is a directory.", "a directory")
        return target

    def load(self, target: Target) -> tuple[str, textfile.Encoding, os.stat_result]:
        """The whole text of an existing target that was read before and is as it was then (case 67, case 74).

        An empty file need not have been read. Raises `Refusal` when it was not read, is stale, not text or too
        large; and OSError.
        """
        if not self._state.seen(target.real) and os.stat(target.real).st_size:
            raise Refusal(f"{target.display}: {self._state.check_fresh(target.real)}", "read it first")
        try:
            data, status = textfile.load(target.real)
            stale = self._state.check_fresh(target.real, mark_of(status, data)) if data else ""
            if stale:
                raise Refusal(f"{target.display}: {stale}", "stale")
            text, encoding = textfile.decode(data)
        except textfile.NotText as error:
            raise Refusal(f"{target.display} is {error}.", "not text") from None
        return text, encoding, status

    async def permission(self, kind: Literal["edit", "write"], planned: Callable[[], Plan]) -> PermissionNeed | None:
        """What is asked, with the diff; None when the change cannot be made (then `run` says why)."""

        def ask(_stop: Stop) -> PermissionNeed | None:
            try:
                plan = planned()
            except (Refusal, OSError):
                return None
            diff = unified(plan.before, plan.after, plan.target.display)
            return write_need(self.workspace, plan.target, kind, diff, plan.note)

        return await look(ask)

    async def run(self, tool: str, planned: Callable[[], Plan]) -> ToolResult:
        """Work the change out anew and make it, whole or not at all, also when cancelled."""
        async with self._lock:
            return await change(lambda stop: self._make(tool, planned, stop))

    def _make(self, tool: str, planned: Callable[[], Plan], stop: Stop) -> ToolResult:
        try:
            plan = planned()
            data = plan.data()
            if plan.status is None:
                plan.target.real.parent.mkdir(parents=True, exist_ok=True)
            status = replace_content(plan.target.real, data, plan.status, stop)
        except Refusal as error:
            return ToolResult(f"{tool}: {error}", is_error=True, summary=error.summary)
        except Moved:
            return ToolResult(
                f"{tool}: the file changed while this was done; nothing was written. Read it again.",
                is_error=True,
                summary="stale",
            )
        except OSError as error:
            where = f" ({error.filename})" if isinstance(error.filename, str) else ""
            return ToolResult(
                f"{tool}: the file could not be written: {error.strerror}{where}. Nothing was changed.",
                is_error=True,
                summary="cannot be written",
            )
        self._state.note_read(plan.target.real, mark_of(status, data))
        added, removed = added_removed(plan.before, plan.after)
        verb = "Wrote" if plan.status is None else "Updated"
        note = f", {plan.note}" if plan.note else ""
        return ToolResult(
            f"{verb} {plan.target.display} (+{added} -{removed} lines{note}).",
            summary=f"+{added} -{removed}",
            diff=unified(plan.before, plan.after, plan.target.display),
        )
