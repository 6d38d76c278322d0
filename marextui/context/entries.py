"""Log entries: everything that ever happened in a conversation, as values (`context.entry_codec`: their JSON form).

The log is append-only. Messages are facts; the other entries are *decisions* (omit this output, summarise up to
there, undo that) or *events* (a turn ended, an error was shown). The view a model is sent is a pure fold of them
(`context.fold`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from marextui.context.messages import Message, OtherPart, TextPart
from marextui.context.project_entries import (
    ContextUpdated,
    ProjectHidden,
    ProjectSnapshotDropped,
    ProjectSnapshotTaken,
)

TriggerName = Literal["threshold", "manual", "overflow", "sliding", "task"]
Why = Literal["age", "repeat", "room", "images"]
TurnEnd = Literal["done", "interrupted", "error", "refused"]


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message was appended to the conversation."""

    message: Message


@dataclass(frozen=True, slots=True)
class OmissionRef:
    """Where an omission stands: the message, the part (-1: the whole string content) and the stored id.

    `chars` is the original length in characters (code points); `label` what the marker calls it.
    """

    message_id: str
    part: int
    omission_id: str
    chars: int
    label: str = "tool output"


@dataclass(frozen=True, slots=True)
class InputRef:
    """An argument of a call that stands as a marker: call number `call` (from 0) of the message.

    `path` leads to the text within the arguments (keys, and positions in lists); () stands for all of them, when they
    are no JSON object. `chars` is the text's length in characters.
    """

    message_id: str
    call: int
    path: tuple[str | int, ...]
    omission_id: str
    chars: int


@dataclass(frozen=True, slots=True)
class ShortenedRef:
    """A text of which head and tail are shown, `keep` characters in all, then a marker (`part`: as `OmissionRef`).

    `omission_id` is "" when the whole could not be stored: it stands in the log only.
    """

    message_id: str
    part: int
    omission_id: str
    chars: int
    keep: int
    label: str = "message"


@dataclass(frozen=True, slots=True)
class OutputStored:
    """This output was kept in the omission store when it was produced; it still stands whole in the view (M30)."""

    ref: OmissionRef


@dataclass(frozen=True, slots=True)
class WholeOutput:
    """All of an output of which its message holds head and tail only (M30): the log never loses a byte (I6).

    It stands beside the message and is read apart from it (`store.log.LogStore.whole`), so that a view costs no more.
    """

    message_id: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class OutputsOmitted:
    """In `turn`, these outputs or images were replaced by their markers in the view (M23, one rewrite).

    `why`: they had grown old, were read again later, room was needed, or newer images took their place. `freed` is by
    how many tokens the view became smaller, 0 when an older version did not say.
    """

    turn: int
    refs: tuple[OmissionRef, ...]
    why: Why = "age"
    freed: int = 0


@dataclass(frozen=True, slots=True)
class InputsOmitted:
    """In `turn`, bulky arguments of earlier calls became markers in the view; the rest of the arguments stays."""

    turn: int
    refs: tuple[InputRef, ...]
    freed: int = 0


@dataclass(frozen=True, slots=True)
class TextsShortened:
    """In `turn`, these texts were cut to head and tail because nothing else would have made the request fit (I2)."""

    turn: int
    refs: tuple[ShortenedRef, ...]
    freed: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningDropped:
    """In `turn`, the reasoning of messages logged before the message `before` is no longer sent back."""

    turn: int
    before: str
    freed: int = 0


@dataclass(frozen=True, slots=True)
class SummaryItem:
    """One bullet of a summary section, tagged with the cycles that wrote it (P11); `key` identifies it (a path)."""

    text: str
    key: str = ""
    first_cycle: int = 1
    last_cycle: int = 1
    sources: tuple[str, ...] = ()
    status: Literal["active", "superseded", "done"] = "active"


@dataclass(frozen=True, slots=True)
class Folded:
    """`count` items that stood in the view and no longer do: they can be read under `omission_id` (P10, I6)."""

    omission_id: str
    count: int


