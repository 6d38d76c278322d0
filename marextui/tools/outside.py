"""The question that reading outside the project needs."""

from __future__ import annotations

from typing import Literal

from marextui.tools.types import PermissionNeed
from marextui.tools.workspace import PathRefused, Target, Workspace


def outside_need(workspace: Workspace, written: str, tool: str) -> PermissionNeed | None:
    """None for a path inside the project (and for one that will be refused anyway), else what a person is asked.

    The scope is the real path, so that a link to it and the path itself are one permission.
    """
    try:
        target = workspace.resolve(written)
    except PathRefused:
        return None
    if target.inside:
        return None
    return PermissionNeed(
        kind="outside",
        title=f"{tool} outside the project",
        detail=f"{target.display}\nThis is outside the project {workspace.root}.",
        scope=str(target.real),
    )


def write_need(
    workspace: Workspace, target: Target, kind: Literal["edit", "write"], diff: str, note: str
) -> PermissionNeed:
    """What a person is asked before `target` is changed. Outside the project the scope names writing, so that an
    earlier permission to read the same path does not cover it."""
    lines = [target.display]
    if note:
        lines.append(note)
    warning = workspace.sensitive(target)
    if warning:
        lines.append(warning)
    verb = "Edit" if kind == "edit" else "Write" if target.kind == "missing" else "Overwrite"
    if target.inside:
        return PermissionNeed(kind, f"{verb} {target.display}", "\n".join(lines), str(target.real), diff)
    lines.append(f"This is outside the project {workspace.root}.")
    return PermissionNeed("outside", f"{verb} outside the project", "\n".join(lines), f"{kind} {target.real}", diff)
