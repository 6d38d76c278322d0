"""When a new copy of the project context is taken, and when none is (L59, L61–L64, L67–L70)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marextui.context.entries import (
    CompactionUndone,
    NoticeLogged,
    ProjectHidden,
    ProjectSnapshotDropped,
    ProjectSnapshotTaken,
)
from marextui.context.memory_keeping import Fed
from marextui.context.messages import canonical_json
from marextui.context.project_block import SYSTEM_LINE
from marextui.engine.policy import Policy
from marextui.models.openai_chat import body_bytes, request_body
from marextui.models.types import ModelError
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.project_rig import ABOUT, ON, SUMMARY, compact, page, resumed, rigs, said, taken, updates, wire
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, say


@pytest.fixture
async def rig(tmp_path: Path):
    async with rigs(tmp_path) as start:
        yield start


# -- new copies --------------------------------------------------------------------------------------------------------


async def changed(r: Rig, cause: str) -> None:
    """Something happens that changes the prompt anyway."""
    if cause == "compaction":
        await r.ask("x" * 2_000)
        await r.ask("go on " + "y" * 600)
        await compact(r)
    elif cause == "rules":
        (r.folder / "project" / "MAREX.md").write_text("# Shop\n\nAlways use tabs.")
    elif cause == "tools":
        r.tools.results = {**r.tools.results, "More": "x"}
    elif cause == "model":
        choice = replace(r.hub.connection.choice, name="other", label="other")
        r.hub.connection.choice = r.engine.state.control.choice = choice
    elif cause == "window":
        r.engine.state.window_learned(16_384)


@pytest.mark.parametrize("cause", ["compaction", "rules", "tools", "model", "window"])
async def test_a_new_copy_is_taken_when_the_prompt_changes_anyway(rig, cause: str) -> None:
    """L61: the copy is new, it has everything in it, and no update is left."""
    r = await rig(tools=ScriptedTools({"Look": "x"}))
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    assert updates(r.chat.turns[-1]) == 1
    if cause != "compaction":  # that takes its copy at once
        await page(r, "ci")
    await changed(r, cause)
    await r.ask("three")
    sent = r.chat.turns[-1]
    assert updates(sent) == 0
    assert "[Db](db.md)" in said(sent)[0]
    assert ("[Ci](ci.md)" in said(sent)[0]) == (cause != "compaction")
    assert len(taken(r)) == 2


async def test_a_compaction_by_hand_takes_its_copy_at_once(rig) -> None:
    """L61: what is prewarmed after it is what the next turn sends; a later change is an update again."""
    r = await rig()
    await r.ask("one " + "x" * 2_000)
    await page(r, "db")
    await r.ask("two")
    await compact(r)
    assert taken(r) == ["first request", "a compaction"]
    dry = r.engine.state.dry_request(r.hub.connection)
    assert "[Db](db.md)" in texts(dry)[1]
    await page(r, "ci")
    await r.ask("three")
    assert wire(r.chat.turns[-1]).startswith(wire(dry))
    assert updates(r.chat.turns[-1]) == 1


async def test_an_unchanged_block_stays_at_the_head_through_a_compaction(rig) -> None:
    """The block heads the summary then: system part and block remain a common beginning of the prompt."""
    r = await rig()
    await page(r, "db", "pg1")
    await r.ask("one " + "x" * 2_000)
    await r.ask("two")
    before = said(r.chat.turns[-1])[0].partition("</project_context>")[0]
    await compact(r)
    await r.ask("three")
    after = said(r.chat.turns[-1])[0]
    assert after.startswith(before)
    assert "</project_context>\n\n[Earlier conversation summary]\n" in after


async def test_settings_that_do_not_start_the_engine_anew_take_no_new_copy(rig) -> None:
    """L61, edge: temperature and compaction on or off."""
    r = await rig()
    await r.ask("one")
    r.engine.state.policy = replace(r.engine.state.policy, temperature=0.9, auto_compress=False)
    await page(r, "db")
    await r.ask("two")
    assert taken(r) == ["first request"]
    assert updates(r.chat.turns[-1]) == 1


async def test_an_undone_compaction_brings_back_copy_and_updates(rig, monkeypatch) -> None:
    """`/compact undo`: byte for byte as before, if memory learned nothing; what changed since is announced next."""
    r = await rig()
    monkeypatch.setattr(type(r.memory), "feed", _learns_nothing)
    await r.ask("one " + "x" * 2_000)
    await page(r, "db")
    await r.ask("two")
    before = r.chat.turns[-1]
    await compact(r)
    await page(r, "ci")
    r.engine.undo_compaction()
    await r.until(lambda e: type(e).__name__ == "CompactionReverted")
    await r.idle()
    assert any(isinstance(x.entry, CompactionUndone) for x in await r.records())
    await r.ask("three")
    assert wire(r.chat.turns[-1]).startswith(wire(before))
    assert "ci.md" in said(r.chat.turns[-1])[-1]


async def _learns_nothing(self, entry):
    return Fed((), (), 0)


def overflow() -> ModelError:
    return ModelError("overflow", "the request exceeds the available context size", n_ctx=None)


async def test_a_request_refused_as_too_long_is_sent_again_with_the_block_as_it_is_now(rig) -> None:
    """L62: no update in the retry, the page in the block; the next turn's head is the retry's."""
    chat = ScriptedChat([say("a " * 900), say("b " * 900), say("c"), [overflow()], say("d"), say("e")])
    r = await rig(chat=chat)
    for n in range(3):
        await r.ask(f"question {n} " + "x" * 3_000)
    await page(r, "db", "pg1")
    await r.ask("now")
    refused, again = chat.turns[3:5]
    assert updates(refused) == 1
    assert updates(again) == 0
    assert "[Db](db.md)" in said(again)[0]
    await r.ask("next")
    assert said(chat.turns[-1])[0] == said(again)[0]
    assert len(taken(r)) == 2


async def test_updates_that_grow_too_long_become_a_new_copy(rig) -> None:
    """L63: the limit of a small copy is 400 tokens."""
    r = await rig()
    await r.ask("one")
    for n in range(12):
        await page(r, f"page-number-{n}", "h" * 150)
        await r.ask(f"question {n}")
    counts = [updates(t) for t in r.chat.turns]
    assert max(counts) >= 3
    assert "the updates had grown too long" in taken(r)
    after = r.chat.turns[1 + next(i for i, n in enumerate(counts[1:]) if n < counts[i])]
    assert updates(after) == 0
    assert "page-number-3.md" in said(after)[0]


async def test_what_was_decided_for_a_conversation_that_changed_meanwhile_is_not_written(rig, monkeypatch) -> None:
    """L64: the version is looked at again before the update is placed."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    desk = r.engine.state.project
    desk._restarted = True  # so that the files are read between assembly and placement
    real = desk.refresh

    async def slow() -> bool:
        changed = await real()
        if r.engine.session.conversation.open_turn:
            await r.engine.session.append(NoticeLogged("info", "something else happened"))
        return changed

    monkeypatch.setattr(type(desk), "refresh", lambda self: slow())
    await r.ask("two")
    assert wire(r.chat.turns[1]).startswith(wire(r.chat.turns[0]))
    assert updates(r.chat.turns[1]) == 0
    assert taken(r) == ["first request"]
    monkeypatch.undo()
    await r.ask("three")
    assert "db.md" in said(r.chat.turns[2])[0]


