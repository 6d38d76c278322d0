"""Recorded event streams and small builders that the screen tests share. Ids and times are fixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from marextui.context.entries import CompactionCommitted, Summary, SummaryItem, SummarySection
from marextui.context.messages import Message, ToolCall
from marextui.engine import events as ev
from marextui.engine.event_values import UsageLine
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.ports import FakePorts

ANSWER = """\
The bug is in `parse`: it drops the last line when the file has no newline at its end.

- `split("\\n")` leaves an empty tail
- the loop then stops one line early

```python
def parse(text: str) -> list[str]:
    return text.splitlines()
```

Shall I change it?
"""


@dataclass
class SomeSettings:
    """The settings the screen reads."""

    theme: str = "marex-dark"
    ascii: bool = False
    editor: str = ""
    pager: str = ""
    keys: dict[str, str] = field(default_factory=dict)


def make_app(
    engine: FakeEngine | None = None,
    ports: FakePorts | None = None,
    *,
    keys: dict[str, str] | None = None,
    **more: bool,
) -> MarexApp:
    """An app with fakes all round and no delay between updates."""
    return MarexApp(
        engine or FakeEngine(),
        settings=SomeSettings(keys=keys or {}, **more),
        ports=(ports or FakePorts()).bundle,
        interval=0.0,
    )


def usage(turn: int = 1) -> UsageLine:
    return UsageLine(turn, 1_234, 56, None, "local", 2, 4.5, "Qwen2.5-Coder 1.5B", 12.3)


def streamed(message_id: str, text: str, size: int = 12) -> list[ev.Event]:
    """`text` as the pieces a model sends, then the finished message."""
    pieces: list[ev.Event] = [ev.TextStreamed(message_id, text[i : i + size]) for i in range(0, len(text), size)]
    return [*pieces, ev.MessageAppended(Message(message_id, "assistant", text, origin="model"), 9)]


def tool_turn() -> list[ev.Event]:
    """A user asks, the model reads a file and runs a command, then answers."""
    calls = (
        ToolCall("call-1", "Read", '{"path": "src/parse.py"}'),
        ToolCall("call-2", "Bash", '{"command": "pytest -q"}'),
    )
    output = "\n".join(f"{i:4d}  line {i}" for i in range(1, 121))
    return [
        ev.TurnStarted(1),
        ev.PhaseChanged("preparing"),
        ev.MessageAppended(Message("u-1", "user", "Why does `parse` lose the last line?", turn=1), 1),
        ev.PhaseChanged("streaming"),
        ev.ReasoningStreamed("a-1", "I should look at the file first, then run its tests."),
        ev.MessageAppended(
            Message("a-1", "assistant", "", calls, reasoning="I should look at the file first, then run its tests."), 2
        ),
        ev.PhaseChanged("tools"),
        ev.ToolStarted("call-1", "Read", calls[0].arguments, "Read src/parse.py"),
        ev.ToolFinished("call-1", False, "120 lines", 1_900, 0.02, "om-7f3a"),
        ev.MessageAppended(Message("t-1", "tool", output, tool_call_id="call-1", name="Read", origin="tool"), 3),
        ev.ToolStarted("call-2", "Bash", calls[1].arguments, "Bash pytest -q"),
        ev.ToolOutputStreamed("call-2", "..F\n"),
        ev.ToolFinished("call-2", True, "exit 1", 4, 1.4),
        ev.MessageAppended(
            Message("t-2", "tool", "..F\n1 failed", tool_call_id="call-2", name="Bash", is_error=True, origin="tool"), 4
        ),
        ev.PhaseChanged("streaming"),
        *streamed("a-2", ANSWER),
        ev.TurnFinished(1, "done", usage()),
        ev.PhaseChanged("idle"),
    ]


def compaction(cycle: int = 1) -> CompactionCommitted:
    return CompactionCommitted(
        cycle=cycle,
        trigger="threshold",
        cut="u-9",
        summary=Summary(
            (
                SummarySection("Intent", (SummaryItem("Fix the parser"),)),
                SummarySection("Decisions Made", (SummaryItem("Use splitlines"), SummaryItem("Keep the public name"))),
                SummarySection("Files Modified", (SummaryItem("src/parse.py: splitlines", key="src/parse.py"),)),
                SummarySection("Next Steps", ()),
            )
        ),
        summarizer="Qwen2.5-Coder 1.5B",
        messages_before=48,
        messages_after=9,
        tokens_before=12_340,
        tokens_after=3_210,
        seconds=4.2,
    )


def short_turn(n: int) -> list[ev.Event]:
    """Turn `n`: one question, one short answer, the usage line (3 items)."""
    return [
        ev.MessageAppended(Message(f"u{n}", "user", f"Question {n}?", turn=n), 2 * n),
        ev.MessageAppended(Message(f"a{n}", "assistant", f"Answer {n}, in one paragraph.", origin="model"), 2 * n + 1),
        ev.TurnFinished(n, "done", usage(n)),
    ]


def log_turns(engine: FakeEngine, count: int) -> None:
    """Put `count` turns (two messages each) into the log of `engine`."""
    for n in range(1, count + 1):
        engine.log(
            Message(f"u{n}", "user", f"Question {n}?", turn=n),
            Message(f"a{n}", "assistant", f"Answer {n}, in one paragraph.", origin="model", turn=n),
        )


def play(engine: FakeEngine, events: Iterable[ev.Event]) -> None:
    engine.emit(*events)
