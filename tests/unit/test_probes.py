"""Probes and the checklist (P16–P19): expected facts of a span, found again or named as lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from marextui.context.ask import searchable
from marextui.context.entries import Summary
from marextui.context.fusion import fuse
from marextui.context.messages import Message, ToolCall
from marextui.context.probes import Check, Probe, ProbeResult, check_probes, checklist, extract_probes
from marextui.context.search import Doc
from marextui.context.summary import SECTIONS, parse_summary
from marextui.context.summary_pair import summary_pair


def user(text: str, n: int = 0) -> Message:
    return Message(f"u{n}", "user", text)


def calls(n: int, name: str, **args: Any) -> Message:
    return Message(f"c{n}", "assistant", "", (ToolCall(f"t{n}", name, json.dumps(args)),), origin="model")


def gives(n: int, text: str, *, is_error: bool = False) -> Message:
    return Message(f"r{n}", "tool", text, tool_call_id=f"t{n}", is_error=is_error, origin="tool")


SPAN = (
    user("Sessions are lost after a restart. Never change the port."),
    calls(1, "Edit", file_path="config/redis.ts", old_string="a", new_string="b"),
    gives(1, "edited"),
    calls(2, "Bash", command="npm test"),
    gives(2, "ConnectionError: refused by 10.0.0.7:6379\nexit code: 1"),
)
DOCS = [Doc(m.id, searchable(m)) for m in SPAN]


def said(*lines: str) -> Sequence[Message]:
    return summary_pair("\n".join(lines), 1)


def kinds(probes: Sequence[Probe]) -> dict[str, tuple[str, ...]]:
    return {p.kind: p.expected for p in probes}


def test_a_probe_of_each_kind() -> None:
    """P17."""
    probes = extract_probes(SPAN)
    assert [(p.kind, p.message_id) for p in probes] == [
        ("continuation", "u0"),
        ("decision", "u0"),
        ("artifact", "c1"),
        ("recall", "r2"),
    ]
    assert kinds(probes) == {
        "recall": ("ConnectionError: refused by 10.0.0.7:6379",),
        "artifact": ("config/redis.ts",),
        "continuation": ("Sessions are lost after a restart. Never change the port.",),
        "decision": ("Never change the port.",),
    }


def test_questions_do_not_give_the_answer_away() -> None:
    for probe in extract_probes(SPAN):
        assert not any(e in probe.question for e in probe.expected)
        assert probe.question.endswith("?")


def test_a_summary_without_the_path_fails_its_artifact_probe() -> None:
    """P17's own example: found by recall as long as it is stored, lost and named otherwise."""
    view = said(
        "ConnectionError: refused by 10.0.0.7:6379", "Sessions are lost after a restart. Never change the port."
    )
    probes = extract_probes(SPAN)
    result = check_probes(probes, view, DOCS)
    assert (result.in_view, result.by_recall, result.lost, result.total) == (3, 1, (), 4)
    assert [p.expected for p in result.recalled] == [("config/redis.ts",)]
    result = check_probes(probes, view, [d for d in DOCS if d.id != "c1"])
    assert [p.expected for p in result.lost] == [("config/redis.ts",)]
    assert result.in_view + result.by_recall + len(result.lost) == result.total


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("config/redis.ts", True),
        ("/repo/config/redis.ts", True),
        ("Config/redis.ts", False),
        ("config/redis.tsx", False),
        ("myconfig/redis.ts", False),
        ("redis", False),
    ],
)
def test_paths_are_compared_whole_and_with_case(line: str, found: bool) -> None:
    probe = Probe("artifact", "Which file?", ("config/redis.ts",), "c1")
    assert check_probes([probe], said(line), []).in_view == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("we got a connectionerror:   Refused by\n  10.0.0.7:6379 twice", True),
        ("connection was refused by the server at 10.0.0.7, port 6379", False),
    ],
)
def test_other_answers_are_exact_but_for_blanks_and_case(line: str, found: bool) -> None:
    """P16: similar words are no answer."""
    probe = Probe("recall", "Which error?", ("ConnectionError: refused by 10.0.0.7:6379",), "r2")
    assert check_probes([probe], said(line), []).in_view == found


def test_arguments_of_calls_in_the_view_count() -> None:
    probe = Probe("artifact", "Which file?", ("config/redis.ts",), "c1")
    assert check_probes([probe], SPAN[1:2], []).in_view == 1


