"""Counting, gauge, limits: figures that are those of the last request, in any script, from any server.

Cases 85–99 of the reported ones; I8, I9, I15; Part 2, 6.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.breakdown import HISTORY_CATEGORIES, SYSTEM_CATEGORIES
from marextui.context.budget import Window, settle_window
from marextui.context.calibration import cut_silently
from marextui.context.messages import ImagePart, OtherPart, TextPart, canonical_json
from marextui.engine.event_values import Gauge
from marextui.engine.events import CompactionFinished, GaugeChanged, Notice, StepStarted, TurnFinished
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.errors import classify
from marextui.models.tokenizer import load_counter
from marextui.models.types import Accepted, ChatRequest, Chunk, Finished, ModelError, TextChunk, Usage
from marextui.models.usage import usage_from
from marextui.store.calibration import CalibrationStore
from marextui.tools.types import ToolSpec
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


def gauge(r: Rig) -> Gauge:
    return r.of(GaugeChanged)[-1].gauge


def alarms(r: Rig) -> list[Notice]:
    return [n for n in r.of(Notice) if "without saying so" in n.text]


@dataclass
class ServerChat(ScriptedChat):
    """Answers and reports usage as a server would: `count` tokens of a text, at most `window` of the prompt counted."""

    count: Callable[[str], int] = len
    window: int | None = None
    report: Callable[[int], int] = lambda tokens: tokens
    sizes: list[int] = field(default_factory=list)
    answer: str = "noted"

    async def stream(self, request: ChatRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        real = self.count(canonical_json([*request.messages, *request.tools]))
        if request.stream:
            self.sizes.append(real)
        if self.window is not None and real > self.window:
            real = self.report(self.window)
        yield Accepted()
        yield TextChunk(self.answer)
        yield Finished("stop", Usage(real, self.count(self.answer)))


# -- the gauge -------------------------------------------------------------------------------------------------------


async def test_the_overhead_is_measured_and_not_a_constant(rig: StartRig, project: Path) -> None:
    """Case 85: rules and tools of 40k tokens are on the gauge before the first message, to the token of the request."""

    class Many(ScriptedTools):
        def specs(self) -> tuple[ToolSpec, ...]:
            return tuple(ToolSpec(f"tool_{n}", "d" * 4_000, {"type": "object", "properties": {}}) for n in range(32))

    (project / "MAREX.md").write_text("rule\n" * 6_000)
    r = await rig(window=Window(200_000, "discovery"), tools=Many())
    await r.until(lambda e: isinstance(e, GaugeChanged) and e.gauge.window is not None)
    before = gauge(r)
    assert before.system_part > 38_000
    assert before.used == 0
    await r.ask("hello")
    request = r.chat.turns[0]
    own = sum(len(t) // 4 for t in (request.messages[0]["content"], *map(canonical_json, request.tools)))
    assert before.system_part == pytest.approx(own, rel=0.02)
    assert before.budget == 200_000 - before.reserve - before.system_part


async def test_only_the_tools_that_are_sent_are_counted_and_the_rows_sum_to_the_header(rig: StartRig) -> None:
    """Case 86: 428 tools exist, 15 are sent; each part is counted once and what is unexplained has a row."""
    deferred = {f"mcp_tool_{n}": "ok" for n in range(428)}

    class Deferred(ScriptedTools):
        def specs(self) -> tuple[ToolSpec, ...]:
            return super().specs()[:15]

    chat = ScriptedChat([call(("mcp_tool_1", "{}"), ids=["a"], usage=Usage(3_000, 20)), say("ok", Usage(3_400, 60))])
    r = await rig(chat=chat, tools=Deferred(deferred))
    await r.ask("use one")
    report = await r.engine.context()
    b = report.breakdown
    assert len(b.of("tools")) == 15
    assert sum(s.tokens for s in b.shares if s.category in SYSTEM_CATEGORIES) == b.system_part
    assert sum(s.tokens for s in b.shares if s.category in HISTORY_CATEGORIES) + b.residual == b.used
    assert b.total == 3_460 == gauge(r).used + gauge(r).system_part
    assert b.residual != 0, "the server counted what we could not see"
    assert all(s.tokens >= 0 and s.count >= 0 for s in b.shares)


PARTS: dict[str, dict[str, Any]] = {
    "sound": {"type": "input_audio", "input_audio": {"data": base64.b64encode(bytes(range(256)) * 8).decode()}},
    "file": {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "A" * 4_000}},
    "citation": {"type": "search_result", "title": "weather", "content": "rain and more rain " * 60},
    "server tool": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x " * 300}},
    "no type": {"kind": "novelty", "payload": "words " * 200},
    "thinking": {"type": "thinking", "thinking": "let me see " * 100, "signature": "c2ln" * 100},
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
async def test_a_part_of_an_unknown_kind_counts_under_other_and_never_nothing(
    rig: StartRig, part: dict[str, Any]
) -> None:
    """Case 87: a block name nobody knows neither leaks into the system part nor disappears."""
    r = await rig()
    plain = (await r.engine.context()).breakdown
    r.engine.submit_content((TextPart("see this"), OtherPart(canonical_json(part))))
    await r.until(lambda e: isinstance(e, TurnFinished))
    await r.idle()
    b = (await r.engine.context()).breakdown
    assert b.system_part == plain.system_part
    others = b.of("other")
    assert sum(s.tokens for s in others) > 100
    assert any(str(part.get("type", "unknown")) in s.label for s in others)
    assert gauge(r).used == b.used


USAGES: dict[str, dict[str, Any]] = {
    "OpenAI": {"prompt_tokens": 150_005, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 150_000}},
    "Responses": {"input_tokens": 150_005, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 150_000}},
    "Anthropic": {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 150_000},
    "Anthropic, written": {
        "input_tokens": 5,
        "output_tokens": 9,
        "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 50_000,
    },
    "DeepSeek": {"completion_tokens": 9, "prompt_cache_hit_tokens": 150_000, "prompt_cache_miss_tokens": 5},
    "Gemini": {"promptTokenCount": 150_005, "candidatesTokenCount": 9, "cachedContentTokenCount": 150_000},
    "Ollama": {"prompt_eval_count": 150_005, "eval_count": 9, "prompt_eval_cached_count": 150_000},
    "a proxy that leaves the cache out": {
        "prompt_tokens": 5,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 150_000},
    },
}


@pytest.mark.parametrize("raw", USAGES.values(), ids=USAGES.keys())
async def test_the_same_prompt_in_any_shape_of_usage_gives_the_same_gauge(rig: StartRig, raw: dict[str, Any]) -> None:
    """Cases 84, 89, I9: 5 new tokens and 150k cached are a context of 150k: not an empty one, and nothing was cut."""
    r = await rig(window=Window(400_000, "discovery"), chat=ScriptedChat([say("ok", usage_from(raw))]))
    done = await r.ask("word " * 118_000)
    now = gauge(r)
    assert now.used + now.system_part == 150_014
    assert (done.usage.inp, done.usage.out) == (150_005, 9)
    assert alarms(r) == []
    assert r.engine.state.meter.window.tokens == 400_000


async def test_the_gauge_is_the_last_request_and_the_cost_is_the_sum(rig: StartRig) -> None:
    """Case 90: six requests of some 20k in one turn are a context of 23k, a cost of 129k, and no compaction."""
    usages = [Usage(19_000 + 1_000 * n, 50) for n in range(6)]
    replies = [call(("Look", json.dumps({"n": n})), ids=[f"c{n}"], usage=usages[n]) for n in range(5)]
    r = await rig(
        window=Window(131_072, "discovery"),
        chat=ScriptedChat([*replies, say("done", usages[5])]),
        tools=ScriptedTools({"Look": "x" * 3_200}),
    )
    done = await r.ask("look around " + "y" * 60_000)
    now = gauge(r)
    assert now.used + now.system_part == 24_050
    assert (done.usage.inp, done.usage.out, done.usage.steps) == (sum(u.inp or 0 for u in usages), 300, 6)
    assert (await r.usage_lines())[-1]["inp"] == sum(u.inp or 0 for u in usages)
    assert r.of(CompactionFinished) == []
    assert max(s.used for s in r.of(StepStarted)) < 30_000


async def test_what_came_since_the_last_count_is_added_to_it(rig: StartRig) -> None:
    """Case 97: 11k counted, 5k of it hidden from us, then 4k new: 15k, and the next step knows it."""
    big = "x" * 16_000
    chat = ScriptedChat([call(("Look", "{}"), ids=["a"], usage=Usage(11_000, 10)), say("ok")])
    r = await rig(window=Window(24_000, "discovery"), chat=chat, tools=ScriptedTools({"Look": big[:3_800]}))
    await r.ask("y" * 24_000)
    first, second = r.of(StepStarted)
    estimate = first.used
    known = 11_010 - gauge(r).system_part
    assert known + 950 <= second.used <= known + 2 * 950
    assert second.used > estimate + 4_000, "what only the server sees is not forgotten"


# -- scripts, logs, encoded data -------------------------------------------------------------------------------------

HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种"


def chinese(chars: int, seed: int) -> str:
    dice = random.Random(seed)
    return "".join(dice.choice(HAN) + ("，" if n % 17 == 16 else "") for n in range(chars))[:chars]


@pytest.mark.parametrize("rate", [0.6, 0.8, 1.0])
async def test_chinese_is_compacted_where_it_really_fills_the_window(
    rig: StartRig, tmp_path: Path, rate: float
) -> None:
    """Case 91: at 0.6 and at 1.0 tokens a character; neither too late (never over the window) nor at 17–50 % of use."""
    count = await load_counter()
    chat = ServerChat(count=lambda text: int(len(text.encode("utf-16-le")) / 2 * rate), answer="好的。" * 8)
    store = CalibrationStore(tmp_path / "data")
    policy = Policy(offline_summaries=True)
    r = await rig(window=Window(32_768, "discovery"), chat=chat, count=count, calibration=store, policy=policy)
    errors = []
    for n in range(60):
        mark, sent = len(r.events), len(chat.sizes)
        r.engine.submit(f"第{n}个问题：" + chinese(900, n))
        await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
        await r.idle()
        started = [e for e in r.events[mark:] if isinstance(e, StepStarted)]
        errors.append(abs(started[-1].used + gauge(r).system_part - chat.sizes[sent]) / chat.sizes[sent])
        if r.of(CompactionFinished):
            break
    [done] = r.of(CompactionFinished)
    real = chat.sizes[-2] - gauge(r).system_part
    threshold = gauge(r).threshold or 0
    assert 0.8 * threshold <= real <= 1.1 * threshold
    assert max(chat.sizes) <= 32_768
    assert max(errors[3:-1]) < 0.12, "three counts are enough"
    assert errors[-2] < 0.05
    assert done.entry.tokens_after <= 0.8 * threshold


async def test_what_is_learned_of_one_model_is_its_own_and_outlives_the_process(rig: StartRig, tmp_path: Path) -> None:
    """Case 91: measured/estimated per model, on disk; the first request after a restart is estimated right."""
    count = await load_counter()
    rate = 1.15
    store = CalibrationStore(tmp_path / "data")
    r = await rig(
        window=Window(131_072, "discovery"),
        chat=ServerChat(count=lambda text: int(len(text) * rate)),
        count=count,
        calibration=store,
    )
    for n in range(8):
        await r.ask(chinese(900, n))
    learned = r.engine.state.meter.ledger.factor
    assert learned > 1.2
    assert (await store.load()).factor("another") == 1.0
    await r.engine.close()
    chat = ServerChat(count=lambda text: int(len(text) * rate))
    again = await rig(window=Window(131_072, "discovery"), chat=chat, count=count, calibration=store, ids=RandomIds())
    await again.ask(chinese(3_000, 99))
    [first] = again.of(StepStarted)
    assert first.used == pytest.approx(chat.sizes[0] - gauge(again).system_part, rel=0.08)


TEXTS: dict[str, tuple[str, float, float]] = {
    # text, least and most tokens per character that real vocabularies take
    "Chinese": (chinese(20_000, 1), 0.55, 1.1),
    "Japanese": ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 500, 0.5, 1.1),
    "Korean": ("나는 고양이로소이다. 이름은 아직 없다. 어디서 태어났는지 도무지 짐작이 가지 않는다. " * 400, 0.35, 0.9),
    "a log": ("2026-03-01T10:11:12.345Z INFO [worker-7] GET /api/v1/items/8f3a2b?x=1 200 12ms\n" * 250, 0.3, 0.75),
    "base64": (base64.b64encode(random.Random(5).randbytes(15_000)).decode(), 0.6, 1.05),
    "hex": (random.Random(6).randbytes(10_000).hex(), 0.4, 1.05),
    "English": ("The quick brown fox jumps over the lazy dog and runs away. " * 300, 0.18, 0.3),
}


@pytest.mark.parametrize(("text", "least", "most"), TEXTS.values(), ids=TEXTS.keys())
async def test_scripts_logs_and_encoded_data_are_not_counted_at_four_characters(
    text: str, least: float, most: float
) -> None:
    """Case 91: chars/4 lets 90k through where 20k were meant; one token a character compacts at a fifth of the use."""
    from marextui.context.tokens import TokenLedger

    ledger = TokenLedger(await load_counter())
    assert least <= ledger.text(text) / len(text) <= most
    assert least <= ledger.text(text * 12) / (12 * len(text)) <= most, "sampling a long text changes nothing"


# -- servers that cut ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "report", "claimed", "words", "rate"),
    [
        (32_768, lambda w: w // 2 + 2, 131_072, 40_000, 0.25),  # keeps the newer half, as reported by many
        (32_768, lambda w: w // 2 + 2, 32_768, 16_000, 0.45),  # the window is known, but not how the model counts
        (4_096, lambda w: w, 131_072, 8_000, 0.25),  # keeps a window of its own default, whatever was claimed
        (8_192, lambda w: w - 600, 262_144, 16_000, 0.25),  # keeps a little less than the window
        (2_048, lambda w: w // 2 + 2, 131_072, 4_000, 0.25),
    ],
)
async def test_a_prompt_cut_without_a_word_raises_an_alarm_and_the_next_one_fits(
    rig: StartRig, window: int, report: Callable[[int], int], claimed: int, words: int, rate: float
) -> None:
    """Cases 93, 94: reported far below the estimate, or to the token what such a server keeps."""
    chat = ServerChat(count=lambda text: int(len(text) * rate), window=window, report=report)
    r = await rig(window=Window(None, "unknown"), policy=Policy(window_override=claimed), chat=chat)
    await r.ask("word " * words)
    [alarm] = alarms(r)
    assert alarm.level == "warning"
    assert r.engine.state.meter.window == Window(report(window), "learned")
    assert r.engine.state.meter.ledger.factor == 1.0, "nothing was learned from a count of something else"
    await r.ask("and now?")
    assert chat.sizes[-1] <= window, "the next request is not cut"
    assert len(alarms(r)) == 1


async def test_a_server_that_counts_only_what_its_cache_lacked_is_not_taken_for_one_that_cuts(rig: StartRig) -> None:
    """Neighbour of case 93: a server reports 60 tokens on a cache hit. Taken for a window, nothing fits any more."""
    counts = [Usage(12_300, 5), Usage(1_400, 5), Usage(5, 5), Usage(None, 5), Usage(1_300, 5), Usage(19_200, 5)]
    chat = ScriptedChat([say("fine", u) for u in counts])
    r = await rig(window=Window(32_768, "discovery"), chat=chat)
    await r.ask("word " * 8_000)
    factors = {r.engine.state.meter.ledger.factor}
    for n in range(5):
        done = await r.ask(f"next {n} " + "word " * 1_000)
        assert done.end == "done"
        if n < 4:
            factors.add(r.engine.state.meter.ledger.factor)
    assert alarms(r) == []
    assert r.engine.state.meter.window == Window(32_768, "discovery")
    now = gauge(r)
    assert now.used + now.system_part == 19_205
    assert len(factors) == 1, "such a count teaches nothing"
    assert min(s.used for s in r.of(StepStarted)[1:]) > 10_000, "the gauge never fell to what one request computed"


async def test_after_a_restart_a_warm_cache_raises_no_alarm(rig: StartRig) -> None:
    """The log knows what the server has counted of this conversation: it can take that much."""
    r = await rig(window=Window(65_536, "discovery"), chat=ScriptedChat([say("ok", Usage(20_300, 5))]))
    await r.ask("word " * 16_000)
    conversation = r.engine.session.id
    await r.engine.close()
    again = await rig(
        window=Window(65_536, "discovery"),
        chat=ScriptedChat([say("ok", Usage(1_500, 5))]),
        wanted=conversation,
        ids=RandomIds(),
    )
    await again.ask("and now?")
    assert alarms(again) == []
    assert again.engine.state.learned is None
    assert gauge(again).used > 15_000


async def test_a_count_below_what_every_request_holds_is_no_window(rig: StartRig) -> None:
    """Neighbour of case 93: a fresh conversation whose beginning the server's cache held already is counted in part."""
    chat = ScriptedChat([say("fine", Usage(1_500, 5)), say("fine", Usage(2_048, 5))])
    r = await rig(window=Window(32_768, "discovery"), chat=chat, policy=Policy(base_prompt="obey. " * 1_600))
    for words in (4_000, 2_000):
        await r.ask("word " * words)
    assert alarms(r) == []
    assert r.engine.state.meter.window == Window(32_768, "discovery")


