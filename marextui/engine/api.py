"""The commands of the engine, as the screen sees them. `engine.engine.Engine` implements it; tests use a fake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from marextui.engine.economy import CacheState, EconomyLine
from marextui.engine.event_values import Gauge, MemoryReport, OmissionInfo, QueuedPrompt, UsageLine
from marextui.engine.events import Event

if TYPE_CHECKING:  # the screen is painted before the engine and what it decides with is loaded
    from marextui.context.breakdown import Breakdown
    from marextui.context.checking import Aftermath
    from marextui.context.compaction_diff import CompactionDiff
    from marextui.context.entries import Record
    from marextui.context.preview import CompactionPreview
    from marextui.context.probes import Check

Answer = Literal["once", "conversation", "deny"]

NEW = ""
LATEST = "latest"
"""Which conversation to open first, besides the id of one."""


class CannotStart(RuntimeError):
    """There can be no engine here: the log cannot be opened, the installation is damaged. The message is for people."""


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model a person can pick; `id` is opaque. `detail` is one line (size, where found)."""

    id: str
    label: str
    detail: str
    kind: Literal["embedded", "gguf", "endpoint"]
    local: bool
    current: bool = False


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A row of the conversation picker; times are seconds since the epoch."""

    id: str
    title: str
    project: str
    created_at: float
    updated_at: float
    messages: int
    turns: int


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Log records in order; `first_seq` is the cursor for the page before; `more` says whether there is one."""

    records: tuple[Record, ...]
    first_seq: int
    more: bool


@dataclass(frozen=True, slots=True)
class SetupReport:
    """What the first-run screen shows: what was found, what is missing and the exact command for it."""

    options: tuple[ModelOption, ...]
    engine_installed: bool
    """The llama.cpp wheel of the extra `local` is importable."""
    weights_installed: bool
    install_command: str
    probed: tuple[tuple[str, str, bool], ...]
    """(server kind, URL, answered) of each loopback address asked."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """`/status` (M22): everything about the context and the model, ready to print."""

    model: str
    server: str
    conversation_id: str
    title: str
    turns: int
    messages: int
    gauge: Gauge
    auto_compress: bool
    last_compaction: str
    last_failure: str
    why_no_compaction: str
    """"" when the next turn over the threshold will compact; else the first condition that fails (M18–M20)."""
    usage: tuple[UsageLine, ...]
    data_path: str
    triggers: tuple[str, ...] = ()
    """When a compaction begins by itself and how far that is, a clause each (P12–P15); () when it never does."""
    aftermaths: tuple[Aftermath, ...] = ()
    """What each compaction kept, and what was fetched again after it (P17, P20), by cycle."""
    economy: tuple[EconomyLine, ...] = ()
    """How things stand with what saves a local engine work, a sentence each (issue 4, section 5)."""
    cache: CacheState = field(default_factory=CacheState)
    """What the server's cache did for the last request, and what it holds now (I7)."""


@dataclass(frozen=True, slots=True)
class ContextReport:
    """`/context` (P18): the next request by category, with the figures of the gauge it belongs to.

    `measured`: (prompt, answer) tokens the server counted for the last request of this very view; None: not counted.
    """

    breakdown: Breakdown
    gauge: Gauge
    measured: tuple[int, int] | None = None


