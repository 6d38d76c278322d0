"""Recall through the engine: what was summarised away is found again (issue section 2, cases 38, 57, 83)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.engine.api import LATEST
from marextui.engine.events import CompactionFinished
from marextui.store import recall as recall_module
from marextui.tools.recall import Recall
from marextui.tools.types import RecallHit, ToolResult
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

LOG = "".join(f"INFO job {n} ok\n" for n in range(4000)) + "KeyError: 'quota_left' at worker 7\n" + "INFO end\n" * 4000


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(32_768, "discovery"))
        made.append(await Rig(tmp_path, **kw).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


async def search(r: Rig, query: str) -> tuple[RecallHit, ...]:
    recaller = r.engine.state.runner.recaller
    assert recaller is not None
    return await recaller.search(query)


async def test_what_was_summarised_away_is_found_with_its_message(rig) -> None:
    r = await rig()
    await r.ask("The retry limit of billing is 37.")
    for n in range(12):
        await r.ask(f"Step {n}: nothing of interest here, " + "x " * 600)
    r.engine.compact(offline=True)
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    assert not any("37" in m.text and not m.synthetic for m in r.history())
    hit = (await search(r, "What is the retry limit of billing?"))[0]
    assert "37" in hit.text
    assert r.engine.session.conversation.message(hit.message_id).text == "The retry limit of billing is 37."
    assert (hit.role, hit.when) == ("user", "turn 1, 2023-11-14 22:13 UTC")


async def test_the_hidden_middle_of_an_output_is_found(rig) -> None:
    """Case 83: the model saw head and tail; the store has the whole."""
    r = await rig(chat=ScriptedChat([call(("Bash", "{}")), say("It failed.")]), tools=ScriptedTools({"Bash": LOG}))
    await r.ask("run it")
    assert not any("quota_left" in m.text for m in r.history())
    hit = (await search(r, "quota_left"))[0]
    assert "KeyError: 'quota_left' at worker 7" in hit.text
    assert len(hit.text) <= 2_000
    assert hit.role == "output of Bash"
    assert [i.reads for i in await r.engine.omissions()] == [0], "looking is not reading back"


@pytest.mark.parametrize("megabytes", [0.5, 1.2])
async def test_what_no_entry_of_the_store_could_hold_is_found_too(rig, megabytes: float) -> None:
    """Case 83, M27: an entry keeps 200 000 characters, the log all of it; of megabytes only pieces are looked at."""
    half = "".join(f"INFO job {n} took {n % 7} s\n" for n in range(int(megabytes * 20_000)))
    output = f"{half}KeyError: 'quota_left' at worker 7\nthe shelf is purple\n{half}"
    assert len(output) > megabytes * 800_000
    r = await rig(chat=ScriptedChat([call(("Bash", "{}")), say("It failed.")]), tools=ScriptedTools({"Bash": output}))
    await r.ask("run it")
    (stored,) = await r.engine.omissions()
    assert "quota_left" not in (await r.omissions.get(stored.id) or "")
    for query in ("quota_left", "What colour is the shelf?"):
        hit = (await search(r, query))[0]
        assert "KeyError: 'quota_left' at worker 7\nthe shelf is purple" in hit.text
        assert len(hit.text) <= 2_000


async def test_a_later_correction_is_noted(rig) -> None:
    r = await rig()
    await r.ask("The retry limit of billing is 37.")
    await r.ask("Something else entirely.")
    await r.ask("The retry limit of billing is 42 now.")
    hits = await search(r, '"retry limit of billing is 37"')
    first = next(h for h in hits if "is 37" in h.text and h.note)
    assert "later changed" in first.note


async def test_the_tool_gets_it_and_the_turn_under_way_is_left_out(rig) -> None:
    """The question itself must not be the answer."""
    tools = ScriptedTools({"Recall": ""})
    tool = Recall()

    async def run(name: str, arguments: str, ctx) -> ToolResult:
        return await tool.run({"query": "which port"}, ctx)

    tools.run = run  # type: ignore[method-assign]
    chat = ScriptedChat([say("ok"), call(("Recall", '{"query":"which port"}')), say("8443")])
    r = await rig(chat=chat, tools=tools)
    await r.ask("The port is 8443.")
    await r.ask("Tell me: which port, which port, which port?")
    sent = texts(r.chat.turns[-1])[-1]
    assert sent.startswith("[1] user, message ")
    assert "The port is 8443." in sent
    assert "Tell me" not in sent


async def test_it_works_after_a_restart_and_without_fts5(rig, monkeypatch: pytest.MonkeyPatch) -> None:
    r = await rig()
    await r.ask("The deploy command is make ship LEVEL=4")
    await r.ask("hello")
    await r.engine.close()
    again = await rig(wanted=LATEST)
    assert "LEVEL=4" in (await search(again, "deploy command"))[0].text
    await again.engine.close()
    monkeypatch.setattr(recall_module, "_PROBE", recall_module._PROBE.replace("fts5", "fts5_is_missing"))
    bare = await rig(wanted=LATEST)
    hit = (await search(bare, "deploy command"))[0]
    assert "LEVEL=4" in hit.text
    assert hit.when == "turn 1"
    assert await search(bare, "xylophone") == ()


async def test_a_new_conversation_has_nothing_to_find(rig) -> None:
    r = await rig()
    assert await search(r, "anything") == ()
    await r.ask("The port is 8443.")
    await r.engine.open_conversation(None)
    assert await search(r, "port") == (), "another conversation's words are not this one's"
