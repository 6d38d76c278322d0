"""A project directory with nothing around it, and a toolbox on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from marextui.tools.box import Box, default_toolbox
from marextui.tools.read_state import ReadState
from marextui.tools.types import ToolContext, ToolResult

Call = Callable[..., Coroutine[Any, Any, ToolResult]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def state() -> ReadState:
    return ReadState()


@pytest.fixture
def box(root: Path, state: ReadState) -> Box:
    return default_toolbox(root, bash_timeout=60, read_state=state)


@pytest.fixture
def call(box: Box) -> Call:
    """`await call("Read", file_path="a")`: a call as a model makes it."""

    async def run(name: str, **arguments: Any) -> ToolResult:
        return await box.run(name, json.dumps(arguments), ToolContext())

    return run
