"""Grep: one shape of output from ripgrep and from our own worker, bounded and killable."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from marextui.tools import grep
from marextui.tools.box import Box, default_toolbox
from marextui.tools.process import group_alive, start
from marextui.tools.types import ToolContext
from tests.stubs.waiting import HeldClock
from tests.unit.tools.conftest import Call


@pytest.fixture(params=["rg", "worker"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "worker":
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    elif shutil.which("rg") is None:
        pytest.skip("no rg here")
    name: str = request.param
    return name


@pytest.fixture
def files(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("def one():\n    return 1\n\ndef two():\n    return 2\n")
    (root / "src" / "b.txt").write_text("One more\r\nlast one\r\n")
    (root / ".hidden").write_text("one hidden\n")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").write_text("one\n")
    return root


async def lines(call: Call, **arguments: object) -> list[str]:
    return (await call("Grep", **arguments)).text.splitlines()


async def test_matches_in_order_of_paths(call: Call, files: Path) -> None:
    result = await call("Grep", pattern=r"\bone\b")
    assert result.text.splitlines() == [
        ".hidden:1:one hidden",
        "src/a.py:1:def one():",
        "src/b.txt:2:last one",
    ]
    assert (result.is_error, result.summary) == (False, "3 matches")


async def test_options(call: Call, files: Path) -> None:
    assert await lines(call, pattern="ONE", ignore_case=True, path="src/b.txt") == [
        "src/b.txt:1:One more", "src/b.txt:2:last one",
    ]  # fmt: skip
    assert await lines(call, pattern="return", glob="*.py") == ["src/a.py:2:    return 1", "src/a.py:5:    return 2"]
    assert await lines(call, pattern="one", glob="!*.py", path="src") == ["src/b.txt:2:last one"]
    assert await lines(call, pattern="return 1", context=1, path="src") == [
        "src/a.py-1-def one():", "src/a.py:2:    return 1", "src/a.py-3-",
    ]  # fmt: skip
    assert (await lines(call, pattern="^def|last", context=1))[-2:] == ["src/b.txt-1-One more", "src/b.txt:2:last one"]
    assert "--" in await lines(call, pattern="^def|last", context=1)


async def test_no_match_is_no_error(call: Call, files: Path) -> None:
    result = await call("Grep", pattern="zzz", glob="*.py")
    assert (result.text, result.is_error) == (
        "No matches for zzz in . (*.py) (ignored files are not searched).",
        False,
    )


async def test_a_bad_expression_is_searched_as_plain_text_and_says_so(call: Call, files: Path) -> None:
    found = await call("Grep", pattern="one(")
    assert found.text.startswith("src/a.py:1:def one():\n[not a valid regular expression (")
    assert found.text.endswith("searched for it as plain text]")
    nothing = await call("Grep", pattern="zzz(")
    assert nothing.is_error
    assert "not a valid regular expression" in nothing.text


@pytest.mark.parametrize("pattern", ["-e", "--files", "--", "-rf x"])
async def test_patterns_and_names_with_leading_dashes(call: Call, root: Path, pattern: str) -> None:
    (root / "--help").write_text(f"a {pattern} b\n")
    assert await lines(call, pattern=pattern) == [f"--help:1:a {pattern} b"]
    assert await lines(call, pattern=pattern, path="--help") == [f"--help:1:a {pattern} b"]
    assert "No matches" in (await call("Grep", pattern=pattern, glob="--version")).text


async def test_odd_file_names(call: Call, root: Path) -> None:
    for name in (b"two\nlines", b"esc\x1b[31m", b"caf\xe9", b"a:1:b"):
        with os.fdopen(os.open(os.path.join(os.fsencode(root), name), os.O_CREAT | os.O_WRONLY), "w") as file:
            file.write("needle\n")
    assert sorted(await lines(call, pattern="needle")) == [
        "a:1:b:1:needle", "caf\\xe9:1:needle", "esc\\x1b[31m:1:needle", "two\\nlines:1:needle",
    ]  # fmt: skip


async def test_lines_and_their_number_are_bounded(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "MAX_LINES", 5)
    (root / "a").write_text("x" * 5000 + "\n" + "x\n" * 100_000)
    result = await call("Grep", pattern="x")
    shown = result.text.splitlines()
    assert len(shown) == 6
    assert shown[0] == "a:1:" + "x" * grep.LINE_CHARS + "…"
    assert shown[-1] == "[stopped after 5 lines: use a narrower pattern, path or glob]"
    assert result.summary == "5 matches so far"


async def test_a_line_of_megabytes_is_survived(call: Call, root: Path) -> None:
    (root / "a").write_text("q" * 3_000_000 + "\nneedle\n")
    assert await lines(call, pattern="needle") == ["a:2:needle"]


async def test_binary_files_and_links_are_left_out(call: Call, root: Path, tmp_path: Path) -> None:
    (root / "bin").write_bytes(b"needle\0needle\n")
    (tmp_path / "secret").write_text("needle\n")
    os.symlink("../secret", root / "link")
    os.mkfifo(root / "pipe")
    (root / "sparse").touch()
    os.truncate(root / "sparse", 1 << 30)
    result = await call("Grep", pattern="needle")
    assert result.text.startswith("No matches")


async def test_bytes_that_are_not_utf8(call: Call, root: Path) -> None:
    (root / "a").write_bytes(b"caf\xe9 needle\n")
    assert await lines(call, pattern="needle") == ["a:1:caf\ufffd needle"]


async def test_missing_and_outside(call: Call, box: Box, root: Path) -> None:
    assert "does not exist" in (await call("Grep", pattern="x", path="none")).text
    assert (await call("Grep", pattern="")).is_error
    need = await box.permission("Grep", '{"pattern": "x", "path": ".."}')
    assert need is not None
    assert (need.kind, need.scope) == ("outside", os.path.realpath(root.parent))


class _Stuck:
    """Replaces the searching program by one that never ends and writes nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = asyncio.Event()
        self.group = 0

        async def stuck(argv: object, **options: object) -> object:
            child = await start(["sleep", "1000"], **options)  # type: ignore[arg-type]
            self.group = child.process.pid
            self.started.set()
            return child

        monkeypatch.setattr("marextui.tools.capture.start", stuck)


async def test_a_search_that_takes_too_long_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("x\n")
    clock = HeldClock(instant=1)
    grep_tool = grep.Grep(default_space(root), clock)
    stuck = _Stuck(monkeypatch)
    if shutil.which("rg") is None:
        monkeypatch.setattr(grep.Grep, "_names", _one_name)
    task = asyncio.ensure_future(grep_tool.run({"pattern": "x"}, ToolContext()))
    await stuck.started.wait()
    await clock.until_asked(30)
    clock.advance(30)
    result = await task
    assert "stopped after 30 seconds" in result.text
    assert result.is_error
    await _gone(stuck.group)


async def test_a_cancelled_search_is_killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("x\n")
    stuck = _Stuck(monkeypatch)
    if shutil.which("rg") is None:
        monkeypatch.setattr(grep.Grep, "_names", _one_name)
    box = default_toolbox(root, bash_timeout=60)
    task = asyncio.ensure_future(box.run("Grep", json.dumps({"pattern": "x"}), ToolContext()))
    await stuck.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _gone(stuck.group)


async def _gone(group: int) -> None:
    """Until nothing of the group runs; one that is never ended would run into the test's own time limit."""
    while group_alive(group):
        await asyncio.to_thread(time.sleep, 0)


async def _one_name(self: object, query: object) -> list[str]:
    return ["a"]


def default_space(root: Path) -> grep.Workspace:
    return grep.Workspace(root)
