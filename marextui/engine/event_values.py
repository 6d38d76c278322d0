"""The values that events and reports carry: what the gauge shows, stored outputs, memory, a turn's usage, the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # the screen is painted before the deciding is loaded
    from marextui.context.project import Page, Tracker

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
