"""What has no room in the summary can be read back, by person and model, and comes back with an undo (P10, I6)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.messages import canonical_json, to_wire
from marextui.engine.events import CompactionFailed, CompactionFinished, CompactionReverted, OmissionStored
from marextui.engine.policy import Policy
from marextui.tools.omitted import ReadOmittedContent
from marextui.tools.types import ToolContext
from tests.stubs.engine_rig import Rig, full_disk
from tests.stubs.scripted_model import ScriptedChat, say

MODULES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "sigma"]
LINE = re.compile(r"- … (\d+) earlier items? → ReadOmittedContent ((?:omitted-\d+(?:, )?)+)")
Start = Callable[..., Awaitable[Rig]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Start]:
    made: list[Rig] = []

    async def start(**kw: Any) -> Rig:
        kw.setdefault("window", Window(8192, "discovery"))
        kw.setdefault("policy", Policy(beside_tokens=0))
        made.append(await Rig(tmp_path, **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


def summary(n: int) -> str:
    """Of one cycle: many files, with long notes."""
    files = "\n".join(f"- src/{m}_{n}.py: the part of {m} was moved to a file of its own and tested" for m in MODULES)
    return f"## Session Intent\n- split the modules, part {n}\n## Files Modified\n{files}\n## Next Steps\n- go on"


async def cycle(r: Rig, n: int) -> None:
    """Talk of part `n` until it is compacted."""
    names = " ".join(f"src/{m}_{n}.py" for m in MODULES)
    count = len(r.of(CompactionFinished))
    while len(r.of(CompactionFinished)) == count:
        assert not r.of(CompactionFailed), r.of(CompactionFailed)
        await r.ask(f"Please split the modules, part {n}: {names}. Move each part to a file of its own. " + "x" * 1600)


async def folded(r: Rig) -> str:
    """Compact until something is folded out; its id."""
    while not r.of(OmissionStored):
        await cycle(r, len(r.of(CompactionFinished)) + 1)
    return r.of(OmissionStored)[0].info.id


def view(r: Rig) -> list[str]:
    return [canonical_json(to_wire(m)) for m in r.history()]


async def test_every_item_stands_in_the_view_or_under_an_id_the_view_names(rig: Start) -> None:
    """P10, I6: over cycles the oldest files leave the view; each can be read back by an id that stands there."""
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in range(1, 6)]))
    for n in range(1, 6):
        await cycle(r, n)
    block = r.history()[0].text
    found = LINE.search(block)
    assert found is not None
    ids = re.findall(r"omitted-\d+", found.group(2))
    stored = {i: await r.engine.read_omission(i) or "" for i in ids}
    for n in range(1, 6):
        for m in MODULES:
            path = f"src/{m}_{n}.py"
            assert path in block or any(path in text for text in stored.values()), path
    assert int(found.group(1)) == sum(text.count("\n- src/") for text in stored.values())
    assert "(cycle 1)" in stored[ids[-1]]
    r.check_log()


async def test_the_model_reads_it_with_its_own_tool(rig: Start) -> None:
    """Case 83: by the id the view names, and only what it asks for."""
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in range(1, 6)]))
    omission_id = await folded(r)
    assert f"ReadOmittedContent {omission_id}" in r.history()[0].text
    context = ToolContext(omitted=r.engine.state.runner.omitted)
    result = await ReadOmittedContent().run({"content_id": omission_id, "query": "alpha_1"}, context)
    assert not result.is_error
    assert "- src/alpha_1.py: the part of alpha" in result.text
    assert "theta_1" not in result.text


async def test_the_browser_lists_it_and_the_quota_takes_it_last(rig: Start) -> None:
    """I6, case 81: the id stands in the view, its text does not."""
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in range(1, 6)]))
    await folded(r)
    [row] = await r.engine.omissions()
    assert (row.tool, row.in_view) == ("summary", False)
    assert re.fullmatch(r"\d+ items folded out in compaction \d", row.what)
    assert row.id in await r.engine.state.archive.store.omissions_in_views("p")


async def test_undo_brings_the_items_back_byte_for_byte(rig: Start) -> None:
    """Case 113: the view before the compaction that folded, exactly."""
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in range(1, 6)]))
    before: list[str] = []
    while not r.of(OmissionStored):
        before = view(r)
        await cycle(r, len(r.of(CompactionFinished)) + 1)
    mark = len(r.events)
    r.engine.undo_compaction(force=True)
    await r.until(lambda e: isinstance(e, CompactionReverted), after=mark)
    await r.idle()
    assert view(r)[: len(before)] == before
    assert "ReadOmittedContent" not in r.history()[0].text
    [row] = await r.engine.omissions()
    assert row.in_view  # it stands whole in the view again


async def test_without_room_on_the_disk_nothing_is_folded_and_nothing_changes(rig: Start, monkeypatch: Any) -> None:
    """M15, I6: what cannot be stored may not leave the view."""
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in range(1, 6)]))
    monkeypatch.setattr(r.omissions, "put", full_disk)
    with pytest.raises(AssertionError, match="could not be stored"):
        await folded(r)
    assert "ReadOmittedContent" not in r.history()[0].text
    [failed] = r.of(CompactionFailed)
    assert "what has no room in the summary could not be stored: No space left on device" in failed.reason
    assert len(r.of(CompactionFinished)) == r.engine.session.conversation.cycle


async def test_a_rewritten_summary_keeps_what_it_dropped_within_reach(rig: Start) -> None:
    """P4: regenerative too loses nothing that stood in the view."""
    policy = Policy(beside_tokens=0, strategy="regenerative")
    r = await rig(chat=ScriptedChat(summaries=[say(summary(n)) for n in (1, 2, 3)]), policy=policy)
    for n in (1, 2, 3):
        await cycle(r, n)
    block = r.history()[0].text
    assert "- src/alpha_1.py" not in block
    first, second = (s.info.id for s in r.of(OmissionStored))
    assert f"ReadOmittedContent {second}, {first}" in block
    assert "- src/alpha_1.py: the part of alpha" in (await r.engine.read_omission(first) or "")
    assert "- src/alpha_2.py: the part of alpha" in (await r.engine.read_omission(second) or "")