async def test_a_count_never_contradicts_a_larger_one_of_the_same_conversation(rig: StartRig) -> None:
    """Neighbour of case 93: what was not cached may happen to be a power of two."""
    chat = ScriptedChat([say("fine", Usage(11_453, 5)), say("fine", Usage(26, 5)), say("fine", Usage(4_096, 5))])
    r = await rig(window=Window(32_768, "discovery"), chat=chat)
    for words in (8_000, 1, 3_000):
        await r.ask("word " * words)
    assert alarms(r) == []
    assert r.engine.state.meter.window == Window(32_768, "discovery")


async def test_the_gauge_never_shows_less_than_no_room(rig: StartRig) -> None:
    """I8: a window smaller than the system part leaves no room for the conversation; less means nothing."""
    r = await rig(window=Window(1_024, "discovery"), policy=Policy(base_prompt="obey. " * 1_600))
    await r.until(lambda e: isinstance(e, GaugeChanged) and e.gauge.window is not None)
    assert gauge(r).budget == 0


async def test_a_window_learned_too_small_is_forgotten_when_the_server_takes_more(rig: StartRig) -> None:
    """A wrong guess must not stay: the server was started anew with a larger window, or the count was of a part."""
    chat = ScriptedChat([say("ok", Usage(4_096, 5)), say("ok", Usage(5_600, 5))])
    r = await rig(window=Window(32_768, "discovery"), chat=chat)
    await r.ask("word " * 8_000)
    assert r.engine.state.meter.window == Window(4_096, "learned")
    await r.ask("short")
    assert r.engine.state.meter.window == Window(32_768, "discovery")
    assert any("is not 4096 tokens" in n.text for n in r.of(Notice))


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.none() | st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_no_window_is_ever_learned_from_a_count_that_explains_itself(
    measured: int, estimated: int, window: int | None, counted: int
) -> None:
    """Case 93: never below the smallest window there is, never when all was seen; what is known only ever calms."""
    cut = cut_silently(measured, estimated, window, counted=counted)
    if cut:
        assert measured >= 1_024
        assert estimated > measured
    if not cut_silently(measured, estimated, window):
        assert not cut


