"""Warm resume on the real llama.cpp server: what is computed after a conversation was left and resumed (issue 4, 7).

One byte of a prompt is one token on the scripted model.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from marextui import paths
from marextui.engine.api import LATEST
from marextui.engine.events import TurnFinished
from marextui.models.connection import EmbeddedConnection
from marextui.models.embedded import EmbeddedServer
from marextui.settings import Settings
from tests.stubs.live_engine import LiveEngine, live_engine
from tests.stubs.tiny_model import tiny_gguf

pytestmark = pytest.mark.server

QUESTION = "Question {}: " + "where is it said that the port is 8080? " * 20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


def settings(model: Path, **more: object) -> Settings:
    return Settings(model=str(model), local_window=16_384, **more)  # type: ignore[arg-type]


async def left_after_two_turns(model: Path, project: Path, **more: object) -> TurnFinished:
    async with live_engine(settings(model, **more), project) as live:
        await live.ask(QUESTION.format(1))
        return await live.ask(QUESTION.format(2))


def saved() -> list[Path]:
    return sorted((paths.cache_dir() / "slots").glob("*.bin"))


def told(live: LiveEngine) -> str:
    warm = live.engine.state.warm
    assert warm is not None
    return warm.status().why


async def resumed(model: Path, project: Path, **more: object) -> tuple[TurnFinished, str]:
    async with live_engine(settings(model, **more), project, wanted=LATEST) as live:
        done = await live.ask(QUESTION.format(3))
        live.check_log()
        return done, told(live)


def cost(done: TurnFinished) -> tuple[int, int]:
    """(computed, from cache)."""
    assert done.end == "done"
    assert done.usage.inp is not None
    assert done.usage.cache_read is not None
    return done.usage.inp - done.usage.cache_read, done.usage.cache_read


async def test_a_resumed_conversation_computes_only_what_is_new(model: Path, tmp_path: Path) -> None:
    """Its own message and what the template adds; without the key all of it."""
    last = await left_after_two_turns(model, tmp_path / "p")
    [file] = saved()
    assert file.stat().st_mode & 0o077 == 0, "a state holds a whole conversation"
    done, why = await resumed(model, tmp_path / "p")
    computed, cached = cost(done)
    assert last.usage.inp is not None
    assert cached >= last.usage.inp
    assert computed < len(QUESTION) + 100
    assert "brought back" in why
    assert saved() == [file], "left again, the same file holds what is newer"

    await left_after_two_turns(model, tmp_path / "q", warm_resume="off")
    cold, why = await resumed(model, tmp_path / "q", warm_resume="off")
    assert cost(cold)[1] < 100 < cached
    assert "Not switched on" in why
    assert saved() == [file]


@pytest.mark.parametrize("harm", ["cut short", "of another build", "scrambled", "with a hole"])
async def test_a_state_that_does_not_fit_is_dropped_and_the_prompt_computed(
    model: Path, tmp_path: Path, harm: str
) -> None:
    await left_after_two_turns(model, tmp_path / "p")
    [file] = saved()
    record = file.with_name(f"{file.name}.json")
    if harm == "cut short":
        file.write_bytes(file.read_bytes()[:-100])
    elif harm == "scrambled":
        file.write_bytes(os.urandom(64) + file.read_bytes()[64:])
    elif harm == "with a hole":
        state = bytearray(file.read_bytes())
        state[len(state) // 2 : len(state) // 2 + 4096] = bytes(4096)
        file.write_bytes(state)
    else:
        record.write_text(record.read_text().replace('"engine": "', '"engine": "another '))
    done, _ = await resumed(model, tmp_path / "p")
    computed, cached = cost(done)
    assert cached < 100
    assert computed > 1500
    assert done.usage.out


async def test_a_conversation_is_left_and_come_back_to_in_one_run(model: Path, tmp_path: Path) -> None:
    async with live_engine(settings(model), tmp_path / "p") as live:
        await live.ask(QUESTION.format(1))
        first = live.engine.session.id
        await live.engine.open_conversation(None)
        assert [f.suffix for f in saved()] == [".bin"]
        await live.ask("Something else. " * 60)
        await live.engine.open_conversation(first)
        done = await live.ask(QUESTION.format(2))
        assert cost(done)[0] < len(QUESTION) + 100, told(live)
        assert len(saved()) == 2


async def test_a_secret_is_not_written_to_disk_with_the_cache(model: Path, tmp_path: Path) -> None:
    async with live_engine(settings(model), tmp_path / "p") as live:
        await live.ask(QUESTION.format(1) + " My key is sk-proj-" + "aB3dE6gH9" * 5)
        await live.engine.open_conversation(None)
        assert saved() == []
        warm = live.engine.state.warm
        assert warm is not None
        assert "secret" in warm.last


async def test_an_engine_that_is_dead_when_its_conversation_is_left_saves_nothing(model: Path, tmp_path: Path) -> None:
    async with live_engine(settings(model), tmp_path / "p") as live:
        await live.ask(QUESTION.format(1))
        connection = live.engine.state.control.connection
        assert isinstance(connection, EmbeddedConnection)
        assert connection.process.pid
        os.kill(connection.process.pid, signal.SIGKILL)
    assert saved() == []
    done, _ = await resumed(model, tmp_path / "p")
    assert cost(done)[1] < 100


@asynccontextmanager
async def a_server(model: Path, folder: Path, states: Path | None) -> AsyncIterator[EmbeddedServer]:
    """The same server, as somebody else would run it."""
    server = EmbeddedServer(model, ctx=16_384, log_path=folder / "server.log", slot_folder=states)
    await server.start(lambda progress: None)
    try:
        yield server
    finally:
        await server.aclose()


@pytest.mark.parametrize("mode", ["all", "on"])
async def test_a_server_with_a_folder_for_states_is_used_when_wanted(model: Path, tmp_path: Path, mode: str) -> None:
    """It is restarted in between. Nothing on its disk can be deleted by us, so it is asked for only with `all`."""
    done = None
    for question in (1, 2):
        async with a_server(model, tmp_path, tmp_path / "states") as server:
            theirs = Settings(base_url=server.url, api_key=server.api_key, warm_resume=mode)  # type: ignore[arg-type]
            async with live_engine(theirs, tmp_path / "p", wanted=LATEST) as live:
                done = await live.ask(QUESTION.format(question))
    assert done is not None
    there = len(list((tmp_path / "states").glob("*.bin")))
    assert (there, cost(done)[1] > 800) == ((1, True) if mode == "all" else (0, False))
    assert saved() == []


async def test_a_server_without_a_folder_for_states_is_left_alone(model: Path, tmp_path: Path) -> None:
    async with a_server(model, tmp_path, None) as server:
        theirs = Settings(base_url=server.url, api_key=server.api_key, warm_resume="all")
        async with live_engine(theirs, tmp_path / "p") as live:
            await live.ask(QUESTION.format(1))
            await live.engine.open_conversation(None)
            warm = live.engine.state.warm
            assert warm is not None
            assert "--slot-save-path" in warm.last


async def test_a_short_conversation_leaves_nothing(model: Path, tmp_path: Path) -> None:
    async with live_engine(settings(model, max_tool_rounds=1), tmp_path / "p") as live:
        assert (await live.ask("Hi")).end == "done"
    assert all(f.stat().st_size > 0 for f in saved())
    assert len(saved()) == len(list((paths.cache_dir() / "slots").glob("*.json")))
