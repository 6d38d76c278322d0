"""The frozen project context on the real llama.cpp server: what a changed page costs, in computed tokens (L52, L61).

One byte of a prompt is one token on the scripted model.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.engine.events import TurnFinished
from marextui.settings import Settings
from tests.stubs.live_engine import live_engine
from tests.stubs.tiny_model import tiny_gguf

pytestmark = pytest.mark.server

QUESTION = "Question {}: where does it run? " + "Please look again. " * 40
TURNS = 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


async def after_a_change(model: Path, root: Path, *, frozen: bool) -> tuple[TurnFinished, TurnFinished]:
    """A conversation in which a page is changed before the last turn: how the last two turns ended."""
    settings = Settings(model=str(model), local_window=16_384, proj_snapshot=frozen)
    async with live_engine(settings, root) as live:
        assert await live.engine.save_page("host", "# Host\nIt runs on pg1.") == ""
        done = [await live.ask(QUESTION.format(n)) for n in range(TURNS)]
        assert await live.engine.save_page("host", "# Host\nIt runs on pg2.") == ""
        done.append(await live.ask(QUESTION.format(TURNS)))
        assert [d.end for d in done] == ["done"] * (TURNS + 1)
        live.check_log()
    return done[-2], done[-1]


def computed(turn: TurnFinished) -> int:
    assert turn.usage.inp is not None
    assert turn.usage.cache_read is not None
    return turn.usage.inp - turn.usage.cache_read


async def test_a_changed_page_costs_its_update_and_not_the_prompt(model: Path, tmp_path: Path) -> None:
    """L52: with the key only what is new is computed; without it everything from the first message on."""
    before, after = await after_a_change(model, tmp_path / "on", frozen=True)
    assert after.usage.cache_read >= before.usage.inp - 1
    assert computed(after) - computed(before) < 300  # the update block, in bytes
    _, without = await after_a_change(model, tmp_path / "off", frozen=False)
    assert without.usage.inp is not None
    history = TURNS * len(QUESTION)
    assert computed(without) > history
    assert computed(without) > 3 * computed(after)


async def test_a_restart_keeps_a_copy_that_still_says_everything(model: Path, tmp_path: Path) -> None:
    """L61: the request after a restart is the one the server would still know; only a change makes it another."""
    settings = Settings(model=str(model), local_window=16_384, proj_snapshot=True)
    root = tmp_path / "p"
    async with live_engine(settings, root) as live:
        assert await live.engine.save_page("host", "# Host\nIt runs on pg1.") == ""
        await live.ask(QUESTION.format(1))
        conversation = live.engine.session.id
        connection = live.engine.state.control.connection
        assert connection is not None
        sent = live.engine.state.dry_request(connection)
    async with live_engine(settings, root, wanted=conversation) as live:
        await live.ask(QUESTION.format(2))
        connection = live.engine.state.control.connection
        assert connection is not None
        again = live.engine.state.dry_request(connection)
    assert again.messages[: len(sent.messages)] == sent.messages
