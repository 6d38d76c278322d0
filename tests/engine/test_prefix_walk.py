"""Twenty turns of everything: each request begins with the one before, to the byte, or the reason is named (I7).

The fake server counts as one with one slot does: what a request shares with the one before comes from the cache.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from marextui.context.messages import canonical_json
from marextui.engine.events import CacheChanged, CompactionFinished, CompactionReverted
from marextui.settings import Settings
from tests.stubs.fake_server import (
    FakeServer,
    Gate,
    Reply,
    Request,
    completion_reply,
    delta,
    error_reply,
    stream_reply,
    text_reply,
    tool_reply,
    usage_chunk,
)
from tests.stubs.live_engine import LiveEngine, live_engine

SUMMARY = """## Session Intent
- find the port
## Files Modified
none
## Decisions Made
- the port stays 8080
## Current State
- nothing changed
## Next Steps
- answer"""

LOOK = ("Read", {"file_path": "a.txt"})
SEARCH = ("Grep", {"pattern": "port"})
MISSING = ("Read", {"file_path": "missing.txt"})
NOISE = ("Bash", {"command": "yes noise | head -n 900"})


def rendered(request: Request) -> str:
    """What a server renders: the tools, then message by message."""
    body = request.json()
    return canonical_json(body["tools"]) + canonical_json(body["messages"])[:-1]


def shared(old: str, new: str) -> int:
    """Characters that both begin with."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


@dataclass
class OneSlot:
    """Answers from a script and reports what of each request it had in its slot, in bytes; `forgets` it when told."""

    fake: FakeServer
    script: list[Reply] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)
    slot: str = ""

    def __post_init__(self) -> None:
        self.fake.fallback = self.answer

    def answer(self, request: Request) -> Reply:
        now = rendered(request) if "tools" in request.json() else request.body.decode()
        cached, self.slot = shared(self.slot, now), now
        if not request.json()["stream"]:
            return completion_reply(SUMMARY, usage=(len(now), 80, cached))
        self.seen.append(request)
        reply = self.script.pop(0) if self.script else text_reply("It is 8080.")
        if reply.status != 200:
            return reply
        *pieces, done = reply.pieces
        usage = {"prompt_tokens": len(now), "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": cached}}
        return Reply((*pieces[:-1], {"choices": [], "usage": usage}, done))


@pytest.fixture
async def server() -> AsyncIterator[OneSlot]:
    async with FakeServer(n_ctx=400_000) as fake:
        yield OneSlot(fake)


def settings(server: OneSlot, **more: Any) -> Settings:
    return Settings(base_url=server.fake.base_url, model="fake", **more)


def prepared(root: Path) -> Path:
    """A project that has everything that is told of one."""
    (root / ".marex").mkdir(parents=True)
    (root / "MAREX.md").write_text("# Port finder\nBe brief.\n")
    (root / "AGENTS.md").write_text("Run the tests first.\n")
    (root / ".marex" / "project.md").write_text("Finds ports.\n")
    (root / "a.txt").write_text("the port is 8080\n" * 60)
    return root


def reasons(live: LiveEngine) -> list[str]:
    """What each counted request was computed anew for, "" for nothing, in order."""
    steps: list[tuple[int | None, int | None, str]] = []
    for event in live.of(CacheChanged):
        now = (event.cache.cached, event.cache.computed, event.cache.broke)
        if event.cache.cached is not None and steps[-1:] != [now]:
            steps.append(now)
    return [broke for _, _, broke in steps]


def whole(server: OneSlot) -> list[bool]:
    """For each turn's request but the first: does it begin with the one before, byte for byte?"""
    sent = [rendered(r) for r in server.seen]
    return [after.startswith(before) for before, after in pairwise(sent)]


async def walk(live: LiveEngine, server: OneSlot) -> None:
    """Tools one by one and in parallel, failing and missing, thinking, changes of pages and trackers, 20 turns."""
    thought = text_reply("Because of the loop.", reasoning="Let me think. " * 30)
    plan: dict[int, list[Reply]] = {
        1: [tool_reply(LOOK), thought],
        2: [tool_reply(LOOK, SEARCH, MISSING), tool_reply(SEARCH), text_reply("Yes.")],
        5: [tool_reply(NOISE, text="I run it."), thought],
        9: [tool_reply(("Read", "{broken")), text_reply("No.")],
        10: [tool_reply(("NoSuchTool", {})), thought],
        14: [tool_reply(LOOK, LOOK), text_reply("Both.")],
        17: [thought],
    }
    for n in range(1, 21):
        if n in (4, 8, 12):
            assert await live.engine.save_page("host", f"# Host\nIt runs on pg{n}.") == ""
        if n in (6, 13):
            assert await live.engine.set_tracker("weight", str(70 + n), "kg") == ""
        if n == 7:
            await live.engine.reload_memory()
        server.script = list(plan.get(n, ()))
        assert (await live.ask(f"Question {n}? " + "Where is it said? " * 20)).end == "done"
        await live.engine.status()
        await live.engine.context()
    live.check_log()


