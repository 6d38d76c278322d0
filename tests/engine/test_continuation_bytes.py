"""Compaction requests byte by byte on a recording server: with and without the key, and when it fails (L2, L3, L21)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from marextui.context.continuation import DEMAND_MARK
from marextui.context.messages import canonical_json
from marextui.engine.events import CompactionFailed, CompactionFinished, Notice, TurnFinished
from marextui.settings import Settings
from tests.stubs.fake_server import (
    Cut,
    FakeServer,
    Gate,
    Reply,
    Request,
    Script,
    completion_reply,
    error_reply,
    json_reply,
    overflow_reply,
    text_reply,
)
from tests.stubs.live_engine import LiveEngine, live_engine
from tests.unit.test_continuation import FROZEN_PROMPT

SUMMARY = """## Session Intent
- make the parser faster
## Files Modified
- src/parser.py: loop unrolled
## Decisions Made
- keep the old API
## Current State
- tests pass
## Next Steps
- measure"""
QUESTION = "In src/parser.py, make the parser faster and keep the old API. Question {}: " + "why so slow? " * 180


def cost(request: Request) -> tuple[int, int, int | None]:
    """Input, answer and cached tokens of a request, by its size; the server says nothing of its cache."""
    return (
        len(canonical_json(request.json()["messages"])) // 4 + len(canonical_json(request.json()["tools"])) // 4,
        9,
        None,
    )


class Server:
    """Answers turns, continuations and transcripts; `on_continuation` may be scripted, everything is recorded."""

    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self.on_continuation: list[Script] = []
        self.seen: list[tuple[str, Request]] = []
        fake.fallback = self.answer

    def answer(self, request: Request) -> Reply:
        kind = kind_of(request)
        self.seen.append((kind, request))
        if kind == "turn":
            return text_reply("Because of the loop.", usage=cost(request))
        if kind == "continuation" and self.on_continuation:
            script = self.on_continuation.pop(0)
            return script if isinstance(script, Reply) else script(request)
        return completion_reply(SUMMARY, usage=(900, 80, 850))

    def summaries(self) -> list[str]:
        return [kind for kind, _ in self.seen if kind != "turn"]


def kind_of(request: Request) -> str:
    body = request.json()
    if body["stream"]:
        return "turn"
    return "continuation" if body["messages"][-1]["content"].startswith(DEMAND_MARK) else "transcript"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with FakeServer(n_ctx=16_384) as fake:
        yield Server(fake)


def settings(server: Server, **more: Any) -> Settings:
    more.setdefault("compact_continuation", True)
    return Settings(base_url=server.fake.base_url, model="fake", **more)


async def until_compacted(live: LiveEngine, server: Server, *, wait: int = 1) -> None:
    """Turns until that many compactions ended; every turn has to end well."""
    n = 0
    while len(live.of(CompactionFinished)) + len(live.of(CompactionFailed)) < wait:
        n += 1
        assert n < 40
        assert (await live.ask(QUESTION.format(n))).end == "done"


def spliced(body: bytes) -> bytes:
    """The body up to the end of the last message: what a longer request has to begin with."""
    return body[: body.index(b',"tools":') - 1]


async def test_the_continuation_is_the_turn_as_it_left_and_two_messages_more(server: Server, tmp_path: Path) -> None:
    """L3, I7: byte for byte up to the last message of the turn; then the stored reply and the demand, nothing else."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        await until_compacted(live, server)
    i = next(i for i, (kind, _) in enumerate(server.seen) if kind == "continuation")
    turn, asked = server.seen[i - 1][1], server.seen[i][1]
    assert asked.body.startswith(spliced(turn.body))
    extra = asked.json()["messages"][len(turn.json()["messages"]) :]
    assert extra[0] == {"role": "assistant", "content": "Because of the loop."}
    assert [m["role"] for m in extra] == ["assistant", "user"]
    was, now = turn.json(), asked.json()
    assert list(now) == ["model", "messages", "tools", "max_tokens", "temperature", "stream", *list(now)[6:]]
    assert set(list(now)[6:]) == {"chat_template_kwargs", "tool_choice"}
    assert (now["model"], now["tools"]) == (was["model"], was["tools"])
    assert (now["stream"], now["temperature"], now["tool_choice"], now["max_tokens"]) == (False, 0.2, "none", 700)
    assert now["chat_template_kwargs"] == {"enable_thinking": False}


