"""What the engine tells the world: frozen facts, named in the past tense, carrying ids and values, never live objects.

A recorded stream of these replays to the same screen. All texts are raw (unsanitised): the screen sanitises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
    from marextui.context.project import Page, Tracker
    from marextui.engine.economy import CacheState

Phase = Literal[
    "starting",
    "idle",
    "loading",
    "preparing",
    "connecting",
    "prompt",
    "streaming",
    "tools",
    "permission",
    "compacting",
    "probing",
    "examining",
    "interrupting",
]


@dataclass(frozen=True, slots=True)
class Gauge:
    """The context, in tokens. Segments: `system`, `tools`, `memory`, `project` make the system part S; `summary`,
    `conversation` and `outputs` make the history H (= `used`). The budget is window − reserve − S; `threshold` is where
    compaction triggers (ceil of compact_at × budget). None: the window is unknown, nothing is guessed (M4).
    """

    system: int = 0
    tools: int = 0
    memory: int = 0
    summary: int = 0
    conversation: int = 0
    outputs: int = 0
    window: int | None = None
    window_source: str = "unknown"
    reserve: int = 0
    budget: int | None = None
    threshold: int | None = None
    compact_at: float = 0.65
    estimated: bool = True
    auto: bool = True
    why_not: str = ""
    """Why nothing will be compacted automatically, "" when it will."""
    tokens_per_turn: int | None = None
    """Growth of H over the recent turns (mean), None before there is a rate."""
    project: int = 0
    loading: bool = False
    """The window is not known yet: the model that has it is being made ready."""

    @property
    def used(self) -> int:
        """H: history tokens (summary + conversation + tool outputs)."""
        return self.summary + self.conversation + self.outputs

    @property
    def system_part(self) -> int:
        """S: everything sent before the history, tool schemas included (B2)."""
        return self.system + self.tools + self.memory + self.project

    @property
    def until_compaction(self) -> int | None:
        """Tokens left before the threshold is reached; None when unknown."""
        return None if self.threshold is None else max(0, self.threshold - self.used)

    @property
    def turns_until_compaction(self) -> int | None:
        """Whole turns left at the recent rate; None without a rate or a threshold."""
        left = self.until_compaction
        if left is None or not self.tokens_per_turn or self.tokens_per_turn <= 0:
            return None
        return left // self.tokens_per_turn


@dataclass(frozen=True, slots=True)
class OmissionInfo:
    """One stored tool output; `created_at` seconds since the epoch, `days_left` None: for ever, `chars` original."""

    id: str
    tool: str
    what: str
    """What was asked: a path, a command, a pattern."""
    chars: int
    stored_chars: int
    created_at: float
    days_left: float | None
    reads: int
    preview: str
    conversation_id: str
    message_id: str = ""
    in_view: bool = False
    """True while the full output still stands in the view (not yet replaced by its marker)."""


@dataclass(frozen=True, slots=True)
class MemoryEntryInfo:
    """One dated entry of MEMORY.md. `date` ISO, `facts` in order."""

    date: str
    conversation_id: str
    cycle: int
    facts: tuple[str, ...]


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
class MemoryReport:
    """What memory holds and what of it is injected now. Sizes in bytes for files, characters for the excerpt (M36)."""

    rules_path: str
    rules: str
    rules_truncated: bool
    memory_path: str
    memory_bytes: int
    entries: tuple[MemoryEntryInfo, ...]
    injected: str
    injected_limit: int
    omissions: int
    omissions_bytes: int
    oldest_omission_at: float | None
    days_to_purge: float | None
    retention_days: int
    pages: tuple[Page, ...] = ()
    trackers: tuple[Tracker, ...] = ()
    project: str = ""
    """The project block as the next request sends it (L51)."""
    project_limit: int = 0
    """Most characters of that block."""


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The per-turn line (M38). Tokens as the provider reported them; None is shown as "?". `cost` is text."""

    turn: int
    inp: int | None
    out: int | None
    cache_read: int | None
    cost: str
    steps: int
    seconds: float
    model: str
    tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class QueuedPrompt:
    """A message typed while the engine was busy."""

    id: str
    text: str


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
