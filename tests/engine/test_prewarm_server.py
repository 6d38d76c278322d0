"""Prewarms on the real llama.cpp server: what the next turn then computes, and who else uses it (L32–L50).

One byte of a prompt is one token on the scripted model, and counts are the server's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from marextui.engine.events import CompactionFinished, CompactionReverted, Event, Notice, PrewarmChanged
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
- answer the newest question"""
QUESTION = "Question {}: never change port 8080. Find the port of the service. " + "Where is it said? " * 50
CALL = call_text("Read", '{"file_path": "a.txt"}')


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    phrases = {"Write the notes now": SUMMARY, "Read a.txt": CALL, "for ever": "And on and on it goes."}
    return tiny_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf", phrases=phrases, endless=["for ever"])


def settings(model: Path, mode: str = "on", **more: Any) -> Settings:
    return Settings(model=str(model), local_window=16_384, prewarm=mode, **more)  # type: ignore[arg-type]


def server(live: LiveEngine) -> EmbeddedConnection:
    connection = live.engine.state.control.connection
    assert isinstance(connection, EmbeddedConnection)
    return connection


OWN = len("And now?<|im_end|>\n<|im_start|>assistant\n")
"""Tokens that only the turn after a prewarm can compute."""


async def settled(live: LiveEngine, mark: int) -> PrewarmChanged:
    def done(event: Event) -> bool:
        return isinstance(event, PrewarmChanged) and event.state in ("ready", "refused")

    async with asyncio.timeout(30):
        found = await live.until(done, after=mark)
    assert isinstance(found, PrewarmChanged)
    return found


async def ask(live: LiveEngine, text: str, *, warm: bool = True) -> int:
    """A turn and the prewarm after it; returns the tokens the turn's last step computed, as the server counted them."""
    mark = len(live.events)
    assert (await live.ask(text)).end == "done"
    if warm:
        assert (await settled(live, mark)).state == "ready"
    line = [x for x in journal(live.root) if x["kind"] == "main"][-1]
    assert line["steps"] == 1
    return int(line["inp"] - line["cache_read"])


def journal(root: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (root / ".marex" / "usage.jsonl").read_text().splitlines()]


async def compacted(live: LiveEngine, *, warm: bool) -> None:
    mark = len(live.events)
    live.engine.compact()
    await live.until(lambda e: isinstance(e, CompactionFinished), after=mark)
    if warm:
        assert (await settled(live, mark)).state == "ready"


@pytest.mark.parametrize("mode", ["off", "on"])
async def test_the_turn_after_a_compaction_computes_its_own_message_only(
    model: Path, tmp_path: Path, mode: str
) -> None:
    """L32, L33: with the key, only what comes after the sentinel's place; without it, the whole rewritten history."""
    warm = mode == "on"
    async with live_engine(settings(model, mode), tmp_path / "p") as live:
        for n in range(4):
            await ask(live, QUESTION.format(n), warm=warm)
        await compacted(live, warm=warm)
        history = sum(len(m.text) for m in live.history())
        computed = await ask(live, "And now?", warm=False)
        live.check_log()
    assert history > 900
    if warm:
        assert computed <= OWN
    else:
        assert computed > history


async def test_what_the_next_turn_puts_aside_costs_it_nothing(model: Path, tmp_path: Path) -> None:
    """L34: an old output becomes a marker at the start of a turn; the rewritten part was computed before."""
    root = tmp_path / "p"
    root.mkdir()
    (root / "a.txt").write_text("port 8080\n" * 200)
    async with live_engine(settings(model), root) as live:
        mark = len(live.events)
        live.engine.submit("Read a.txt, please.")
        await live.ended(mark)
        await settled(live, mark)
        await ask(live, QUESTION.format(1))
        computed = await ask(live, "And now?")
        assert any("[omitted" in m.text for m in live.history() if m.role == "tool")
    assert computed <= OWN


async def test_an_undone_compaction_is_warm_again(model: Path, tmp_path: Path) -> None:
    """L46: `/compact undo` changes the prompt back; the turn after it computes its own message only."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        for n in range(4):
            await ask(live, QUESTION.format(n))
        await compacted(live, warm=True)
        mark = len(live.events)
        live.engine.undo_compaction()
        await live.until(lambda e: isinstance(e, CompactionReverted), after=mark)
        assert (await settled(live, mark)).state == "ready"
        assert await ask(live, "And now?") <= OWN


async def test_a_turn_sent_at_once_is_no_dearer(model: Path, tmp_path: Path) -> None:
    """L37: sent while the prewarm is under way, it follows in the same slot and computes its own message only."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        for n in range(4):
            await ask(live, QUESTION.format(n))
        mark = len(live.events)
        live.engine.compact()
        await live.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "warming", after=mark)
        assert await ask(live, "And now?", warm=False) <= OWN


