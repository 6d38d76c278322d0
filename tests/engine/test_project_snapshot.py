"""PROJ_SNAPSHOT: a frozen, dated copy; changes come as updates; a new copy where it costs nothing (L52–L70).

Requests are compared as the bytes that are sent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marextui.context.entries import (
    ContextUpdated,
    MessageAdded,
)
from marextui.context.marks import CONTEXT_UPDATE_OPEN
from marextui.context.messages import ImagePart, TextPart, canonical_json
from marextui.context.project import Tracker
from marextui.context.project_block import SYSTEM_LINE
from marextui.engine.events import CompactionFinished, ContextUpdatePlaced
from marextui.models.types import ModelError, Usage
from tests.stubs.engine_rig import texts
from tests.stubs.project_rig import ABOUT, DAY, SUMMARY, compact, page, rigs, said, taken, updates, wire
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


@pytest.fixture
async def rig(tmp_path: Path):
    async with rigs(tmp_path) as start:
        yield start


# -- the copy and its updates ------------------------------------------------------------------------------------------


async def test_the_first_message_does_not_move_when_a_page_is_made(rig) -> None:
    """L52: three turns, a page in between; the copy is sent again byte for byte."""
    r = await rig()
    await page(r, "build", "Run make.")
    await r.ask("one")
    await page(r, "db", "It runs on pg1.")
    await r.ask("two")
    await r.ask("three")
    heads = {said(t)[0] for t in r.chat.turns}
    assert len(heads) == 1
    [head] = heads
    assert "# Memory index, as of 2026-10-02" in head
    assert f"Today is 2026-10-02. Project folder: {r.folder / 'project'}" in head
    assert "answer straight from this" not in head
    assert head.endswith("\n\none")


async def test_a_change_heads_the_next_message_and_is_sent_again_as_it_was(rig) -> None:
    """L53: with the time on its first line, and only what is new since the last one."""
    r = await rig()
    await r.ask("one")
    await page(r, "db", "It runs on pg1.")
    await r.ask("two")
    await page(r, "ci", "Nightly.")
    await r.ask("three")
    await r.ask("four")
    last = said(r.chat.turns[-1])
    assert last[2] == (
        '<context_update from="loki"> 2026-10-02 12:00\n'
        "Memory index (+ added, ~ changed, - removed):\n"
        "+ [Db](db.md) – It runs on pg1.\n"
        "</context_update>\n\n"
        "two"
    )
    assert "[Ci](ci.md)" in last[4]
    assert "db.md" not in last[4]
    assert last[6] == "four"
    assert said(r.chat.turns[1])[2] == last[2]


async def test_every_request_begins_with_the_one_before(rig) -> None:
    """L52, I7: ten turns with pages and trackers changing in between, tool calls too."""
    chat = ScriptedChat([call(("Look", "{}"), ids=[f"c{n}"]) if n % 3 == 0 else say(f"answer {n}") for n in range(14)])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "seen"}))
    for n in range(10):
        if n % 2:
            await page(r, f"p{n}", "about it")
        else:
            await r.about.trackers.set(Tracker("w", str(n)))
        await r.ask(f"question {n}")
    assert len(chat.turns) > 12
    for before, after in zip(chat.turns, chat.turns[1:], strict=False):
        assert wire(after).startswith(wire(before))
    assert taken(r) == ["first request"]
    assert updates(chat.turns[-1]) == 9


async def test_the_system_prompt_says_whose_the_blocks_are_and_does_not_change(rig) -> None:
    """L55; without the key the line is not there."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    systems = {texts(t)[0] for t in r.chat.turns}
    assert len(systems) == 1
    assert SYSTEM_LINE in systems.pop()


