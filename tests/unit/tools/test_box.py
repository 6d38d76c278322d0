"""The toolbox: order, size of what every request carries, unknown tools, and the guard between asking and doing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marextui.tools.box import Box, default_toolbox
from marextui.tools.types import PermissionNeed, ToolContext, ToolResult, ToolSpec

NAMES = ("Read", "Ls", "Glob", "Grep", "Edit", "Write", "Bash", "ReadOmittedContent", "Recall")


def test_order_is_fixed_and_specs_are_equal_each_time(root: Path) -> None:
    """I7: the tools part of the prompt prefix never changes."""
    first, second = default_toolbox(root, bash_timeout=60), default_toolbox(root, bash_timeout=60)
    assert tuple(spec.name for spec in first.specs()) == NAMES
    assert [json.dumps(s.wire()) for s in first.specs()] == [json.dumps(s.wire()) for s in second.specs()]
    assert first.specs() == first.specs()


def test_specs_are_small_enough_for_small_windows(box: Box) -> None:
    """About 730 tokens of o200k when written. JSON like this has over 3.5 characters a token: 3,300 are under 950."""
    wires = [json.dumps(spec.wire(), ensure_ascii=False, separators=(",", ":")) for spec in box.specs()]
    assert sum(len(wire) for wire in wires) <= 3_300


def test_parameters_are_named_as_models_know_them(box: Box) -> None:
    shapes = {
        spec.name: (tuple(spec.parameters["properties"]), spec.parameters.get("required", [])) for spec in box.specs()
    }
    assert shapes == {
        "Read": (("file_path", "offset", "limit"), ["file_path"]),
        "Ls": (("path",), []),
        "Glob": (("pattern", "path"), ["pattern"]),
        "Grep": (("pattern", "path", "glob", "ignore_case", "context"), ["pattern"]),
        "Edit": (("file_path", "old_string", "new_string", "replace_all"), ["file_path", "old_string", "new_string"]),
        "Write": (("file_path", "content"), ["file_path", "content"]),
        "Bash": (("command", "timeout", "cwd"), ["command"]),
        "ReadOmittedContent": (("content_id", "offset", "length", "query"), ["content_id"]),
        "Recall": (("query",), ["query"]),
    }


async def test_unknown_tool_names_the_tools_there_are(box: Box) -> None:
    assert await box.permission("Fetch", "{}") is None
    result = await box.run("Fetch", "{}", ToolContext())
    assert result.is_error
    assert ", ".join(NAMES) in result.text


async def test_names_match_without_regard_to_case(box: Box, root: Path) -> None:
    (root / "a.txt").write_text("hello\n")
    assert (await box.run(" read ", '{"path": "a.txt"}', ToolContext())).text == "    1→hello"
    assert await box.permission("BASH", '{"cmd": "ls"}') is not None


async def test_malformed_calls_need_no_permission_and_fail_in_run(box: Box) -> None:
    assert await box.permission("Bash", "{'command': 'ls'}") is None
    result = await box.run("Bash", "{'command': 'ls'}", ToolContext())
    assert result.is_error
    assert "not valid JSON" in result.text
    assert "Expected {command: string" in result.text


@pytest.mark.parametrize("name", NAMES)
async def test_no_tool_raises_for_hostile_strings(box: Box, name: str) -> None:
    spec = next(s for s in box.specs() if s.name == name)
    for hostile in ("", "\0", "\ud800", "-rf", "--", "a" * 5000, "../" * 400, "\x1b[31m\n", "%s{}$(x)", "**/" * 50):
        args = {key: hostile for key, schema in spec.parameters["properties"].items() if schema["type"] == "string"}
        if name == "Bash":
            args = {"command": "\0" + hostile, "cwd": hostile}
        raw = json.dumps(args)
        need = await box.permission(name, raw)
        if need is not None:
            (need.title + need.detail + need.scope + need.diff).encode("utf-8")
            continue
        result = await box.run(name, raw, ToolContext())
        result.text.encode("utf-8")  # storable and sendable
        assert isinstance(result.is_error, bool)


class _Shifting:
    """A tool whose next need is what the test says."""

    spec = ToolSpec("Shift", "", {"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.need: PermissionNeed | None = None
        self.ran = 0

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        return self.need

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        self.ran += 1
        return ToolResult("done")


def _need(scope: str) -> PermissionNeed:
    return PermissionNeed("edit", "t", "d", scope)


@pytest.mark.parametrize(
    ("asked", "later", "runs"),
    [
        (_need("a"), _need("a"), True),
        (_need("a"), _need("b"), False),
        (None, _need("a"), False),
        (_need("a"), None, True),
        (None, None, True),
    ],
)
async def test_a_call_that_came_to_touch_something_else_is_not_made(
    asked: PermissionNeed | None, later: PermissionNeed | None, runs: bool
) -> None:
    tool = _Shifting()
    box = Box((tool,))
    tool.need = asked
    await box.permission("Shift", "{}")
    tool.need = later
    result = await box.run("Shift", "{}", ToolContext())
    assert (tool.ran == 1) is runs
    assert result.is_error is not runs


async def test_a_link_swapped_after_asking_is_not_followed_outside(box: Box, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "key").write_text("hidden\n")
    (root / "dir").mkdir()
    (root / "dir" / "key").write_text("plain\n")
    raw = '{"file_path": "dir/key"}'
    assert await box.permission("Read", raw) is None
    (root / "dir").rename(root / "old")
    os.symlink(outside, root / "dir")
    result = await box.run("Read", raw, ToolContext())
    assert result.is_error
    assert "hidden" not in result.text


async def test_an_edit_that_was_refused_when_asked_does_not_run_unasked_later(box: Box, root: Path) -> None:
    """Read and Edit in one message: the Edit was not yet possible when it was asked about, so nobody saw its diff."""
    (root / "a.txt").write_text("one\n")
    edit = json.dumps({"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    assert await box.permission("Edit", edit) is None
    await box.run("Read", '{"file_path": "a.txt"}', ToolContext())
    result = await box.run("Edit", edit, ToolContext())
    assert result.is_error
    assert (root / "a.txt").read_text() == "one\n"
    assert await box.permission("Edit", edit) is not None
    assert not (await box.run("Edit", edit, ToolContext())).is_error
    assert (root / "a.txt").read_text() == "two\n"