class EngineApi(Protocol):
    """Commands. None of them blocks the loop; all raise nothing a person's action can cause (they emit `Notice`)."""

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` in the event loop for each event, in order; returns the way to stop."""
        ...

    async def start(self) -> None:
        """Open the conversation asked for, emit the first gauge, make the model ready in the background."""
        ...

    async def close(self) -> None:
        """Interrupt what runs, flush the log, end child processes."""
        ...

    @property
    def busy(self) -> bool: ...

    def submit(self, text: str) -> None:
        """Send a user message; queued when busy, never merged or lost."""
        ...

    def edit_queued(self, prompt_id: str, text: str) -> bool:
        """Replace the text of a queued prompt; False when it has already been sent."""
        ...

    def drop_queued(self, prompt_id: str) -> QueuedPrompt | None:
        """Take a prompt out of the queue."""
        ...

    def interrupt(self) -> None:
        """Stop the running turn or compaction; the log stays valid. Idle: nothing. Queued prompts stay queued."""
        ...

    def retry(self) -> None:
        """Try again what failed last: starting the model, or the last step of the turn."""
        ...

    def compact(self, *, offline: bool = False) -> None:
        """`/compact`: force a compaction (M21); queued while a turn runs. `offline`: summarise without the model."""
        ...

    def undo_compaction(self, *, force: bool = False) -> None:
        """`/compact undo`: bring back, byte for byte, the view before the latest compaction in force; queued when busy.

        Announced as `CompactionReverted`. Refused with a `Notice` when there is none, or when the restored view would
        not fit the budget (unless `force`). Works after a restart, and again for the compaction before.
        """
        ...

    def begin_phase(self, name: str) -> None:
        """`/phase NAME`: the phase before ends and is compacted when that is worth it (P14); queued while busy."""
        ...

    async def preview_compaction(self) -> CompactionPreview:
        """`/compact preview`: what `/compact` would do now; sends nothing and changes nothing (case 48)."""
        ...

    async def compaction_diff(self, cycle: int) -> CompactionDiff | None:
        """What the compaction of `cycle` changed, also when it was undone since; None: there is none."""
        ...

    async def context(self) -> ContextReport:
        """`/context`: what the next request is made of, without adding to it (cases 48, 86)."""
        ...

    async def context_check(self) -> tuple[Check, ...]:
        """`/context check`: five computed lines about the compaction in force (P19)."""
        ...

    def probe(self) -> None:
        """`/probe`: ask the model what it still knows of what the compaction in force cut away; queued when busy.

        One request outside the conversation, announced as `ProbesAnswered`; its usage is of the kind "probe".
        """
        ...

    def examine(self, *, agreed: bool = False) -> None:
        """`/doctor`: examine the model's server, announced as `ServerExamined`; refused when busy.

        A hosted server is examined only when the person `agreed`, after having been told how much is sent.
        """
        ...

    def switch_economy(self, on: bool) -> None:
        """`/economy on|off`: what saves a local engine work, on or off for good; queued while busy (L1, L30, L70)."""
        ...

    def answer_permission(self, request_id: str, answer: Answer, reason: str = "") -> None: ...

    async def status(self) -> StatusReport: ...

    async def page(self, before_seq: int | None, limit: int) -> HistoryPage:
        """Up to `limit` records before `before_seq` (None: the end), for the screen's tail-first painting."""
        ...

    async def conversations(self, query: str = "") -> list[ConversationInfo]:
        """Conversations of this project first, newest first; `query` filters by title and text."""
        ...

    async def open_conversation(self, conversation_id: str | None) -> None:
        """Switch; None starts a new one. Interrupts a running turn first."""
        ...

    async def rename(self, title: str) -> None: ...

    async def export(self, path: str, *, fmt: Literal["markdown", "json"] = "markdown", replace: bool = False) -> str:
        """Write the whole conversation to `path` (relative: project); returns the full path.

        Raises OSError; FileExistsError unless `replace` when there is such a file.
        """
        ...

    async def models(self) -> list[ModelOption]: ...

    async def select_model(self, option_id: str) -> None: ...

    async def configure_endpoint(self, base_url: str, api_key: str, model: str) -> str:
        """Check and save an OpenAI-compatible endpoint, then select it. Returns "" or what is wrong."""
        ...

    async def setup(self) -> SetupReport: ...

    async def omissions(self) -> list[OmissionInfo]: ...

    async def read_omission(self, omission_id: str) -> str | None:
        """The stored text for a person to look at; counts as a read. None: purged. Raises OSError."""
        ...

    async def memory(self) -> MemoryReport: ...

    async def clear_memory(self) -> None:
        """Empty MEMORY.md (M37). The screen has asked for confirmation."""
        ...

    async def reload_memory(self) -> None:
        """Re-read MAREX.md and MEMORY.md (after an edit in $EDITOR)."""
        ...

    async def page_text(self, name: str) -> str | None:
        """The text of a page of memory; None: there is none of that name."""
        ...

    async def save_page(self, name: str, text: str) -> str:
        """Make or replace a page. Returns "" or why it was not saved."""
        ...

    async def delete_page(self, name: str) -> str:
        """Take a page away (the screen has asked for confirmation). Returns "" or why it is still there."""
        ...

    async def set_tracker(self, slug: str, value: str, unit: str) -> str:
        """Set a tracker as of today. Returns "" or why it was not set."""
        ...

    async def delete_tracker(self, slug: str) -> str:
        """Take a tracker away (the screen has asked for confirmation). Returns "" or why it is still there."""
        ...

    async def project_files(self) -> tuple[str, ...]:
        """Relative paths for `@` completion, ignored files left out, at most a few thousand."""
        ...

    async def message_text(self, message_id: str) -> str:
        """Raw text of a logged message ("" when unknown), for copy and the viewer."""
        ...
