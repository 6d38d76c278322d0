"""A command ends with the program that runs it, also when that is killed and can do nothing more."""

from __future__ import annotations

import os
import signal
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


_DIES_TOO_EARLY = """\
import asyncio, os, signal
from pathlib import Path
from marextui.tools.lifeline import Lifeline
from marextui.tools.process import start

Lifeline.tie = lambda self, group: os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(start(["/bin/sh", "-c", "echo ran >&2"], cwd=Path("."), env={}, stderr=2))
"""


def test_a_program_killed_before_it_has_tied_its_command_has_run_nothing() -> None:
    """Between the start of a process and the word to the lifeline there is a moment; the command waits for its end."""
    app = subprocess.run([sys.executable, "-c", _DIES_TOO_EARLY], stderr=subprocess.PIPE)  # all that hold it have ended
    assert (app.returncode, app.stderr) == (-signal.SIGKILL, b"")


async def test_a_program_reads_from_the_file_it_is_given_and_else_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("of the file")
    for stdin, said in (({"stdin": str(tmp_path / "source")}, b"of the file"), ({}, b"")):
        child = await start(["/bin/cat"], cwd=tmp_path, env={}, **stdin)
        assert await child.output.read() == said
        await child.process.wait()
        await child.close()


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
