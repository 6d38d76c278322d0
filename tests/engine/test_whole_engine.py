"""The product's engine, nothing replaced, on the real llama.cpp server with a scripted 1 MB model (issue 2, section 5).

What fakes cannot promise: that log, tools, budget, compaction, omissions and the real server's stream, usage, cache,
refusals and death fit together. One byte of a prompt is one token here, so windows are chosen in bytes.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from marextui.cli import main
from marextui.engine.api import LATEST
from marextui.engine.events import (
    CacheChanged,
    CompactionFinished,
    CompactionStarted,
    GaugeChanged,
    ModelReady,
    Notice,
    OmissionRead,
    OutputsReplaced,
    PromptProcessed,
    StepStarted,
    TextStreamed,
    ToolFinished,
)
from marextui.engine.once import ask_once
from marextui.models.connection import EmbeddedConnection
from marextui.settings import Settings
from tests.stubs.live_engine import LiveEngine, live_engine
from tests.stubs.tiny_model import DEFAULT_REPLY, call_text, clean, tiny_gguf, tiny_server

pytestmark = pytest.mark.server

SUMMARY = """\
## Session Intent
- Find the port of the service; "never change port 8080", said the user

## Files Modified
none

## Decisions Made
- The port stays 8080

## Current State
- big.txt was read completely; it ends with the word quokka

