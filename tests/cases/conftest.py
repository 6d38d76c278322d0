"""What the tests of reported cases share: engines that are closed again, and the product's own tools in a project."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.engine.permissions import Decision
from marextui.tools.box import Box, default_toolbox
from marextui.tools.read_state import ReadState
from tests.stubs.engine_rig import Rig

StartRig = Callable[..., Awaitable[Rig]]
Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[StartRig]:
    """Starts engines over one home; keywords are those of `Rig`."""
    made: list[Rig] = []

    async def start(**kw: Any) -> Rig:
        kw.setdefault("window", Window(32_768, "discovery"))
        made.append(await Rig(kw.pop("folder", tmp_path), **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder the rig takes for the project."""
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def real_tools(project: Path) -> Callable[[], dict[str, Any]]:
    """Keywords that give a rig the product's own nine tools, everything allowed."""

    def tools() -> dict[str, Any]:
        seen = ReadState()
        box: Box = default_toolbox(project, bash_timeout=60, read_state=seen)
        allowed = {kind: Decision("once") for kind in ("edit", "write", "bash", "outside")}
        return {"tools": box, "seen": seen, "unattended": allowed}

    return tools


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """`await start(8192, chat=…, tools=…)`; None: an unknown window. `rules`: characters of MAREX.md."""
    made: list[Rig] = []

    async def begin(window: int | None = 8192, *, rules: int = 0, **parts: Any) -> Rig:
        rig = Rig(tmp_path, window=Window(window, "discovery" if window else "unknown"), **parts)
        if rules:
            project = tmp_path / "project"
            project.mkdir(exist_ok=True)
            (project / "MAREX.md").write_text("- keep this rule\n" * (rules // 17), encoding="utf-8")
        await rig.start()
        made.append(rig)
        return rig

    yield begin
    for rig in made:
        await rig.engine.close()
