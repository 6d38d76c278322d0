"""What the engine tells the world: frozen facts, named in the past tense, carrying ids and values, never live objects.

A recorded stream of these replays to the same screen. All texts are raw (unsanitised): the screen sanitises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marextui.engine.event_values import Gauge, MemoryReport, OmissionInfo, Phase, QueuedPrompt, UsageLine

if TYPE_CHECKING:  # the screen is painted before the deciding is loaded
    from marextui.context.checking import Graded
    from marextui.context.entries import (
        CompactionChecked,
        CompactionCommitted,
        InputRef,
        OmissionRef,
        ShortenedRef,
        TurnEnd,
        Why,
    )
    from marextui.context.messages import Message
    from marextui.engine.economy import CacheState


@dataclass(frozen=True, slots=True)
class ContextUpdatePlaced:
    """At the head of the message `message_id` the model is told what changed in the project; `words` say it briefly."""

    turn: int
    message_id: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class ProjectCopied:
    """A dated copy of the project context, of about `tokens`, is sent from now on. `anew`: it replaces an earlier copy
    and the updates behind it, because of `why`."""

    turn: int
    why: str
    tokens: int
    anew: bool


@dataclass(frozen=True, slots=True)
class ConversationOpened:
    """This conversation is now shown; the screen pages its history with `EngineApi.page`."""

    conversation_id: str
    title: str
    resumed: bool
    records: int


@dataclass(frozen=True, slots=True)
class ConversationRenamed:
    conversation_id: str
    title: str


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """A model is being made ready; `done` of `total` bytes, 0 of 0 when unknown."""

    label: str
    stage: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class ModelReady:
    label: str
    local: bool
    supports_tools: bool
    window: int | None
    window_source: str


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """The model could not be started or died. `retry` says whether `EngineApi.retry` makes sense."""

    label: str
    message: str
    hint: str
    retry: bool = True


@dataclass(frozen=True, slots=True)
class ModelNeeded:
    """Nothing is configured, installed or running: show the first-run screen."""


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """What the engine is doing, for the status word beside the composer."""

    phase: Phase
    detail: str = ""


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The whole queue, oldest first."""

    items: tuple[QueuedPrompt, ...]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn: int


@dataclass(frozen=True, slots=True)
class MessageAppended:
    """A message entered the log (user prompt, finished assistant message, tool result). `seq` is its log position."""

    message: Message
    seq: int


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model call begins: `step` is 1-based in the turn; figures are of this very request (M2), in tokens."""

    turn: int
    step: int
    used: int
    budget: int | None
    threshold: int | None
    estimated: bool
    view_messages: int


@dataclass(frozen=True, slots=True)
class StepRefused:
    """A step was not sent because it cannot fit; `reason` names the biggest contributors.

    `floor` lists what no reduction can take away, the largest first: (what, tokens; bytes when the limit is one).
    """

    turn: int
    step: int
    used: int
    budget: int
    reason: str
    floor: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PromptProcessed:
    """Prompt processing on a local engine, in tokens (`done` includes `cached`).

    `seconds` the server has worked on it, by its own clock; None: it does not say.
    """

    total: int
    cached: int
    done: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TextStreamed:
    """Text of the assistant message `message_id` (not in the log yet)."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStreamed:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class StreamDropped:
    """The unfinished assistant message `message_id` never enters the log: no text came, reasoning may have."""

    message_id: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call_id: str
    name: str
    arguments: str
    title: str
    """One line for the card: "Read src/app.py", "Bash ls -la"."""


@dataclass(frozen=True, slots=True)
class ToolOutputStreamed:
    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call ended. `summary` one short line; `chars` of the raw output; `omission_id` when it was stored, else ""."""

    call_id: str
    is_error: bool
    summary: str
    chars: int
    seconds: float
    omission_id: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    request_id: str
    call_id: str
    tool: str
    kind: Literal["edit", "write", "bash", "outside", "memory"]
    title: str
    detail: str
    scope: str
    diff: str


@dataclass(frozen=True, slots=True)
class PermissionSettled:
    """Answered, or withdrawn (interrupt): the dock closes."""

    request_id: str
    answer: Literal["once", "conversation", "deny", "withdrawn"]


@dataclass(frozen=True, slots=True)
class GaugeChanged:
    gauge: Gauge


@dataclass(frozen=True, slots=True)
class CacheChanged:
    """What the server's cache did for the last request, or what it holds now, is another (I7)."""

    cache: CacheState


