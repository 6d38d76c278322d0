"""Pruning, omission and read-back: what left the view is never lost and never stands in the way.

Cases 70–83 of the reported ones, I6; Part 2, 10.
"""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marextui import paths
from marextui.context.budget import Window
from marextui.context.entries import OutputsOmitted, OutputStored
from marextui.context.messages import ImagePart, Message, TextPart
from marextui.context.omission import DEFAULT_RETENTION_DAYS, parse_marker
from marextui.context.repeats import is_unchanged
from marextui.context.shapes import shape_violations
from marextui.engine.archive import LATEST
from marextui.engine.events import CompactionFinished, CompactionReverted, Notice, OutputsReplaced, TurnFinished
from marextui.engine.omitter import DAY
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.store.omissions import OmissionStore
from marextui.tools.omitted import ReadOmittedContent
from marextui.tools.types import ToolContext, ToolResult
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

RealTools = Callable[[], dict[str, Any]]
NEEDLE = "FATAL worker-3: quota_left went negative at shard 0x7f3c"


def read(path: str, call_id: str, **more: Any) -> list[Any]:
    return call(("Read", json.dumps({"file_path": path, **more})), ids=[call_id])


def read_back(omission_id: str, call_id: str, **more: Any) -> list[Any]:
    return call(("ReadOmittedContent", json.dumps({"content_id": omission_id, **more})), ids=[call_id])


def results(r: Rig, name: str) -> list[Message]:
    """Results of a tool as they were logged."""
    return [m for m in r.engine.session.conversation.messages if m.role == "tool" and m.name == name]


async def compact(r: Rig) -> None:
    mark = len(r.events)
    r.engine.compact(offline=True)
    await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
    await r.idle()


def markers(r: Rig) -> list[str]:
    """Ids of the markers that stand in the view, in order."""
    return [i for m in r.history() if (i := parse_marker(m.text))]


# -- reading again -----------------------------------------------------------------------------------------------------