def test_the_newest_of_each_kind_come_first_when_there_are_too_many() -> None:
    many = [user("Look at all of it.")]
    for n in range(30):
        many += [calls(n, "Write", file_path=f"src/m{n}.py", content=""), gives(n, "ok")]
    many += [calls(99, "Bash", command="make"), gives(99, "fatal: cannot link it\nexit code: 2")]
    probes = extract_probes(many, limit=6)
    assert [p.kind for p in probes] == ["continuation", "artifact", "artifact", "artifact", "artifact", "recall"]
    assert [p.expected[0] for p in probes if p.kind == "artifact"] == [f"src/m{n}.py" for n in range(26, 30)]
    assert extract_probes(many, limit=0) == ()


def test_a_failed_or_denied_change_is_no_artifact() -> None:
    span = (user("go"), calls(1, "Edit", file_path="a.py", old_string="x"), gives(1, "error: not found", is_error=True))
    assert "artifact" not in kinds(extract_probes(span))


def test_an_answered_request_is_asked_about_as_the_last_one() -> None:
    span = (user("What is 2+2?"), Message("a", "assistant", "Four.", origin="model"))
    assert [p.question for p in extract_probes(span)] == ["What did the user ask for last?"]


def test_open_todo_entries_are_continuations() -> None:
    todos = [{"content": "write the docs", "status": "pending"}, {"content": "fix it", "status": "completed"}]
    span = (user("go"), calls(1, "TodoWrite", todos=todos), gives(1, "ok"))
    assert ("write the docs",) in [p.expected for p in extract_probes(span)]
    assert "fix it" not in str(extract_probes(span))


def test_a_secret_is_no_probe() -> None:
    """I10: it is redacted on purpose, and must not be shown as lost either."""
    key = "sk-ant-abcdefghijklmnop1234"
    span = (user(f"Always use the key {key} here."),)
    assert key not in str(extract_probes(span))


def test_nothing_to_probe() -> None:
    assert extract_probes(()) == ()
    assert check_probes((), said("x"), []) == ProbeResult(0, 0, (), 0)


# Checklist (P19): each item flips with its cause

FIRST = parse_summary("## Decisions Made\n- use redis\n## Files Modified\n- a.py: new", cycle=1)
SECOND = fuse(FIRST, parse_summary("## Decisions Made\n- port 6379 is fixed", cycle=2), cycle=2)
FINE: dict[str, Any] = {
    "trigger_share": 0.58,
    "sections": SECTIONS,
    "summary": SECOND,
    "earlier": FIRST,
    "probes": ProbeResult(40, 0, (), 40),
    "refetch_rate": 0.2,
}
LOST = Probe("artifact", "Which file?", ("config/redis.ts",), "c1")


def test_all_five_pass() -> None:
    checks = checklist(**FINE)
    assert [c.name for c in checks] == ["Trigger", "Sections", "Merged incrementally", "Probes", "Re-fetches"]
    assert all(c.passed for c in checks)


@pytest.mark.parametrize(
    ("cause", "fails", "says"),
    [
        ({"trigger_share": 0.801}, 0, "80"),
        ({"trigger_share": None}, 0, "unknown"),
        ({"summary": Summary(SECOND.sections[1:])}, 1, "Session Intent"),
        ({"summary": parse_summary("## Decisions Made\n- port 6379", cycle=2)}, 2, "2 of 2 earlier items are gone"),
        ({"probes": None}, 3, "not probed"),
        (
            {"probes": ProbeResult(38, 1, (LOST,), 40)},
            3,
            "38/40 in view, 1 by recall, 1 lost, such as “config/redis.ts”",
        ),
        ({"refetch_rate": 0.21}, 4, "21%"),
        ({"refetch_rate": None}, 4, "not counted"),
    ],
)
def test_each_line_flips_with_its_cause(cause: dict[str, Any], fails: int, says: str) -> None:
    checks = checklist(**{**FINE, **cause})
    assert [n for n, c in enumerate(checks) if not c.passed] == [fails]
    assert says in checks[fails].detail


def test_exactly_at_the_limits_passes() -> None:
    assert all(c.passed for c in checklist(**{**FINE, "trigger_share": 0.80, "refetch_rate": 0.20}))


def test_items_folded_into_the_store_are_not_gone() -> None:
    only = parse_summary("## Decisions Made\n- port 6379", cycle=2)
    folded = [i for s in FIRST.sections for i in s.items]
    assert checklist(**{**FINE, "summary": only, "folded": folded})[2].passed


def test_before_the_first_compaction_only_the_trigger_is_judged() -> None:
    checks = checklist(trigger_share=0.9, sections=SECTIONS, summary=None)
    assert [c.passed for c in checks] == [False, True, True, True, True]
    assert checks[1] == Check("Sections", True, "nothing was compacted yet")
