"""What arrives on the terminal's input, whatever and whenever: nothing ends the app, nothing reaches the shell."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.test_pty import READY, held_reply, leave_with_draft, marextui
from tests.stubs.fake_server import FakeServer, Gate, text_reply
from tests.stubs.terminal import ENTER, Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

CRASHING = """\
import sys
from marextui.tui.panes.composer import Composer
from marextui.cli import main

def broken(self):
    raise ValueError("a defect")

Composer._grow = broken
sys.exit(main())
"""
"""The product with a defect that the first letter in the draft meets."""

LEFT = "import select, sys; print('LEFT', bool(select.select([0], [], [], 1)[0]))"
"""What the shell would read and run."""


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer(n_ctx=32_768) as fake:
        yield fake


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_bytes_that_are_no_text_change_nothing_but_themselves(server: FakeServer, project: Path) -> None:
    gate = Gate()
    server.script(held_reply("The answer begins", gate, " and ends."))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("a question" + ENTER)
        await term.until("The answer begins")
        term.type(b"my draft \xe9 goes on")
        await term.until("my draft \ufffd goes on")
        await term.paste(b", caf\xe9 au lait")
        await term.until(", caf\ufffd au lait")
        gate.open()
        await term.until("The answer begins and ends.")
        await leave_with_draft(term)


async def test_after_a_crash_the_rest_of_a_paste_does_not_reach_the_shell(server: FakeServer, project: Path) -> None:
    script = project / "crashing.py"
    script.write_text(CRASHING)
    command = f"{shlex.join([sys.executable, str(script)])}; {shlex.join([sys.executable, '-c', LEFT])}"
    env = {"MAREX_BASE_URL": server.base_url, "MAREX_MODEL": "fake"}
    async with Terminal(["/bin/sh", "-c", command], cwd=project, env=env) as term:
        await term.until(READY)
        await term.pour(b"Z\n" + b"# a line of a log\n" * 6_000 + b"touch PASTED\n")
        await term.until(lambda: "LEFT True" in term.text or "LEFT False" in term.text)
        assert "LEFT False" in term.text
        assert b"a defect" in term.raw, "it ended by the error"


@pytest.mark.parametrize("pause", [0.0, 0.02])
async def test_nothing_typed_during_the_start_is_lost(pause: float, server: FakeServer, project: Path) -> None:
    """Typed from the very start, while the terminal is still the shell's, while the screen is made, and after."""
    server.fallback = text_reply("Noted.")
    text = "please explain how this project is put together, and what its parts do for each other; then stop."
    async with marextui(server, project) as term:
        for letter in text:
            term.type(letter)
            await asyncio.sleep(pause)  # at a person's speed it meets every stage of the start
        await term.until(lambda: term.screen.alternate and "then stop." in term.text)
        term.type(ENTER)
        await term.until("Noted.")
        assert [m["content"] for m in server.chats[0].json()["messages"] if m["role"] == "user"] == [text]
        term.type("/quit" + ENTER)
        assert await term.exited() == 0


async def test_enter_during_the_start_sends_nothing_cut(server: FakeServer, project: Path) -> None:
    server.fallback = text_reply("Noted.")
    async with marextui(server, project) as term:
        term.type("explain this" + ENTER)
        await term.until(lambda: term.screen.alternate and "explain this" in term.text)
        term.type("in short" + ENTER)
        await term.until("Noted.")
        sent = " ".join(m["content"] for c in server.chats[-1:] for m in c.json()["messages"] if m["role"] == "user")
        assert sent.split() == ["explain", "this", "in", "short"]
        term.type("/quit" + ENTER)
        assert await term.exited() == 0
