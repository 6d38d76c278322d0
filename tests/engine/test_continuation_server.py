"""Going on with the conversation on the real llama.cpp server: what is computed, who else uses it (L4, L17, L18).

One byte of a prompt is one token on the scripted model, so windows are chosen in bytes.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from marextui.context.continuation import DEMAND_MARK
from marextui.context.entries import CompactionCommitted, UsageMeasured
from marextui.engine.events import CompactionFailed, CompactionFinished
from marextui.models.connection import EmbeddedConnection
from marextui.settings import Settings
from tests.stubs.live_engine import LiveEngine, live_engine
from tests.stubs.tiny_model import call_text, tiny_gguf

pytestmark = pytest.mark.server

SUMMARY = """\
## Session Intent
- Find the port of the service; "never change port 8080", said the user

## Files Modified
none

## Decisions Made
- The port stays 8080

## Current State
- nothing was changed so far

## Next Steps
- {}"""
QUESTION = "Question {}: never change port 8080. Find the port of the service. " + "Where is it said? " * 50
CALL = call_text("Read", '{"file_path": "a.txt"}')


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models by what they answer to a demand: a summary, or a tool call."""
    folder = tmp_path_factory.mktemp("models")
    by_hand = SUMMARY.format("answer the question that came by transcript")
    told = {"good": SUMMARY.format("answer the newest question"), "calls": CALL}
    return {
        name: tiny_gguf(folder / f"{name}.gguf", phrases={DEMAND_MARK: answer, "Write the notes now": by_hand})
        for name, answer in told.items()
    }


def settings(model: Path, **more: Any) -> Settings:
    more.setdefault("compact_continuation", True)
    return Settings(model=str(model), local_window=16_384, **more)


def server(live: LiveEngine) -> EmbeddedConnection:
    connection = live.engine.state.control.connection
    assert isinstance(connection, EmbeddedConnection)
    return connection


async def until_compacted(live: LiveEngine, first: int = 1) -> int:
    """Turns, all ending well, until a compaction came to an end; the number of the last one."""
    n, mark = first - 1, len(live.events)
    while not live.of(CompactionFinished, mark) + live.of(CompactionFailed, mark):
        n += 1
        assert n < 40
        assert (await live.ask(QUESTION.format(n))).end == "done"
    assert live.of(CompactionFinished, mark)
    live.check_log()
    return n


_FIRST: dict[Path, int] = {}


async def first_compacted(model: Path, root: Path) -> int:
    """The turn at whose start a conversation is first compacted: tried once for each model, the same every time."""
    if model not in _FIRST:
        async with live_engine(settings(model), root) as live:
            _FIRST[model] = await until_compacted(live)
    return _FIRST[model]


def summaries(root: Path) -> list[dict[str, Any]]:
    lines = [json.loads(x) for x in (root / ".marex" / "usage.jsonl").read_text().splitlines()]
    return [x for x in lines if x["kind"] == "compact"]


async def test_only_the_reply_and_the_demand_are_computed(models: dict[str, Path], tmp_path: Path) -> None:
    """L4: cache_n ≥ prompt tokens of the turn − 1; prompt_n ≤ tokens of demand + reply + 64. Without the key: nearly
    all of it."""
    async with live_engine(settings(models["good"]), tmp_path / "p") as live:
        await until_compacted(live)
        entries = [r.entry for r in await live.engine.state.archive.store.records(live.engine.session.id)]
        at = next(i for i, e in enumerate(entries) if isinstance(e, CompactionCommitted))
        turn = next(e for e in reversed(entries[:at]) if isinstance(e, UsageMeasured))
    [line] = summaries(tmp_path / "p")
    assert line["how"] == "continuation"
    assert line["cache_read"] >= turn.prompt_tokens - 1
    assert line["computed"] <= line["inp"] - turn.prompt_tokens + 64
    assert line["computed"] < 3500 < line["cache_read"]
    assert line["prompt_ms"] > 0

    async with live_engine(settings(models["good"], compact_continuation=False), tmp_path / "q") as live:
        await until_compacted(live)
    [cold] = summaries(tmp_path / "q")
    assert cold["how"] == "transcript"
    assert cold["cache_read"] < 200
    assert cold["computed"] > line["computed"]


async def test_another_program_on_the_same_server_is_noticed(models: dict[str, Path], tmp_path: Path) -> None:
    """L17, B26: it is not in our books, but the server tells that its slot holds something else."""
    last = await first_compacted(models["good"], tmp_path / "trial")
    async with live_engine(settings(models["good"]), tmp_path / "p") as live:
        for n in range(1, last):
            await live.ask(QUESTION.format(n))
        process = server(live).process
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {process.api_key}"}) as other:
            body = {"messages": [{"role": "user", "content": "Something else entirely."}], "max_tokens": 4}
            assert (await other.post(f"{process.url}/v1/chat/completions", json=body)).status_code == 200
        await until_compacted(live, last)
        line = (await live.engine.status()).economy[0]
        assert "another program has used it" in line.why
    assert [x["how"] for x in summaries(tmp_path / "p")] == ["transcript"]


async def test_an_engine_that_died_is_started_anew(models: dict[str, Path], tmp_path: Path) -> None:
    """L18, M17, issue 4 section 9: only the turn that met the dead engine fails, for that reason; a new one holds
    nothing until a step was sent."""
    last = await first_compacted(models["good"], tmp_path / "trial")
    async with live_engine(settings(models["good"]), tmp_path / "p") as live:
        for n in range(1, last):
            await live.ask(QUESTION.format(n))
        pid = server(live).process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await server(live).process.death(20.0)
        mark = len(live.events)
        live.engine.submit(QUESTION.format(last))
        failed = await live.ended(mark)
        assert failed.end == "error"
        assert server(live).slots.held(live.engine.session.id) is None
        mark = len(live.events)
        live.engine.retry()
        assert (await live.ended(mark)).end == "done"
        assert server(live).process.pid != pid
        assert server(live).slots.held(live.engine.session.id) is not None
        await until_compacted(live, last + 1)
    assert [x["how"] for x in summaries(tmp_path / "p")] == ["continuation"]


async def test_a_call_written_although_none_was_allowed(models: dict[str, Path], tmp_path: Path) -> None:
    """L21, L22, D9: with tool_choice none the server leaves it as text; the transcript follows."""
    async with live_engine(settings(models["calls"]), tmp_path / "p") as live:
        await until_compacted(live)
    assert [x["how"] for x in summaries(tmp_path / "p")] == ["continuation", "transcript"]


async def test_the_conversation_stays_in_the_slot(models: dict[str, Path], tmp_path: Path) -> None:
    """The next compaction goes on too, and the steps between are cached as ever (I7)."""
    async with live_engine(settings(models["good"]), tmp_path / "p") as live:
        last = await until_compacted(live)
        await until_compacted(live, last + 1)
    assert [x["how"] for x in summaries(tmp_path / "p")] == ["continuation", "continuation"]