@dataclass(frozen=True, slots=True)
class OmissionStored:
    info: OmissionInfo


@dataclass(frozen=True, slots=True)
class OmissionRead:
    """An omission was read back (by the model or a person); `reads` is the new count."""

    id: str
    reads: int


@dataclass(frozen=True, slots=True)
class OutputsReplaced:
    """These outputs became markers in the view: the prefix changes from the first of them on (`why`: as logged)."""

    turn: int
    refs: tuple[OmissionRef, ...]
    tokens_freed: int
    why: Why = "age"


@dataclass(frozen=True, slots=True)
class ViewReduced:
    """Inputs of calls or long texts became markers, or old reasoning is no longer sent: a rewrite of the view (I7).

    `refs` say what left and which omissions hold it, in order; none for reasoning, which stays in the log.
    """

    turn: int
    kind: Literal["inputs", "texts", "reasoning"]
    refs: tuple[InputRef | ShortenedRef, ...]
    tokens_freed: int


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    cycle: int
    trigger: str
    cut: str
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    entry: CompactionCommitted


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    """Nothing changed. `reason` is for people; `skipped` when no request was sent at all (M10)."""

    trigger: str
    reason: str
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class CompactionReverted:
    """The compaction of `cycle` was undone: tokens of the view before and after that, messages of the restored one."""

    cycle: int
    tokens_before: int
    tokens_after: int
    messages: int


@dataclass(frozen=True, slots=True)
class CompactionProbed:
    """A committed compaction was checked, without a model (P17)."""

    entry: CompactionChecked


@dataclass(frozen=True, slots=True)
class ProbesAnswered:
    """`/probe`: the model's answers about what the compaction of `cycle` cut away, graded by containment."""

    cycle: int
    graded: tuple[Graded, ...]


@dataclass(frozen=True, slots=True)
class ServerExamined:
    """`/doctor`: what was found, as lines for people; nothing of it comes from the server unsanitised."""

    text: str


@dataclass(frozen=True, slots=True)
class MemoryChanged:
    report: MemoryReport


PrewarmState = Literal["idle", "warming", "ready", "refused"]


@dataclass(frozen=True, slots=True)
class PrewarmChanged:
    """Where the computing of the next turn's prompt stands (only with the key): `why` is part of a sentence.

    "ready": the server holds it; it computed `computed` tokens and had `cached` (None: not told). "idle": nothing is
    computed ahead, or what was is used up. "refused": nothing is computed now, for the reason in `why`.
    """

    state: PrewarmState
    why: str = ""
    computed: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: int
    end: TurnEnd
    usage: UsageLine


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell people: what happened, what it means, what to do. `action` names a follow-up ("retry")."""

    level: Literal["info", "warning", "error"]
    text: str
    hint: str = ""
    action: Literal["", "retry", "compact"] = ""


Event = (
    ConversationOpened
    | ConversationRenamed
    | ModelLoading
    | ModelReady
    | ModelFailed
    | ModelNeeded
    | PhaseChanged
    | QueueChanged
    | TurnStarted
    | MessageAppended
    | StepStarted
    | StepRefused
    | PromptProcessed
    | TextStreamed
    | ReasoningStreamed
    | StreamDropped
    | ToolStarted
    | ToolOutputStreamed
    | ToolFinished
    | PermissionAsked
    | PermissionSettled
    | GaugeChanged
    | CacheChanged
    | OmissionStored
    | OmissionRead
    | OutputsReplaced
    | ViewReduced
    | CompactionStarted
    | CompactionFinished
    | CompactionFailed
    | CompactionReverted
    | CompactionProbed
    | ProbesAnswered
    | ServerExamined
    | MemoryChanged
    | ContextUpdatePlaced
    | ProjectCopied
    | PrewarmChanged
    | TurnFinished
    | Notice
)