GOLDEN_END = """
</material>

Write the notes now: each of these headings, under it its bullets or `none`. Write in English, the language of the user.
## Session Intent
## Files Modified
## Decisions Made
## Current State
## Next Steps"""


async def test_without_the_key_the_body_is_the_golden_one(server: Server, tmp_path: Path) -> None:
    """L2: exactly model, messages [system, user], max_tokens, temperature, stream, template arguments, in order."""
    async with live_engine(settings(server, compact_continuation=False), tmp_path / "p") as live:
        await until_compacted(live, server)
        cut = live.of(CompactionFinished)[0].entry.cut
        conversation = live.engine.session.conversation
        span = conversation.messages[: next(i for i, m in enumerate(conversation.messages) if m.id == cut)]
    [asked] = [r for kind, r in server.seen if kind != "turn"]
    told = "\n\n".join(f"[{m.role}]\n{m.text.strip()}" for m in span)
    user = f"The material:\n<material>\n{told}{GOLDEN_END}"
    golden = {
        "model": "fake",
        "messages": [{"role": "system", "content": FROZEN_PROMPT}, {"role": "user", "content": user}],
        "max_tokens": 700,
        "temperature": 0.1,
        "stream": False,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert asked.body == canonical_json(golden).encode()


async def test_without_the_key_not_one_request_more(server: Server, tmp_path: Path) -> None:
    """L2, L31: reads at connecting only."""
    async with live_engine(settings(server, compact_continuation=False), tmp_path / "p") as live:
        await live.ask("Hello?")
        connected = [r.path for r in server.fake.requests if r.method == "GET"]
        await until_compacted(live, server)
        assert [r.path for r in server.fake.requests if r.method == "GET"] == connected
    assert server.summaries() == ["transcript"]


FAILURES: dict[str, Reply] = {
    "template refusal": error_reply(
        500, "Jinja Exception: Conversation roles must alternate user/assistant", type="server_error"
    ),
    "bad request": error_reply(400, "Invalid value", type="invalid_request_error"),
    "unprocessable": error_reply(422, "no", type="invalid_request_error"),
    "overflow": overflow_reply(17_000, 16_384),
    "loading": error_reply(503, "Loading model", type="unavailable_error"),
    "rate limit": error_reply(429, "slow down"),
    "cut before the answer": Reply((Cut(),)),
    "cut in the answer": Reply((b'{"choices":[{"message":{"cont', Cut()), content_type="application/json"),
    "no JSON": Reply((b"<html>Bad gateway</html>",), 200, "text/html"),
    "error in a 200": json_reply({"error": {"message": "slot unavailable", "code": 500}}),
    "tool call": json_reply(
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
                        ],
                    },
                }
            ]
        }
    ),
    "call as text": completion_reply('<tool_call>\n{"name": "Read", "arguments": {}}\n</tool_call>'),
    "thinking only": json_reply(
        {
            "choices": [
                {"index": 0, "message": {"content": "", "reasoning_content": "hm " * 40}, "finish_reason": "stop"}
            ]
        }
    ),
    "nothing": completion_reply(""),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_turn_never_fails_because_going_on_failed(server: Server, tmp_path: Path, failure: str) -> None:
    """L21, issue 4 section 9: whatever the server does to the continuation, the transcript follows, the turn ends."""
    server.on_continuation.append(FAILURES[failure])
    async with live_engine(settings(server), tmp_path / "p") as live:
        await until_compacted(live, server)
        live.check_log()
        assert live.of(CompactionFailed) == []
        assert [n for n in live.of(Notice) if n.level == "error"] == []
    assert server.summaries() == ["continuation", "transcript"]


async def test_a_server_that_sleeps_is_asked_by_transcript(server: Server, tmp_path: Path) -> None:
    """L18, D9: sleep has emptied its cache; looking does not wake it."""
    props = {"total_slots": 1, "is_sleeping": True, "default_generation_settings": {"n_ctx": 16_384}}
    async with live_engine(settings(server), tmp_path / "p") as live:
        await live.ask("Hello?")
        server.fake.routes["/props"] = json_reply(props)
        await until_compacted(live, server)
        line, *_ = (await live.engine.status()).economy
        assert "went to sleep" in line.why
    assert server.summaries() == ["transcript"]