## Next Steps
- Answer the newest question"""
SAYS = {
    "read": call_text("Read", '{"file_path": "big.txt"}'),
    "small": call_text("Read", '{"file_path": "small.txt"}'),
    "run": call_text("Bash", '{"command": "echo from-the-shell"}'),
    "back": call_text("ReadOmittedContent", '{"content_id": "omitted-001", "offset": 0, "length": 0, "query": ""}'),
    "endless": "on and on",
    "port": "The port is 8080.",
}
SUMMARY_REQUEST = "Write the notes now"
BIG = "".join(f"line {n} of the big file\n" for n in range(60)) + "quokka\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return tiny_gguf(path, says=SAYS, phrases={SUMMARY_REQUEST: SUMMARY}, endless=("endless",))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "big.txt").write_text(BIG)
    (root / "small.txt").write_text("#port = 8080\n")
    return root


def settings(model: Path, window: int = 16_384, **more: Any) -> Settings:
    return Settings(model=str(model), local_window=window, **more)


def child(live: LiveEngine) -> int:
    connection = live.engine.state.control.connection
    assert isinstance(connection, EmbeddedConnection)
    assert connection.process.pid is not None
    return connection.process.pid


async def test_a_turn_streams_and_its_second_turn_finds_the_prefix_in_the_cache(model: Path, project: Path) -> None:
    """M38, M39, I7: usage as the server counted it, the gauge from it, the cached share of the next prompt."""
    async with live_engine(settings(model), project) as live:
        done = await live.ask("Hello")
        assert done.end == "done"
        assert clean("".join(e.text for e in live.of(TextStreamed))) == DEFAULT_REPLY
        assert len(live.of(TextStreamed)) > 3, "piece by piece"
        assert live.of(PromptProcessed)[-1].done == done.usage.inp
        ready = live.of(ModelReady)[0]
        assert (ready.window, ready.window_source, ready.supports_tools) == (16_384, "discovery", True)
        assert done.usage.cache_read == 0
        assert done.usage.out == len(DEFAULT_REPLY.split()) + 1, "the words and the end mark"

        second = await live.ask("And now?")
        assert second.usage.inp is not None
        assert second.usage.cache_read is not None
        assert done.usage.inp is not None
        assert second.usage.cache_read >= done.usage.inp, "all of the first request is a prefix of the second"
        cache = live.of(CacheChanged)[-1].cache
        assert cache.cached == second.usage.cache_read
        assert cache.computed == second.usage.inp - second.usage.cache_read
        assert cache.broke == ""
        gauge = live.of(GaugeChanged)[-1].gauge
        assert not gauge.estimated, "everything in the view was counted by the server"
        live.check_log()
    lines = [json.loads(x) for x in (project / ".marex" / "usage.jsonl").read_text().splitlines()]
    assert [x["turn"] for x in lines] == [1, 2], "M44"


async def test_a_tool_is_called_and_its_result_decides_the_answer(model: Path, project: Path) -> None:
    async with live_engine(settings(model), project) as live:
        done = await live.ask("please look #small")
        assert (done.end, done.usage.steps) == ("done", 2)
        assert [e.is_error for e in live.of(ToolFinished)] == [False]
        assert [m.role for m in live.history()] == ["user", "assistant", "tool", "assistant"]
        assert "#port = 8080" in live.history()[2].text
        assert clean(live.history()[3].text) == "The port is 8080.", "the model has seen the file"
        live.check_log()


@pytest.mark.parametrize(("allow", "told"), [(("bash",), "from-the-shell"), ((), "nobody can be asked")])
async def test_a_command_runs_only_where_it_is_allowed(
    model: Path, project: Path, allow: tuple[str, ...], told: str
) -> None:
    async with live_engine(settings(model), project, allow=allow) as live:
        assert (await live.ask("#run")).end == "done"
        assert told in live.history()[2].text
        live.check_log()


async def filled(live: LiveEngine, turns: int = 14) -> int:
    """Talk until the conversation was compacted; returns the turns it took."""
    for n in range(1, turns + 1):
        done = await live.ask(f"Message {n}, see big.txt: " + "never change port 8080, it is in use. " * 15)
        assert done.end == "done"
        if live.of(CompactionFinished):
            return n
    raise AssertionError("never compacted")


async def test_a_conversation_is_compacted_by_the_model_and_what_was_omitted_is_read_back(
    model: Path, project: Path
) -> None:
    """M5, M11–M16, M23–M26, M32: the whole life of a long conversation, resumed once in the middle."""
    async with live_engine(settings(model, 12_288), project) as live:
        await live.ask("#read")
        stored = await live.engine.omissions()
        assert [(o.id, o.tool, o.what) for o in stored] == [("omitted-001", "Read", "big.txt")]
        await filled(live)
        entry = live.of(CompactionFinished)[0].entry
        assert (entry.summarizer, entry.trigger) == ("model", "threshold")
        assert entry.tokens_after < entry.tokens_before
        titles = {s.title: [i.text for i in s.items] for s in entry.summary.sections}
        assert "The port stays 8080" in titles["Decisions Made"]
        assert "quokka" in titles["Current State"][0]
        assert live.of(OutputsReplaced), "the big output grew old before"
        view = [m.text for m in live.history()]
        assert "quokka" in view[0], "the summary opens the view"
        assert "#read" not in view, "what it stands for is gone from the view"
        gauge = live.of(GaugeChanged)[-1].gauge
        assert gauge.summary > 0
        assert gauge.threshold is not None
        assert gauge.used < gauge.threshold
        after = live.events.index(live.of(CompactionFinished)[0])
        step = live.of(StepStarted, after)[0]
        assert step.budget is not None
        assert step.used < step.budget
        live.check_log()
        memory = await live.engine.memory()
        assert [e.cycle for e in memory.entries] == [1]
        assert any("8080" in f for f in memory.entries[0].facts)
        cycle_one = live.engine.session.id

    async with live_engine(settings(model, 12_288), project, wanted=LATEST) as live:
        assert live.engine.session.id == cycle_one
        assert "quokka" in live.history()[0].text, "the view is a fold of the log: it survives a restart"
        done = await live.ask("#back")
        assert done.end == "done"
        result = next(m for m in reversed(live.history()) if m.role == "tool")
        assert "line 0 of the big file" in result.text
        assert not result.is_error
        assert [(e.id, e.reads) for e in live.of(OmissionRead)] == [("omitted-001", 1)]
        assert await live.engine.read_omission("omitted-001") is not None
        live.check_log()


async def test_a_compaction_by_hand_and_one_without_the_model(model: Path, project: Path) -> None:
    """M21: /compact, then /compact offline; both stay in the log as decisions."""
    async with live_engine(settings(model), project) as live:
        for n in range(3):
            await live.ask(f"Message {n}, see big.txt: " + "some words to fill the conversation. " * 16)
        for cycle, offline in ((1, False), (2, True)):
            mark = len(live.events)
            live.engine.compact(offline=offline)
            finished = await live.until(lambda e: isinstance(e, CompactionFinished), after=mark)
            assert isinstance(finished, CompactionFinished)
            assert (finished.entry.cycle, finished.entry.trigger) == (cycle, "manual")
            assert finished.entry.summarizer == ("offline" if offline else "model")
            for n in range(2):
                await live.ask(f"More {cycle}.{n}: " + "words again and again, and some more. " * 20)
        live.check_log()


async def test_an_overflow_teaches_the_window_and_the_turn_goes_on(tmp_path: Path, project: Path) -> None:
    """M4, B17: a window that was claimed too large is corrected by the server's own refusal."""
    async with tiny_server(tmp_path, says=SAYS, phrases={SUMMARY_REQUEST: SUMMARY}, ctx=8192) as server:
        claimed = Settings(base_url=server.url, api_key=server.api_key, model="local", window=32_768)
        async with live_engine(claimed, project) as live:
            for n in range(12):
                done = await live.ask(f"Message {n}, see big.txt: " + "words that fill the window to the brim. " * 20)
                assert done.end == "done", live.of(Notice)
                if live.of(CompactionFinished):
                    break
            assert [e.entry.trigger for e in live.of(CompactionFinished)] == ["overflow"]
            assert any("its window is 8192 tokens" in n.text for n in live.of(Notice))
            gauge = live.of(GaugeChanged)[-1].gauge
            assert (gauge.window, gauge.window_source) == (8192, "learned")
            assert (await live.ask("still there?")).end == "done"
            live.check_log()


