"""Re-fetches and regret per compaction (P20; Part 2, 16; cases 9, 72, 73)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    Summary,
)
from marextui.context.messages import Message, ToolCall
from marextui.context.refetch import FetchReport, Refetch, fetch_reports


class Log:
    """Entries as an engine writes them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.count = 0
        self.cycle = 0

    def say(self, message: Message) -> None:
        self.entries.append(MessageAdded(message))

    def user(self, text: str = "go on") -> str:
        self.count += 1
        self.say(Message(f"u{self.count}", "user", text))
        return f"u{self.count}"

    def call(self, name: str, result: str = "", *, is_error: bool = False, **args: Any) -> str:
        """One tool round; the id of the result's message."""
        self.count += 1
        n = self.count
        self.say(Message(f"c{n}", "assistant", "", (ToolCall(f"t{n}", name, json.dumps(args)),), origin="model"))
        text = result or f"{name} {sorted(args.items())}"
        self.say(Message(f"r{n}", "tool", text, tool_call_id=f"t{n}", is_error=is_error, origin="tool"))
        return f"r{n}"

    def read(self, path: str, result: str = "", **more: Any) -> str:
        return self.call("Read", result or f"text of {path}", file_path=path, **more)

    def compact(self) -> None:
        """Everything so far is summarised; the next user message opens the view."""
        self.cycle += 1
        cut = self.user()
        self.entries.append(CompactionCommitted(self.cycle, "threshold", cut, Summary(()), "m", 9, 3, 900, 90, 1.0))

    @property
    def last(self) -> FetchReport:
        return fetch_reports(self.entries)[-1]


@pytest.fixture
def log() -> Log:
    log = Log()
    log.user()
    return log


def test_the_same_file_again_is_a_refetch_another_one_is_not(log: Log) -> None:
    """P20's own example."""
    first = log.read("a.py")
    log.compact()
    log.read("a.py")
    log.read("b.py")
    report = log.last
    assert report == FetchReport(1, 2, (Refetch("a.py", "c4", "t4", first),))
    assert report.rate == 0.5
    assert report.loss_sign


def test_up_to_a_fifth_is_no_sign_of_loss(log: Log) -> None:
    log.read("a.py")
    log.compact()
    for name in ("a.py", "b.py", "c.py", "d.py", "e.py"):
        log.read(name)
    assert (log.last.rate, log.last.loss_sign) == (0.2, False)
    assert not FetchReport(1, 0).loss_sign


def test_nothing_is_a_refetch_before_a_compaction(log: Log) -> None:
    log.read("a.py", "one")
    log.read("a.py", "two")
    assert fetch_reports(log.entries) == (FetchReport(0, 2),)


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ("src/a.py", "./src/a.py", True),
        ("src/a.py", "/repo/src/a.py", True),
        ("src/a.py", "lib/a.py", False),
        ("xa.py", "a.py", False),
    ],
)
def test_one_file_has_several_names(log: Log, before: str, after: str, again: bool) -> None:
    log.read(before)
    log.compact()
    log.read(after)
    assert bool(log.last.refetched) == again


@pytest.mark.parametrize(("offset", "again"), [(1, True), (90, True), (101, False)])
def test_another_part_of_a_file_is_something_else(log: Log, offset: int, again: bool) -> None:
    log.read("a.py", offset=1, limit=100)
    log.compact()
    log.read("a.py", offset=offset, limit=50)
    assert bool(log.last.refetched) == again


def test_the_shell_and_other_tools_fetch_too(log: Log) -> None:
    log.call("Bash", "text", command="cat src/a.py")
    log.call("WebFetch", "page", url="https://example.org/doc")
    log.compact()
    log.read("src/a.py")
    log.call("Bash", "page", command="curl -s https://example.org/doc")
    assert [r.what for r in log.last.refetched] == ["src/a.py", "https://example.org/doc"]


def test_a_failed_fetch_counts_for_nothing(log: Log) -> None:
    log.read("a.py", "error: no such file", is_error=True)
    log.compact()
    log.read("a.py")
    log.read("b.py", "error: no such file", is_error=True)
    assert log.last == FetchReport(1, 1)


def test_a_second_read_after_the_compaction_is_no_second_refetch(log: Log) -> None:
    log.read("a.py", "one")
    log.compact()
    log.read("a.py", "one")
    log.read("a.py", "two")
    assert len(log.last.refetched) == 1
    assert log.last.fetches == 2


