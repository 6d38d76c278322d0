"""`marextui replay`: the real engine on recorded conversations, without a model (issue section 3)."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from marextui.cli import main
from marextui.context.ask import Question
from marextui.context.messages import Message
from marextui.context.recording import Recording, read_recording
from marextui.context.shapes import SHAPES
from marextui.context.validate import violations
from marextui.engine.recorded import split_turns
from marextui.engine.replay import ReplayOptions, replay
from tests.stubs.engine_rig import four

WINDOWS = (4_096, 8_192, 32_768, 200_000)


def conversation(turns: int, size: int = 300) -> list[dict]:
    made: list[dict] = [{"role": "system", "content": "You are terse."}]
    for n in range(turns):
        made.append({"role": "user", "content": f"Step {n}: open file_{n}.py and set PORT_{n} to {9000 + n}."})
        call = {"id": f"c{n}", "type": "function"}
        call["function"] = {"name": "Read", "arguments": json.dumps({"file_path": f"src/file_{n}.py"})}
        made.append({"role": "assistant", "content": None, "tool_calls": [call]})
        made.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"PORT_{n} = 1\n" + "pass\n" * size})
        made.append({"role": "assistant", "content": f"PORT_{n} is now {9000 + n} in file_{n}.py."})
    return made


def write(path: Path, messages: list[dict], *, lines: bool = True) -> Path:
    text = "".join(json.dumps(m) + "\n" for m in messages) if lines else json.dumps(messages)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def run(tmp_path: Path, file: Path, *arguments: str) -> tuple[int, dict, list[dict]]:
    report, view = tmp_path / "report.json", tmp_path / "view.jsonl"
    code = main(["replay", str(file), "--report", str(report), "--view", str(view), *arguments])
    if code:
        return code, {}, []
    return code, json.loads(report.read_text()), [json.loads(x) for x in view.read_text().splitlines()]


def as_messages(view: list[dict]) -> tuple[Message, ...]:
    lines = "".join(json.dumps(m) + "\n" for m in view).encode()
    return read_recording(lines, name="view").messages


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz"])
def test_all_three_file_forms_give_the_same_report(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, conversation(12), lines=name != "a.json")
    code, report, view = run(tmp_path, file, "--window", "8192")
    assert code == 0
    assert set(report) == {"steps", "compactions", "omissions", "answers", "notes", "totals"}
    assert len(report["steps"]) == 24
    assert [s["step"] for s in report["steps"]] == list(range(1, 25))
    wanted = {"step", "used", "budget", "threshold", "estimated", "view_messages", "view_valid", "refused"}
    assert all(wanted <= set(s) for s in report["steps"])
    assert view[0] == {"role": "system", "content": "You are terse."}
    assert len(view) == report["steps"][-1]["view_messages"]


def test_the_view_is_exact_and_private_and_the_report_holds_no_secret(tmp_path: Path) -> None:
    """I10: who asks for the view asks for what would be sent; everything else on disk is without secrets."""
    key = "sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy0123456789"
    recorded = conversation(4)
    recorded[1]["content"] = f"Use OPENAI_API_KEY={key} from now on."
    questions = tmp_path / "ask.json"
    questions.write_text(json.dumps([{"question": f"Is the key {key}?", "accept": ["sk-proj"]}]))
    code, report, view = run(tmp_path, write(tmp_path / "a.jsonl", recorded), "--ask", str(questions))
    assert code == 0
    assert view[1]["content"] == recorded[1]["content"]
    assert ((tmp_path / "view.jsonl").stat().st_mode & 0o077) == 0
    assert key not in json.dumps(report)
    assert report["answers"][0]["question"].startswith("Is the key [redacted:")


def test_compactions_and_omissions_point_into_the_recording(tmp_path: Path) -> None:
    recorded = conversation(24)
    code, report, _ = run(tmp_path, write(tmp_path / "a.jsonl", recorded), "--window", "4096")
    assert code == 0
    assert report["compactions"]
    for compaction in report["compactions"]:
        assert recorded[compaction["cut"]]["role"] == "user"
        assert compaction["tokens_after"] < compaction["tokens_before"]
        assert {"cycle", "trigger", "messages_before", "messages_after", "seconds", "folded"} <= set(compaction)
    assert any(c["folded"].startswith("omitted-") for c in report["compactions"])
    assert report["omissions"]
    for omission in report["omissions"]:
        assert recorded[omission["message"]]["role"] == "tool"
        assert omission["chars"] == len(recorded[omission["message"]]["content"])
        assert omission["preview"].startswith("PORT_")


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_it_is_stands_on_a_terminal_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """A recording of many thousand messages takes minutes: silence would look like a hang."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["replay", str(write(tmp_path / "a.jsonl", conversation(3)))]) == 0
    told = capsys.readouterr().err
    assert told == ("\r\x1b[Kturn 1 of 3\r\x1b[Kturn 2 of 3\r\x1b[K" if terminal else "")


