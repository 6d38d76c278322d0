"""The doctor on the real llama.cpp server with the scripted model, where a byte of a prompt is a token (issue 4, 6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marextui.context.doctor_chart import Chart
from marextui.context.doctor_findings import findings, kept
from marextui.engine.build import build_hub
from marextui.engine.doctor import Address, Visit, address_of, find_address
from marextui.settings import Settings
from tests.stubs.llama_variant import llama_variant
from tests.stubs.tiny_model import call_text, tiny_gguf

pytestmark = pytest.mark.server

CALL = call_text("get_weather", '{"city": "Paris"}')


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It calls the tool when asked to, and counts for ever."""
    folder = tmp_path_factory.mktemp("model")
    phrases = {"Use the tool": CALL, "Count from 1": "one two three four five six seven eight nine ten"}
    return tiny_gguf(folder / "tiny.gguf", phrases=phrases, endless=["Count from 1"])


async def examined(address: Address, settings: Settings | None = None) -> tuple[Chart, Visit]:
    visit = Visit(address, build_hub(settings or Settings(), {}, probe=False))
    return await visit.examine(lambda _: None), visit


def verdicts(chart: Chart) -> dict[str, str]:
    return {f.id: f.verdict for f in findings(chart)}


async def test_one_slot(model: Path) -> None:
    """L4, L33: what the server counts says what going on and sending ahead save; all within what was stated."""
    async with llama_variant(model) as url:
        chart, visit = await examined(address_of(url, Settings()))
    assert not chart.ended
    assert (chart.kind, chart.window, chart.slots, chart.save_path) == ("llama.cpp", 8192, 1, False)
    told = verdicts(chart)
    certain = ("tools", "two_users", "usage", "cached_tokens", "progress", "timings", "cancel", "cache", "window")
    assert {name: told[name] for name in certain} == dict.fromkeys(certain, "yes")
    assert chart.tools_kept is True
    computed = {name: m.computed or 0 for name, m in chart.measured.items()}
    assert computed["opening"] > 1000 < computed["separate"]
    assert computed["continuation"] < 150 > computed["prewarmed"]
    assert 0 < chart.counted <= visit.limit.tokens
    assert chart.requests <= visit.limit.requests
    settings = {a.key: a.value for a in visit.advice(Settings())}
    assert settings["prewarm"] == "on"
    assert settings["compact_continuation"] is True
    assert settings["base_url"] == f"{url}/v1"


async def test_four_slots_with_a_save_path(model: Path, tmp_path: Path) -> None:
    """L38. Nothing is saved to find out that slots can be saved."""
    saved = tmp_path / "saved"
    saved.mkdir()
    async with llama_variant(model, slots=4, save_path=saved, window=16_384) as url:
        chart, visit = await examined(address_of(url, Settings()))
    assert (chart.window, chart.slots, chart.save_path) == (4096, 4, True)
    assert verdicts(chart)["slots"] == "no"
    assert kept(chart, "back") is True  # the separate request took another slot
    assert {a.key: a.value for a in visit.advice(Settings())}["prewarm"] == "off"
    assert list(saved.iterdir()) == []


async def test_the_engine_of_our_own(model: Path, tmp_path: Path) -> None:
    """It is started for the examination and ended after it."""
    settings = Settings(model=str(model))
    address = await find_address(settings, build_hub(settings, {}, probe=False))
    chart, visit = await examined(address, settings)
    assert chart.usable
    assert chart.name == "tiny"
    assert "base_url" not in {a.key for a in visit.advice(settings)}
    await nobody_listens(chart)


async def nobody_listens(chart: Chart) -> None:
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", int(chart.url.rsplit(":", 1)[1].removesuffix("/v1")))


async def test_the_engine_of_our_own_ends_when_the_examination_is_stopped(model: Path) -> None:
    settings = Settings(model=str(model))
    hub = build_hub(settings, {}, probe=False)
    visit, begun = Visit(await find_address(settings, hub), hub), asyncio.Event()
    task = asyncio.create_task(visit.examine(lambda step: begun.set() if step == "offering a tool" else None))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert visit.chart is not None
    assert visit.chart.usable
    assert visit.chart.ended == "it was stopped"
    await nobody_listens(visit.chart)


async def test_a_second_examination_measures_the_same(model: Path) -> None:
    """The first one must not have warmed the cache for it."""
    async with llama_variant(model) as url:
        first, _ = await examined(address_of(url, Settings()))
        second, _ = await examined(address_of(url, Settings()))
    one, two = (c.measured["opening"].computed or 0 for c in (first, second))
    assert abs(one - two) < 40