async def test_interrupted_in_the_middle_of_an_answer_the_next_message_is_answered(model: Path, project: Path) -> None:
    async with live_engine(settings(model), project) as live:
        live.engine.submit("#endless")
        await live.words(3)
        live.engine.interrupt()
        done = await live.ended(0)
        assert done.end == "interrupted"
        assert live.last().text.startswith("on and"), "what was read stays"
        again = await live.ask("Hello")
        assert again.end == "done", "the only slot of the server is free"
        assert clean(live.last().text) == DEFAULT_REPLY
        live.check_log()


async def test_interrupted_while_summarising_nothing_changes(tmp_path: Path, project: Path) -> None:
    """I5, case 46: the server stops writing the summary, and the conversation is as it was."""
    path = tiny_gguf(tmp_path / "tiny.gguf", phrases={SUMMARY_REQUEST: "on and on"}, endless=(SUMMARY_REQUEST,))
    async with live_engine(settings(path), project) as live:
        for n in range(4):
            await live.ask(f"Message {n}: " + "some words to fill the conversation. " * 20)
        before = live.history()
        mark = len(live.events)
        live.engine.compact()
        await live.until(lambda e: isinstance(e, CompactionStarted), after=mark)
        live.engine.interrupt()
        await live.until(lambda e: isinstance(e, Notice) and "cancelled" in e.text, after=mark)
        assert live.history() == before
        assert (await live.ask("Hello")).end == "done"
        assert live.engine.session.conversation.compactions == []


async def test_a_killed_engine_is_an_error_with_a_retry_that_finishes_the_turn(model: Path, project: Path) -> None:
    async with live_engine(settings(model), project) as live:
        assert (await live.ask("Hello")).end == "done"
        mark = len(live.events)
        live.engine.submit("#endless")
        await live.words(2, after=mark)
        first = child(live)
        os.kill(first, signal.SIGKILL)
        done = await live.ended(mark)
        assert done.end == "error"
        notice = [n for n in live.of(Notice, mark) if n.level == "error"][-1]
        assert "signal 9" in notice.text
        assert notice.action == "retry"

        mark = len(live.events)
        live.engine.retry()
        done = await live.ended(mark)
        assert done.end == "done"
        assert child(live) != first
        assert [m.text for m in live.history() if m.origin == "user"] == ["Hello", "#endless"], "asked once"
        assert any(m.text.startswith("on and") for m in live.history()), "what had arrived is kept"
        assert clean(live.last().text) == DEFAULT_REPLY
        live.check_log()


