"""`/context` through the engine: the figures are the gauge's, and looking costs nothing (I8; cases 48, 86)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.engine.events import GaugeChanged
from marextui.models.types import Usage
from tests.engine.test_compaction import SUMMARY
from tests.engine.test_undo import compact, fill, view
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(100_000, "discovery"))
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def test_the_rows_sum_to_the_gauge_and_the_rest_is_explicit(rig) -> None:
    """Measured: the header is the server's figure, and what the estimates do not explain has a row of its own."""
    r = await rig(
        chat=ScriptedChat([call(("Look", "{}"), ids=["i"]), say("seen", Usage(5_000, 40))]),
        tools=ScriptedTools({"Look": "y" * 2000}),
    )
    (r.folder / "project" / "MAREX.md").write_text("Always answer in French.")
    await r.ask("look, please")
    report = await r.engine.context()
    b, gauge = report.breakdown, r.of(GaugeChanged)[-1].gauge
    assert (b.used, b.system_part) == (gauge.used, gauge.system_part)
    assert report.gauge.used == gauge.used
    assert b.total == 5_040
    assert report.measured == (5_000, 40)
    assert sum(s.tokens for s in b.shares) + b.residual == b.total
    assert b.residual > 1_000
    assert b.tokens("rules") > 0
    assert b.tokens("system") + b.tokens("rules") == gauge.system
    assert b.tokens("tools") == gauge.tools
    assert b.of("outputs")[0].label == "Look"


async def test_after_a_compaction_the_summary_has_its_row_and_nothing_is_measured(rig) -> None:
    r = await rig(chat=ScriptedChat(summaries=[say(SUMMARY)]))
    await fill(r, 5)
    assert (await r.engine.context()).breakdown.tokens("summary") == 0
    await compact(r)
    report = await r.engine.context()
    assert report.breakdown.tokens("summary") == report.gauge.summary > 0
    assert report.measured is None
    assert report.breakdown.residual == 0


async def test_looking_costs_nothing(rig) -> None:
    """Case 48: ten looks, and the request that follows is the one that would have been sent."""
    r = await rig()
    await fill(r, 2)
    records, sent, before, mark = await r.records(), len(r.chat.requests), view(r), len(r.events)
    first = await r.engine.context()
    for _ in range(9):
        assert await r.engine.context() == first
    assert (await r.records(), len(r.chat.requests), view(r), len(r.events)) == (records, sent, before, mark)