def test_reading_what_was_changed_since_is_no_refetch(log: Log) -> None:
    log.read("a.py")
    log.compact()
    log.call("Edit", "edited", file_path="a.py", old_string="x", new_string="y")
    log.read("a.py", "new text")
    assert log.last.refetched == ()


def test_what_was_read_again_in_the_kept_part_is_not_lost(log: Log) -> None:
    log.read("a.py", "one")
    cut = log.user()
    log.read("a.py", "two")
    log.entries.append(CompactionCommitted(1, "threshold", cut, Summary(()), "m", 9, 3, 900, 90, 1.0))
    log.read("a.py", "three")
    assert log.last == FetchReport(1, 1)


def test_each_compaction_has_its_own_report(log: Log) -> None:
    log.read("a.py")
    log.compact()
    log.read("a.py")
    log.compact()
    log.read("a.py")
    log.read("b.py")
    assert [(r.cycle, r.fetches, len(r.refetched)) for r in fetch_reports(log.entries)] == [
        (0, 1, 0),
        (1, 1, 1),
        (2, 2, 1),
    ]


def test_after_an_undo_nothing_is_lost(log: Log) -> None:
    log.read("a.py", "one")
    log.compact()
    log.entries.append(CompactionUndone(1))
    log.read("a.py", "other")
    assert [(r.cycle, r.fetches, len(r.refetched)) for r in fetch_reports(log.entries)] == [(0, 2, 0), (1, 0, 0)]


# Regret


def test_reading_what_stands_in_view_unchanged_is_regretted(log: Log) -> None:
    """Case 73: nine reads of one file."""
    first = log.read("a.py", "the same text")
    log.read("a.py", "the same text")
    assert log.last.regretted == (Refetch("a.py", "c3", "t3", first),)


def test_a_part_of_what_stands_in_view_is_regretted_too(log: Log) -> None:
    text = "\n".join(f"{n:>5}→line {n}" for n in range(1, 40))
    log.read("a.py", text)
    log.read("a.py", "\n".join(text.splitlines()[4:20]), offset=5, limit=16)
    assert len(log.last.regretted) == 1


def test_a_changed_file_is_not_regretted(log: Log) -> None:
    log.read("a.py", "one")
    log.read("a.py", "two")
    assert log.last.regretted == ()


def test_an_omitted_output_is_not_in_view(log: Log) -> None:
    """Case 72: reading again what became a marker is no regret."""
    first = log.read("a.py", "the same text")
    log.entries.append(OutputsOmitted(2, (OmissionRef(first, -1, "omitted-001", 700),)))
    log.read("a.py", "the same text")
    assert log.last == FetchReport(0, 2)


def test_reading_back_an_output_that_still_stands_whole_is_regretted(log: Log) -> None:
    first = log.read("a.py", "the same text")
    log.entries.append(OutputStored(OmissionRef(first, -1, "omitted-001", 700)))
    log.call("ReadOmittedContent", "the same text", content_id="omitted-001")
    assert [r.first_id for r in log.last.regretted] == [first]


def test_reading_back_an_output_that_was_compacted_away_is_a_refetch(log: Log) -> None:
    """P20: ReadOmittedContent of something the removed span had fetched."""
    first = log.read("a.py", "the same text")
    log.entries.append(OutputsOmitted(2, (OmissionRef(first, -1, "omitted-001", 700),)))
    log.compact()
    log.call("ReadOmittedContent", "the same text", content_id="omitted-001")
    log.call("ReadOmittedContent", "unknown", content_id="../etc")
    assert log.last == FetchReport(1, 1, (Refetch("omitted-001", "c4", "t4", first),))


def test_agents_without_tool_calls_fetch_by_fenced_commands(log: Log) -> None:
    def run(n: int) -> None:
        log.say(Message(f"x{n}", "assistant", "Look:\n```bash\ncat src/a.py\n```", origin="model"))
        log.say(Message(f"y{n}", "user", "<returncode>0</returncode>\n<output>\ntext\n</output>"))

    run(1)
    log.compact()
    run(2)
    assert [r.what for r in log.last.refetched] == ["src/a.py"]


def test_a_message_written_twice_counts_once(log: Log) -> None:
    log.read("a.py")
    log.entries += log.entries[-2:]
    assert log.last == FetchReport(0, 1)
