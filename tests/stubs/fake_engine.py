"""A scriptable `EngineApi` for screen tests: it records commands, says what it is told to say, and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from marextui.context.breakdown import Breakdown, Share
from marextui.context.compaction_diff import CompactionDiff
from marextui.context.entries import Entry, MessageAdded, Record
from marextui.context.fates import FateRow
from marextui.context.messages import Message
from marextui.context.preview import CompactionPreview
from marextui.context.probes import Check
from marextui.context.project import Tracker, page_of
from marextui.engine.api import (
    Answer,
    ContextReport,
    ConversationInfo,
    HistoryPage,
    ModelOption,
    SetupReport,
    StatusReport,
)
from marextui.engine.event_values import Gauge, MemoryReport, OmissionInfo, QueuedPrompt
from marextui.engine.events import (
    ConversationOpened,
    ConversationRenamed,
    Event,
    GaugeChanged,
    MemoryChanged,
    ModelReady,
    OmissionRead,
    QueueChanged,
)

GAUGE = Gauge(
    system=812,
    tools=1_403,
    memory=210,
    summary=0,
    conversation=1_220,
    outputs=640,
    window=8_192,
    window_source="server /props",
    reserve=1_024,
    budget=4_743,
    threshold=3_083,
    estimated=True,
    tokens_per_turn=310,
)
MEMORY = MemoryReport(
    rules_path="MAREX.md",
    rules="",
    rules_truncated=False,
    memory_path=".marex/MEMORY.md",
    memory_bytes=0,
    entries=(),
    injected="",
    injected_limit=2_000,
    omissions=0,
    omissions_bytes=0,
    oldest_omission_at=None,
    days_to_purge=None,
    retention_days=7,
)
MODELS = (
    ModelOption("embedded:1.5b", "Qwen2.5-Coder 1.5B", "embedded, 1.1 GB", "embedded", local=True, current=True),
    ModelOption("gguf:/models/tiny.gguf", "tiny.gguf", "on disk, 12 MB", "gguf", local=True),
    ModelOption("endpoint:one", "gpt-oss-20b", "http://127.0.0.1:8080/v1", "endpoint", local=True),
)
PREVIEW = CompactionPreview(
    cycle=2,
    rows=(
        FateRow(
            "summary-1", "user", "[Earlier conversation summary] ## Session Intent - Fix the parser", 310, "superseded"
        ),
        FateRow("u-5", "user", "Why does `parse` lose the last line?", 14, "condensed"),
        FateRow("a-5", "assistant", 'calls Read {"path": "src/parse.py"}', 22, "condensed"),
        FateRow("t-5", "tool", "Read: 1 def parse(text): 2     lines = text.split", 1_900, "omitted", "omitted-003"),
        FateRow("a-6", "assistant", "The bug is in `parse`: it drops the last line.", 160, "condensed"),
        FateRow("u-9", "user", "Please change it and run the tests.", 12, "kept"),
        FateRow("a-9", "assistant", 'calls Edit {"path": "src/parse.py"}', 140, "kept"),
    ),
    cut="u-9",
    tokens_now=2_558,
    tokens_after=852,
    summary_cap=700,
    messages_now=8,
    messages_after=4,
    triggers=(
        "from 9 turns in view on (now 3), when that makes room; 6 stay",
        "at the latest at 65% of the budget (now 43% of the budget)",
    ),
)
CHECKS = (
    Check("Trigger", True, "compacts at 62.1% of the window (at most 80%)"),
    Check("Sections", True, "all 5 sections are there"),
    Check("Merged incrementally", True, "the first summary"),
    Check("Probes", False, "38/40 in view, 1 by recall, 1 lost, such as `config/redis.yml`"),
    Check("Re-fetches", True, "0% of what was read since had been read before (at most 20%)"),
)
CONTEXT = ContextReport(
    Breakdown(
        (
            Share("system", "", 812, 1),
            Share("memory", "", 210, 1),
            *(Share("tools", name, 160 + 40 * n, 1) for n, name in enumerate(("Bash", "Edit", "Glob", "Grep", "LS"))),
            Share("tools", "Read", 123, 1),
            Share("tools", "Write", 80, 1),
            Share("user", "", 420, 3),
            Share("assistant", "", 610, 2),
            Share("calls", "", 130, 2),
            Share("outputs", "Read", 500, 1),
            Share("outputs", "Bash", 140, 1),
        ),
        system_part=2_425,
        used=1_860,
    ),
    GAUGE,
    measured=(4_100, 185),
)


@dataclass
class FakeEngine:
    """Scriptable engine. `commands` holds (name, arguments…) of each command in order; `emit` plays an event.

    Set the public fields before or during a test: `records` is the log that `page` serves, `files` what `@`
    completes, `texts` what `read_omission` returns by id. With `opens=True` (the default) `start` opens the
    conversation, emits the gauge, the memory report and a ready model, as the real engine does.
    """

    records: list[Record] = field(default_factory=list)
    gauge: Gauge = GAUGE
    memory_report: MemoryReport = MEMORY
    model_options: list[ModelOption] = field(default_factory=lambda: list(MODELS))
    conversation_rows: list[ConversationInfo] = field(default_factory=list)
    omission_rows: list[OmissionInfo] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    page_texts: dict[str, str] = field(default_factory=dict)
    refusal: str = ""
    """What every change of a page or tracker answers; "": it is made."""
    files: tuple[str, ...] = ("README.md", "src/app.py", "src/app_test.py", "docs/guide.md")
    setup_report: SetupReport = field(
        default_factory=lambda: SetupReport(
            options=MODELS[1:2],
            engine_installed=False,
            weights_installed=False,
            install_command="pip install 'marextui[local]'",
            probed=(("llama.cpp", "http://127.0.0.1:8080", False), ("Ollama", "http://127.0.0.1:11434", True)),
        )
    )
    status_report: StatusReport | None = None
    preview: CompactionPreview = PREVIEW
    context_report: ContextReport = CONTEXT
    diffs: dict[int, CompactionDiff] = field(default_factory=dict)
    endpoint_problem: str = ""
    export_error: OSError | None = None
    opens: bool = True
    busy: bool = False
    conversation_id: str = "c-1"
    title: str = "A conversation"
    commands: list[tuple[object, ...]] = field(default_factory=list)
    queue: list[QueuedPrompt] = field(default_factory=list)
    _listeners: list[Callable[[Event], None]] = field(default_factory=list)
    _ids: int = 0

    # --- the test's side -------------------------------------------------------------------------------------------
    def emit(self, *events: Event) -> None:
        """Deliver `events`, in order, to every listener."""
        for event in events:
            for listener in tuple(self._listeners):
                listener(event)

    def log(self, *entries: Entry | Message, at: float = 1_700_000_000.0) -> None:
        """Append entries (messages are wrapped) to the log that `page` serves; no event is emitted."""
        for entry in entries:
            value: Entry = MessageAdded(entry) if isinstance(entry, Message) else entry
            self.records.append(Record(len(self.records) + 1, at, value))

    def said(self, name: str) -> list[tuple[object, ...]]:
        """Arguments of every recorded command `name`, oldest first."""
        return [c[1:] for c in self.commands if c[0] == name]

    # --- EngineApi -------------------------------------------------------------------------------------------------
    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def start(self) -> None:
        self.commands.append(("start",))
        if self.opens:
            self.emit(
                ConversationOpened(self.conversation_id, self.title, bool(self.records), len(self.records)),
                GaugeChanged(self.gauge),
                MemoryChanged(self.memory_report),
                ModelReady("Qwen2.5-Coder 1.5B", True, True, self.gauge.window, self.gauge.window_source),
            )

    async def close(self) -> None:
        self.commands.append(("close",))

    def submit(self, text: str) -> None:
        self.commands.append(("submit", text))
        if self.busy:
            self._ids += 1
            self.queue.append(QueuedPrompt(f"q{self._ids}", text))
            self.emit(QueueChanged(tuple(self.queue)))

    def edit_queued(self, prompt_id: str, text: str) -> bool:
        self.commands.append(("edit_queued", prompt_id, text))
        known = any(q.id == prompt_id for q in self.queue)
        self.queue = [replace(q, text=text) if q.id == prompt_id else q for q in self.queue]
        self.emit(QueueChanged(tuple(self.queue)))
        return known

    def drop_queued(self, prompt_id: str) -> QueuedPrompt | None:
        self.commands.append(("drop_queued", prompt_id))
        found = next((q for q in self.queue if q.id == prompt_id), None)
        self.queue = [q for q in self.queue if q.id != prompt_id]
        self.emit(QueueChanged(tuple(self.queue)))
        return found

    def interrupt(self) -> None:
        self.commands.append(("interrupt",))

    def retry(self) -> None:
        self.commands.append(("retry",))

    def compact(self, *, offline: bool = False) -> None:
        self.commands.append(("compact", "offline") if offline else ("compact",))

    def undo_compaction(self, *, force: bool = False) -> None:
        self.commands.append(("undo_compaction", "force") if force else ("undo_compaction",))

    def begin_phase(self, name: str) -> None:
        self.commands.append(("begin_phase", name))

    async def preview_compaction(self) -> CompactionPreview:
        self.commands.append(("preview_compaction",))
        return self.preview

    async def context_check(self) -> tuple[Check, ...]:
        self.commands.append(("context_check",))
        return CHECKS

    def switch_economy(self, on: bool) -> None:
        self.commands.append(("switch_economy", on))

    def probe(self) -> None:
        self.commands.append(("probe",))

    def examine(self, *, agreed: bool = False) -> None:
        self.commands.append(("examine", "agreed") if agreed else ("examine",))

    async def context(self) -> ContextReport:
        self.commands.append(("context",))
        return self.context_report

    async def compaction_diff(self, cycle: int) -> CompactionDiff | None:
        self.commands.append(("compaction_diff", cycle))
        return self.diffs.get(cycle)

    def answer_permission(self, request_id: str, answer: Answer, reason: str = "") -> None:
        self.commands.append(("answer_permission", request_id, answer, reason))

    async def status(self) -> StatusReport:
        self.commands.append(("status",))
        return self.status_report or StatusReport(
            model="Qwen2.5-Coder 1.5B",
            server="embedded",
            conversation_id=self.conversation_id,
            title=self.title,
            turns=3,
            messages=9,
            gauge=self.gauge,
            auto_compress=True,
            last_compaction="",
            last_failure="",
            why_no_compaction="",
            usage=(),
            data_path="data/marextui",
        )

    async def page(self, before_seq: int | None, limit: int) -> HistoryPage:
        self.commands.append(("page", before_seq, limit))
        older = [r for r in self.records if before_seq is None or r.seq < before_seq]
        rows = tuple(older[-limit:])
        return HistoryPage(rows, rows[0].seq if rows else 0, more=len(older) > len(rows))

    async def conversations(self, query: str = "") -> list[ConversationInfo]:
        self.commands.append(("conversations", query))
        return [c for c in self.conversation_rows if query.lower() in c.title.lower()]

    async def open_conversation(self, conversation_id: str | None) -> None:
        self.commands.append(("open_conversation", conversation_id))
        if conversation_id is None:
            self.records = []
        self.conversation_id = conversation_id or "c-new"
        self.emit(ConversationOpened(self.conversation_id, "", bool(self.records), len(self.records)))
        if self.queue:
            self.emit(QueueChanged(tuple(self.queue)))

    async def rename(self, title: str) -> None:
        self.commands.append(("rename", title))
        self.emit(ConversationRenamed(self.conversation_id, title))

    async def export(self, path: str, *, fmt: Literal["markdown", "json"] = "markdown", replace: bool = False) -> str:
        self.commands.append(("export", path, fmt, replace) if replace else ("export", path, fmt))
        if self.export_error is not None and not replace:
            raise self.export_error
        return f"project/{path}"

    async def models(self) -> list[ModelOption]:
        self.commands.append(("models",))
        return list(self.model_options)

    async def select_model(self, option_id: str) -> None:
        self.commands.append(("select_model", option_id))

    async def configure_endpoint(self, base_url: str, api_key: str, model: str) -> str:
        self.commands.append(("configure_endpoint", base_url, api_key, model))
        return self.endpoint_problem

    async def setup(self) -> SetupReport:
        self.commands.append(("setup",))
        return self.setup_report

    async def omissions(self) -> list[OmissionInfo]:
        self.commands.append(("omissions",))
        return list(self.omission_rows)

    async def read_omission(self, omission_id: str) -> str | None:
        self.commands.append(("read_omission", omission_id))
        text = self.texts.get(omission_id)
        if text is not None:
            reads = next((o.reads for o in self.omission_rows if o.id == omission_id), 0) + 1
            self.omission_rows = [replace(o, reads=reads) if o.id == omission_id else o for o in self.omission_rows]
            self.emit(OmissionRead(omission_id, reads))
        return text

    async def memory(self) -> MemoryReport:
        self.commands.append(("memory",))
        return self.memory_report

    async def clear_memory(self) -> None:
        self.commands.append(("clear_memory",))

    async def reload_memory(self) -> None:
        self.commands.append(("reload_memory",))

    async def page_text(self, name: str) -> str | None:
        return self.page_texts.get(name)

    async def save_page(self, name: str, text: str) -> str:
        self.commands.append(("save_page", name, text))
        if self.refusal:
            return self.refusal
        self.page_texts[name] = text
        pages = {p.name: p for p in self.memory_report.pages} | {name: page_of(name, text)}
        self.memory_report = replace(self.memory_report, pages=tuple(pages.values()))
        return ""

    async def delete_page(self, name: str) -> str:
        self.commands.append(("delete_page", name))
        pages = tuple(p for p in self.memory_report.pages if p.name != name)
        self.memory_report = replace(self.memory_report, pages=pages)
        return self.refusal

    async def set_tracker(self, slug: str, value: str, unit: str) -> str:
        self.commands.append(("set_tracker", slug, value, unit))
        if self.refusal:
            return self.refusal
        trackers = {t.slug: t for t in self.memory_report.trackers} | {slug: Tracker(slug, value, unit, "2026-10-02")}
        self.memory_report = replace(self.memory_report, trackers=tuple(trackers.values()))
        return ""

    async def delete_tracker(self, slug: str) -> str:
        self.commands.append(("delete_tracker", slug))
        trackers = tuple(t for t in self.memory_report.trackers if t.slug != slug)
        self.memory_report = replace(self.memory_report, trackers=trackers)
        return self.refusal

    async def project_files(self) -> tuple[str, ...]:
        self.commands.append(("project_files",))
        return self.files

    async def message_text(self, message_id: str) -> str:
        self.commands.append(("message_text", message_id))
        for record in self.records:
            if isinstance(record.entry, MessageAdded) and record.entry.message.id == message_id:
                return record.entry.message.text
        return ""