# -- windows ---------------------------------------------------------------------------------------------------------


@given(*[st.none() | st.integers(1, 2_000_000)] * 4)
def test_learned_beats_user_beats_server_beats_catalogue(
    learned: int | None, user: int | None, server: int | None, catalogue: int | None
) -> None:
    """Case 98: a catalogue never overrides what a person declared, nor any of them what the server refused."""
    window = settle_window(user, learned, server, catalogue)
    if user is not None and (learned is None or user <= learned):
        assert window == Window(user, "override")
    elif learned is not None:
        assert window == Window(learned, "learned")
    elif server is not None:
        assert window == Window(server, "discovery")
    else:
        assert window.tokens == catalogue


REFUSALS: dict[str, tuple[str, int | None, int | None]] = {
    "llama.cpp": ("request (13392 tokens) exceeds the available context size (8192 tokens)", 8_192, 13_392),
    "bare numbers": ("request (124071) exceeds (123904)", 123_904, 124_071),
    "OpenAI": ("maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens", 8_192, 9_000),
    "Anthropic, output": (
        "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000",
        200_000,
        199_211,
    ),
    "LM Studio": (
        "when context the overflows. However, the model is loaded with context length of only 4096",
        4_096,
        None,
    ),
    "vLLM, old": ("The decoder prompt (length 9000) is longer than the maximum model length of 8192.", 8_192, 9_000),
    "TGI": ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4_096, 5_000),
    "xAI": ("maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
    "SGLang": ("Input length (9000 tokens) exceeds the maximum allowed length (8192 tokens).", 8_192, 9_000),
    "exllama": ("Prompt length 9000 is greater than max_seq_len 8192", 8_192, 9_000),
    "Cohere": ("too many tokens: total number of tokens in the prompt cannot exceed 4081", 4_081, None),
    "GitHub": ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8_000, None),
    "Bedrock": ("Input is too long for requested model.", None, None),
    "Groq": ("Please reduce the length of the messages or completion.", None, None),
}


