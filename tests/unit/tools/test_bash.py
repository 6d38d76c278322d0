"""Bash: what it returns, what it streams, and that nothing of it outlives an interrupt."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from marextui.tools.bash import Bash
from marextui.tools.box import Box, default_toolbox
from marextui.tools.environment import plain_environment
from marextui.tools.process import group_alive
from marextui.tools.streaming import EMIT_CHARS, KeptOutput, OutputStream
from marextui.tools.types import ToolContext, ToolResult
from marextui.tools.workspace import Workspace
from tests.stubs.waiting import HeldClock
from tests.unit.tools.conftest import Call


class Running:
    """A command in a task, with its output as it is streamed."""

    def __init__(self, root: Path, clock: HeldClock, **arguments: object) -> None:
        self.output = ""
        self._more = asyncio.Event()
        tool = Bash(Workspace(root), default_timeout=60, clock=clock)
        self.task = asyncio.ensure_future(tool.run(arguments, ToolContext(emit=self._emit)))

    def _emit(self, text: str) -> None:
        self.output += text
        self._more.set()

    async def until(self, text: str) -> None:
        while text not in self.output:
            self._more.clear()
            await self._more.wait()

    async def until_numbers(self, how_many: int) -> None:
        while len(self.numbers()) < how_many:
            self._more.clear()
            await self._more.wait()

    def numbers(self) -> list[int]:
        """The numbers it has printed, one on a line: process ids."""
        return [int(line) for line in self.output.splitlines() if line.isdigit()]


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


async def gone(*pids: int) -> None:
    """Until none of them runs; what is never ended would run into the test's own time limit."""
    while any(alive(pid) for pid in pids):
        await asyncio.to_thread(time.sleep, 0)


@pytest.fixture
def clock() -> HeldClock:
    """Long waits are held; the short ones between two looks at a dying process are not waited for."""
    return HeldClock(instant=0.1)


async def test_output_of_both_streams_in_order_and_exit_code(call: Call) -> None:
    result = await call("Bash", command="echo one; echo two >&2; echo three; exit 7")
    assert result.text == "one\ntwo\nthree\nexit code 7"
    assert (result.is_error, result.summary) == (True, "exit code 7")


async def test_success(call: Call) -> None:
    assert await call("Bash", command="printf 'a\\nb'") == ToolResult("a\nb", summary="2 lines")
    assert (await call("Bash", command="true")).text == "(no output)"


async def test_it_runs_in_the_project_or_a_directory_of_it(call: Call, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "file").touch()
    assert (await call("Bash", command="pwd -P")).text.strip() == os.path.realpath(root)
    assert (await call("Bash", command="pwd -P", cwd="sub")).text.strip() == os.path.realpath(root / "sub")
    assert (await call("Bash", command="cd sub; pwd; true", workdir=".")).text.strip().endswith("sub")
    for cwd, why in (("..", "outside the project"), ("none", "does not exist"), ("file", "not a directory")):
        result = await call("Bash", command="touch ran", cwd=cwd)
        assert result.is_error
        assert why in result.text
    assert not (root / "ran").exists()