async def test_a_server_that_tells_nothing_of_its_slots_is_trusted(server: Server, tmp_path: Path) -> None:
    """D1: /slots may be off (501), and a look that fails fails nothing."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        await live.ask("Hello?")
        server.fake.routes["/slots"] = error_reply(501, "This server does not support slots endpoint.")
        server.fake.routes["/props"] = Reply((Cut(),))
        await until_compacted(live, server)
    assert server.summaries() == ["continuation"]


async def test_another_model_in_between_is_asked_by_transcript(server: Server, tmp_path: Path) -> None:
    """L18: the model was swapped under us (its window too), as connecting again finds out."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        trial = 0
        while not live.of(CompactionFinished):
            trial += 1
            await live.ask(QUESTION.format(trial))
    before = len(server.seen)
    async with live_engine(settings(server), tmp_path / "q") as live:
        for n in range(1, trial):
            await live.ask(QUESTION.format(n))
        connection = live.engine.state.control.connection
        assert connection is not None
        server.fake.routes["/props"] = json_reply({"total_slots": 1, "default_generation_settings": {"n_ctx": 16_000}})
        await connection.refresh_window()
        assert (await live.ask(QUESTION.format(trial))).end == "done"
        assert live.of(CompactionFinished)
    assert [kind for kind, _ in server.seen[before:] if kind != "turn"] == ["transcript"]


async def test_interrupting_a_continuation_leaves_everything_as_it_was(server: Server, tmp_path: Path) -> None:
    """M15: no transcript after it, nothing committed; the next turn tries again."""
    gate = Gate()
    server.on_continuation.append(lambda r: Reply((b"{", gate), content_type="application/json"))
    async with live_engine(settings(server), tmp_path / "p") as live:
        n = 0
        while not server.summaries():
            n += 1
            live.engine.submit(QUESTION.format(n))
            mark = len(live.events)
            event = await live.until(
                lambda e: isinstance(e, TurnFinished) or getattr(e, "phase", "") == "compacting", after=mark
            )
            if isinstance(event, TurnFinished):
                await live.until(lambda e: getattr(e, "phase", "") == "idle", after=mark)
                continue
            await gate.reached.wait()
            live.engine.interrupt()
            ended = await live.ended(mark)
            assert ended.end == "interrupted"
        gate.open()
        assert live.of(CompactionFinished) == []
        live.check_log()
        await until_compacted(live, server)
    assert server.summaries() == ["continuation", "transcript"] or server.summaries() == ["continuation"] * 2


async def test_the_journal_tells_the_cost(server: Server, tmp_path: Path) -> None:
    """L29: cached null when the server does not say; the line belongs to the conversation."""
    async with live_engine(settings(server), tmp_path / "p") as live:
        server.on_continuation.append(completion_reply(SUMMARY, usage=(900, 80, None)))
        await until_compacted(live, server)
        conversation = live.engine.session.id
    lines = [json.loads(x) for x in (tmp_path / "p/.marex/usage.jsonl").read_text().splitlines()]
    [line] = [x for x in lines if x["kind"] == "compact"]
    assert (line["conv"], line["inp"], line["cache_read"], line["computed"]) == (conversation, 900, None, None)


@pytest.mark.parametrize("frozen", [False, True])
async def test_the_project_block_is_sent_as_it_was_and_never_stored(
    server: Server, tmp_path: Path, frozen: bool
) -> None:
    """L6, L8: it heads the first user message of what is gone on from; no stored message and no summary holds it."""
    (tmp_path / "p" / ".marex").mkdir(parents=True)
    (tmp_path / "p" / ".marex" / "project.md").write_text("A parser for hedgehog files.\n")
    async with live_engine(settings(server, proj_snapshot=frozen), tmp_path / "p") as live:
        await until_compacted(live, server)
        messages = live.engine.session.conversation.messages
        assert not [m for m in (*messages, *live.history()) if "hedgehog" in m.text or DEMAND_MARK in m.text]
        assert not [m for m in messages if m.role == "system"]
    i = next(i for i, (kind, _) in enumerate(server.seen) if kind == "continuation")
    turn, asked = server.seen[i - 1][1], server.seen[i][1]
    assert asked.body.startswith(spliced(turn.body))
    assert "hedgehog" in asked.json()["messages"][1]["content"]
    assert "hedgehog" not in asked.json()["messages"][-1]["content"]