async def test_an_engine_killed_between_two_turns_is_started_again_by_the_next_retry(
    model: Path, project: Path
) -> None:
    async with live_engine(settings(model), project) as live:
        await live.ask("Hello")
        os.kill(child(live), signal.SIGKILL)
        mark = len(live.events)
        done = await live.ask("Still there?")
        if done.end == "error":  # the death is noticed by the request
            assert [n.action for n in live.of(Notice, mark) if n.level == "error"] == ["retry"]
            mark = len(live.events)
            live.engine.retry()
            done = await live.ended(mark)
        assert done.end == "done"
        assert clean(live.last().text) == DEFAULT_REPLY


async def test_one_answer_without_a_screen(model: Path, project: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    code = await ask_once("please look #small", settings(model), root=project, out=out, err=err)
    assert code == 0
    assert clean(out.getvalue()) == "The port is 8080.\n"
    assert err.getvalue() == "· Read small.txt\n"


async def run(*arguments: str, model: Path, cwd: Path, stdin: bytes = b"") -> tuple[int, str, str]:
    environment = {**os.environ, "MAREX_MODEL": str(model), "MAREX_LOCAL_WINDOW": "16384"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "marextui",
        *arguments,
        cwd=cwd,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_command_answers_in_a_pipe(model: Path, project: Path) -> None:
    code, out, err = await run("-p", "what does this say?", model=model, cwd=project, stdin=b"see #small")
    assert (code, clean(out)) == (0, "The port is 8080.\n"), err
    assert "Traceback" not in err


async def test_the_command_tells_every_event_as_json(model: Path, project: Path) -> None:
    code, out, err = await run("-p", "Hello", "--json", model=model, cwd=project)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    names = [e["event"] for e in events]
    assert names.index("TurnStarted") < names.index("TextStreamed") < names.index("TurnFinished")
    assert clean("".join(e["text"] for e in events if e["event"] == "TextStreamed")) == DEFAULT_REPLY
    usage = next(e for e in events if e["event"] == "TurnFinished")["usage"]
    assert usage["inp"] > 3000


async def test_the_command_goes_on_with_the_latest_conversation(model: Path, project: Path) -> None:
    assert (await run("-p", "see #small", model=model, cwd=project))[0] == 0
    code, out, err = await run("-p", "Hello", "--continue", "--json", model=model, cwd=project)
    assert code == 0, err
    turns = [e["turn"] for e in map(json.loads, out.splitlines()) if e["event"] == "TurnStarted"]
    assert turns == [2]


def test_a_recording_is_replayed_with_the_models_own_summaries(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "recording.jsonl"
    with recording.open("w") as file:
        for n in range(24):
            said = [
                {"role": "user", "content": f"Step {n}, see big.txt: " + "keep the old interface as it is. " * 20},
                {"role": "assistant", "content": f"Step {n} is done. " + "All tests pass. " * 20},
            ]
            file.writelines(json.dumps(m) + "\n" for m in said)
    monkeypatch.setenv("MAREX_MODEL", str(model))
    monkeypatch.setenv("MAREX_LOCAL_WINDOW", "32768")
    report, view = tmp_path / "report.json", tmp_path / "view.jsonl"
    arguments = ["--window", "6000", "--summarizer", "model", "--report", str(report), "--view", str(view)]
    assert main(["replay", str(recording), *arguments]) == 0
    told = json.loads(report.read_text())
    assert told["totals"]["compactions"] >= 1
    assert told["totals"]["invalid_views"] == 0
    sent = [json.loads(line) for line in view.read_text().splitlines()]
    summary = next(m["content"] for m in sent if m["role"] == "user")
    assert "Find the port of the service" in summary, "the summary is the model's, not the offline one"