# -- restarts, keys, other models --------------------------------------------------------------------------------------


async def test_what_was_announced_is_known_after_a_restart(rig) -> None:
    """L59: the state comes back with the log."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    state = r.engine.session.conversation.project.announced
    again = await resumed(rig, r)
    assert again.engine.session.conversation.project.announced == state
    assert [p.key for p in state.pages] == ["db.md"]


async def test_a_restart_folds_the_updates_into_a_new_copy_and_leaves_a_complete_one_alone(rig) -> None:
    """L61, L67."""
    r = await rig()
    await r.ask("one")
    again = await resumed(rig, r)
    await again.ask("two")
    assert taken(again) == []
    assert said(again.chat.turns[0])[0] == said(r.chat.turns[0])[0]
    await page(again, "db")
    await again.ask("three")
    assert updates(again.chat.turns[-1]) == 1
    third = await resumed(rig, again)
    await third.ask("four")
    assert taken(third) == ["the application was started again"]
    assert updates(third.chat.turns[-1]) == 0
    assert "[Db](db.md)" in said(third.chat.turns[-1])[0]


async def test_another_conversation_takes_a_copy_of_its_own(rig) -> None:
    """L67: nothing is inherited."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    await r.engine.open_conversation(None)
    assert r.engine.session.conversation.project.snapshot is None
    await r.ask("another")
    assert updates(r.chat.turns[-1]) == 0
    assert "[Db](db.md)" in said(r.chat.turns[-1])[0]


