"""Secrets live in the running conversation only: not on disk, at the summariser or in an export (I10, case 135)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.engine.api import LATEST
from marextui.engine.events import CompactionFinished
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

KEY = "ghp_" + "a1B2" * 9
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
ABOUT = "In src/parser.py, make the parser faster and keep the old API. "


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(8192, "discovery"))
        made.append(await Rig(tmp_path, **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


def holding(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]


async def test_the_model_sees_the_key_and_the_disk_does_not(rig, tmp_path: Path) -> None:
    """The view of the running process is untouched; a resumed conversation sees the placeholder."""
    output = f"export TOKEN={KEY}\n" + "line\n" * 200
    chat = ScriptedChat([call(("Bash", f'{{"command":"echo {KEY}"}}')), say(f"The key is {KEY}."), say("yes")])
    r = await rig(chat=chat, tools=ScriptedTools({"Bash": output}))
    await r.ask(f"print {KEY}")
    await r.ask("again?")
    sent = "\n".join(texts(r.chat.turns[-1]))
    assert f"export TOKEN={KEY}" in sent
    assert f"The key is {KEY}." in sent
    assert holding(tmp_path) == []
    for fmt in ("markdown", "json"):
        assert KEY not in Path(await r.engine.export(f"out.{fmt}", fmt=fmt)).read_text()
    await r.engine.close()
    assert holding(tmp_path) == []
    again = await rig(wanted=LATEST, chat=ScriptedChat([say("ok")]))
    await again.ask("and now?")
    sent = "\n".join(texts(again.chat.turns[-1]))
    assert KEY not in sent
    assert "The key is [redacted: github token #" in sent
    again.check_log()


async def test_the_summariser_does_not_see_the_key(rig, tmp_path: Path) -> None:
    """Case 137: no second model is told; neither the summary nor memory hold it."""
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY.replace("old API", f"old API {KEY}"))]))
    for n in range(30):
        await r.ask(ABOUT + f"question {n} with {KEY} " + "x" * 2400)
        if r.of(CompactionFinished):
            break
    assert r.of(CompactionFinished)
    assert r.chat.summary_requests
    assert all(KEY not in "\n".join(texts(request)) for request in r.chat.summary_requests)
    assert holding(tmp_path) == []
