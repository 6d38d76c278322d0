"""An engine per test over scripted parts, at any window."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from tests.stubs.engine_rig import Rig

Start = Callable[..., Awaitable[Rig]]


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