async def test_no_input_no_terminal_no_colour_no_secrets(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "MY_api_key", "MAREX_HOME", "MAREXTUI_X", "XAPIKEY"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("PLAIN_VARIABLE", "kept")
    shown = (await call("Bash", command="env; cat; (: </dev/tty) 2>/dev/null && echo has-tty; true")).text
    assert "leaked" not in shown
    assert "has-tty" not in shown
    for line in ("PLAIN_VARIABLE=kept", "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat"):
        assert line in shown.splitlines()


def test_the_environment_is_not_that_of_a_git_hook_and_runs_no_start_file() -> None:
    assert set(plain_environment({"GIT_DIR": "x", "BASH_ENV": "x", "ENV": "x", "FORCE_COLOR": "1", "A": "b"})) & {
        "GIT_DIR", "BASH_ENV", "ENV", "FORCE_COLOR", "A",
    } == {"A"}  # fmt: skip


@pytest.mark.parametrize("command", ["-x", "--version", "--"])
async def test_commands_that_look_like_options_are_commands(call: Call, command: str) -> None:
    assert "not found" in (await call("Bash", command=command)).text


@pytest.mark.parametrize(
    ("command", "why"), [(" ", "is empty"), ("echo \0", "could not be started"), ("x" * 3_000_000, "not be started")]
)
async def test_impossible_commands(call: Call, command: str, why: str) -> None:
    result = await call("Bash", command=command)
    assert result.is_error
    assert why in result.text


async def test_bytes_that_are_not_utf8(call: Call) -> None:
    assert (await call("Bash", command="printf 'a\\377b'")).text == "a\ufffdb"


async def test_a_shell_that_dies_by_a_signal(call: Call) -> None:
    result = await call("Bash", command="kill -SEGV $$")
    assert result.is_error
    assert result.text == "ended by signal SIGSEGV"


async def test_permission_is_for_the_exact_command_and_directory(box: Box, root: Path) -> None:
    (root / "sub").mkdir()
    here = await box.permission("Bash", '{"command": "rm -rf build"}')
    there = await box.permission("Bash", '{"command": "rm -rf build", "cwd": "sub"}')
    assert here is not None
    assert there is not None
    assert (here.kind, here.scope, here.diff) == ("bash", "rm -rf build", "")
    assert here.detail == f"rm -rf build\n\nin {os.path.realpath(root)}"
    assert there.scope != here.scope
    assert os.path.realpath(root / "sub") in there.detail


async def test_output_is_streamed_while_it_runs(root: Path, clock: HeldClock) -> None:
    (root / "go").touch()
    os.unlink(root / "go")
    os.mkfifo(root / "go")
    running = Running(root, clock, command="echo first; read x <go; echo second $x")
    await running.until("first")
    assert not running.task.done()
    await asyncio.to_thread((root / "go").write_text, "now\n")
    result = await running.task
    assert running.output == "first\nsecond now\n"
    assert result.text == "first\nsecond now\n"


async def test_emits_are_coalesced() -> None:
    clock, shown = HeldClock(), []
    stream = OutputStream(shown.append, clock)
    source = asyncio.StreamReader()
    pump = asyncio.ensure_future(stream.pump(source))
    source.feed_data(b"0\n")
    await clock.until_asked(0.1)
    for n in range(1, 500):
        source.feed_data(b"%d\n" % n)
        await asyncio.sleep(0)
    source.feed_data("é".encode()[:1])
    source.feed_data("é".encode()[1:])
    source.feed_eof()
    await pump
    assert len(shown) == 2
    assert "".join(shown) == "".join(f"{n}\n" for n in range(500)) + "é"


async def test_a_flood_reaches_the_screen_bounded() -> None:
    clock, shown = HeldClock(), []
    stream = OutputStream(shown.append, clock)
    source = asyncio.StreamReader()
    pump = asyncio.ensure_future(stream.pump(source))
    source.feed_data(b"x")
    await clock.until_asked(0.1)
    source.feed_data(b"y" * 1_000_000)
    source.feed_eof()
    await pump
    assert shown[0] == "x"
    assert len(shown[1]) < EMIT_CHARS + 100
    assert shown[1].startswith(f"[… {1_000_000 - EMIT_CHARS} characters not shown here …]\n")
    assert stream.kept.total == 1_000_001


def test_head_and_tail_are_kept_and_the_gap_is_counted() -> None:
    kept = KeptOutput(head_bytes=5, tail_bytes=5)
    for n in range(0, 26, 2):
        kept.add(b"abcdefghijklmnopqrstuvwxyz"[n : n + 2])
    assert kept.total == 26
    assert kept.text() == "abcde\n[… 16 bytes left out here …]\nvwxyz"
    whole = KeptOutput(head_bytes=5, tail_bytes=5)
    whole.add(b"0123\xc3")
    whole.add(b"\xa9")
    assert whole.text() == "0123é"  # a character across the seam is whole


async def test_ten_megabytes_are_bounded(call: Call) -> None:
    """A log of five megabytes is kept whole (case 83); what has no end is not."""
    result = await call("Bash", command="head -c 10000000 /dev/zero | tr '\\0' 'x'; echo end")
    assert len(result.text) < 8_500_000
    assert "1 611 396 bytes left out here" in result.text
    assert result.text.endswith("end\n")


IGNORES_TERM = "trap '' TERM; (trap '' TERM; while :; do sleep 1000; done) & echo $!; echo $$; wait"


@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000 & echo $!; echo $$; wait",
        IGNORES_TERM,
        "(sleep 1000 >/dev/null 2>&1 & echo $!); echo $$; sleep 1000",
    ],
)
async def test_cancelling_ends_the_whole_group(root: Path, clock: HeldClock, command: str) -> None:
    running = Running(root, clock, command=command + "; echo after")
    await running.until_numbers(2)
    pids = running.numbers()
    assert all(alive(pid) for pid in pids)
    running.task.cancel()
    await asyncio.sleep(0)
    running.task.cancel()  # an impatient second interrupt changes nothing
    with pytest.raises(asyncio.CancelledError):
        await running.task
    await gone(*pids)