async def test_the_first_page_of_an_empty_project_is_an_update(rig) -> None:
    """L60: neither the first message nor the list of tools moves."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    first, second = r.chat.turns
    assert wire(second).startswith(wire(first))
    assert second.tools == first.tools
    assert updates(second) == 1


async def test_a_new_day_is_one_line_of_an_update(rig) -> None:
    """B21: the date stands in the frozen copy, so midnight costs one line and no prefix (L42)."""
    r = await rig()
    await r.ask("one")
    r.clock.time += DAY
    await r.ask("two")
    first, second = r.chat.turns
    assert wire(second).startswith(wire(first))
    assert "\nToday is 2026-10-03.\n" in said(second)[2]


async def test_pictures_keep_their_message_and_get_the_update_as_a_part(rig) -> None:
    """L65."""
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    mark = len(r.events)
    image = ImagePart("data:image/png;base64,AAAA")
    r.engine.submit_content((TextPart("look"), image))
    await r.until(lambda e: type(e).__name__ == "TurnFinished", after=mark)
    await r.idle()
    content = r.chat.turns[-1].messages[-1]["content"]
    assert content[0]["text"].startswith(CONTEXT_UPDATE_OPEN)
    assert content[1] == {"type": "text", "text": "look"}
    logged = r.engine.session.conversation.messages[-2]
    assert logged.content == (TextPart("look"), image)


async def test_people_see_what_was_sent_at_the_head_of_their_message(rig) -> None:
    r = await rig()
    await r.ask("one")
    await page(r, "db")
    await r.ask("two")
    [event] = r.of(ContextUpdatePlaced)
    assert event.words == "db.md"
    assert r.engine.session.conversation.message(event.message_id).text == "two"


# -- who does not see the blocks ---------------------------------------------------------------------------------------


async def test_titles_exports_summaries_and_searches_never_see_a_block(rig) -> None:
    """L66, and facts, orders and the work log: all of them read the log, which holds what the person wrote."""
    chat = ScriptedChat(summaries=[say(SUMMARY)])
    r = await rig(chat=chat)
    await page(r, "secretpage", "remember to always use tabs")
    await r.ask(ABOUT + "x" * 1_000)
    await page(r, "otherpage", "never use spaces")
    await r.ask("two")
    await r.ask("three")
    assert r.engine.session.title.startswith("In src/parser.py")
    exported = Path(await r.engine.export("out.json", fmt="json")).read_text()
    markdown = Path(await r.engine.export("out.md")).read_text()
    await compact(r, offline=False)
    asked = canonical_json([list(q.messages) for q in chat.summary_requests])
    beside = r.of(CompactionFinished)[0].entry.beside
    hits = await r.engine.state.runner.recaller.search("otherpage")
    for text in (exported, markdown, asked, beside, canonical_json([h.text for h in hits])):
        assert "context_update" not in text.replace(f"and {CONTEXT_UPDATE_OPEN} blocks", "")
        assert "otherpage" not in text
        assert "secretpage" not in text


# -- edges of placing --------------------------------------------------------------------------------------------------


async def test_a_message_that_was_sent_already_gets_no_update_when_the_turn_is_tried_again(rig) -> None:
    """L53: what a server may have computed is not changed; the change is announced with the next message."""
    chat = ScriptedChat([say("a"), [ModelError("network", "connection lost")], say("b"), say("c")])
    r = await rig(chat=chat)
    await r.ask("one")
    await r.ask("two")
    await page(r, "db")
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: type(e).__name__ == "TurnFinished", after=mark)
    await r.idle()
    failed, again = chat.turns[1:3]
    assert wire(again) == wire(failed)
    await r.ask("three")
    assert updates(chat.turns[-1]) == 1
    assert said(chat.turns[-1])[-1].endswith("three")


async def test_a_message_that_never_left_carries_what_changed_until_it_does(rig) -> None:
    """L53: the model could not be started, the page was made, then it could."""
    r = await rig()
    await r.ask("one")
    r.hub.failures = [ModelError("network", "no server")]
    r.hub.connection.alive = False
    await r.engine.state.control.drop()
    await r.ask("two")
    assert len(r.chat.turns) == 1
    await page(r, "db")
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: type(e).__name__ == "TurnFinished", after=mark)
    await r.idle()
    assert updates(r.chat.turns[-1]) == 1


async def test_the_figures_count_what_is_sent(rig) -> None:
    """L63 beside I8: block in the system part, updates in the history; with counts of the server too."""
    r = await rig(chat=ScriptedChat([say("a", Usage(450, 2)), say("b", Usage(500, 2)), say("c")]))
    await page(r, "build", "h" * 100)
    await r.ask("one")
    state = r.engine.state
    block = said(r.chat.turns[0])[0].removesuffix("\n\none")
    await page(r, "db", "h" * 100)
    await r.ask("two")
    after = state.reading()
    assert after.project == r.engine.session.ledger.text(block)
    assert after.used == 502 - after.system_part
    estimate = r.engine.session.ledger.messages(r.history())
    bare = r.engine.session.ledger.messages(r.engine.session.conversation.messages)
    assert estimate - bare > 20


async def test_the_log_can_be_read_by_what_reads_logs(rig) -> None:
    """I5: entries round trip, and every message is what was written."""
    r = await rig()
    await r.ask("one")
    await page(r, "db", "</context_update> not the end")
    await r.ask("two")
    r.check_log()
    records = await r.records()
    assert [x.entry.message.text for x in records if isinstance(x.entry, MessageAdded)] == ["one", "ok", "two", "ok"]
    [update] = [x.entry for x in records if isinstance(x.entry, ContextUpdated)]
    assert update.text.count("</context_update>") == 1
    assert json.loads(json.dumps(update.message_id)) == update.message_id
