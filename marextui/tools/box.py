"""The set of tools a model is offered, and the one place where its calls enter the room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from marextui.tools import arguments as args_of
from marextui.tools.bash import Bash
from marextui.tools.changes import Changes
from marextui.tools.edit import Edit
from marextui.tools.finding import Glob
from marextui.tools.grep import Grep
from marextui.tools.ls import Ls
from marextui.tools.names import well_formed
from marextui.tools.omitted import ReadOmittedContent
from marextui.tools.process import Clock
from marextui.tools.read import Read
from marextui.tools.read_state import ReadState
from marextui.tools.recall import Recall
from marextui.tools.types import PermissionNeed, Tool, ToolBox, ToolContext, ToolResult, ToolSpec
from marextui.tools.workspace import Workspace
from marextui.tools.write import Write

REMEMBERED_VERDICTS = 256


class Box(ToolBox):
    """Tools in a stable order (I7). Names match exactly, else without regard to case.

    What `permission` answered for a call is held until that call runs: when the call would by then touch something
    else (a link was swapped, a file was read in between), `run` refuses it instead of doing what nobody was asked.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._folded = {name.lower(): name for name in self._tools}
        self._verdicts: OrderedDict[tuple[str, str], tuple[str, str] | None] = OrderedDict()

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    async def permission(self, name: str, arguments: str) -> PermissionNeed | None:
        tool = self._find(name)
        if tool is None:
            return None
        try:
            checked = args_of.parse(tool.spec, arguments)
        except args_of.ArgumentError:
            return None
        need = await tool.permission(checked)
        key = (tool.spec.name, arguments)
        self._verdicts[key] = _verdict(need)
        self._verdicts.move_to_end(key)
        if len(self._verdicts) > REMEMBERED_VERDICTS:
            self._verdicts.popitem(last=False)
        if need is None:
            return None
        return replace(
            need,
            title=well_formed(need.title),
            detail=well_formed(need.detail),
            scope=well_formed(need.scope),
            diff=well_formed(need.diff),
        )

    async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult:
        tool = self._find(name)
        if tool is None:
            known = ", ".join(self._tools)
            return ToolResult(
                f"There is no tool named {well_formed(name)[:80]!r}. The tools are: {known}.",
                is_error=True,
                summary="unknown tool",
            )
        try:
            checked = args_of.parse(tool.spec, arguments)
        except args_of.ArgumentError as error:
            return ToolResult(well_formed(str(error)), is_error=True, summary="bad arguments")
        key = (tool.spec.name, arguments)
        if key in self._verdicts:
            told = self._verdicts.pop(key)
            now = _verdict(await tool.permission(checked))
            if now is not None and now != told:
                return ToolResult(
                    f"{tool.spec.name}: what this call touches changed after permission was asked; nothing was done. "
                    "Make the call again.",
                    is_error=True,
                    summary="changed since asked",
                )
        result = await tool.run(checked, ctx)
        return replace(
            result,
            text=well_formed(result.text),
            summary=well_formed(result.summary),
            diff=well_formed(result.diff),
        )

    def _find(self, name: str) -> Tool | None:
        exact = self._tools.get(name)
        if exact is not None:
            return exact
        folded = self._folded.get(name.strip().lower())
        return self._tools[folded] if folded is not None else None


def _verdict(need: PermissionNeed | None) -> tuple[str, str] | None:
    return None if need is None else (need.kind, need.scope)


def default_toolbox(
    root: Path,
    *,
    bash_timeout: int,
    read_state: ReadState | None = None,
    clock: Clock | None = None,
    more: Sequence[Tool] = (),
) -> Box:
    """The nine tools on the project at `root`, then `more`.

    `bash_timeout` is the default of Bash in seconds (at most 600). `read_state` is what Read has shown in this
    conversation; the engine keeps it, so that it outlives compactions and restarts (case 67).
    """
    workspace = Workspace(root)
    state = read_state if read_state is not None else ReadState()
    changes = Changes(workspace, state)
    return Box(
        (
            Read(workspace, state),
            Ls(workspace),
            Glob(workspace),
            Grep(workspace),
            Edit(changes),
            Write(changes),
            Bash(workspace, default_timeout=bash_timeout, clock=clock),
            ReadOmittedContent(),
            Recall(),
            *more,
        )
    )