async def test_a_file_pruned_from_the_view_is_read_again_in_full(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 70: "unchanged" is not "visible": no answer may point to what no longer stands in the view."""
    body = "".join(f"value_{n} = {n * 7919}\n" for n in range(60))
    (project / "a.py").write_text(body)
    chat = ScriptedChat([read("a.py", "r1"), say("1"), say("2"), say("3"), read("a.py", "r2"), say("4")])
    r = await rig(chat=chat, **real_tools())
    for text in ("read a.py", "two", "three", "read it again"):
        await r.ask(text)
    assert len(markers(r)) == 1, "the first copy was pruned"
    first, second = results(r, "Read")
    assert second.text == first.text
    assert "value_59" in texts(r.chat.turns[-1])[-1]


async def test_a_file_summarised_away_is_read_again_in_full(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 70, the neighbour: the copy went with a compaction, or was capped, or is another range of the file."""
    (project / "a.py").write_text("".join(f"value_{n} = {n}\n" for n in range(200)))
    ranged = read("a.py", "r2", offset=10, limit=5)
    chat = ScriptedChat([read("a.py", "r1"), say("1"), ranged, say("2"), read("a.py", "r3"), say("3")])
    r = await rig(chat=chat, **real_tools())
    await r.ask("read a.py")
    await r.ask("only some lines")
    assert results(r, "Read")[1].text.startswith("   10→value_9 = 9")
    await compact(r)
    await r.ask("and all of it again")
    assert results(r, "Read")[2].text == results(r, "Read")[0].text


async def test_a_compaction_puts_no_file_back_into_the_view_by_itself(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 71, the opposite fault: ten files and three compactions; each request holds what was asked for since."""
    replies: list[Any] = []
    for cycle in range(3):
        for n in range(10):
            replies.append(read(f"f{n}.txt", f"c{cycle}-{n}"))
        replies.append(say(f"read all, {cycle}"))
        replies.append(say("noted"))
    for n in range(10):
        (project / f"f{n}.txt").write_text(f"content of file {n} " * 100)
    r = await rig(window=Window(100_000, "discovery"), chat=ScriptedChat(replies), **real_tools())
    for cycle in range(3):
        await r.ask(f"read all files, round {cycle}")
        copies = [m for m in r.history() if m.role == "tool" and "content of file" in m.text]
        assert len(copies) == 10
        await r.ask("a word in between")
        await compact(r)
        kept = [m for m in r.history() if m.role == "tool"]
        assert not any("content of file" in m.text for m in kept)
    assert len(results(r, "Read")) == 30


async def test_reading_one_file_over_and_over_leaves_one_copy_when_room_is_short(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 73: nine reads of one file that changes; older copies give way first, the newest stays whole."""
    replies: list[Any] = []
    for n in range(9):
        replies += [read("a.py", f"r{n}"), say(f"read {n}")]
    policy = Policy(omit_after_turns=50, compact_at=0.25)
    r = await rig(chat=ScriptedChat(replies), policy=policy, **real_tools())
    for n in range(9):
        (project / "a.py").write_text("".join(f"value_{n} = {n}\n" for n in range(200)) + f"# {n}\n")
        await r.ask(f"read it, time {n}")
    whole = [t for t in texts(r.chat.turns[-1]) if "value_199" in t and "value_0 " in t]
    assert 1 <= len(whole) <= 4
    assert len(markers(r)) >= 5
    assert r.chat.summary_requests == []
    r.check_log()


BODY = "".join(f"value_{n} = {n * 7919}\n" for n in range(60))


def pointers(r: Rig) -> list[bool]:
    """For each result of Read, whether it only points at an earlier one."""
    return [is_unchanged(m.text) for m in results(r, "Read")]


async def test_what_stands_in_the_view_is_pointed_at_instead_of_repeated(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 71: one full read, then a line that says where; any change, another range or a pruned copy is shown."""
    (project / "a.py").write_text(BODY)
    chat = ScriptedChat(
        [
            read("a.py", "r1"),
            call(("Bash", '{"command": "true"}'), ("Read", '{"file_path": "a.py"}'), ids=["b", "r2"]),
            read("a.py", "r3", offset=2),
            read("a.py", "r4", offset=0),
            say("1"),
            read("a.py", "r5"),
            say("2"),
            read("a.py", "r6"),
            say("3"),
        ]
    )
    r = await rig(chat=chat, policy=Policy(omit_after_turns=2), **real_tools())
    await r.ask("read a.py")
    assert pointers(r) == [False, True, False, True]
    first, second = results(r, "Read")[:2]
    assert first.id in second.text
    assert "a.py" in second.text
    assert len(second.text) < 200
    await r.ask("and now?")
    assert pointers(r)[4:] == [True], "it stays as long as a copy read now would"
    (project / "a.py").write_text(BODY.replace("value_7 ", "seven "))
    await r.ask("and now?")
    assert pointers(r)[5:] == [False]
    r.check_log()


async def test_a_copy_that_leaves_the_view_before_the_next_turn_is_not_pointed_at(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """With outputs kept for one turn more, a pointer to the turn before would point at a marker one turn later."""
    (project / "a.py").write_text(BODY)
    chat = ScriptedChat([read("a.py", "r1"), say("1"), read("a.py", "r2"), say("2"), say("3")])
    r = await rig(chat=chat, **real_tools())
    for text in ("read a.py", "again", "go on"):
        await r.ask(text)
    assert pointers(r) == [False, False]
    assert any("value_59" in t for t in texts(r.chat.turns[-1]))


async def test_nothing_points_at_what_a_compaction_took_and_undo_brings_it_back(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 70: read, compacted, read: in full; undone: both stand there, and the newest is what is pointed at."""
    (project / "a.py").write_text(BODY)
    reads = [part for n in range(4) for part in (read("a.py", f"r{n}"), say(f"{n}"))]
    chat = ScriptedChat([*reads[:4], say("a word"), *reads[4:]])
    r = await rig(chat=chat, policy=Policy(omit_after_turns=9), **real_tools())
    await r.ask("read a.py")
    await r.ask("again")
    assert pointers(r) == [False, True]
    await r.ask("something else")
    await compact(r)
    await r.ask("again")
    assert pointers(r)[2:] == [False]
    r.engine.undo_compaction()
    await r.until(lambda e: isinstance(e, CompactionReverted))
    await r.idle()
    await r.ask("again")
    assert pointers(r)[3:] == [True]
    assert results(r, "Read")[2].id in results(r, "Read")[3].text
    r.check_log()


async def test_what_stands_as_a_marker_may_still_be_edited_and_after_a_restart_too(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 74: the guard of Edit goes by what was read, not by what is in sight; a changed file is another matter."""
    (project / "a.py").write_text("limit = 5\n" + "# note\n" * 200)
    edit = json.dumps({"file_path": "a.py", "old_string": "limit = 5", "new_string": "limit = 6"})
    again = json.dumps({"file_path": "a.py", "old_string": "limit = 6", "new_string": "limit = 7"})
    chat = ScriptedChat([read("a.py", "r1"), say("1"), say("2"), say("3"), call(("Edit", edit), ids=["e1"]), say("4")])
    r = await rig(chat=chat, **real_tools())
    for text in ("read a.py", "two", "three", "now edit it"):
        await r.ask(text)
    assert markers(r)
    assert not results(r, "Edit")[0].is_error
    await r.engine.close()

    chat = ScriptedChat([call(("Edit", again), ids=["e2"]), say("5"), call(("Edit", again), ids=["e3"]), say("6")])
    later = await rig(chat=chat, wanted=LATEST, ids=RandomIds(), **real_tools())
    await later.ask("edit it again")
    assert not results(later, "Edit")[-1].is_error
    (project / "a.py").write_text("limit = 6\nsomebody else was here\n")
    await later.ask("and again")
    assert results(later, "Edit")[-1].is_error
    assert "changed on disk" in results(later, "Edit")[-1].text


async def test_reading_again_after_a_compaction_is_never_punished(rig: StartRig) -> None:
    """Case 75: nothing counts repeated calls against the model, in whichever turn or generation they are made."""
    look = ("Look", '{"at": "the same"}')
    replies: list[Any] = []
    for n in range(4):
        replies += [call(look, ids=[f"a{n}"]), call(look, ids=[f"b{n}"]), say("seen")]
    tools = ScriptedTools({"Look": "a view " * 150})
    r = await rig(chat=ScriptedChat(replies), tools=tools)
    await r.ask("look twice")
    await r.ask("look twice more")
    await compact(r)
    await r.ask("look again, twice")
    await r.ask("and again")
    assert len(tools.ran) == 8
    assert all(m.text == "a view " * 150 and not m.is_error for m in results(r, "Look"))


# -- the marker --------------------------------------------------------------------------------------------------------


async def test_a_marker_says_what_it_is_how_long_and_how_to_read_it(rig: StartRig) -> None:
    """Case 77: for every kind of thing that can leave the view; what it says is what then works."""
    arguments = json.dumps({"file_path": "big.py", "content": "line of code\n" * 400})
    chat = ScriptedChat([call(("Write", arguments), ids=["w"]), say("1"), *[say("ok")] * 8])
    r = await rig(window=Window(4_096, "discovery"), chat=chat, tools=ScriptedTools({"Write": "wrote it " * 120}))
    await r.ask("write it")
    r.engine.submit_content((TextPart("what is this?"), ImagePart("data:image/png;base64,iVBORw0KGgo" + "A" * 900)))
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 2)
    await r.idle()
    for n in range(5):
        await r.ask(f"go on {n}: " + "words and more words " * 40)
    shown = [t for q in r.chat.turns for t in texts(q)]
    shown += [c["function"]["arguments"] for q in r.chat.turns for m in q.messages for c in m.get("tool_calls", ())]
    found = {i for t in shown if (i := parse_marker(t.replace('\\"', '"').split('"content":"')[-1].rstrip('"}')))}
    assert found
    for omission_id in found:
        assert await r.engine.read_omission(omission_id)


async def test_reading_back_needs_no_permission_and_no_workspace(rig: StartRig, real_tools: RealTools) -> None:
    """Case 78: the store lies outside the project; nobody is asked, nothing is refused, also when all else is."""
    tools = {**real_tools(), "unattended": {}}
    chat = ScriptedChat([call(("Ls", "{}"), ids=["l"]), say("1"), read_back("omitted-001", "b"), say("2")])
    project = tools["tools"]
    r = await rig(chat=chat, **tools)
    for n in range(80):
        (r.folder / "project" / f"a-rather-long-name-{n:03d}.txt").write_text("x")
    assert project is tools["tools"]
    await r.ask("list the folder")
    await r.ask("read it back")
    [back] = results(r, "ReadOmittedContent")
    assert not back.is_error
    assert "a-rather-long-name-079.txt" in back.text


async def test_the_store_is_private_and_each_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rig: StartRig
) -> None:
    """Case 79: no shared temporary path: folders 0700, files 0600, another home or clone is another folder."""
    chat = ScriptedChat([call(("Look", "{}"), ids=["a"]), say("1")])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "o" * 1_000}))
    await r.ask("look")
    folder = tmp_path / "memory" / "omissions"
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600) or path.name == ".lock"
    places = set()
    for user in ("ann", "bob"):
        monkeypatch.setenv("MAREX_HOME", str(tmp_path / user))
        for clone in ("one/repo", "two/repo"):
            places.add(paths.omissions_dir(tmp_path / clone))
    assert len(places) == 4


async def test_pruning_is_one_announced_step_and_rewrites_nothing_older(rig: StartRig) -> None:
    """Case 82: in a batch at the start of a turn, with what it freed, and every id of it can be read at that moment."""
    loop = [call(("A", "{}"), ("B", "{}"), ("C", "{}"), ids=[f"{n}a", f"{n}b", f"{n}c"]) for n in range(2)]
    chat = ScriptedChat([loop[0], say("1"), say("2"), loop[1], say("3"), say("4"), say("5")])
    outputs = {name: [name.lower() * 900, name.lower() * 901] for name in "ABC"}
    r = await rig(chat=chat, tools=ScriptedTools(outputs))
    for n in range(5):
        await r.ask(f"turn {n}")
    batches = r.of(OutputsReplaced)
    assert [(b.turn, len(b.refs)) for b in batches] == [(3, 3), (5, 3)]
    assert all(b.tokens_freed > 500 for b in batches)
    logged = [x.entry for x in await r.records() if isinstance(x.entry, OutputsOmitted)]
    assert [e.why for e in logged] == ["age", "age"]
    for batch in batches:
        for ref in batch.refs:
            assert await r.engine.read_omission(ref.omission_id)
    before, after = r.chat.turns[-2].messages, r.chat.turns[-1].messages
    first_new = next(n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    assert "turn 2" in texts(r.chat.turns[-1])[first_new - 2], "the older prefix stands as it was"


# -- nothing is lost ---------------------------------------------------------------------------------------------------


def log_of(lines: int, needle_at: int) -> str:
    """A log with a needle at one line."""
    return "".join(
        f"{NEEDLE}\n" if n == needle_at else f"2026-03-01T10:{n % 60:02d} INFO worker-{n % 7} did {n} in {n % 97} ms\n"
        for n in range(lines)
    )


async def test_a_needle_in_the_middle_of_five_megabytes_is_found_by_query_and_by_range(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 83: from the product's own Bash through log and store back to the model, within the cap of the window."""
    text = log_of(110_000, 50_000)
    assert len(text) > 5_000_000
    (project / "app.log").write_text(text)
    at = text.index(NEEDLE)
    chat = ScriptedChat(
        [
            call(("Bash", '{"command": "cat app.log"}'), ids=["b"]),
            say("1"),
            read_back("omitted-001", "q", query="quota_left went negative"),
            read_back("omitted-001", "r", offset=at - 100, length=400),
            read_back("omitted-001", "w", query="negative shard quota_left"),
            say("2"),
        ]
    )
    r = await rig(chat=chat, **real_tools())
    await r.ask("show the log")
    assert not any(NEEDLE in m.text for m in r.history())
    await r.ask("find the fatal line")
    query, ranged, words = results(r, "ReadOmittedContent")
    for found in (query, ranged, words):
        assert NEEDLE in found.text
        assert len(found.text) <= 32_768 * 4 // 25
    assert "line 50001" in query.text
    assert await r.engine.read_omission("omitted-001") == text


def _payload(size: int, seed: int) -> str:
    """Lines that differ, so that a lost or moved piece shows."""
    dice = random.Random(seed)
    text = "".join(f"{n} {dice.getrandbits(40):x}\n" for n in range(size // 12 + 2))
    return text[: size - 1] + "."


@pytest.mark.parametrize("size", [600, 601, 5_242, 5_243, 199_999, 200_000, 200_001, 450_000])
async def test_every_byte_of_an_output_can_be_read_back(rig: StartRig, size: int) -> None:
    """I6, M27: also beyond what an entry of the store holds; page by page it is the original."""
    text = _payload(size, size)
    chat = ScriptedChat([call(("Look", "{}"), ids=["a"]), say("1"), say("2"), say("3")])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": text}))
    for n in range(3):
        await r.ask(f"turn {n}")
    if size <= 600:
        assert markers(r) == []
        return
    [omission_id] = markers(r)
    assert await r.engine.read_omission(omission_id) == text
    tool, reader = ReadOmittedContent(), r.engine.state.originals
    pages, offset = [], 0
    while offset < size:
        args = {"content_id": omission_id, "offset": offset, "length": 60_000}
        result = await tool.run(args, ToolContext(omitted=reader, limit_chars=80_000))
        page = result.text if result.text == text else result.text.rpartition("\n[characters")[0]
        assert page
        pages.append(page)
        offset += len(page)
    assert "".join(pages) == text


@pytest.mark.parametrize("kind", ["request", "input", "image", "part"])
async def test_whatever_was_too_long_for_its_entry_is_read_from_the_log(rig: StartRig, kind: str) -> None:
    """I6: a request, an argument, a picture, a part of an output of more than 200 000 characters."""
    text = _payload(320_000, 5)
    url = "data:image/png;base64," + "iVBORw0KGgo" + "A" * 300_000
    arguments = json.dumps({"file_path": "big.txt", "content": text})
    parts = (TextPart("head"), TextPart(text))
    tools = ScriptedTools({"Write": "ok", "Look": ToolResult("x", parts=parts)})
    r = await rig(tools=tools, policy=Policy(keep_images=1))
    if kind == "request":
        await r.ask(text)
    elif kind == "image":
        for picture in (url, url[:-8] + "BBBBBBB="):
            r.engine.submit_content((TextPart("see"), ImagePart(picture)))
        await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 2)
        await r.ask("more")
    else:
        name, given = ("Write", arguments) if kind == "input" else ("Look", "{}")
        r.chat.replies = [call((name, given), ids=["w"]), say("1")]
        for n in range(4):
            await r.ask(f"turn {n}")
    await r.idle()
    entries = await r.engine.omissions()
    whole = [t for i in entries if i.chars > 200_000 and (t := await r.engine.read_omission(i.id))]
    assert whole
    assert (url if kind == "image" else text) in whole
    assert all(i.stored_chars <= 200_000 for i in entries), "M27: the entry itself keeps to its limit"
    await r.engine.close()
    again = await rig(wanted=LATEST, ids=RandomIds())
    back = [t for i in entries if (t := await again.engine.read_omission(i.id))]
    assert (url if kind == "image" else text) in back


async def test_what_made_room_for_newer_outputs_is_still_read_back(rig: StartRig) -> None:
    """Case 81: the quota takes the entry, the log has the text; after the retention it is gone, and says so."""
    outputs = [random.Random(n).randbytes(95_000).hex() for n in range(12)]
    replies: list[Any] = []
    for n in range(12):
        replies += [call(("Look", json.dumps({"n": n})), ids=[f"i{n}"]), say(f"seen {n}")]
    r = await rig(
        window=Window(2_000_000, "discovery"),
        chat=ScriptedChat(replies),
        tools=ScriptedTools({"Look": outputs[:]}),
        quota_mb=1,
    )
    for n in range(12):
        await r.ask(f"look {n}")
    kept = {i.id for i in await r.engine.omissions()}
    evicted = [f"omitted-{n:03d}" for n in range(1, 13) if f"omitted-{n:03d}" not in kept]
    assert evicted, "the quota was reached"
    told = " ".join(n.text for n in r.of(Notice))
    assert all(i in told for i in evicted), "what goes is named"
    for omission_id in evicted:
        assert await r.engine.read_omission(omission_id) == outputs[int(omission_id[8:]) - 1]
    reader = r.engine.state.originals
    r.clock.time += (DEFAULT_RETENTION_DAYS + 1) * DAY
    assert await reader.read(evicted[0]) is None
    assert "30 days" in await reader.why_missing(evicted[0])
    r.check_log()


async def test_hundreds_of_outputs_keep_to_the_quota_and_what_views_show_goes_last(tmp_path: Path) -> None:
    """Case 81: by age and room, referenced ones last; the ids are never given out again."""
    clock = iter(range(10**6))
    store = OmissionStore(tmp_path / "omissions", lambda: float(next(clock)), quota_mb=1)
    dice = random.Random(3)
    ids = []
    for n in range(250):
        text = dice.randbytes(5_000).hex()
        ids.append((await store.put(text, tool="t", what="", conversation_id="c", message_id=f"m{n}")).id)
        if n % 50 == 49 and await store.over_quota():
            await store.evict({ids[0], ids[1]}, keep={ids[-1]})
    assert len(set(ids)) == 250
    assert await store.get(ids[0])
    assert await store.get(ids[1])
    assert await store.get(ids[2]) is None
    await store.evict(set(), keep=())
    assert await store.total_bytes() <= 1_000_000


async def test_the_reader_is_told_whether_the_file_is_still_the_same(
    rig: StartRig, real_tools: RealTools, project: Path
) -> None:
    """Case 70, Part 2, 10: unchanged, changed, gone; each is said where the old content is read back."""
    (project / "a.py").write_text("limit = 5\n" * 100)
    chat = ScriptedChat([read("a.py", "r"), say("1")])
    r = await rig(chat=chat, **real_tools())
    await r.ask("read a.py")
    tool = ReadOmittedContent()
    said = []
    for change in (lambda: None, lambda: (project / "a.py").write_text("limit = 9\n"), (project / "a.py").unlink):
        change()
        result = await tool.run({"content_id": "omitted-001"}, ToolContext(omitted=r.engine.state.originals))
        assert "limit = 5" in result.text
        said.append(result.text.rsplit("\n[", 1)[1])
    assert "unchanged on disk" in said[0]
    assert "has changed on disk" in said[1]
    assert "can no longer be read" in said[2]


# -- pictures ----------------------------------------------------------------------------------------------------------


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA10dzk" + "A" * 400


async def test_a_picture_of_a_tool_is_sent_in_a_legal_shape(rig: StartRig) -> None:
    """Case 103, I1: a tool message holds text only; its pictures stand in a user message after their round."""
    seen = ToolResult("seen", parts=(TextPart("the page"), ImagePart(PNG)))
    replies = [
        call(("Shot", "{}"), ("Look", "{}"), ids=["a", "b"]),
        call(("Shot", "{}"), ids=["c"]),
        say("done"),
        say("yes"),
    ]
    r = await rig(chat=ScriptedChat(replies), tools=ScriptedTools({"Shot": [seen, seen], "Look": "plain"}))
    await r.ask("look at the page")
    await r.ask("anything else?")
    for request in r.chat.turns:
        assert shape_violations([{k: v for k, v in m.items() if k != "name"} for m in request.messages], "openai") == ()
        assert len(request.message_ids) == len(request.messages) - 1
        assert len(set(request.message_ids)) == len(request.message_ids)
    roles = [m["role"] for m in r.chat.turns[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]  # case 22: never two users
    assert [p["type"] for p in r.chat.turns[1].messages[-1]["content"]] == ["text", "image_url"]
    for before, after in zip(r.chat.turns, r.chat.turns[1:], strict=False):
        assert list(after.messages[: len(before.messages)]) == list(before.messages), "I7"


async def test_a_picture_that_was_put_aside_is_shown_again_and_not_as_letters(
    rig: StartRig, real_tools: RealTools
) -> None:
    """Case 103: base64 tells a model nothing: reading an image back shows the image, under the id it had."""
    r = await rig(policy=Policy(keep_images=1), **real_tools())
    for n in range(3):
        r.engine.submit_content((TextPart(f"picture {n}"), ImagePart(PNG[:-1] + "ABC"[n])))
        await r.until(lambda e, n=n: isinstance(e, TurnFinished) and e.turn == n + 1)
    await r.idle()
    first = r.history()[0].content
    assert isinstance(first, tuple)
    assert isinstance(first[1], TextPart)
    omission_id = parse_marker(first[1].text) or ""
    r.chat.replies = [read_back(omission_id, "b"), say("I see it")]
    await r.ask("look at the first again")
    request = r.chat.turns[-1]
    shown = [p["image_url"]["url"] for m in request.messages if isinstance(m["content"], list)
             for p in m["content"] if p["type"] == "image_url"]  # fmt: skip
    assert shown[-1] == PNG[:-1] + "A"
    [back] = results(r, "ReadOmittedContent")
    assert "image, PNG 640×480" in back.text
    assert "iVBOR" not in back.text
    before = len(await r.engine.omissions())
    for n in range(3):
        r.engine.submit_content((TextPart(f"new {n}"), ImagePart(PNG[:-1] + "DEF"[n])))
        await r.until(lambda e, n=n: isinstance(e, TurnFinished) and e.turn == n + 5)
    await r.idle()
    stored = [x.entry.ref for x in await r.records() if isinstance(x.entry, OutputStored)]
    assert [s.omission_id for s in stored] == [omission_id], "the read-back goes back to the id it came from"
    assert len(await r.engine.omissions()) <= before + 3
    r.check_log()


def test_the_private_folder_is_private_under_a_loose_umask(tmp_path: Path) -> None:
    """Case 79: whatever the shell's umask says."""
    before = os.umask(0)
    try:
        folder = paths.ensure_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
