"""A server in trouble, with and without the features that save it work: the same turns end the same (issue 4, 9).

Each trouble begins after the second turn. What the keys send of their own (continuations, prewarms, saved states) may
meet it too; the turns, their answers and the log must not differ from those of a run without any key.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marextui.context.continuation import DEMAND_MARK
from marextui.engine import prewarm
from marextui.engine.events import CompactionFailed, CompactionFinished, Event, Notice, PrewarmChanged, TurnFinished
from marextui.settings import Settings
from tests.stubs.fake_server import (
    Cut,
    FakeServer,
    Reply,
    Request,
    completion_reply,
    delta,
    error_reply,
    json_reply,
    overflow_reply,
    text_reply,
)
from tests.stubs.live_engine import LiveEngine, live_engine

WINDOW = 10_240
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
QUESTION = "In src/parser.py, make the parser faster and keep the old API. Question {}: " + "why so slow? " * 320
TURNS = 6
TROUBLE_FROM = 3
"""The turn that meets it first."""


def kind_of(request: Request) -> str:
    body = request.json()
    last = str(body["messages"][-1]["content"])
    if body["stream"]:
        return "turn"
    if last == ".":
        return "prewarm"
    return "continuation" if DEMAND_MARK in last else "summary"


def tokens(request: Request) -> int:
    body = request.json()
    return len(json.dumps([body["messages"], body.get("tools")])) // 4


class Server:
    """Answers every kind of request; from the third turn on `trouble` may say otherwise."""

    def __init__(self, fake: FakeServer, trouble: Trouble) -> None:
        self.fake, self.trouble = fake, trouble
        self.kinds: list[str] = []
        fake.fallback = self.answer

    def answer(self, request: Request) -> Reply:
        kind = kind_of(request)
        self.kinds.append(kind)
        turn = sum(m["role"] == "user" and "Question" in str(m["content"]) for m in request.json()["messages"])
        if self.kinds.count("turn") >= TROUBLE_FROM:
            if self.trouble.routes:
                self.fake.routes.update(self.trouble.routes)
            reply = self.trouble.reply(kind, request, self.kinds)
            if reply is not None:
                return reply
        used = tokens(request)
        if kind == "turn":
            return text_reply(f"Because of the loop, {turn and 'as asked'}.", usage=(used, 9, used - 100))
        return completion_reply("!" if kind == "prewarm" else SUMMARY, usage=(used, 9, used - 100))


def well(kind: str, request: Request, kinds: list[str]) -> Reply | None:
    return None


@dataclass(frozen=True)
class Trouble:
    """What the server answers (None: as ever) to a request of that kind; `routes` it answers otherwise."""

    reply: Callable[[str, Request, list[str]], Reply | None] = well
    routes: dict[str, Reply] | None = None


def ours(reply: Reply) -> Trouble:
    """Only what the features send meets it."""
    return Trouble(lambda kind, request, kinds: None if kind in ("turn", "summary") else reply)


def once(reply: Reply) -> Trouble:
    """The third turn meets it, and whatever is sent right after."""
    return Trouble(lambda kind, request, kinds: reply if kinds.count("turn") == TROUBLE_FROM else None)


def forgetful(kind: str, request: Request, kinds: list[str]) -> Reply | None:
    used = tokens(request)
    if kind == "turn":
        return text_reply("Because of the loop, as asked.", usage=(used, 9, 0))
    return completion_reply("!" if kind == "prewarm" else SUMMARY, usage=(used, 9, 0))


def props(**more: Any) -> dict[str, Reply]:
    settings = {"n_ctx": more.pop("n_ctx", WINDOW)}
    return {"/props": json_reply({"total_slots": 1, "default_generation_settings": settings, **more})}


CUT = Reply((delta(content="Because of"), Cut()))
TROUBLES: dict[str, Trouble] = {
    "none": Trouble(),
    "restarted unseen: nothing is cached any more": Trouble(forgetful, {"/slots": json_reply([{"id": 0}])}),
    "killed in the middle of an answer": once(CUT),
    "killed while it works for a feature": ours(CUT),
    "asleep": Trouble(routes=props(is_sleeping=True)),
    "another model was loaded, with another window": Trouble(routes=props(n_ctx=8192, model_path="/other.gguf")),
    "used by others: busy": Trouble(routes={"/slots": json_reply([{"id": 0, "is_processing": True}])}),
    "used by others: their prompt": Trouble(routes={"/slots": json_reply([{"id": 0, "n_prompt_tokens": 3}])}),
    "several slots": Trouble(routes=props(total_slots=4)),
    "loading": ours(error_reply(503, "Loading model", type="unavailable_error")),
    "an overflow": ours(overflow_reply(20_000, WINDOW)),
    "an overflow of a smaller window": ours(overflow_reply(20_000, 4096)),
    "a template that refuses": ours(error_reply(500, "Jinja Exception: roles must alternate", type="server_error")),
    "a request that is refused": ours(error_reply(400, "invalid")),
    "a page instead of an answer": ours(Reply((b"<html>502</html>",), 502, "text/html")),
    "nothing but noise": ours(Reply((b"\x00\xff\x1b]0;x\x07",), 200, "application/json")),
    "no looking any more": Trouble(
        routes={p: error_reply(500, "broken") for p in ("/props", "/slots", "/v1/models", "/health")}
    ),
    "looks that tell nonsense": Trouble(
        routes={
            "/props": json_reply({"total_slots": -1, "is_sleeping": "no", "default_generation_settings": []}),
            "/slots": json_reply({"error": 1}),
            "/v1/models": json_reply([None]),
        }
    ),
}


async def played(folder: Path, trouble: Trouble, **keys: Any) -> tuple[list[tuple[str, str]], LiveEngine, Server]:
    """How each turn ended and its answer; a failed one is tried again. Between turns a person reads."""
    async with FakeServer(n_ctx=WINDOW) as fake:
        server = Server(fake, trouble)
        settings = Settings(base_url=fake.base_url, model="fake", retries=0, **keys)
        ends = []
        async with live_engine(settings, folder) as live:
            for n in range(1, TURNS + 1):
                mark = len(live.events)
                done: TurnFinished = await live.ask(QUESTION.format(n))
                if done.end == "error":
                    live.engine.retry()
                    done = await live.ended(live.events.index(done, mark) + 1)
                ends.append((done.end, live.last().text))
                if "prewarm" in keys:
                    await live.until(_settled, after=live.events.index(done, mark))
                live.check_log()
            return ends, live, server


def _settled(event: Event) -> bool:
    return isinstance(event, PrewarmChanged) and event.state in ("ready", "refused")


KEYS: dict[str, dict[str, Any]] = {
    "ahead": {"prewarm": "full", "proj_snapshot": True, "warm_resume": "all"},
    "going on": {"compact_continuation": True, "proj_snapshot": True, "warm_resume": "all"},
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_turn_ends_as_it_would_without_the_keys(
    tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prewarm, "BUSY_PAUSE", 0.0)
    plain, _, without = await played(tmp_path / "plain", TROUBLES[trouble])
    assert set(without.kinds) == {"turn", "summary"}, "without the keys nothing of theirs is sent"
    for name, keys in KEYS.items():
        saved, live, server = await played(tmp_path / name, TROUBLES[trouble], **keys)
        assert saved == plain
        assert {end for end, _ in saved} == {"done"}
        assert live.of(CompactionFailed) == []
        assert live.of(CompactionFinished)
        errors = [n for n in live.of(Notice) if n.level == "error"]
        assert len(errors) == (trouble == "killed in the middle of an answer")
        if trouble == "none":
            assert ("prewarm" if name == "ahead" else "continuation") in server.kinds
