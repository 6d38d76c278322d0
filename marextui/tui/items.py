"""The blocks of a conversation as plain data: what the panes draw and what copy, editor and search work on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from marextui.context import entries as log
    from marextui.engine.event_values import UsageLine

ToolState = Literal["waiting", "running", "done", "error", "stopped"]


class TextBuffer:
    """Text that grows by pieces; joined only when read, so that streaming stays linear."""

    __slots__ = ("_parts",)

    def __init__(self, text: str = "") -> None:
        self._parts = [text] if text else []

    def add(self, piece: str) -> None:
        self._parts.append(piece)

    def set(self, text: str) -> None:
        self._parts = [text]

    def __str__(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def __bool__(self) -> bool:
        return any(self._parts)


@dataclass(slots=True, kw_only=True)
class Item:
    """A block of the conversation. `key` is unique in it; `version` grows with each change."""

    key: str
    version: int = 0

    @property
    def source(self) -> str:
        """The block as it was written: what copy, editor, pager and search use."""
        return ""


@dataclass(slots=True, kw_only=True)
class UserItem(Item):
    text: str

    @property
    def source(self) -> str:
        return self.text


@dataclass(slots=True, kw_only=True)
class AssistantItem(Item):
    """An answer; `streaming` until it is in the log, `stopped` when the turn was interrupted while it came."""

    text: TextBuffer = field(default_factory=TextBuffer)
    reasoning: TextBuffer = field(default_factory=TextBuffer)
    streaming: bool = False
    stopped: bool = False

    @property
    def source(self) -> str:
        """The answer; what was thought, where it came to none."""
        return str(self.text) or str(self.reasoning)


@dataclass(slots=True, kw_only=True)
class ToolItem(Item):
    """A tool call and its outcome. `omitted`: its output is now a marker in the view."""

    name: str = ""
    title: str = ""
    arguments: str = ""
    state: ToolState = "waiting"
    output: TextBuffer = field(default_factory=TextBuffer)
    summary: str = ""
    chars: int = 0
    seconds: float | None = None
    omission_id: str = ""
    omitted: bool = False
    diff: str = ""

    @property
    def source(self) -> str:
        return str(self.output)


@dataclass(slots=True, kw_only=True)
class CompactionItem(Item):
    """A compaction in its place: running, done (`entry`; `undone` later on), failed or skipped (`reason`)."""

    trigger: str
    state: Literal["running", "done", "failed", "skipped"]
    messages: int = 0
    tokens: int = 0
    cut: str = ""
    reason: str = ""
    entry: log.CompactionCommitted | None = None
    undone: bool = False
    checked: log.CompactionChecked | None = None

    @property
    def source(self) -> str:
        if self.entry is None:
            return self.reason
        sections = ordered_sections(self.entry.summary)
        return "\n\n".join("\n".join([f"## {s.title}", *(f"- {text}" for text in told(s))]) for s in sections)


@dataclass(slots=True)
class AsideRow:
    """A text that left the view: where it is kept, its length in characters, whose it was (`call`: a call's number)."""

    omission_id: str
    chars: int
    message_id: str
    call: int
    title: str = ""


@dataclass(slots=True, kw_only=True)
class ReductionItem(Item):
    """A rewrite of the view: why, what was put aside, and the tokens that freed (0: not known)."""

    why: str
    rows: list[AsideRow]
    freed: int

    @property
    def source(self) -> str:
        return "\n".join(f"{r.omission_id} {r.title} ({r.chars} characters)" for r in self.rows)


@dataclass(slots=True, kw_only=True)
class NoticeItem(Item):
    level: Literal["info", "warning", "error"]
    text: str
    hint: str = ""
    action: Literal["", "retry", "compact"] = ""
    detail: str = ""
    """What copy, editor, pager and viewer show instead of the notice itself."""

    @property
    def source(self) -> str:
        return self.detail or f"{self.text}\n{self.hint}".strip()


@dataclass(slots=True, kw_only=True)
class TurnItem(Item):
    """The line that ends a turn (M38)."""

    end: log.TurnEnd
    usage: UsageLine


FIRST_SECTIONS = ("files modified", "decisions made")


def ordered_sections(summary: log.Summary) -> list[log.SummarySection]:
    """Sections that have items, Files Modified and Decisions Made first: what people check after a compaction."""

    def rank(section: log.SummarySection) -> int:
        name = section.title.strip().lower()
        return FIRST_SECTIONS.index(name) if name in FIRST_SECTIONS else len(FIRST_SECTIONS)

    return sorted((s for s in summary.sections if s.items or s.folded), key=rank)


def told(section: log.SummarySection) -> list[str]:
    """The items of a section as text, then where those can be read that had no room in it."""
    from marextui.context.summary_render import folded_line

    texts = [i.text for i in section.items]
    more = folded_line(section.folded).removeprefix("- ")
    return [*texts, more] if more else texts


_TITLE_KEYS = ("path", "file_path", "command", "pattern", "query", "id", "url")


def tool_title(name: str, arguments: str) -> str:
    """A one-line title from a call as logged ("Read src/app.py"); malformed arguments are shown as they are."""
    try:
        loaded = json.loads(arguments) if arguments else {}
    except ValueError:
        loaded = arguments
    if isinstance(loaded, dict):
        value = next((loaded[k] for k in _TITLE_KEYS if isinstance(loaded.get(k), str)), "")
        if not value:
            value = next((v for v in loaded.values() if isinstance(v, str)), "")
    else:
        value = str(loaded)
    return f"{name} {value}".strip()


def searched_text(item: Item) -> str:
    """All text of an item that search looks at."""
    if isinstance(item, AssistantItem):
        return f"{item.reasoning}\n{item.text}" if item.reasoning else str(item.text)
    if isinstance(item, ToolItem):
        return f"{item.title}\n{item.summary}\n{item.output}"
    return item.source