def test_without_a_window_everything_is_sent(tmp_path: Path) -> None:
    """M4."""
    recorded = conversation(6)
    code, report, view = run(tmp_path, write(tmp_path / "a.jsonl", recorded))
    assert code == 0
    assert report["compactions"] == []
    assert report["steps"][-1]["budget"] is None
    assert len(view) == len(recorded) - 1  # all but the last answer, which that view produced


def test_reserve_and_threshold_are_used_as_given(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", conversation(3))
    _, report, _ = run(tmp_path, file, "--window", "20000", "--reserve", "777", "--compact-at", "0.5")
    step = report["steps"][0]
    assert step["threshold"] == step["budget"] * 0.5
    assert report["totals"]["reserve"] == 777


def test_a_message_larger_than_the_budget_goes_as_head_and_tail(tmp_path: Path) -> None:
    """Issue section 3: the last rung of the ladder; the whole is stored, nothing is over the budget."""
    words = " ".join(f"word{n}" for n in range(4000))
    recorded = [{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}]
    recorded += conversation(2)[1:]
    code, report, view = run(tmp_path, write(tmp_path / "a.jsonl", recorded), "--window", "4096")
    assert code == 0
    assert view[1]["content"].startswith("word0 word1 ")
    assert "word3999\n[omitted omitted-001: message, " in view[1]["content"]
    assert report["omissions"][0]["chars"] == len(words)
    for step in report["steps"]:
        assert step["refused"] is None
        assert step["used"] <= step["budget"]


def test_a_step_that_cannot_fit_says_so_and_the_replay_goes_on(tmp_path: Path) -> None:
    """Case 2: a system prompt that leaves nothing cannot be helped."""
    recorded = conversation(2)
    recorded[0]["content"] = "rule " * 4000
    code, report, _ = run(tmp_path, write(tmp_path / "a.jsonl", recorded), "--window", "4096")
    assert code == 0
    assert len(report["steps"]) == 4
    for step in report["steps"]:
        assert "the system prompt" in step["refused"]
        assert "leave 0 of 4.1k" in step["refused"]


def test_questions_are_answered_in_view_or_reachable(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", conversation(20))
    ask = tmp_path / "ask.json"
    questions = [
        {"question": "Which value did PORT_2 get?", "accept": ["9002"]},
        {"question": "What is the name of the cat?", "accept": ["Mirabelle"]},
    ]
    ask.write_text(json.dumps(questions))
    _, report, _ = run(tmp_path, file, "--window", "6000", "--ask", str(ask))
    first, second = report["answers"]
    assert first["question"] == questions[0]["question"]
    assert first["reachable"]
    assert not second["in_view"]
    assert not second["reachable"]


def test_malformed_recordings_are_repaired_with_notes(tmp_path: Path) -> None:
    odd = [
        {"role": "assistant", "content": "I start."},
        {"role": "tool", "tool_call_id": "none", "content": "orphan"},
        {"role": "user", "content": ""},
        {"role": "narrator", "content": "Meanwhile"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{"}}],
        },
        {"role": "user", "content": "and?"},
        {"role": "assistant", "content": "one", "reasoning_content": "hm"},
        {"role": "assistant", "content": "two"},
        "not a message",
    ]
    code, report, view = run(tmp_path, write(tmp_path / "a.jsonl", odd), "--window", "8192")
    assert code == 0
    assert len(report["notes"]) >= 4
    assert all(s["view_valid"] for s in report["steps"])
    assert violations(as_messages(view)) == ()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["bad.jsonl"], "bad.jsonl"),
        (["ok.jsonl", "--window", "-3"], "--window"),
        (["ok.jsonl", "--compact-at", "65"], "--compact-at"),
        (["ok.jsonl", "--reserve", "many"], "--reserve"),
        (["ok.jsonl", "--ask", "bad.jsonl"], "bad.jsonl"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_bytes(b"\x00\xff\x13 not json at all")
    write(Path("ok.jsonl"), conversation(1))
    assert main(["replay", *arguments]) == 2
    told = capsys.readouterr().err
    assert word in told
    assert told.count("\n") == 1


async def test_the_replay_is_deterministic_and_counts_each_message_once() -> None:
    """Work, not time: tokens are counted once per distinct message, whatever the number of steps."""
    recording = read_recording(json.dumps(conversation(30)).encode(), name="x")
    options = ReplayOptions(window=9_000, questions=(Question("Which value did PORT_2 get?", ("9002",)),))
    one = await replay(recording, options, count=four)
    two = await replay(recording, options, count=four)
    for outcome in (one, two):
        for compaction in outcome.report["compactions"]:
            compaction.pop("seconds")
    assert one == two
    assert one.report["totals"]["tokens_counted"] < 6 * len(recording.messages)


async def test_regenerative_replays_too() -> None:
    recording = read_recording(json.dumps(conversation(60)).encode(), name="x")
    outcome = await replay(recording, ReplayOptions(window=4_096, strategy="regenerative"), count=four)
    assert len(outcome.report["compactions"]) >= 2
    assert outcome.report["totals"]["invalid_views"] == 0


def test_turns_are_split_with_a_note_for_every_oddity() -> None:
    messages = read_recording(
        json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 2).encode(), name="x"
    ).messages
    system, turns, notes = split_turns(messages)
    assert (system, len(turns), notes) == ("", 2, [])
    assert split_turns(()) == ("", [], [])


@pytest.mark.corpus
@pytest.mark.parametrize("window", WINDOWS)
async def test_every_recording_replays_with_valid_views_within_the_budget(corpus: Path, window: int) -> None:
    """Issue section 5: pairing, order, opening user message, system first, budget respected or a typed refusal."""
    files = sorted(corpus.glob("*.jsonl"))
    assert len(files) == 12
    for file in files:
        recording: Recording = read_recording(file.read_bytes(), name=file.name)
        outcome = await replay(recording, ReplayOptions(window=window), count=four)
        totals = outcome.report["totals"]
        assert totals["invalid_views"] == 0, file.name
        for step in outcome.report["steps"]:
            assert step["refused"] or step["used"] <= step["budget"], (file.name, step)
        assert outcome.view[0]["role"] == "system"
        assert outcome.view[1]["role"] == "user"
        assert violations(as_messages(outcome.view)) == (), file.name
        if window >= 32_768:
            assert totals["refused"] == 0, file.name


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", [4_096, 32_768])
def test_the_view_is_written_as_a_provider_takes_it(tmp_path: Path, shape: str, window: int) -> None:
    """Issue section 5, I1: in that provider's form, compacted or not, and valid there."""
    file = write(tmp_path / "a.jsonl", conversation(24))
    code, report, view = run(tmp_path, file, "--window", str(window), "--shape", shape)
    assert code == 0
    assert report["shape"] == {"name": shape, "lines": len(view), "violations": []}
    assert bool(report["compactions"]) == (window == 4_096)
    text = json.dumps(view)
    assert ("Earlier conversation summary" in text) == (window == 4_096)
    roles = [line["role"] for line in view if "role" in line]
    if shape == "anthropic":
        assert view[0] == {"system": "You are terse."}
        assert all(a != b for a, b in pairwise(roles))
        blocks = [b for line in view[1:] for b in line["content"]]
        used = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert used == [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert used
    elif shape == "gemini":
        assert view[0] == {"systemInstruction": {"parts": [{"text": "You are terse."}]}}
        assert {*roles} == {"user", "model"}
        parts = [p for line in view[1:] for p in line["parts"]]
        called = [p["functionCall"]["id"] for p in parts if "functionCall" in p]
        assert called == [p["functionResponse"]["id"] for p in parts if "functionResponse" in p]
        assert called
    else:
        assert roles[0] == "system"
        plain = [r for r, line in zip(roles[1:], view[1:], strict=True) if r != "tool" and not line.get("tool_calls")]
        assert all(a != b for a, b in pairwise(plain))


def test_a_sliding_window_replays_too(tmp_path: Path) -> None:
    """P13: on a window that is never full, six turns stay in view and what leaves is summarised."""
    file = write(tmp_path / "a.jsonl", conversation(24, size=2000))
    _, report, view = run(tmp_path, file, "--window", "200000", "--trigger", "sliding")
    assert {c["trigger"] for c in report["compactions"]} == {"sliding"}
    asked = sum(m["role"] == "user" and m["content"].startswith("Step ") for m in view)
    assert 6 <= asked < 6 + 3


def test_what_a_provider_would_refuse_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    """The view is checked by rules that know nothing of the writer: a mistake of the writer is told, not hidden."""
    monkeypatch.setattr("marextui.engine.replay.to_shape", lambda messages, shape: [{"role": "assistant"}])
    code, report, _ = run(tmp_path, write(tmp_path / "a.jsonl", conversation(2)), "--shape", "openai")
    assert code == 0
    assert "messages[0]: the conversation opens with assistant" in report["shape"]["violations"]
    assert "messages[0]: the conversation opens with assistant" in capsys.readouterr().out


def test_without_a_shape_the_view_is_as_it_was_sent(tmp_path: Path) -> None:
    _, report, view = run(tmp_path, write(tmp_path / "a.jsonl", conversation(2)))
    assert "shape" not in report
    assert [m["role"] for m in view] == ["system", *["user", "assistant", "tool", "assistant"] * 2][:-1]


def thinking_loop(signature: str) -> list[dict]:
    """A turn in Anthropic's form, recorded in the middle of its tool loop."""
    thought = {"type": "thinking", "thinking": "First look  at it.", "signature": signature}
    hidden = {"type": "redacted_thinking", "data": "AAAA"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "pass"}
    return [
        {"role": "user", "content": "What is in a.py?"},
        {"role": "assistant", "content": [thought, hidden, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Nothing but pass."},
    ]


def test_signed_thinking_of_the_running_tool_loop_goes_back_byte_for_byte(tmp_path: Path) -> None:
    """Case 25: whole and signed it is sent with its loop; other providers never see it."""
    file = write(tmp_path / "a.jsonl", thinking_loop("c2lnbmF0dXJl+/="))
    _, report, view = run(tmp_path, file, "--shape", "anthropic")
    assert report["shape"]["violations"] == []
    answer = next(line for line in view if line.get("role") == "assistant")
    assert answer["content"][:2] == thinking_loop("c2lnbmF0dXJl+/=")[1]["content"][:2]
    for shape in ("openai", "gemini", "strict"):
        _, report, view = run(tmp_path, file, "--shape", shape)
        assert report["shape"]["violations"] == []
        assert "c2lnbmF0dXJl" not in json.dumps(view)


def test_unsigned_thinking_is_never_sent(tmp_path: Path) -> None:
    """Case 26: without its signature a block only makes the request fail."""
    file = write(tmp_path / "a.jsonl", thinking_loop(""))
    _, report, view = run(tmp_path, file, "--shape", "anthropic")
    assert report["shape"]["violations"] == []
    assert "First look" not in json.dumps(view)


@pytest.mark.parametrize("option", ["--view", "--report"])
def test_a_replay_never_writes_over_what_it_reads(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "in.jsonl", conversation(3))
    before = file.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    for output in (file, link, tmp_path / "x" / ".." / "in.jsonl"):
        (tmp_path / "x").mkdir(exist_ok=True)
        assert main(["replay", str(file), option, str(output)]) == 2
        assert "is read or written already" in capsys.readouterr().err
    assert main(["replay", str(file), "--view", str(tmp_path / "o"), "--report", str(tmp_path / "o")]) == 2
    assert file.read_bytes() == before


def test_a_result_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "in.jsonl", conversation(3))
    monkeypatch.setattr("marextui.replay_command.replay", None)  # never reached
    assert main(["replay", str(file), "--report", str(tmp_path / "no" / "such" / "report.json")]) == 2
    assert "report.json cannot be written: No such file or directory" in capsys.readouterr().err
    assert main(["replay", str(file), "--view", str(tmp_path)]) == 2
    assert main(["replay", str(file), "--window", "0"]) == 2
    assert "it is not used" not in capsys.readouterr().err