async def test_a_turn_under_other_rules_does_not_wait_for_it(model: Path, tmp_path: Path) -> None:
    """L36, D8: the connection is closed, the server leaves off or goes on as it does; the turn is answered, and
    computes its whole prompt, which begins otherwise."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        for n in range(3):
            await ask(live, QUESTION.format(n))
        mark = len(live.events)
        live.engine.compact(offline=True)
        await live.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "warming", after=mark)
        (tmp_path / "p" / "MAREX.md").write_text("Be brief.\n")
        mark = len(live.events)
        live.engine.submit("And now?")
        assert (await live.ended(mark)).end == "done"
        assert "idle" in [e.state for e in live.of(PrewarmChanged, mark)]
        assert (await settled(live, mark)).state == "ready"
        assert await ask(live, "And now?") <= OWN
        live.check_log()


async def test_after_an_interrupt_the_partial_answer_is_warm(model: Path, tmp_path: Path) -> None:
    """Esc: what was read so far is in the view, and the next turn computes its own message only."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        await ask(live, QUESTION.format(1))
        mark = len(live.events)
        live.engine.submit("Go on for ever.")
        await live.words(5, after=mark)
        live.engine.interrupt()
        await live.ended(mark)
        assert (await settled(live, mark)).state == "ready"
        assert await ask(live, "And now?") <= OWN


async def test_the_journal_tells_what_it_cost(model: Path, tmp_path: Path) -> None:
    """L45, L50: one line for each, with the server's own counts; the conversation holds nothing of it."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        await ask(live, QUESTION.format(1))
        await ask(live, QUESTION.format(2))
        assert all(m.text != "." for m in live.engine.session.conversation.messages)
        for line in live.engine.state.usage.lines():
            assert line.out is not None
            assert line.out > 1
    lines = [x for x in journal(tmp_path / "p") if x["kind"] == "prewarm"]
    assert len(lines) == 2
    for line in lines:
        assert line["out"] == 1
        assert line["computed"] + line["cache_read"] == line["inp"]
        assert line["prompt_ms"] > 0


async def test_a_server_that_dies_while_warming_is_met_as_ever(model: Path, tmp_path: Path) -> None:
    """L44: nothing is told; the next turn fails for the dead engine as it would have, and goes on with a new one."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        await ask(live, QUESTION.format(1))
        process = server(live).process
        pid = process.pid
        assert pid is not None
        stopped = False

        def stop(event: Event) -> None:
            nonlocal stopped
            if isinstance(event, PrewarmChanged) and event.state == "warming" and not stopped:
                stopped = True
                os.kill(pid, signal.SIGSTOP)  # it never gets to the request that leaves now

        live.engine.subscribe(stop)
        mark = len(live.events)
        await live.ask(QUESTION.format(2))
        await live.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "warming", after=mark)
        os.kill(pid, signal.SIGKILL)
        assert (await settled(live, mark)).why == "the server did not take it (server)"
        assert live.of(Notice, mark) == []
        mark = len(live.events)
        live.engine.submit("And now?")
        assert (await live.ended(mark)).end == "error"
        mark = len(live.events)
        live.engine.retry()
        assert (await live.ended(mark)).end == "done"
        assert server(live).process.pid != pid
        assert (await settled(live, mark)).state == "ready"


async def test_another_program_in_the_slot_costs_what_it_costs(model: Path, tmp_path: Path) -> None:
    """L38, B26: what it took is computed again by the turn, correctly; the server is not ours alone."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        await ask(live, QUESTION.format(1))
        process = server(live).process
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {process.api_key}"}) as other:
            body = {"messages": [{"role": "user", "content": "Something else. " * 100}], "max_tokens": 4}
            assert (await other.post(f"{process.url}/v1/chat/completions", json=body)).status_code == 200
        await ask(live, "And now?")
        live.check_log()


async def test_leaving_while_warming_waits_for_nothing(model: Path, tmp_path: Path) -> None:
    """The app is closed while the server computes: it is ended at once."""
    async with live_engine(settings(model), tmp_path / "p") as live:
        for n in range(3):
            await ask(live, QUESTION.format(n))
        mark = len(live.events)
        live.engine.compact(offline=True)
        await live.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "warming", after=mark)
        process = server(live).process
        async with asyncio.timeout(8):
            await live.engine.close()
        assert not process.alive
