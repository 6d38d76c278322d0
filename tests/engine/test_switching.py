"""Going to another conversation: nothing is sent where it was not meant for, and no slip of a key stops a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from marextui.engine.events import Notice, QueueChanged, TurnFinished
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import Hold, ScriptedChat, say

Start = Callable[..., Coroutine[Any, Any, Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(*replies: Any) -> Rig:
        made.append(await Rig(tmp_path, chat=ScriptedChat(list(replies))).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


async def answering(rig: Start) -> tuple[Rig, Hold]:
    """A rig in the middle of an answer."""
    hold = Hold()
    r = await rig(say("one"), [hold, *say("two")], say("three"))
    await r.ask("first")
    r.engine.submit("second")
    await hold.reached.wait()
    return r, hold


async def test_what_is_queued_is_shown_and_not_sent_in_another_conversation(rig: Start) -> None:
    r, _ = await answering(rig)
    r.engine.submit("for the first conversation")
    await r.engine.open_conversation(None)
    assert [q.text for q in r.of(QueueChanged)[-1].items] == ["for the first conversation"]
    await r.idle()
    assert r.history() == ()
    dropped = r.engine.drop_queued(r.of(QueueChanged)[-1].items[0].id)
    assert dropped is not None
    await r.ask("hello")
    assert not any("for the first" in t for t in texts(r.chat.turns[-1]))


@pytest.mark.parametrize(("wanted", "says"), [("no-such-id", "could not be opened"), ("", "open already")])
async def test_a_turn_goes_on_when_no_other_conversation_is_opened(rig: Start, wanted: str, says: str) -> None:
    r, hold = await answering(rig)
    mark = len(r.events)
    await r.engine.open_conversation(wanted or r.engine.session.id)
    assert r.engine.busy
    hold.go.set()
    finished = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    assert isinstance(finished, TurnFinished)
    assert finished.end == "done"
    assert any(says in e.text for e in r.events[mark:] if isinstance(e, Notice))
    await r.idle()