async def test_the_key_taken_away_cleans_up(rig) -> None:
    """L68: the block is live again and nothing frozen is left."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    again = await resumed(rig, r, policy=Policy())
    await again.ask("three")
    sent = again.chat.turns[-1]
    assert updates(sent) == 0
    assert "as of" not in canonical_json(list(sent.messages))
    assert said(sent)[0].startswith("<project_context>\n# Memory index (answer straight from this;")
    [gone] = [x.entry for x in await again.records() if isinstance(x.entry, ProjectSnapshotDropped)]
    assert gone.why
    assert said(sent)[2] == "two"


async def test_a_model_without_tools_is_told_nothing_and_nothing_is_lost(rig) -> None:
    """L69: neither block nor update; what was announced stays, and comes back as it was."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    before = r.chat.turns[-1]
    r.hub.connection.supports_tools = False
    await page(r, "ci")
    await r.ask("three")
    silent = r.chat.turns[-1]
    assert updates(silent) == 0
    assert said(silent) == ["one", "ok", "two", "ok", "three"]
    assert SYSTEM_LINE not in texts(silent)[0]
    assert [k.key for k in r.engine.session.conversation.project.announced.pages] == ["db.md"]
    r.hub.connection.supports_tools = True
    await r.ask("four")
    sent = r.chat.turns[-1]
    assert wire(sent).startswith(wire(before))
    assert "ci.md" in said(sent)[-1]
    assert [x.entry.hidden for x in await r.records() if isinstance(x.entry, ProjectHidden)] == [True, False]


async def test_an_external_model_gets_the_same_with_and_without_the_key(rig, tmp_path: Path) -> None:
    """L70, B25."""
    bodies = []
    for n, policy in enumerate((Policy(), ON)):
        folder = tmp_path / str(n)
        folder.mkdir()
        r = await rig(policy=policy, folder=folder)
        choice = replace(r.hub.connection.choice, local=False)
        r.hub.connection.choice = r.engine.state.control.choice = choice
        await r.ask("one")
        await page(r, "db")
        await r.ask("two")
        bodies.append([body_bytes(request_body(q, "m")).replace(str(folder).encode(), b"") for q in r.chat.turns])
        assert not [x for x in await r.records() if isinstance(x.entry, ProjectSnapshotTaken)]
    assert bodies[0] == bodies[1]


async def test_summary_requests_are_the_same_with_and_without_the_key(rig, tmp_path: Path) -> None:
    """L70: whatever works beside the conversation does not see the turn's blocks."""
    asked = []
    for n, policy in enumerate((Policy(), ON)):
        folder = tmp_path / str(n)
        folder.mkdir()
        chat = ScriptedChat(summaries=[say(SUMMARY)])
        r = await rig(policy=policy, folder=folder, chat=chat)
        await r.ask(ABOUT + "x" * 2_000)
        await page(r, "db")
        await r.ask("two")
        await compact(r, offline=False)
        asked.append([canonical_json(list(q.messages)) for q in chat.summary_requests])
    assert asked[0] == asked[1]
    assert len(asked[0]) == 1


async def test_the_status_says_in_words_what_is_frozen_and_why(rig) -> None:
    """Issue 4, section 5."""
    r = await rig()

    async def line() -> str:
        [found] = [e for e in (await r.engine.status()).economy if e.key == "proj_snapshot"]
        return f"{found.state}: {found.why}"

    assert await line() == "on: The next message takes a dated copy of the project context."
    await r.ask("one")
    assert "on: A copy of turn 1 is sent, about" in await line()
    assert "(first request); nothing has changed since." in await line()
    await page(r, "db")
    await r.ask("two")
    assert "(first request), then 1 update: 30 of at most 400 tokens." in await line()
    r.hub.connection.supports_tools = False
    await r.ask("three")
    assert (await line()).startswith("suspended: This model cannot use tools")
    r.engine.state.policy = Policy()
    assert (await line()).startswith("off: Not switched on")