@pytest.mark.parametrize(("said", "window", "prompt"), REFUSALS.values(), ids=REFUSALS.keys())
def test_the_window_is_learned_from_whatever_words_refuse_a_prompt(
    said: str, window: int | None, prompt: int | None
) -> None:
    """Case 95: the runtime value wins, and the refusal that names it is the best source there is."""
    error = classify(400, json.dumps({"error": {"message": said}}))
    assert (error.kind, error.n_ctx, error.n_prompt) == ("overflow", window, prompt)


async def test_a_refusal_that_names_the_window_is_followed_at_once(rig: StartRig) -> None:
    """Case 95: discovery said 262 144, the training window; the server has 12 390."""
    refused = classify(400, json.dumps({"error": {"message": "request (16407) exceeds (12390)"}}))
    r = await rig(window=Window(262_144, "discovery"), chat=ScriptedChat(summaries=[say("no")] * 3))
    for n in range(6):
        await r.ask(f"question {n} " + "x" * 9_000)
    r.chat.replies = [[refused], say("fine")]
    assert (await r.ask("go on")).end == "done"
    assert r.engine.state.meter.window == Window(12_390, "learned")
    assert len(canonical_json(list(r.chat.turns[-1].messages))) // 4 < 12_390


# -- on or off -------------------------------------------------------------------------------------------------------


