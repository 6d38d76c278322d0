"""`marextui -p` as a script meets it: closed pipes, full disks, empty answers, addresses that are none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.stubs.engine_rig import Rig
from tests.stubs.fake_server import FakeServer, Reply, stream_reply, text_reply, usage_chunk
from tests.stubs.scripted_model import ScriptedChat, say


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


async def shell(script: str, cwd: Path, url: str = "") -> tuple[int, str, str]:
    """Run `script` in bash, `marextui` meaning the command of this environment; ended after 50 seconds."""
    line = f'marextui() {{ "{sys.executable}" -m marextui "$@"; }}; set -o pipefail; {script}'
    environment = {**os.environ, "MAREX_BASE_URL": url, "MAREX_MODEL": "fake"} if url else dict(os.environ)
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", line, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 50)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_reader_that_has_seen_enough_ends_the_answer_quietly(server: FakeServer, tmp_path: Path) -> None:
    server.script(text_reply("line\n" * 50_000))
    code, out, err = await shell("marextui -p go | head -1", tmp_path, server.base_url)
    assert (code, out, err) == (0, "line\n", "")


async def test_a_full_disk_behind_the_answer_is_named(server: FakeServer, tmp_path: Path) -> None:
    server.script(text_reply("hello"))
    code, _, err = await shell("marextui -p go > /dev/full", tmp_path, server.base_url)
    assert code == 1
    assert err == "marextui: the answer could not be written: No space left on device.\n"


async def test_a_closed_output_is_named(server: FakeServer, tmp_path: Path) -> None:
    code, _, err = await shell("marextui -p go >&-", tmp_path, server.base_url)
    assert code == 1
    assert "nowhere to write" in err
    assert not server.chats


@pytest.mark.parametrize("given", ["echo hello | marextui -p", "echo hello | marextui -p -"])
async def test_the_prompt_may_come_from_the_pipe_alone(server: FakeServer, tmp_path: Path, given: str) -> None:
    server.script(text_reply("hi"))
    code, out, err = await shell(given, tmp_path, server.base_url)
    assert (code, out, err) == (0, "hi\n", "")
    assert server.chats[0].json()["messages"][-1]["content"].strip() == "hello"


async def test_an_unset_variable_picks_no_other_model(tmp_path: Path) -> None:
    code, _, err = await shell('marextui -p go --base-url "$NOT_SET"', tmp_path)
    assert (code, err) == (2, "marextui: --base-url was given an empty value.\n")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (stream_reply(usage_chunk(10, 0)), "answered nothing. Retry"),
        (text_reply("", reasoning="hm hm"), "answered nothing. It thought, and wrote no answer."),
        (Reply(("",)), "ended it without a word"),
    ],
)
async def test_no_answer_is_no_success(server: FakeServer, tmp_path: Path, reply: Reply, told: str) -> None:
    server.script(reply)
    code, out, err = await shell("marextui -p go", tmp_path, server.base_url)
    assert (code, out) == (1, "")
    assert told in err
    assert err.count("\n") == 1, "said once"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:1/\x1b[31mx", "is not a base URL"),
        ("http://127.0.0.1:1/v1", "nothing listens there"),
    ],
)
async def test_an_address_that_cannot_work_is_named_once(tmp_path: Path, url: str, told: str) -> None:
    code, out, err = await shell("marextui -p go", tmp_path, url)
    assert (code, out) == (1, "")
    assert told in err
    assert "\x1b" not in err
    assert err.count("\n") == 1, err


async def test_a_server_without_tls_is_not_said_to_be_missing(server: FakeServer, tmp_path: Path) -> None:
    code, _, err = await shell("marextui -p go", tmp_path, server.base_url.replace("http://", "https://"))
    assert code == 1
    assert "does not speak TLS" in err
    assert "http://" in err


@pytest.mark.parametrize("path", [".", "folder", "new/"])
async def test_an_export_into_a_folder_says_that_it_is_one(tmp_path: Path, path: str) -> None:
    r = await Rig(tmp_path).start()
    try:
        (tmp_path / "project" / "folder").mkdir()
        with pytest.raises(IsADirectoryError, match="it is a folder; give the name of a file"):
            await r.engine.export(path)
    finally:
        await r.engine.close()


@pytest.mark.parametrize("fmt", ["json", "markdown"])
async def test_half_a_character_does_not_stop_an_export(tmp_path: Path, fmt: Any) -> None:
    """Models and odd file names bring lone surrogates; no file holds them as they are."""
    r = await Rig(tmp_path, chat=ScriptedChat([say("x \ud83d y")])).start()
    try:
        await r.ask("go")
        text = Path(await r.engine.export("out", fmt=fmt)).read_text(encoding="utf-8")
    finally:
        await r.engine.close()
    assert ("x \\ud83d y" if fmt == "json" else "x \ufffd y") in text


async def test_an_export_writes_over_nothing_unasked(tmp_path: Path) -> None:
    r = await Rig(tmp_path).start()
    try:
        precious = tmp_path / "project" / "precious.md"
        precious.write_text("precious")
        with pytest.raises(FileExistsError):
            await r.engine.export("precious.md")
        assert precious.read_text() == "precious"
        await r.engine.export("precious.md", replace=True)
        assert "precious" not in precious.read_text()
    finally:
        await r.engine.close()
