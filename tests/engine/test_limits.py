"""Limits a server really has: overflow, silent truncation, bytes, images; what is learned of its counting.

B17, I16; cases 43, 91, 93, 101-103, 105.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.calibration import Calibration
from marextui.context.entries import MessageAdded, UsageMeasured
from marextui.context.entry_codec import encode
from marextui.context.messages import ImagePart, TextPart, canonical_json
from marextui.context.omission import parse_marker
from marextui.engine.events import CompactionFinished, Notice, OutputsReplaced, StepRefused, TurnFinished
from marextui.engine.policy import Policy
from marextui.models.types import Accepted, ModelError, ReasoningChunk, Usage
from marextui.store.calibration import CalibrationStore
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

WIDE = Window(200_000, "discovery")


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", WIDE)
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


def picture(n: int, size: int = 900) -> ImagePart:
    return ImagePart("data:image/png;base64," + base64.b64encode(bytes([n % 251]) * size).decode())


async def show(r: Rig, *parts: object) -> TurnFinished:
    """Submit a message of parts and wait for its turn."""
    mark = len(r.events)
    r.engine.submit_content(tuple(parts))  # type: ignore[arg-type]
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    await r.idle()
    assert isinstance(done, TurnFinished)
    return done


def urls(request) -> list[str]:
    found = []
    for m in request.messages:
        if isinstance(m["content"], list):
            found += [p["image_url"]["url"] for p in m["content"] if p["type"] == "image_url"]
    return found


def body(request) -> str:
    return canonical_json(list(request.messages))


# -- overflow ----------------------------------------------------------------------------------------------------------


async def test_an_overflow_is_reduced_at_most_twice_and_each_retry_is_smaller(rig) -> None:
    """B17, case 43."""
    r = await rig(policy=Policy(auto_compress=False))
    for n in range(6):
        await r.ask(f"question {n} " + "x" * 2_000)
    r.chat.replies = [[ModelError("overflow", "too long", n_ctx=8_192, n_prompt=9_000)] for _ in range(9)]
    sent = len(r.chat.turns)
    done = await r.ask("last " * 4_000)
    assert done.end in ("error", "refused")
    sizes = [len(body(q)) for q in r.chat.turns[sent:]]
    assert 1 <= len(sizes) <= 3
    assert sizes == sorted(set(sizes), reverse=True)


async def test_an_overflow_that_names_its_size_corrects_the_estimate(rig) -> None:
    """B17: real 12 000 where we counted far less; the window it names is learned, the next request aims at 60 %."""
    r = await rig(chat=ScriptedChat(summaries=[[ModelError("server", "no")]] * 9))
    for n in range(8):
        await r.ask(f"question {n} " + "x" * 2_400)
    r.chat.replies = [[ModelError("overflow", "too long", n_ctx=8_192, n_prompt=9_500)], say("fine")]
    done = await r.ask("and now?")
    assert done.end == "done"
    assert r.engine.state.meter.window == Window(8_192, "learned")
    assert r.engine.state.meter.ledger.factor > 1.5
    reading = r.engine.state.reading()
    assert reading.used + reading.system_part <= 0.65 * 8_192
    assert [e.entry.trigger for e in r.of(CompactionFinished)] == ["overflow"]
    r.check_log()


@pytest.mark.parametrize("kind", ["server", "auth", "network", "rate_limit", "template", "bad_request"])
async def test_no_other_error_makes_anything_smaller(rig, kind: str) -> None:
    r = await rig()
    for n in range(6):
        await r.ask(f"question {n} " + "x" * 2_000)
    before = r.history()
    r.chat.replies = [[ModelError(kind, "no")]]  # type: ignore[arg-type]
    sent = len(r.chat.turns)
    assert (await r.ask("go on")).end == "error"
    assert len(r.chat.turns) == sent + 1
    assert r.history()[: len(before)] == before


# -- silent truncation -------------------------------------------------------------------------------------------------


async def test_a_prompt_cut_without_a_word_is_noticed_learned_and_answered_by_a_smaller_one(rig) -> None:
    """Case 93: 50k sent, 16 386 reported at a window of 32 768."""
    r = await rig(window=Window(None, "unknown"), policy=Policy(window_override=131_072))
    r.chat.replies = [say("ok", Usage(16_386, 5))]
    await r.ask("word " * 40_000)
    alarm = next(e for e in r.of(Notice) if "without saying so" in e.text)
    assert alarm.level == "warning"
    assert "16386" in alarm.text
    assert r.engine.state.meter.window == Window(16_386, "learned")
    assert not any(isinstance(x.entry, UsageMeasured) for x in await r.records())  # not a count of this view
    assert r.engine.state.meter.ledger.factor == 1.0
    await r.ask("next")
    reading = r.engine.state.reading()
    assert reading.over_budget == 0
    assert len(body(r.chat.turns[-1])) // 4 <= 16_386


async def test_an_ordinary_count_raises_no_alarm(rig) -> None:
    r = await rig(chat=ScriptedChat([say("ok", Usage(9_000, 5)), say("ok", Usage(10_500, 5))]))
    await r.ask("word " * 8_000)
    await r.ask("more")
    assert not any("without saying so" in e.text for e in r.of(Notice))
    assert r.engine.state.learned is None


# -- calibration -------------------------------------------------------------------------------------------------------


async def test_what_was_learned_of_a_model_is_there_after_a_restart(rig, tmp_path: Path) -> None:
    """Case 91: measured/estimated, per model, on disk."""
    store = CalibrationStore(tmp_path / "data")
    r = await rig(chat=ScriptedChat([say("ok", Usage(15_200, 5))]), calibration=store)
    await r.ask("word " * 8_000)
    learned = r.engine.state.meter.ledger.factor
    assert learned > 1.2
    assert (await store.load()).factor("scripted") == pytest.approx(learned, abs=0.03)
    await r.engine.close()
    again = await rig(calibration=store)
    await again.engine.state.connected()
    assert again.engine.state.meter.ledger.factor == pytest.approx(learned, abs=0.03)


async def test_models_do_not_share_a_factor(rig, tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path / "data")
    await store.save(Calibration({"other": 2.0, "scripted": 1.5, "third": 2.5}))
    r = await rig(calibration=store)
    await r.engine.state.connected()
    assert r.engine.state.meter.ledger.factor == 1.5


async def test_a_calibration_that_cannot_be_read_or_saved_is_a_warning(rig, tmp_path: Path) -> None:
    (tmp_path / "data" / "calibration.json").mkdir(parents=True)
    r = await rig(chat=ScriptedChat([say("ok", Usage(15_200, 5))]), calibration=CalibrationStore(tmp_path / "data"))
    assert (await r.ask("word " * 8_000)).end == "done"
    told = [e.text for e in r.of(Notice) if e.level == "warning"]
    assert any("could not be read" in t for t in told)
    assert any("could not be saved" in t for t in told)


# -- images and bytes --------------------------------------------------------------------------------------------------


async def test_the_newest_four_pictures_stay_and_the_others_are_named(rig) -> None:
    """Case 103: 99 pictures; each of the others can be read by its id."""
    r = await rig()
    for n in range(99):
        await show(r, TextPart(f"picture {n}"), picture(n))
    sent = urls(r.chat.turns[-1])
    assert sent == [picture(n).url for n in range(95, 99)]
    first = r.history()[0].content
    assert isinstance(first, tuple)
    marker = first[1]
    assert isinstance(marker, TextPart)
    assert "image, PNG, 1 kB" not in sent
    assert "image, PNG" in marker.text
    assert await r.engine.read_omission(parse_marker(marker.text) or "") == picture(0).url
    r.check_log()


async def test_more_pictures_in_one_message_than_are_kept_are_all_sent(rig) -> None:
    """I2: the newest request is what it is."""
    r = await rig()
    await show(r, *(picture(n) for n in range(7)))
    assert len(urls(r.chat.turns[-1])) == 7


async def test_pictures_of_a_tool_loop_go_in_batches(rig) -> None:
    """Case 110: not every new picture rewrites the prefix."""
    rounds = 20
    replies = [call(("Look", json.dumps({"n": n})), ids=[f"i{n}"]) for n in range(rounds)]
    r = await rig(chat=ScriptedChat([*replies, say("done")]), policy=Policy(max_tool_rounds=50))

    async def run(name: str, arguments: str, ctx):
        from marextui.tools.types import ToolResult

        return ToolResult("seen", parts=(TextPart("seen"), picture(json.loads(arguments)["n"])))

    r.tools.run = run  # type: ignore[method-assign]
    assert (await r.ask("look at everything")).end == "done"
    assert max(len(urls(q)) for q in r.chat.turns) <= 8
    assert 2 <= len(r.of(OutputsReplaced)) <= rounds // 3
    r.check_log()


async def test_bytes_have_a_budget_of_their_own(rig) -> None:
    """Case 102: twelve pictures of 3 MB are 12 000 tokens and 48 MB."""
    r = await rig(policy=Policy(keep_images=99))
    for n in range(12):
        await show(r, TextPart(f"picture {n}"), picture(n, 2_250_000))
    assert max(len(body(q).encode()) for q in r.chat.turns) <= 20_000_000
    assert urls(r.chat.turns[-1])[-1] == picture(11, 2_250_000).url
    assert r.of(StepRefused) == []
    assert r.of(CompactionFinished) == []


async def test_a_request_that_is_too_heavy_by_itself_is_refused_in_megabytes(rig) -> None:
    """Case 102: with an unknown window no token limit stands in the way; bytes do."""
    r = await rig(policy=Policy(max_request_mb=1), window=Window(None, "unknown"))
    assert (await r.ask("é" * 900_000)).end == "refused"
    [refused] = r.of(StepRefused)
    assert "1.8 MB and 1 MB can be sent; the biggest contributor is your message (message 1)" in refused.reason
    assert r.chat.turns == []


async def test_too_many_bytes_are_not_taken_for_too_many_tokens(rig) -> None:
    """Case 105: 413 takes pictures away and summarises nothing."""
    r = await rig(policy=Policy(keep_images=99))
    for n in range(6):
        await show(r, TextPart(f"picture {n}"), picture(n, 60_000))
    r.chat.replies = [[ModelError("bad_request", "too many bytes", status=413)], say("fine")]
    sent = len(r.chat.turns)
    done = await show(r, TextPart("one more"), picture(6, 60_000))
    assert done.end == "done"
    before, after = (len(body(q)) for q in r.chat.turns[sent:])
    assert after <= before * 0.6
    assert urls(r.chat.turns[-1])[-1] == picture(6, 60_000).url
    assert r.of(CompactionFinished) == []
    assert r.chat.summary_requests == []


# -- the log -----------------------------------------------------------------------------------------------------------


async def test_the_log_grows_with_what_is_new_and_not_with_compactions(rig) -> None:
    """I16, case 101: twenty pictures and ten compactions: entries hold ids, never copies of what they stand for."""
    r = await rig(tools=ScriptedTools({}))
    decisions: list[int] = []
    for n in range(20):
        await show(r, TextPart(f"picture {n} " + "text " * 200), picture(n, 30_000))
        if n % 2:
            r.engine.compact(offline=True)
            await r.idle()
            await r.until(lambda e: True)
    messages = others = 0
    for record in await r.records():
        size = len(canonical_json(encode(record.entry)[1]))
        if isinstance(record.entry, MessageAdded):
            messages += size
        else:
            others += size
            decisions.append(size)
    assert len(r.of(CompactionFinished)) >= 8
    assert messages >= 20 * 40_000
    assert max(decisions) < 20_000
    assert others < messages / 4


@pytest.mark.parametrize("echo", [False, True])
async def test_a_server_that_wants_past_reasoning_or_not_gets_it_so_from_then_on(rig, echo: bool) -> None:
    """Some services refuse a tool loop without the reasoning of its calls, some refuse any field they do not know."""

    def thinking(reply: list[Any]) -> list[Any]:
        return [reply[0], ReasoningChunk("let me look"), *reply[1:]]

    refused = ModelError("bad_request", "reasoning_content …", status=400, about="reasoning")
    chat = ScriptedChat([thinking(call(("Look", "{}"), ids=["c1"])), [refused], say("seen"), say("again"), say("new")])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "a view"}), policy=Policy(echo_reasoning=echo))
    assert (await r.ask("look")).end == "done"
    assert (await r.ask("again")).end == "done"
    sent = [["reasoning_content" in m for m in q.messages if m.get("tool_calls")] for q in r.chat.turns]
    assert sent == [[], [echo], [not echo], [not echo]]
    assert r.engine.session.ledger.echo_reasoning is not echo
    await r.engine.open_conversation(None)
    assert r.engine.session.ledger.echo_reasoning is not echo, "what was learned of the server stays"
    r.check_log()


async def test_a_quarrel_about_reasoning_is_tried_the_other_way_once(rig) -> None:
    refused = [[ModelError("bad_request", "reasoning_content …", status=400, about="reasoning")] for _ in range(5)]
    first = [Accepted(), ReasoningChunk("hm"), *call(("Look", "{}"), ids=["c1"])[1:]]
    r = await rig(chat=ScriptedChat([first, *refused]), tools=ScriptedTools({"Look": "a view"}))
    assert (await r.ask("look")).end == "error"
    assert len(r.chat.turns) == 3