async def test_that_nothing_will_be_compacted_is_always_said_and_why(rig: StartRig) -> None:
    """Case 99: switched off, window unknown, given up: the gauge and /status have a sentence for each."""
    off = await rig(policy=Policy(auto_compress=False))
    await off.ask("hello")
    assert not gauge(off).auto
    assert "auto" in gauge(off).why_not.lower() or "off" in gauge(off).why_not.lower()
    assert (await off.engine.status()).why_no_compaction
    await off.engine.close()

    unknown = await rig(window=Window(None, "unknown"), ids=RandomIds())
    await unknown.ask("hello")
    assert "window" in gauge(unknown).why_not
    await unknown.engine.close()

    failing = ScriptedChat(summaries=[[ModelError("server", "no")]] * 9)
    r = await rig(window=Window(16_384, "discovery"), chat=failing, ids=RandomIds(), policy=Policy(compact_at=0.3))
    for n in range(12):
        await r.ask(f"question {n} " + "x" * 2_400)
    assert len(r.chat.summary_requests) == 3
    assert "3" in gauge(r).why_not or "three" in gauge(r).why_not
    assert (await r.engine.status()).last_failure
    await r.engine.close()

    fine = await rig(ids=RandomIds())
    await fine.ask("hello")
    assert gauge(fine).auto
    assert gauge(fine).why_not == ""


async def test_a_picture_is_a_flat_cost_and_its_bytes_are_never_counted_as_words(rig: StartRig) -> None:
    """Cases 86, 91: two megabytes of base64 are a thousand tokens on the gauge, in a row of their own."""
    r = await rig(window=Window(200_000, "discovery"))
    r.engine.submit_content((TextPart("see"), ImagePart("data:image/png;base64,iVBOR" + "A" * 2_000_000)))
    await r.until(lambda e: isinstance(e, TurnFinished))
    await r.idle()
    b = (await r.engine.context()).breakdown
    assert b.tokens("images") == 1_000
    assert gauge(r).used < 1_100
