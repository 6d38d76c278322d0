"""Compactions that are refilled with what they cut away are noticed after three (case 9, I4)."""

from __future__ import annotations

import json

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    Summary,
    TurnOpened,
)
from marextui.context.messages import Message, ToolCall
from marextui.context.omission import marker
from marextui.context.refills import MAX_REFILLS, RefillWatch


class Log:
    """Writes entries into a watch, as an engine would log them."""

    def __init__(self) -> None:
        self.watch = RefillWatch()
        self.entries: list[Entry] = []
        self.cycle = 0

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.watch.take(entry)

    def turn(self, number: int) -> Log:
        self.add(TurnOpened(number))
        return self

    def run(self, name: str, text: str, *, error: bool = False, **args: object) -> Log:
        n = len(self.entries)
        call = ToolCall(f"c{n}", name, json.dumps(args))
        self.add(MessageAdded(Message(f"m{n}", "assistant", "", (call,), origin="model")))
        self.add(
            MessageAdded(Message(f"r{n}", "tool", text, tool_call_id=call.id, name=name, is_error=error, origin="tool"))
        )
        return self

    def read(self, path: str, text: str = "", **args: object) -> Log:
        return self.run("Read", text or f"text of {path}\n" * 40, file_path=path, **args)

    def compact(self, trigger: str = "threshold") -> Log:
        self.cycle += 1
        self.add(CompactionCommitted(self.cycle, trigger, "m0", Summary(()), "model", 9, 3, 900, 90, 0.1))  # type: ignore[arg-type]
        return self

    def again(self, times: int) -> Log:
        for _ in range(times):
            self.read("a.py").read("b.py").compact()
        return self


def test_three_refills_in_a_row_are_in_vain_and_say_what_was_read() -> None:
    log = Log().turn(1).read("a.py").read("b.py").compact()
    for n in range(MAX_REFILLS):
        assert not log.watch.in_vain
        assert log.watch.sentence() == ""
        log.read("a.py").read("b.py")
        assert log.watch.count == n + 1
        if n < MAX_REFILLS - 1:
            log.compact()
    assert log.watch.in_vain
    assert "last 3 compactions" in log.watch.sentence()
    assert "a.py, b.py" in log.watch.sentence()


def test_new_content_ends_it() -> None:
    """The agent goes on to something else: compactions help again."""
    log = Log().read("a.py").read("b.py").compact().again(2).read("a.py").read("b.py")
    assert log.watch.in_vain
    for n in range(4):
        log.read(f"new{n}.py")
    assert not log.watch.in_vain


def test_a_refill_needs_half_of_what_came() -> None:
    log = Log().read("a.py").compact()
    for _ in range(9):
        log.read("a.py").run("Bash", f"line {len(log.entries)}\n" * 200, command="make").compact()
    assert log.watch.count == 0


def test_a_file_that_was_changed_in_between_is_no_repetition() -> None:
    log = Log().read("a.py").compact()
    for n in range(6):
        log.run("Edit", "ok", file_path="a.py", old_string="x", new_string=f"y{n}")
        log.read("a.py", f"version {n}\n" * 60).compact()
    assert log.watch.count == 0


def test_the_same_output_of_any_tool_counts_also_when_it_was_capped() -> None:
    """Tools we do not know; a capped output ends with a marker whose id is another each time."""
    log = Log().run("mcp.fetch", "page\n" * 100, x=1).compact()
    for n in range(3):
        log.run("mcp.fetch", "page\n" * 100 + marker(f"omitted-{n + 1:03d}", 9_000), x=n).compact()
    log.run("mcp.fetch", "page\n" * 100 + marker("omitted-099", 9_000), x=9)
    assert log.watch.in_vain


def test_another_part_of_a_file_is_no_repetition() -> None:
    log = Log().compact()
    for n in range(6):
        log.read("a.py", f"part {n}\n" * 60, offset=100 * n + 1, limit=100).compact()
    assert log.watch.count == 0


def test_failures_and_short_answers_do_not_count() -> None:
    log = (
        Log()
        .run("Read", "no such file " * 30, error=True, file_path="a.py")
        .run("Bash", "ok", command="true")
        .compact()
    )
    for _ in range(5):
        log.run("Read", "no such file " * 30, error=True, file_path="a.py").run("Bash", "ok", command="true").compact()
    assert log.watch.count == 0


def test_a_person_s_compaction_an_undo_and_another_window_begin_anew() -> None:
    looping = lambda: Log().turn(1).read("a.py").read("b.py").compact().again(3).read("a.py").read("b.py")  # noqa: E731
    assert looping().watch.in_vain
    assert not looping().compact("manual").watch.in_vain
    undone = looping()
    undone.add(CompactionUndone(4))
    assert not undone.watch.in_vain
    other = looping()
    other.watch.forget()
    assert not other.watch.in_vain


def test_a_turn_goes_round_in_circles_only_by_what_happened_in_it() -> None:
    log = Log().turn(1).read("a.py").read("b.py").compact().again(2).read("a.py").read("b.py")
    assert log.watch.loops
    log.turn(2)
    assert log.watch.in_vain
    assert not log.watch.loops


def test_it_is_the_same_after_a_restart() -> None:
    log = Log().turn(1).read("a.py").read("b.py").compact().again(2).read("a.py").read("b.py")
    again = RefillWatch()
    for entry in log.entries:
        again.take(entry)
    assert (again.count, again.loops, again.sentence()) == (log.watch.count, log.watch.loops, log.watch.sentence())
