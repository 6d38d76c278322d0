"""Outputs become markers when they have grown old, and can be read back (M23–M30, B7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import OutputsOmitted
from marextui.engine.events import Notice, OmissionRead, OmissionStored, OutputsReplaced, ToolFinished
from marextui.engine.omitter import DAY
from marextui.tools.omitted import ReadOmittedContent
from marextui.tools.types import ToolResult
from tests.stubs.engine_rig import Rig, full_disk, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(200_000, "discovery"))
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def test_601_characters_become_a_marker_two_turns_later_and_600_do_not(rig) -> None:
    """M23: raw in the requests of turns 1 and 2; from turn 3 on 600 is raw, 601 a marker; then a stable prefix."""
    chat = ScriptedChat([call(("A", "{}"), ("B", "{}")), say("1"), say("2"), say("3"), say("4")])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "a" * 600, "B": "b" * 601}))
    for text in ("one", "two", "three", "four"):
        await r.ask(text)
    second, third, fourth = r.chat.turns[2:5]
    assert "b" * 601 in texts(second)
    marker = 'omitted omitted-001: tool output, 601 chars — retrieve with ReadOmittedContent content_id="omitted-001"'
    assert f"[{marker}]" in texts(third)
    assert "a" * 600 in texts(third)
    assert list(fourth.messages)[: len(third.messages)] == list(third.messages)
    [replaced] = r.of(OutputsReplaced)
    assert (replaced.turn, [x.omission_id for x in replaced.refs]) == (3, ["omitted-001"])
    assert replaced.tokens_freed > 100
    [logged] = [x.entry for x in await r.records() if isinstance(x.entry, OutputsOmitted)]
    assert (logged.freed, logged.why) == (replaced.tokens_freed, replaced.why)
    r.check_log()


async def test_a_bulky_output_is_capped_at_once_and_stored_whole(rig) -> None:
    """M30: 100 000 characters at a window of 32 768: at most 5 242 and the marker; the store has all."""
    whole = "".join(chr(97 + i % 26) for i in range(100_000))
    chat = ScriptedChat([call(("Big", "{}")), say("ok")])
    r = await rig(chat=chat, tools=ScriptedTools({"Big": whole}), window=Window(32_768, "discovery"))
    await r.ask("go")
    seen = r.history()[2].text
    marker = seen[seen.rindex("[omitted") :]
    assert len(seen) <= 5_242 + len(marker) + 200
    assert await r.engine.read_omission("omitted-001") == whole
    [finished] = r.of(ToolFinished)
    assert (finished.chars, finished.omission_id) == (100_000, "omitted-001")


async def test_reading_back_is_whole_counted_and_goes_back_to_the_same_id(rig) -> None:
    """M26: complete text; grown old the read-back is a marker of the original id, not a second entry."""
    whole = "x" * 3_000
    tools = ScriptedTools({"Big": whole, "ReadOmittedContent": ""})
    reader = ReadOmittedContent()

    async def run(name: str, arguments: str, ctx) -> ToolResult:
        if name == "ReadOmittedContent":
            return await reader.run({"content_id": "omitted-001"}, ctx)
        return ToolResult(whole)

    tools.run = run  # type: ignore[method-assign]
    chat = ScriptedChat(
        [
            call(("Big", "{}")),
            say("1"),
            call(("ReadOmittedContent", '{"content_id":"omitted-001"}'), ids=["r"]),
            say("2"),
        ]
    )
    r = await rig(chat=chat, tools=tools)
    for text in ("one", "read it back", "three", "four"):
        await r.ask(text)
    assert r.of(OmissionRead)[0].reads == 1
    infos = await r.engine.omissions()
    assert [(i.id, i.reads, i.in_view) for i in infos] == [("omitted-001", 1, False)]
    markers = [t for t in texts(r.chat.turns[-1]) if t.startswith("[omitted omitted-001")]
    assert len(markers) == 2


async def test_the_browser_lists_what_is_stored_from_the_moment_it_is_produced(rig) -> None:
    chat = ScriptedChat([call(("Read", '{"p":1}')), say("1")])
    r = await rig(chat=chat, tools=ScriptedTools({"Read": "line\n" * 300}))
    await r.ask("go")
    [stored] = r.of(OmissionStored)
    info = stored.info
    assert (info.tool, info.what, info.chars, info.in_view) == ("Read", '{"p":1}', 1500, True)
    assert info.days_left == 30
    assert "\n" not in info.preview
    assert info.conversation_id == r.engine.session.id


async def test_entries_are_purged_after_thirty_days(rig) -> None:
    """M29: once a day; the marker in the history stays."""
    chat = ScriptedChat([call(("A", "{}")), say("1"), say("2"), say("3")])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "a" * 700}))
    for text in ("one", "two", "three"):
        await r.ask(text)
    r.clock.time += 30 * DAY + 1
    await r.ask("much later")
    assert await r.engine.omissions() == []
    assert await r.engine.read_omission("omitted-001") is None
    assert any(t.startswith("[omitted omitted-001") for t in texts(r.chat.turns[-1]))


async def test_room_is_made_from_the_oldest_when_the_request_would_not_fit(rig) -> None:
    """I2, case 3: without a model, oldest first; the newest round stays, and what left can be read by its id."""
    rounds = [call(("A", "{}"), ids=[f"i{n}"]) for n in range(6)]
    r = await rig(
        chat=ScriptedChat([*rounds, say("done")]),
        tools=ScriptedTools({"A": [chr(97 + n) * 640 for n in range(6)]}),
        window=Window(1_600, "discovery"),
    )
    done = await r.ask("look six times")
    assert done.end == "done"
    last = texts(r.chat.turns[-1])
    assert any("f" * 200 in t for t in last)
    assert not any("a" * 200 in t for t in last)
    assert "look six times" in last
    assert await r.engine.read_omission("omitted-001") == "a" * 640
    assert r.chat.summary_requests == []
    r.check_log()


async def test_a_failed_read_back_is_no_read_and_no_omission(rig) -> None:
    """An id nobody gave out, one whose days are over, a query without a match: none counts, none refers to an entry."""
    tools = ScriptedTools({"Big": "x" * 3_000, "ReadOmittedContent": ""})
    reader = ReadOmittedContent()

    async def run(name: str, arguments: str, ctx) -> ToolResult:
        if name == "ReadOmittedContent":
            return await reader.run(json.loads(arguments), ctx)
        return ToolResult("x" * 3_000)

    tools.run = run  # type: ignore[method-assign]
    wanted = ['{"content_id":"omitted-009"}', '{"content_id":"omitted-001","query":"zebra"}']
    gone = '{"content_id":"omitted-001"}'
    chat = ScriptedChat(
        [
            call(("Big", "{}")),
            say("1"),
            call(*(("ReadOmittedContent", w) for w in wanted), ids=["r1", "r2"]),
            say("2"),
            call(("ReadOmittedContent", gone), ids=["r3"]),
            say("3"),
        ]
    )
    r = await rig(chat=chat, tools=tools)
    await r.ask("one")
    await r.ask("read what is not there")
    assert [(i.id, i.reads) for i in await r.engine.omissions()] == [("omitted-001", 0)]
    r.clock.time += 31 * DAY
    await r.ask("read what has expired")
    assert r.of(OmissionRead) == []
    unknown, no_match, expired = r.of(ToolFinished)[1:]
    assert (unknown.is_error, unknown.omission_id) == (True, "")
    assert (no_match.is_error, no_match.summary) == (False, "omitted-001, nothing there")
    assert (expired.is_error, expired.omission_id) == (True, "")
    assert "expired" in r.history()[-2].text


async def test_a_count_that_cannot_be_kept_does_not_cost_what_was_read(rig, monkeypatch) -> None:
    r = await rig(chat=ScriptedChat([call(("A", "{}")), say("1")]), tools=ScriptedTools({"A": "a" * 700}))
    await r.ask("one")
    monkeypatch.setattr(r.omissions, "mark_read", full_disk)
    assert await r.engine.read_omission("omitted-001") == "a" * 700
    assert "No space left" in r.of(Notice)[-1].text