async def test_the_group_gets_two_seconds_to_end_by_itself(root: Path, clock: HeldClock) -> None:
    running = Running(root, clock, command=IGNORES_TERM)
    await running.until_numbers(2)
    clock.asked.clear()
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert 2.0 <= sum(second for second in clock.asked if second < 0.1) <= 3.1  # then SIGKILL


async def test_time_out_ends_the_whole_group_and_keeps_the_output(root: Path, clock: HeldClock) -> None:
    running = Running(root, clock, command=IGNORES_TERM, timeout=5)
    await running.until_numbers(2)
    clock.advance(5)
    result = await running.task
    pids = running.numbers()
    assert result.is_error
    assert result.text.endswith("\n[timed out after 5 seconds; the command and its children were ended]")
    assert str(pids[0]) in result.text
    assert result.summary == "timed out after 5 s"
    await gone(*pids)


@pytest.mark.parametrize(("given", "seconds"), [(None, 60), (30, 30), (120_000, 600)])
async def test_time_out_has_a_default_and_a_limit(
    root: Path, clock: HeldClock, given: int | None, seconds: int
) -> None:
    arguments = {"command": "sleep 1000"} | ({} if given is None else {"timeout": given})
    running = Running(root, clock, **arguments)
    await clock.until_asked(seconds)
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task


async def test_zero_seconds_are_the_default_and_fewer_are_refused(call: Call) -> None:
    assert "timeout must be 1 to 600 seconds" in (await call("Bash", command="true", timeout=-1)).text
    assert not (await call("Bash", command="true", timeout=0)).is_error


async def test_a_background_child_that_holds_the_output_is_ended_and_said(root: Path, clock: HeldClock) -> None:
    running = Running(root, clock, command="sleep 1000 & echo $!")
    await running.until("\n")
    await clock.until_asked(0.5)
    clock.advance(0.5)
    result = await running.task
    assert not result.is_error
    assert "background processes still held the output and were ended" in result.text
    await gone(running.numbers()[0])


async def test_a_background_child_that_lets_go_of_the_output_runs_on_and_is_said(root: Path, clock: HeldClock) -> None:
    result = await Running(root, clock, command="sleep 1000 >/dev/null 2>&1 & echo $!").task
    child = int(result.text.splitlines()[0])
    assert alive(child)
    group = int(result.text.rstrip("]").rpartition("-")[2])
    assert group_alive(group)
    os.killpg(group, signal.SIGKILL)


async def test_a_detached_child_is_left_alone_and_not_waited_for(root: Path, clock: HeldClock) -> None:
    running = Running(root, clock, command="setsid sleep 1000 & echo $!; sleep 0.05")
    await running.until("\n")
    await clock.until_asked(0.5)
    clock.asked.clear()
    clock.advance(0.5)
    await clock.until_asked(0.5)
    clock.advance(0.5)
    result = await running.task
    assert "a detached process still holds the output" in result.text
    os.kill(running.numbers()[0], signal.SIGKILL)


async def test_two_commands_at_once_do_not_mix(root: Path) -> None:
    box = default_toolbox(root, bash_timeout=60)
    runs = [box.run("Bash", json.dumps({"command": f"echo {n}; echo {n}"}), ToolContext()) for n in range(8)]
    results = await asyncio.gather(*runs)
    assert [result.text for result in results] == [f"{n}\n{n}\n" for n in range(8)]


async def test_cancelled_before_the_shell_has_started_leaves_none(root: Path, clock: HeldClock) -> None:
    for steps in range(12):
        running = Running(root, clock, command="echo $$ > pid; exec sleep 1000")
        for _ in range(steps):
            await asyncio.sleep(0)
        running.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running.task
        if (root / "pid").exists() and (root / "pid").read_text().strip():
            await gone(int((root / "pid").read_text()))