async def test_with_a_dated_project_only_omissions_break_the_prefix(server: OneSlot, tmp_path: Path) -> None:
    """I7, L52: pages and trackers change, tools fail, a model thinks: only what the conversation shows rewrites."""
    async with live_engine(settings(server, proj_snapshot=True), prepared(tmp_path / "p"), allow=("bash",)) as live:
        assert await live.engine.save_page("start", "# Start\nHere.") == ""
        await walk(live, server)
        told = reasons(live)
    assert len(told) == len(server.seen) == 27
    assert [bool(t) for t in told[1:]] == [not intact for intact in whole(server)]
    assert [t for t in told if t] == [f"omission of turn {n}" for n in (1, 2, 5, 14)]


async def test_without_the_copy_each_change_of_the_project_is_named(server: OneSlot, tmp_path: Path) -> None:
    """What a page costs without the key is said in words; everything else stays as it was."""
    async with live_engine(settings(server), prepared(tmp_path / "p"), allow=("bash",)) as live:
        assert await live.engine.save_page("start", "# Start\nHere.") == ""
        await walk(live, server)
        told = reasons(live)
    assert [bool(t) for t in told[1:]] == [not intact for intact in whole(server)]
    assert {t for t in told if t} <= {"the project context changed", *(f"omission of turn {n}" for n in (1, 2, 5, 14))}
    assert told.count("the project context changed") >= 5


async def test_rules_tools_compactions_and_undos_are_named(server: OneSlot, tmp_path: Path) -> None:
    """M13, M31: what a person does to the context is what the gauge says."""
    root = tmp_path / "p"
    root.mkdir()
    (root / "MAREX.md").write_text("Be brief.\n")
    async with live_engine(settings(server), root) as live:
        for n in range(1, 5):
            await live.ask(f"Question {n}? " + "Where is it said? " * 20)
        (root / "MAREX.md").write_text("Be exact.\n")
        await live.ask("And with these rules?")
        assert await live.engine.save_page("host", "# Host\nIt runs on pg1.") == ""
        await live.ask("And now?")
        live.engine.compact()
        await live.until(lambda e: isinstance(e, CompactionFinished))
        await live.ask("Go on.")
        live.engine.undo_compaction()
        await live.until(lambda e: isinstance(e, CompactionReverted))
        await live.ask("And as before?")
        told = reasons(live)
    assert [bool(t) for t in told[1:]] == [not intact for intact in whole(server)]
    assert told[4:] == [
        "system text changed (project rules)",
        "tool list changed (MemoryPage, Tracker came)",
        "compaction 1, which added to memory",
        "undo of compaction 1",
    ]


async def test_trouble_breaks_no_prefix(server: OneSlot, tmp_path: Path) -> None:
    """M15, M17, I7: refusals of server and person, an answer stopped, cut or missing, another try, a restart."""
    root = prepared(tmp_path / "p")
    async with live_engine(settings(server), root) as live:
        await live.ask("Question 1?")
        server.script = [error_reply(400, "no")]
        assert (await live.ask("Question 2?")).end == "error"
        mark = len(live.events)
        live.engine.retry()
        assert (await live.ended(mark)).end == "done"
        gate = Gate()
        server.script = [stream_reply(delta(content="It is"), delta(content=" probably"), gate, usage_chunk(0, 0))]
        mark = len(live.events)
        live.engine.submit("Question 3?")
        await live.words(2, after=mark)
        live.engine.interrupt()
        assert (await live.ended(mark)).end == "interrupted"
        gate.open()
        server.script = [tool_reply(("Bash", {"command": "rm -rf /"}), LOOK), text_reply("Then not.")]
        assert (await live.ask("Question 4?")).end == "done"
        server.script = [text_reply("It is as I said: the po", reason="length")]
        await live.ask("Question 5?")
        await live.ask("Question 6?")
        server.script = [text_reply("")]
        await live.ask("Question 7?")
        live.check_log()
        told, conversation = reasons(live), live.engine.session.id
    async with live_engine(settings(server), root, wanted=conversation) as live:
        await live.ask("Question 8?")
    assert [t for t in told if t] == ["omission of turn 4"]
    sent = [rendered(r) for r in server.seen]
    joined = [after for before, after in pairwise(sent) if after.startswith(before[:-2]) > after.startswith(before)]
    assert len(joined) == 1, "the message that got no answer goes on in the next one"
    assert whole(server).count(False) == 1 + len(joined)


async def test_a_server_that_forgets_is_told_of_once(server: OneSlot, tmp_path: Path) -> None:
    """Issue 4, section 5: we went on exactly, it computed everything; one notice for all the times."""
    async with live_engine(settings(server), prepared(tmp_path / "p")) as live:
        for n in range(1, 5):
            await live.ask(f"Question {n}? " + "Where is it said? " * 80)
            server.slot = "" if n > 1 else server.slot
        told = reasons(live)
        notices = [e.text for e in live.events if "forgot the conversation" in getattr(e, "text", "")]
    assert told == ["", "", "the server forgot", "the server forgot"]
    assert len(notices) == 1


async def test_two_conversations_on_one_slot_name_each_other(server: OneSlot, tmp_path: Path) -> None:
    async with live_engine(settings(server), prepared(tmp_path / "p")) as live:
        await live.ask("Question 1? " * 2_000)
        first = live.engine.session.id
        await live.engine.open_conversation(None)
        await live.ask("Something else? " * 2_000)
        await live.engine.open_conversation(first)
        await live.ask("Question 2?")
        await live.ask("Question 3?")
        told = reasons(live)
    assert told == ["", *["another conversation was asked in between"] * 2, ""]
