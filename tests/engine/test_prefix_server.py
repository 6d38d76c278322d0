"""The same on the real llama.cpp server: what it counts as computed is what is new, or the reason is named (I7).

One byte of a prompt is one token on the scripted model.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from marextui.engine.economy import CacheState
from marextui.engine.events import CacheChanged, CompactionFinished, PromptProcessed, TurnFinished
from marextui.settings import Settings
from tests.engine.test_prefix_walk import SUMMARY, prepared
from tests.stubs.live_engine import LiveEngine, live_engine
from tests.stubs.tiny_model import call_text, tiny_gguf

pytestmark = pytest.mark.server

CALL = call_text("Read", '{"file_path": "a.txt"}')
TURNS = 20
TOKENS_OF_THE_END = 3
"""What the template puts behind the last message, it does not put there again once there is an answer."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return tiny_gguf(folder / "tiny.gguf", says={"look": CALL}, phrases={"Write the notes now": SUMMARY})


def steps(live: LiveEngine) -> list[CacheState]:
    """What the server counted, a state for each request."""
    counted: list[CacheState] = []
    for event in live.of(CacheChanged):
        now = event.cache
        same = counted and (counted[-1].cached, counted[-1].computed) == (now.cached, now.computed)
        if now.cached is not None and not same:
            counted.append(now)
    return counted


def prompt(step: CacheState) -> int:
    assert step.cached is not None
    assert step.computed is not None
    return step.cached + step.computed


async def test_twenty_turns_compute_what_is_new_and_nothing_else(model: Path, tmp_path: Path) -> None:
    """I7: by the server's own count, all of the request before is in the cache, unless its reason is named."""
    settings = Settings(model=str(model), local_window=32_768, proj_snapshot=True, omit_after_turns=3)
    async with live_engine(settings, prepared(tmp_path / "p")) as live:
        for n in range(1, TURNS + 1):
            if n in (4, 9, 15):
                assert await live.engine.save_page("host", f"# Host\nIt runs on pg{n}.") == ""
            tool = " #look" if n in (2, 6, 13) else ""
            assert (await live.ask(f"Question {n}?{tool}")).end == "done"
        live.check_log()
        counted = steps(live)
        processed = live.of(PromptProcessed)
    assert len(counted) == TURNS + 3
    for before, step in pairwise(counted):
        assert step.cached is not None
        whole = step.cached >= prompt(before) - TOKENS_OF_THE_END
        assert whole == (step.broke == ""), step
    assert [s.broke for s in counted if s.broke] == [f"omission of turn {n}" for n in (2, 6, 13)]
    assert all(p.seconds is not None for p in processed)
    assert {p.done for p in processed} >= {prompt(s) for s in counted}, "each ends with the whole prompt"


async def test_progress_comes_in_small_steps(model: Path, tmp_path: Path) -> None:
    """Issue 4, section 5: a long prompt is not silent; the first word is on what is cached, the last on all of it."""
    async with live_engine(Settings(model=str(model), local_window=16_384), tmp_path / "p") as live:
        done = await live.ask("Where is it said? " * 300)
        assert done.usage.inp is not None
        told = live.of(PromptProcessed)
    assert [p.done for p in told] == sorted({p.done for p in told})
    assert (told[0].done, told[-1].done) == (0, done.usage.inp)
    assert max(b.done - a.done for a, b in pairwise(told)) <= 256
    seconds = [p.seconds for p in told if p.seconds is not None]
    assert seconds == sorted(seconds)


async def test_what_prewarming_computed_is_not_blamed_on_what_it_was_computed_for(model: Path, tmp_path: Path) -> None:
    """L33: after a compaction the next turn finds its prompt computed, so nothing is said to be computed anew."""
    settings = Settings(model=str(model), local_window=16_384, prewarm="on")
    async with live_engine(settings, tmp_path / "p") as live:
        for n in range(4):
            await live.ask(f"Question {n}? " + "Where is it said? " * 20)
        mark = len(live.events)
        live.engine.compact()
        await live.until(lambda e: isinstance(e, CompactionFinished), after=mark)
        await live.until(lambda e: getattr(e, "state", "") == "ready", after=mark)
        last: TurnFinished = await live.ask("Go on.")
        state = live.engine.state.cache.state
    assert last.usage.inp is not None
    assert last.usage.cache_read is not None
    assert last.usage.cache_read > last.usage.inp - 100
    assert state.broke == ""
