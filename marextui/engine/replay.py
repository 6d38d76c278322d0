"""`marextui replay`: what the engine would do with a recorded conversation, without a model."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from marextui.context.ask import Question, grade
from marextui.context.entries import TurnClosed
from marextui.context.messages import Message, TextPart
from marextui.context.recording import Recording
from marextui.context.running import extends
from marextui.context.shapes import Shape, shape_violations, to_shape, write_shape
from marextui.context.strategy_names import StrategyName
from marextui.context.tokens import CountText
from marextui.context.triggers import THRESHOLD, Trigger
from marextui.context.validate import Check
from marextui.engine.build import Parts, assemble
from marextui.engine.engine import Engine
from marextui.engine.event_values import OmissionInfo
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    Event,
    MessageAppended,
    Notice,
    OmissionStored,
    StepRefused,
    TurnFinished,
)
from marextui.engine.meter import Reading
from marextui.engine.policy import Policy
from marextui.engine.ports import CountingIds, SystemClock
from marextui.engine.recorded import (
    RecordedConnection,
    RecordedHub,
    RecordedModel,
    RecordedTools,
    Tape,
    Turn,
    content_of,
    split_turns,
    thinking_parts,
)
from marextui.engine.setup import Setup
from marextui.models.types import ChatModel
from marextui.store.log import LogStore
from marextui.store.memory import MemoryStore
from marextui.store.omissions import OmissionStore
from marextui.tools.omitted import ReadOmittedContent
from marextui.tools.recall import Recall


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """`window` and `reserve` in tokens (None: unknown window; M1's reserve); `compact_at` a share of the budget.

    `shape` is the provider's form the last view is written in and checked against; None: as it was sent.
    """

    window: int | None = None
    reserve: int | None = None
    compact_at: float = 0.65
    strategy: StrategyName = "anchored"
    trigger: Trigger = THRESHOLD
    questions: tuple[Question, ...] = ()
    shape: Shape | None = None


@dataclass(slots=True)
class ReplayOutcome:
    """`report` as written by `--report` (JSON), `view` the last view, one object a line: as sent, or in a shape."""

    report: dict[str, Any]
    view: list[Mapping[str, Any]]


class _TitlesOfRecording:
    """A recorded call is described by its own words."""

    def title(self, name: str, arguments: str) -> str:
        return name

    def subject(self, name: str, arguments: str) -> str:
        return arguments[:200]


@dataclass(slots=True)
class _Report:
    """Listens to the engine and writes down what happened."""

    tape: Tape
    steps: list[dict[str, Any]] = field(default_factory=list)
    compactions: list[dict[str, Any]] = field(default_factory=list)
    stored: list[OmissionInfo] = field(default_factory=list)
    folded: dict[str, str] = field(default_factory=dict)
    """Where the items are stored that had no room in the summary, by its message."""
    notes: list[str] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    position: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Message] = field(default_factory=dict)
    """The recorded answer each assistant message of the log came from."""
    view: tuple[Mapping[str, Any], ...] = ()
    history: tuple[Message, ...] = ()
    final_reply: Message | None = None
    turn_over: asyncio.Event = field(default_factory=asyncio.Event)
    _check: Check = field(default_factory=lambda: Check(with_system=False))

    def seen(self, wire: tuple[Mapping[str, Any], ...], history: tuple[Message, ...], reading: Reading) -> None:
        valid = self._valid(history)
        self.view, self.history = wire, history
        self.final_reply = None
        self.steps.append(
            {
                "step": len(self.steps) + 1,
                "used": reading.used,
                "budget": reading.budget,
                "threshold": reading.threshold,
                "estimated": reading.estimated,
                "view_messages": len(wire),
                "view_valid": valid,
                "refused": None,
            }
        )

    def _valid(self, history: tuple[Message, ...]) -> bool:
        """Whether the view breaks no rule; of one that has grown, only the new messages are looked at."""
        if not extends(history, self.history):
            self._check, self.history = Check(with_system=False), ()
        for message in history[len(self.history) :]:
            self._check.feed(message)
        return not self._check.found and not self._check.unanswered()

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def hear(self, event: Event) -> None:
        match event:
            case MessageAppended(message, _):
                self.position[message.id] = self.tape.now_at
                if message.role == "assistant":
                    self.final_reply = message
                    if self.tape.current is not None:
                        self.answers[message.id] = self.tape.current.assistant
            case StepRefused(_, _, _, _, reason):
                self.steps[-1]["refused"] = reason
            case CompactionFinished(entry):
                self.compactions.append(
                    {
                        "cycle": entry.cycle,
                        "trigger": entry.trigger,
                        "cut": self.position.get(entry.cut, -1),
                        "messages_before": entry.messages_before,
                        "messages_after": entry.messages_after,
                        "tokens_before": entry.tokens_before,
                        "tokens_after": entry.tokens_after,
                        "seconds": entry.seconds,
                        "summarizer": entry.summarizer,
                        "sections": {s.title: len(s.items) for s in entry.summary.sections},
                        "folded": self.folded.pop(f"summary-{entry.cycle}", ""),
                    }
                )
            case CompactionFailed(trigger, reason, skipped):
                what = "not done" if skipped else "failed"
                if reason not in self.reasons:  # the same reason at twenty steps is one thing to know
                    self.reasons.add(reason)
                    self.note(f"from step {len(self.steps) + 1}: compaction ({trigger}) {what}: {reason}")
            case OmissionStored(info) if info.message_id.startswith("summary-"):
                self.folded[info.message_id] = info.id
            case OmissionStored(info):
                self.stored.append(info)
            case Notice(level, text, _, _) if level == "error":
                self.note(f"step {len(self.steps)}: {text}")
            case TurnFinished():
                self.turn_over.set()
            case _:
                pass


async def replay(
    recording: Recording,
    options: ReplayOptions,
    *,
    count: CountText,
    summarizer: ChatModel | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ReplayOutcome:
    """Feed `recording` through the real engine. `summarizer` None: the offline summariser, no model at all.

    `progress` hears, after each turn, how many are done and how many there are.
    """
    system, turns, notes = split_turns(recording.messages)
    tape = Tape()
    policy = Policy(
        compact_at=options.compact_at,
        reserve_override=options.reserve,
        window_override=options.window,
        max_tool_rounds=1_000_000,
        strategy=options.strategy,
        trigger=options.trigger,
        offline_summaries=summarizer is None,
        on_refused="play_on",
        base_prompt=system,
        check_compactions=False,
    )
    with tempfile.TemporaryDirectory(prefix="marextui-replay-") as folder:
        engine = await _engine(Path(folder), tape, policy, count, summarizer)
        report = _Report(tape, notes=[*recording.notes, *notes])
        engine.subscribe(report.hear)
        engine.state.on_view = lambda wire, reading: report.seen(wire, engine.session.history(), reading)
        await engine.start(connect=False)
        engine.state.settle_window(None)
        try:
            for done, turn in enumerate(turns, 1):
                await _play(engine, report, turn)
                progress(done, len(turns))
            return await _outcome(engine, report, recording, options)
        finally:
            await engine.close()


async def _engine(folder: Path, tape: Tape, policy: Policy, count: CountText, summarizer: ChatModel | None) -> Engine:
    clock = SystemClock()
    memory = MemoryStore(folder / "memory", folder / "project")
    omissions = OmissionStore(folder / "omissions", clock.now)
    parts = Parts(
        hub=RecordedHub(RecordedConnection(RecordedModel(tape, summarizer))),
        log=await LogStore.open(":memory:", outputs=omissions),
        omissions=omissions,
        memory=_Forgetful(memory),
        journal=None,
        box=RecordedTools(tape, (ReadOmittedContent().spec, Recall().spec)),
        titles=_TitlesOfRecording(),
        count=count,
        clock=clock,
        ids=CountingIds(),
    )
    setup = Setup(None, folder, folder / "config.toml")
    return assemble(parts, policy, project="replay", root=folder, setup=setup, show_project=False)


class _Forgetful(MemoryStore):
    """A replay must not feed its own system part: its views would then differ from the recording's for that alone."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner.memory_path.parent, inner.rules_path.parent)

    async def read(self) -> str:
        return ""


async def _play(engine: Engine, report: _Report, turn: Turn) -> None:
    report.turn_over.clear()
    report.tape.load(turn)
    engine.submit_content(content_of(turn.user))
    await report.turn_over.wait()
    closed = engine.session.conversation.turns[-1]
    if _failed(closed):
        report.note(f"turn {closed.turn} ended with {closed.end}: {closed.note}")


def _failed(closed: TurnClosed) -> bool:
    return closed.end in ("error", "refused")


async def _outcome(engine: Engine, report: _Report, recording: Recording, options: ReplayOptions) -> ReplayOutcome:
    conversation = engine.session.conversation
    omitted = conversation.replaced_ids()
    omissions = [
        {
            "id": info.id,
            "message": report.position.get(info.message_id, -1),
            "chars": info.chars,
            "preview": info.preview,
            "in_view": info.id not in omitted,
        }
        for info in report.stored
    ]
    refused = sum(1 for s in report.steps if s["refused"] is not None)
    answers = []
    if options.questions:
        answers = await _answers(engine, options.questions)
    totals = {
        "recorded_messages": len(recording.messages),
        "turns": conversation.turn,
        "steps": len(report.steps),
        "refused": refused,
        "invalid_views": sum(1 for s in report.steps if not s["view_valid"]),
        "compactions": len(report.compactions),
        "omissions": len(omissions),
        "tokens_counted": engine.session.ledger.counted,
        "final_used": report.steps[-1]["used"] if report.steps else 0,
        "window": options.window,
        "reserve": engine.state.meter.reserve(),
        "in_view": sum(1 for a in answers if a["in_view"]),
        "reachable": sum(1 for a in answers if a["reachable"]),
    }
    view: list[Mapping[str, Any]] = list(report.view)
    shaped: dict[str, Any] = {}
    if options.shape is not None:
        view, shaped = _in_shape(report, options.shape)
    return ReplayOutcome(
        report={
            "steps": report.steps,
            "compactions": report.compactions,
            "omissions": omissions,
            "answers": answers,
            "notes": report.notes,
            "totals": totals,
            **shaped,
        },
        view=view,
    )


def _in_shape(report: _Report, shape: Shape) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """The last view as lines of `shape`, and what that provider would refuse of it (I1)."""
    system = report.view[0].get("content", "") if report.view and report.view[0].get("role") == "system" else ""
    lead = (Message("system", "system", system, origin="system"),) if isinstance(system, str) and system else ()
    messages = (*lead, *(_as_recorded(m, report.answers.get(m.id)) for m in report.history))
    found = shape_violations(to_shape(messages, shape), shape)
    lines: list[Mapping[str, Any]] = [*write_shape(messages, shape)]
    return lines, {"shape": {"name": shape, "lines": len(lines), "violations": list(found)}}


def _as_recorded(message: Message, recorded: Message | None) -> Message:
    """`message` with the signed thinking of its recording put back, as long as the view still sends its reasoning."""
    thinking = thinking_parts(recorded) if recorded is not None else ()
    if recorded is None or not thinking or (recorded.reasoning and not message.reasoning):
        return message
    said = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    return replace(message, content=(*thinking, *said))


async def _answers(engine: Engine, questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Which questions the last view (and the answer to it) still answers, and which one use of Recall answers."""
    view = [*engine.session.history()]
    recaller = engine.state.runner.recaller
    found = [[(h.message_id, h.text) for h in await recaller.search(q.question)] if recaller else [] for q in questions]
    graded = await asyncio.to_thread(grade, questions, view, found)
    return [{"question": a.question, "in_view": a.in_view, "reachable": a.reachable, "where": a.where} for a in graded]
