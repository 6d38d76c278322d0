"""What tests of the frozen project context start from: an engine with the key, and its requests as they are sent."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from marextui.context.budget import Window
from marextui.context.marks import CONTEXT_UPDATE_OPEN
from marextui.context.messages import canonical_json
from marextui.engine.events import CompactionFailed, CompactionFinished, ProjectCopied
from marextui.engine.policy import Policy
from marextui.models.types import ChatRequest
from tests.stubs.engine_rig import ManualClock, Rig, texts
from tests.stubs.scripted_model import ScriptedChat

ON = Policy(proj_snapshot=True)
NOON = datetime.datetime(2026, 10, 2, 12, 0, tzinfo=datetime.UTC).timestamp()
DAY = 86_400.0
ABOUT = "In src/parser.py, make the parser faster and keep the old API. "
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

Start = Callable[..., Awaitable[Rig]]


@asynccontextmanager
async def rigs(folder: Path) -> AsyncIterator[Start]:
    """Starts engines with the key on and closes them all."""
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(32_768, "discovery"))
        kw.setdefault("policy", ON)
        kw.setdefault("chat", ScriptedChat())
        kw.setdefault("clock", ManualClock(NOON))
        rig = await Rig(kw.pop("folder", folder), **kw).start()
        made.append(rig)
        return rig

    try:
        yield start
    finally:
        for one in made:
            await one.engine.close()


def said(request: ChatRequest) -> list[str]:
    """What is sent after the system message."""
    return texts(request)[1:]


def wire(request: ChatRequest) -> str:
    """The messages as they are written into the body, without the closing bracket."""
    return canonical_json(list(request.messages))[:-1]


def updates(request: ChatRequest) -> int:
    return sum(text.count(CONTEXT_UPDATE_OPEN) for text in said(request))


async def page(r: Rig, name: str, text: str = "") -> None:
    assert await r.about.pages.write(name, f"# {name.capitalize()}\n{text}") == ""


def taken(r: Rig) -> list[str]:
    return [e.why for e in r.of(ProjectCopied)]


async def compact(r: Rig, *, offline: bool = True) -> None:
    mark = len(r.events)
    r.engine.compact(offline=offline)
    done = await r.until(lambda e: isinstance(e, CompactionFinished | CompactionFailed), after=mark)
    assert isinstance(done, CompactionFinished), done
    await r.idle()


async def resumed(start: Start, r: Rig, **kw) -> Rig:
    conversation = r.engine.session.id
    await r.engine.close()
    return await start(wanted=conversation, chat=ScriptedChat(), ids=r.ids, **kw)
