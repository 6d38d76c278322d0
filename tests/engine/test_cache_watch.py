"""What is told of the server's cache: what each step cost, what is held, and what another connection means (I7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.engine.events import CacheChanged, CompactionFinished, ProbesAnswered
from marextui.engine.policy import Policy
from marextui.models.types import Usage
from tests.stubs.engine_rig import Rig
from tests.stubs.one_slot import OneSlotChat
from tests.stubs.project_rig import ABOUT, SUMMARY
from tests.stubs.scripted_model import CHOICE, ScriptedChat, ScriptedConnection, say

WINDOW = Window(16_384, "discovery")
LONG = "Where is the port? " * 400


async def rig(folder: Path, **more: Any) -> Rig:
    more.setdefault("chat", OneSlotChat())
    return await Rig(folder, window=WINDOW, **more).start()


def told(r: Rig) -> list[tuple[int | None, int | None, str]]:
    """(cached, computed, why) as of each event, repeats left out."""
    states = [(e.cache.cached, e.cache.computed, e.cache.broke) for e in r.of(CacheChanged)]
    return [s for i, s in enumerate(states) if i == 0 or s != states[i - 1]]


async def test_what_the_server_does_not_tell_is_not_said(tmp_path: Path) -> None:
    """M38: no usage, no cached count, and then both; unknown is None, never 0."""
    counts = [None, Usage(900, 10), Usage(1_000, 10, 950)]
    r = await rig(tmp_path, chat=ScriptedChat([say("ok", usage) for usage in counts]))
    for _ in counts:
        await r.ask("Hello?")
    assert told(r) == [(950, 50, "")]
    assert (await r.engine.status()).cache == r.of(CacheChanged)[-1].cache
    await r.engine.close()


async def test_a_step_without_a_count_takes_the_last_one_away(tmp_path: Path) -> None:
    """The figures are of the last request, or there are none."""
    r = await rig(tmp_path, chat=ScriptedChat([say("ok", Usage(1_000, 10, 0)), say("ok")]))
    await r.ask("Hello?")
    await r.ask("And now?")
    assert told(r) == [(0, 1_000, ""), (None, None, "")]
    await r.engine.close()


async def test_what_is_held_is_told_where_books_are_kept(tmp_path: Path) -> None:
    """L16, L17: held after a step, lost with any other request, and why."""
    chat = OneSlotChat(summaries=[say(SUMMARY), say("port: 8080")])
    r = await rig(tmp_path, chat=chat, policy=Policy(compact_continuation=True, check_compactions=False))
    for n in range(6):
        await r.ask(f"{ABOUT} Question {n}?")
    assert r.of(CacheChanged)[-1].cache.held is True
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    lost = r.of(CacheChanged)[-1].cache
    assert (lost.held, lost.lost) == (False, "a summary request was sent since")
    await r.ask("Go on.")
    assert r.of(CacheChanged)[-1].cache.held is True
    await r.engine.open_conversation(None)
    assert r.of(CacheChanged)[-1].cache.lost == "another conversation was asked since"
    await r.engine.close()


async def test_without_the_key_nothing_is_said_of_what_is_held(tmp_path: Path) -> None:
    """L2: no books are kept."""
    r = await rig(tmp_path)
    await r.ask("Hello?")
    assert {e.cache.held for e in r.of(CacheChanged)} == {None}
    await r.engine.close()


async def test_another_request_in_between_is_named_only_when_it_cost_something(tmp_path: Path) -> None:
    """Issue 4, section 4: the prefix is whole, so it was the server's cache, and we know what was in it."""
    chat = OneSlotChat(summaries=[say(SUMMARY), say("It is 8080.")])
    r = await rig(tmp_path, chat=chat, policy=Policy(check_compactions=False))
    for n in range(4):
        await r.ask(f"{ABOUT} Question {n}? {LONG}")
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.ask(f"Go on. {LONG}")
    assert told(r)[-1][2].startswith("compaction 1")
    mark = len(r.events)
    r.engine.probe()
    await r.until(lambda e: isinstance(e, ProbesAnswered), after=mark)
    await r.idle()
    chat.forget()
    await r.ask("And now?")
    assert told(r)[-1][2] == "a question of /probe was sent in between"
    await r.engine.close()


@pytest.mark.parametrize(
    ("name", "kept", "why"),
    [("other", False, "another model"), ("scripted", False, "the engine was started anew"), ("scripted", True, "")],
)
async def test_a_new_connection_says_what_became_of_the_cache(tmp_path: Path, name: str, kept: bool, why: str) -> None:
    """L18, issue 4 section 9: restarted, swapped, or left and come back to a server that still has it."""
    r = await rig(tmp_path)
    await r.ask(LONG)
    chat = OneSlotChat() if not kept else r.chat
    await r.engine.state.control.drop()
    choice = replace(CHOICE, name=name)
    r.engine.state.control.choice = choice
    r.hub.connection = ScriptedConnection(chat, WINDOW, choice)
    await r.ask("And now?")
    assert told(r)[-1][2] == why
    await r.ask("And then?")
    assert told(r)[-1][2] == ""
    await r.engine.close()