@dataclass(frozen=True, slots=True)
class SummarySection:
    """A headed list of items (P6); `folded` is what had no room in it, oldest first.

    `settled`: it was said in so many words that there is nothing (more) to list.
    """

    title: str
    items: tuple[SummaryItem, ...]
    folded: tuple[Folded, ...] = ()
    settled: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """A structured summary: sections in their configured order."""

    sections: tuple[SummarySection, ...]


@dataclass(frozen=True, slots=True)
class CompactionCommitted:
    """A compaction: everything before `cut` (id of the first kept message) is represented by `summary`.

    `cut` is "" when nothing is kept. Token figures are of the whole view (system part excluded), `seconds` wall time.
    """

    cycle: int
    trigger: TriggerName
    cut: str
    summary: Summary
    summarizer: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    seconds: float
    beside: str = ""
    """What code knows for certain of everything before the cut (work log, facts, orders), as it stands in the view."""


@dataclass(frozen=True, slots=True)
class CompactionUndone:
    """The compaction of `cycle` no longer applies; the view is what it was before it."""

    cycle: int


@dataclass(frozen=True, slots=True)
class CompactionChecked:
    """Whether facts of the span that the compaction of `cycle` cut away survived it (P17). Never part of a view.

    Of `total` facts, `in_view` stand in the view, `by_recall` are one search away; `lost` are neither, as text.
    """

    cycle: int
    in_view: int
    by_recall: int
    lost: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class FileSeen:
    """A file's state: its real path, modification time (ns), size (bytes), SHA-256 in hex ("": too large to hash)."""

    path: str
    mtime_ns: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """The model was shown these files, or wrote them, in this state (case 67). Never part of a view.

    `redacted`: the log holds placeholders for secrets of theirs, so whoever goes on from it has not seen them.
    """

    files: tuple[FileSeen, ...]
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class TurnOpened:
    """Turn `turn` began."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """Turn `turn` ended; token sums over its steps, None where the provider did not say (M38)."""

    turn: int
    end: TurnEnd
    inp: int | None
    out: int | None
    cache_read: int | None
    seconds: float
    model: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NoticeLogged:
    """Something people were told (an error, a skipped compaction). Never part of a view."""

    level: Literal["info", "warning", "error"]
    text: str


@dataclass(frozen=True, slots=True)
class UsageMeasured:
    """The provider's own count for the request whose view ended with `last_message_id` (then its reply)."""

    last_message_id: str
    prompt_tokens: int
    completion_tokens: int
    model: str


Entry = (
    MessageAdded
    | OutputStored
    | WholeOutput
    | OutputsOmitted
    | InputsOmitted
    | TextsShortened
    | ReasoningDropped
    | CompactionCommitted
    | CompactionUndone
    | CompactionChecked
    | FilesSeen
    | TurnOpened
    | TurnClosed
    | NoticeLogged
    | UsageMeasured
    | ProjectSnapshotTaken
    | ContextUpdated
    | ProjectSnapshotDropped
    | ProjectHidden
)


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as it stands in the log: `seq` grows by one, `at` is seconds since the epoch (UTC)."""

    seq: int
    at: float
    entry: Entry


__all__ = [
    "CompactionChecked",
    "CompactionCommitted",
    "CompactionUndone",
    "ContextUpdated",
    "Entry",
    "FileSeen",
    "FilesSeen",
    "Folded",
    "InputRef",
    "InputsOmitted",
    "MessageAdded",
    "NoticeLogged",
    "OmissionRef",
    "OtherPart",
    "OutputStored",
    "OutputsOmitted",
    "ProjectHidden",
    "ProjectSnapshotDropped",
    "ProjectSnapshotTaken",
    "ReasoningDropped",
    "Record",
    "ShortenedRef",
    "Summary",
    "SummaryItem",
    "SummarySection",
    "TextPart",
    "TextsShortened",
    "TriggerName",
    "TurnClosed",
    "TurnEnd",
    "TurnOpened",
    "UsageMeasured",
    "WholeOutput",
    "Why",
]
