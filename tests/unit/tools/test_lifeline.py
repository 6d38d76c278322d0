"""A command ends with the program that runs it, also when that is killed and can do nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marextui.tools.process import RealClock, start

_APP = """\
import asyncio, sys
from pathlib import Path
from marextui.tools.bash import Bash
from marextui.tools.types import ToolContext
from marextui.tools.workspace import Workspace

tool = Bash(Workspace(Path(sys.argv[1])), default_timeout=60)
asyncio.run(tool.run({"command": sys.argv[2]}, ToolContext(emit=lambda text: None)))
"""


@pytest.mark.parametrize("first", ["", "trap '' TERM; "], ids=["plain", "deaf to SIGTERM"])
def test_a_killed_program_leaves_no_command_behind(tmp_path: Path, first: str) -> None:
    """The kernel closes what the program held: its command and the children of it are ended."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    command = f"{first}exec 7>{fifo}; echo $$ >&7; sleep 600; touch {tmp_path}/survived"
    app = subprocess.Popen([sys.executable, "-c", _APP, str(tmp_path), command])
    with fifo.open() as held:
        assert held.readline().strip().isdigit()
        app.kill()
        app.wait()
        assert held.read() == "", "the end of the file comes when the last of the group is gone"
    assert not (tmp_path / "survived").exists()


async def test_what_a_command_leaves_running_on_purpose_outlives_its_call(tmp_path: Path) -> None:
    """A server that was started in the background is let go of with the call."""
    child = await start(
        ["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], cwd=tmp_path, env={"PATH": os.environ["PATH"]}
    )
    left = int(await child.output.readline())
    await child.process.wait()
    await child.close()
    os.kill(left, 0)
    await child.end(RealClock())


async def test_no_shell_stays_beside_a_command_that_has_ended(tmp_path: Path) -> None:
    child = await start(["/bin/true"], cwd=tmp_path, env={})
    await child.process.wait()
    await child.close()
    assert child.line._watcher.returncode == 0
