"""Hypothesis strategies: conversations as they really come, and as they never should.

`logs()` draws whole entry logs (turns, tool rounds, aborted calls, omissions, several compactions, undo);
`any_messages()` draws sequences of messages without any order in them, for repairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from marextui.context.cut import cut_candidates
from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    NoticeLogged,
    OmissionRef,
    OutputsOmitted,
    Summary,
    SummaryItem,
    SummarySection,
    TurnClosed,
    TurnOpened,
    UsageMeasured,
)
from marextui.context.fold import Conversation
from marextui.context.messages import ImagePart, Message, OtherPart, Part, TextPart, ToolCall

TEXTS = st.sampled_from(
    [
        "",
        "  \n",
        "fix the build",
        "直す：ビルドが壊れている",
        "été\u00a0🙂",
        "a\n\nb",
        "[omitted? no]",
        "x" * 700,
        "<context>",
    ]
)
SOLID_TEXTS = TEXTS.filter(lambda t: bool(t.strip()))
ARGUMENTS = st.sampled_from(['{"path":"a.py"}', "{}", "", "[1]", '{"broken', '{"cmd":"ls 目录"}'])
PARTS: st.SearchStrategy[tuple[Part, ...]] = st.lists(
    st.one_of(
        TEXTS.map(TextPart),
        st.just(ImagePart("data:image/png;base64,iVBORw0KGgo=")),
        st.just(OtherPart('{"type":"input_audio","input_audio":{"data":"UklGRg=="}}')),
    ),
    max_size=3,
).map(tuple)
CONTENTS = st.one_of(TEXTS, PARTS)


@st.composite
def any_messages(draw: st.DrawFn, *, max_size: int = 14) -> tuple[Message, ...]:
    """Messages of any role in any order; call ids from a small set, so that they clash, repeat and go missing."""
    messages: list[Message] = []
    for n in range(draw(st.integers(0, max_size))):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system"]))
        ids = st.sampled_from(["c1", "c2", "c3", ""])
        if role == "assistant":
            calls = tuple(ToolCall(draw(ids), "Read", draw(ARGUMENTS)) for _ in range(draw(st.integers(0, 3))))
            reasoning = draw(st.sampled_from(["", "let me think"]))
            content = draw(CONTENTS)
            messages.append(Message(f"m{n}", "assistant", content, calls, reasoning=reasoning, origin="model"))
        elif role == "tool":
            messages.append(Message(f"m{n}", "tool", draw(CONTENTS), tool_call_id=draw(ids), origin="tool"))
        elif role == "system":
            messages.append(Message(f"m{n}", "system", draw(CONTENTS), origin="system"))
        else:
            messages.append(Message(f"m{n}", "user", draw(CONTENTS)))
    return tuple(messages)


@dataclass(frozen=True, slots=True)
class Log:
    """A log and, for each of its entries, whether a request is sent right after it."""

    entries: tuple[Entry, ...]
    requests: tuple[bool, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(e.message for e in self.entries if isinstance(e, MessageAdded))


class _Writer:
    """Writes a log as an engine would, with the fold at hand to know what may be cut or omitted."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.entries: list[Entry] = []
        self.requests: list[bool] = []
        self.state = Conversation()
        self.count = 0

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.requests.append(False)
        self.state.apply(entry)

    def say(self, message: Message) -> None:
        self.add(MessageAdded(message))

    def new_id(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def request(self) -> None:
        """A request leaves here; half of the time the provider counts it."""
        self.requests[-1] = True

    def turn(self, number: int, rounds: int, unique_ids: bool) -> None:
        draw = self.draw
        self.add(TurnOpened(number))
        self._omit(number)
        self.say(Message(self.new_id(), "user", draw(CONTENTS), turn=number))
        if draw(st.booleans()):
            self._compact()
        end = draw(st.sampled_from(["done", "done", "silent", "aborted call"]))
        for round_ in range(rounds):
            self.request()
            aborted = end == "aborted call" and round_ == rounds - 1
            self._round(number, round_, aborted=aborted, unique_ids=unique_ids)
            if aborted:
                break
        if end == "done":
            self.request()
            self.say(Message(self.new_id(), "assistant", draw(SOLID_TEXTS), origin="model", turn=number))
            self.add(UsageMeasured(self.state.history()[-1].id, draw(st.integers(1, 9000)), 10, "m"))
        if draw(st.booleans()):
            self.add(NoticeLogged("error", "connection lost"))
        self.add(TurnClosed(number, "done" if end == "done" else "interrupted", None, None, None, 1.0, "m"))

    def _round(self, turn: int, round_: int, *, aborted: bool, unique_ids: bool) -> None:
        """One tool round; when it is aborted its last call gets no result."""
        draw = self.draw
        width = draw(st.integers(1, 3))
        stem = f"t{turn}r{round_}" if unique_ids else "call"
        calls = tuple(ToolCall(f"{stem}-{i}", "Read", draw(ARGUMENTS)) for i in range(width))
        reasoning = draw(st.sampled_from(["", "hmm"]))
        self.say(
            Message(self.new_id(), "assistant", draw(TEXTS), calls, reasoning=reasoning, origin="model", turn=turn)
        )
        answered = list(range(width - 1 if aborted else width))
        if draw(st.booleans()):
            answered.reverse()
        for i in answered:
            content = draw(CONTENTS)
            self.say(Message(self.new_id(), "tool", content, tool_call_id=calls[i].id, origin="tool", turn=turn))

    def _omit(self, turn: int) -> None:
        old = [
            m
            for m in self.state.messages
            if m.role == "tool" and turn - m.turn > 1 and isinstance(m.content, str) and len(m.content) > 600
        ]
        fresh = [m for m in old if (m.id, -1) not in self.state.omitted]
        if fresh:
            base = len(self.state.omitted)
            refs = (OmissionRef(m.id, -1, f"omitted-{base + i:03d}", len(m.text)) for i, m in enumerate(fresh))
            self.add(OutputsOmitted(turn, tuple(refs)))

    def _compact(self) -> None:
        kept = self.state.kept()
        candidates = cut_candidates(kept)
        if not candidates:
            return
        cut = kept[self.draw(st.sampled_from(candidates))].id
        cycle = self.state.cycle + 1
        summary = Summary((SummarySection("Current State", (SummaryItem(f"cycle {cycle} was here"),)),))
        self.add(CompactionCommitted(cycle, "threshold", cut, summary, "m", len(kept), 3, 1000, 100, 0.1))
        if self.draw(st.integers(0, 3)) == 0:
            self.add(CompactionUndone(self.draw(st.integers(1, cycle))))


@st.composite
def logs(draw: st.DrawFn, *, max_turns: int = 7) -> Log:
    """A whole log; call ids are unique in it or repeat in every round, as some servers have it."""
    writer = _Writer(draw)
    unique_ids = draw(st.booleans())
    for number in range(1, draw(st.integers(1, max_turns)) + 1):
        writer.turn(number, draw(st.integers(0, 3)), unique_ids)
    return Log(tuple(writer.entries), tuple(writer.requests))
