"""`marextui doctor`: arguments, consent, exit codes, what goes to which stream (issue 4, section 6)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marextui import paths
from marextui.cli import main
from marextui.engine import doctor
from marextui.models import discovery, hub
from marextui.models import doctor as models_doctor
from marextui.settings import load_settings, write_setting
from tests.stubs.examined import llama_cpp, plain
from tests.stubs.fake_server import FakeServer, Gate, Reply, delta, json_reply
from tests.stubs.terminal import ENTER, Terminal

KEY = "sk-for-this-one-server"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        plain(server)
        yield server


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a server of this machine nor an installed engine is found unless the test says so; nobody waits."""
    monkeypatch.setattr(models_doctor, "FREE_AFTER", 0.0)
    monkeypatch.setattr(hub, "engine_installed", lambda: False)

    async def silent(ports: object) -> list[discovery.Found]:
        return [discovery.Found("llama.cpp", "http://127.0.0.1:8080/v1", (), False)]

    monkeypatch.setattr(hub, "probe_loopback", silent)


async def run(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["doctor", *arguments])


async def test_a_usable_server(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(server.url) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Sends {server.base_url} at most ")
    assert f"{server.base_url} can be used." in out
    assert f'base_url = "{server.base_url}"' in out
    assert str(paths.config_file()) in out
    assert "\x1b" not in out


async def test_json_is_all_there_is_on_standard_output(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run(server.base_url, "--json") == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["usable"] is True
    assert told["sent"]["at_most"]["requests"] >= told["sent"]["requests"] == len(server.chats)
    assert "Sends " in err


async def test_the_statement_comes_before_anything_is_sent(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def listing(_request: object) -> Reply:
        told.append(capsys.readouterr().out)
        return json_reply({"object": "list", "data": [{"id": "m"}]})

    server.routes["/v1/models"] = listing
    await run(server.url)
    assert told[0].startswith("Sends ")


async def test_an_unusable_server(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.routes = {}
    assert await run(server.url) == 1
    assert "This server cannot be used." in capsys.readouterr().out
    assert await run(server.url, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["usable"] is False
    assert "404" in told["problem"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ftp://somewhere"],
        ["http://"],
        ["  "],
        ["http://127.0.0.1:1", "--embedded"],
        ["http://127.0.0.1:1", "--api-key-env", "NO_SUCH_VARIABLE"],
        ["http://127.0.0.1:1", "--timeout", "0"],
        ["http://127.0.0.1:1", "--timeout", "nan"],
        ["https://api.example.com/v1"],
    ],
)
async def test_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The last one would cost money, and nobody is there to say yes."""
    assert await run(*arguments) == 2
    assert capsys.readouterr().err.startswith("marextui doctor: ")


async def test_a_hosted_server_is_examined_when_that_is_wanted(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "is_local", lambda _url: False)
    assert await run(server.url) == 2
    assert not server.requests
    assert await run(server.url, "--yes") == 0
    assert len(server.chats) == 5
    assert "may cost money" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
async def test_a_person_may_say_no(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "marextui", "doctor", "https://api.example.com/v1"]
    for answer in ("n" + ENTER, ENTER):
        async with Terminal(command, cwd=tmp_path) as term:
            await term.until("Send it? [y/N]")
            term.type(answer)
            await term.until("nothing was sent")
            assert await term.exited() == 2


async def test_options_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--nonsense"])
    assert ended.value.code == 2


async def test_nothing_to_examine(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run() == 1
    err = capsys.readouterr().err
    assert "Nothing answers at http://127.0.0.1:8080/v1" in err
    assert "pip install" in err
    assert await run("--json") == 1
    assert json.loads(capsys.readouterr().out)["usable"] is False


async def test_the_embedded_model_is_not_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run("--embedded") == 1
    assert "not installed" in capsys.readouterr().err


async def test_without_a_url_the_configured_server_is_examined(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its key; its address is no advice then."""
    for key, value in (("base_url", server.base_url), ("api_key", KEY), ("model", "some-model")):
        write_setting(paths.config_file(), key, value)
    assert await run() == 0
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"
    out = capsys.readouterr().out
    assert "base_url =" not in out
    assert KEY not in out


async def test_what_answers_on_loopback(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(ports: object) -> list[discovery.Found]:
        return [
            discovery.Found("vLLM", "http://127.0.0.1:9/v1", (), True),
            discovery.Found("llama.cpp", server.base_url, ("some-model",), True),
            discovery.Found("Ollama", "http://127.0.0.1:11434/v1", ("x",), True),
        ]

    monkeypatch.setattr(hub, "probe_loopback", found)
    assert await run() == 0
    assert "Also answering: Ollama at http://127.0.0.1:11434/v1" in capsys.readouterr().out


async def test_the_configured_key_goes_to_no_other_server(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does one of the environment, unless its variable is named."""
    write_setting(paths.config_file(), "base_url", "http://127.0.0.1:9/v1")
    write_setting(paths.config_file(), "api_key", KEY)
    await run(server.url)
    monkeypatch.setenv("MAREX_API_KEY", KEY)
    await run(server.url)
    assert not any("authorization" in r.headers for r in server.requests)
    monkeypatch.setenv("MY_KEY", KEY)
    await run(server.url, "--api-key-env", "MY_KEY")
    assert server.chats[-1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("how", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}])
async def test_a_terminal_without_utf8(server: FakeServer, how: dict[str, str], tmp_path: Path) -> None:
    llama_cpp(server).reply = "é✓"
    out, _, code = await product(server.url, env=how, cwd=tmp_path)
    assert code == 0
    assert out.isascii()
    assert b"+ window " in out
    assert b"x saves its slots" in out


async def product(*arguments: str, env: dict[str, str], cwd: Path) -> tuple[bytes, bytes, int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "marextui",
        "doctor",
        *arguments,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **env},
        cwd=cwd,
    )
    out, err = await process.communicate()
    return out, err, process.returncode or 0


async def test_ctrl_c_ends_it_with_what_is_known(server: FakeServer, tmp_path: Path) -> None:
    working, held = server.fallback, Gate()
    assert callable(working)

    def stuck(request: Any) -> Reply:
        return Reply((delta(content="a"), held)) if "tools" in request.json() else working(request)

    server.fallback = stuck
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "marextui", "doctor", server.url, stdout=PIPE, stderr=PIPE, cwd=tmp_path
    )
    await held.reached.wait()
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    await server.hung_up()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert "Not everything was looked at: it was stopped" in out.decode()
    assert "✓ two users in a row" in out.decode()


async def test_the_settings_can_be_written(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what is not set already, and nothing without being asked; comments stay."""
    llama_cpp(server)
    file = paths.config_file()
    await run(server.url)
    assert not file.exists()
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nproj_snapshot = true\n")
    assert await run(server.url, "--save", "--json") == 0
    assert "4 settings written" in capsys.readouterr().err
    text = file.read_text()
    assert text.startswith("# mine\nproj_snapshot = true\n")
    settings, problems = load_settings(file, None, {})
    assert problems == ()
    assert (settings.base_url, settings.model) == (server.base_url, "qwen-7b")
    assert (settings.compact_continuation, settings.prewarm) == (True, "on")


async def test_settings_that_cannot_be_written(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    llama_cpp(server)
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text("not toml\n")
    assert await run(server.url, "--save") == 2
    assert "could not be written" in capsys.readouterr().err


async def test_wrong_settings_are_told(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    paths.config_file().parent.mkdir(parents=True)
    paths.config_file().write_text("compact_at = 7\n")
    assert await run(server.url) == 0
    assert "config.toml:1" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--json",)])
async def test_a_reader_that_has_seen_enough(server: FakeServer, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Its end of the pipe is closed before the first line: no complaint, as pipes end."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "marextui", "doctor", server.url, *more]
    process = await asyncio.create_subprocess_exec(*command, stdout=writing, stderr=PIPE, cwd=tmp_path)
    os.close(writing)
    _, err = await process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert b"Exception" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_disk_that_is_full(server: FakeServer, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:  # noqa: ASYNC230 - opening a device does not wait
        command = [sys.executable, "-m", "marextui", "doctor", server.url]
        process = await asyncio.create_subprocess_exec(*command, stdout=full, stderr=PIPE, cwd=tmp_path)
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode() == "marextui doctor: the report could not be written: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
async def test_colours_on_a_terminal_only(server: FakeServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "marextui", "doctor", server.url]
    async with Terminal(command, cwd=tmp_path, env={}) as term:
        await term.until("prompt tokens by the")
        assert await term.exited() == 0
        assert b"\x1b[32m" in term.raw
    async with Terminal(command, cwd=tmp_path, env={"NO_COLOR": "1"}) as term:
        await term.until("prompt tokens by the")
        assert await term.exited() == 0
        assert b"\x1b[32m" not in term.raw
