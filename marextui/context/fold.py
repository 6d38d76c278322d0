"""The view as a pure fold of the log: what is kept, what is omitted, what is summarised (M13, M23, I7, case 107)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    FileSeen,
    FilesSeen,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    ReasoningDropped,
    ShortenedRef,
    TextsShortened,
    TurnClosed,
    TurnOpened,
    UsageMeasured,
    WholeOutput,
)
from marextui.context.marked import AnyRef, arguments_marked
from marextui.context.messages import Message, Part, TextPart, ToolCall
from marextui.context.omission import head_tail, marker, unstored_marker
from marextui.context.project_block import prefixed
from marextui.context.project_entries import (
    ContextUpdated,
    ProjectEntry,
    ProjectHidden,
    ProjectSnapshotDropped,
    ProjectSnapshotTaken,
    ProjectView,
)
from marextui.context.summary_pair import compaction_pair
from marextui.context.validate import Repair

_GROWING = (MessageAdded, OutputStored, WholeOutput, TurnOpened, TurnClosed, UsageMeasured, FilesSeen)
"""Entries that leave what a view already shows as it is."""


@dataclass(slots=True)
class _Growing:
    """A view to go on with as messages come: what it begins with, its repair, how many messages of the log it holds."""

    beginning: tuple[object, ...]
    repair: Repair
    upto: int


class Conversation:
    """State of a conversation after some log entries: a pure function of the entries applied, in order."""

    messages: list[Message]
    """Every message of the log, in order, summarised or not."""
    omitted: dict[tuple[str, int], OmissionRef]
    """Outputs shown as markers, by (message id, part; -1: the whole string content)."""
    inputs: dict[tuple[str, int], dict[tuple[str | int, ...], InputRef]]
    """Arguments shown as markers, by (message id, number of the call), then by their path."""
    shortened: dict[tuple[str, int], ShortenedRef]
    """Texts shown as head and tail, by (message id, part); the latest shortening counts."""
    stored: dict[tuple[str, int], OmissionRef]
    """Where outputs were kept when they were produced; they may still stand whole in the view."""
    compactions: list[CompactionCommitted]
    """Compactions in force, oldest first; the last one defines the view."""
    cycle: int
    """Highest compaction cycle ever used; never reused, even after an undo."""
    turn: int
    """The latest turn, 0 before the first."""
    open_turn: bool
    """True between a turn's opening and its end. An unanswered call at the end is then still being answered."""
    measured: UsageMeasured | None
    """The provider's last count, None once its prefix was rewritten (compaction, omission); an undo brings it back."""
    counted: dict[str, int]
    """The longest prompt each model's server has counted in this conversation, in tokens."""
    turns: list[TurnClosed]
    """Every turn that ended, in order."""
    files: dict[str, FileSeen]
    """Files the model has seen, in the state it saw last, the least recently seen first (case 67)."""
    project: ProjectView
    """The frozen project context and its updates; an undo brings an earlier one back."""

    def __init__(self) -> None:
        self.messages = []
        self.omitted = {}
        self.inputs = {}
        self.shortened = {}
        self.stored = {}
        self.compactions = []
        self.cycle = 0
        self.turn = 0
        self.open_turn = False
        self.measured = None
        self.counted = {}
        self.turns = []
        self.files = {}
        self._redacted: set[str] = set()  # paths of files the log shows with placeholders
        self.project = ProjectView()
        self._index: dict[str, int] = {}
        self._changed: set[str] = set()  # ids of messages that the view shows otherwise than the log
        self._bare = 0  # messages logged before this index go without their reasoning
        self._logged: list[int] = []  # per compaction in force: messages logged when it was committed
        self._measured_at = 0  # messages logged when `measured` was
        self._measures: list[tuple[UsageMeasured | None, int]] = []  # per compaction: the count it made void
        self._projects: list[ProjectView] = []  # per compaction in force: the project context before it
        self._history: tuple[Message, ...] | None = None
        self._growing: _Growing | None = None  # the view looked at last, while it can be gone on with
        self._marks: dict[str, Message] = {}  # changed messages as they are shown, the same object every time

    def apply(self, entry: Entry) -> None:
        """Take one more log entry into account.

        A message id that is already logged is a repeated write and changes nothing: the first one stays.
        """
        self._history = None
        if not isinstance(entry, _GROWING):
            self._growing = None
        match entry:
            case MessageAdded(message):
                if message.id not in self._index:
                    self._index[message.id] = len(self.messages)
                    self.messages.append(message)
            case OutputStored(ref):
                self.stored[(ref.message_id, ref.part)] = ref
            case OutputsOmitted(_, refs, why):
                for ref in refs:
                    self.omitted.setdefault((ref.message_id, ref.part), ref)
                    self._rewritten(ref.message_id)
                if why in ("repeat", "room"):
                    self.project = self.project.rewritten("reduction")
            case InputsOmitted(_, inputs):
                for given in inputs:
                    self.inputs.setdefault((given.message_id, given.call), {}).setdefault(given.path, given)
                    self._rewritten(given.message_id)
                self.project = self.project.rewritten("reduction")
            case TextsShortened(_, texts):
                for cut in texts:
                    self.shortened[(cut.message_id, cut.part)] = cut
                    self._rewritten(cut.message_id)
                self.project = self.project.rewritten("reduction")
            case ReasoningDropped(_, before):
                self._bare = max(self._bare, self._index.get(before, 0))
                self._rewritten()
                self.project = self.project.rewritten("reduction")
            case CompactionCommitted():
                self.compactions.append(entry)
                self._logged.append(len(self.messages))
                self._measures.append((self.measured, self._measured_at))
                self._projects.append(self.project)
                self.project = self.project.rewritten("compaction")
                self.cycle = max(self.cycle, entry.cycle)
                self.measured = None
            case CompactionUndone(cycle):
                live = [i for i, c in enumerate(self.compactions) if c.cycle < cycle]
                if len(live) < len(self.compactions):
                    first_undone = next(i for i, c in enumerate(self.compactions) if c.cycle >= cycle)
                    self.measured, self._measured_at = self._measures[first_undone]
                    self.compactions = [self.compactions[i] for i in live]
                    self._logged = [self._logged[i] for i in live]
                    self._measures = [self._measures[i] for i in live]
                    self.project = self._projects[first_undone]
                    self._projects = [self._projects[i] for i in live]
            case TurnOpened(turn):
                self.turn = max(self.turn, turn)
                self.open_turn = True
            case TurnClosed():
                self.turn = max(self.turn, entry.turn)
                self.open_turn = False
                self.turns.append(entry)
            case UsageMeasured():
                self.measured = entry
                self.counted[entry.model] = max(entry.prompt_tokens, self.counted.get(entry.model, 0))
                self._measured_at = len(self.messages)
            case FilesSeen():
                self._seen(entry)
            case ProjectSnapshotTaken() | ContextUpdated() | ProjectSnapshotDropped() | ProjectHidden():
                self._project(entry)
            case _:
                pass  # notices are for people: never part of a view (case 49)

    def _project(self, entry: ProjectEntry) -> None:
        """A decision about the project context; what was counted holds on unless something sent before changes.

        A new update does not: it stands in a message that was not sent yet.
        """
        before, self.project = self.project, self.project.after(entry)
        alike = before.block == self.project.block and before.heads == self.project.heads
        if not alike and not isinstance(entry, ContextUpdated):
            self.measured = None

    def _seen(self, entry: FilesSeen) -> None:
        if entry.redacted:
            self._redacted.update(f.path for f in entry.files)
        for file in entry.files:
            self.files.pop(file.path, None)
            if file.path not in self._redacted:
                self.files[file.path] = file

    def _rewritten(self, message_id: str = "") -> None:
        """The view changed in the middle: what was counted before holds no longer, also not after an undo."""
        if message_id:
            self._changed.add(message_id)
            self._marks.pop(message_id, None)
        else:
            self._marks = {}
        self.measured = None
        self._measures = [(None, 0) for _ in self.compactions]

    def fork(self) -> Conversation:
        """A conversation in the same state that goes its own way from here; this one stays as it is."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | set):
                setattr(other, name, copy(value))
        other.inputs = {place: dict(by_path) for place, by_path in self.inputs.items()}
        other._growing = None
        return other

    def without(self, cycle: int) -> Conversation:
        """This conversation as it would be if the compaction of `cycle` were undone; this one stays as it is."""
        other = copy(self)  # an undo only puts new lists in the place of the old ones, which both go on sharing
        other.apply(CompactionUndone(cycle))
        return other

    def message(self, message_id: str) -> Message | None:
        """The logged message of that id."""
        at = self._index.get(message_id)
        return None if at is None else self.messages[at]

    def kept(self) -> tuple[Message, ...]:
        """Raw messages after the cut in force (all of them without a compaction)."""
        return tuple(self.messages[self._cut()[0] :])

    def shown(self) -> tuple[Message, ...]:
        """As `kept`, one for one, with omitted outputs as their markers: what a compaction counts and summarises."""
        return tuple(self._marked(m) for m in self.kept())

    def dropped(self) -> tuple[Message, ...]:
        """Raw messages before the cut in force: what the summary stands for."""
        return tuple(self.messages[: self._cut()[0]])

    def replaced_ids(self) -> frozenset[str]:
        """Ids of stored texts that do not stand whole in the view."""
        refs: list[OmissionRef | InputRef | ShortenedRef] = [*self.omitted.values(), *self.shortened.values()]
        refs.extend(ref for by_path in self.inputs.values() for ref in by_path.values())
        folded = (f.omission_id for c in self.compactions for s in c.summary.sections for f in s.folded)
        return frozenset((*(ref.omission_id for ref in refs if ref.omission_id), *folded))

    def ref_of(self, omission_id: str) -> AnyRef | None:
        """Where what is stored under this id stands in the log; None when nothing here refers to it.

        A read-back refers to the same id: the earliest place is the original.
        """
        refs: list[AnyRef] = [*self.stored.values(), *self.omitted.values(), *self.shortened.values()]
        refs.extend(ref for by_path in self.inputs.values() for ref in by_path.values())
        places = [ref for ref in refs if ref.omission_id == omission_id and ref.message_id in self._index]
        return min(places, key=lambda ref: self._index[ref.message_id], default=None)

    def pending(self) -> Message | None:
        """The user's request that the view repeats ahead of a tail cut inside its turn (B13), as shown; else None."""
        start, compaction = self._cut()
        if compaction is None or start >= len(self.messages) or self.messages[start].role == "user":
            return None
        asked = (m for m in reversed(self.messages[:start]) if m.role == "user" and not m.synthetic)
        found = next(asked, None)
        return None if found is None else self._marked(found)

    def unmeasured(self) -> tuple[Message, ...]:
        """Raw messages the count in `measured` has not seen; all kept ones when there is no valid count."""
        seen = self._measured_upto()[0]
        return self.kept() if seen is None else tuple(self.messages[max(seen, self._cut()[0]) :])

    def measured_reply(self) -> Message | None:
        """The reply whose tokens are in `measured.completion_tokens`, when it was logged."""
        return self._measured_upto()[1]

    def _measured_upto(self) -> tuple[int | None, Message | None]:
        """(index of the first message the count has not seen, the reply it covers).

        The count covers the request (its view ended with `last_message_id`) and its reply: the first assistant
        message after it, logged just before or just after the count. A view that ended with a made-up message names
        an id the log does not hold; then the reply is looked for after the count only.
        """
        if self.measured is None:
            return None, None
        at = self._index.get(self.measured.last_message_id, self._measured_at - 1)
        for i in range(at + 1, min(self._measured_at + 1, len(self.messages))):
            if self.messages[i].role == "assistant":
                return i + 1, self.messages[i]
        return self._measured_at, None

    def history(self) -> tuple[Message, ...]:
        """What is sent after the system message: summary pair, kept messages with markers, repaired. Never mutates.

        Between rewrites a longer log only ever extends it (I7), see `validate.repair` for the one exception. A cut
        that falls on an assistant (mid-turn, B13) is preceded by the pending user request, verbatim.
        """
        if self._history is None:
            self._history = self._view()
        return self._history

    def _view(self) -> tuple[Message, ...]:
        """The view of now; what the one before showed, and no entry has changed since, is not gone over again."""
        start, compaction = self._cut()
        beginning = (start, compaction, start < len(self.messages))
        growing = self._growing
        if growing is None or growing.beginning != beginning:
            growing = self._growing = _Growing(beginning, self._begun(compaction), start)
        heads = self.project.heads
        for message in self.messages[growing.upto :]:
            shown = self._marked(message)
            head = heads.get(message.id, "")
            growing.repair.feed(replace(shown, content=prefixed(shown.content, head)) if head else shown)
        growing.upto = len(self.messages)
        return growing.repair.view(closed=not self.open_turn)

    def _begun(self, compaction: CompactionCommitted | None) -> Repair:
        """A view up to the cut: nothing, or the summary pair and the request it repeats."""
        view = Repair()
        if compaction is not None:
            pending = self.pending()
            for message in (*compaction_pair(compaction), *((pending,) if pending is not None else ())):
                view.feed(message)
        return view

    def _cut(self) -> tuple[int, CompactionCommitted | None]:
        """(index of the first kept message, the compaction in force).

        A cut the log does not hold is passed over for the one before; one that falls on a tool result moves back to
        the assistant that made the call, so that a stale entry never bricks a conversation (case 19).
        """
        for compaction, logged in zip(reversed(self.compactions), reversed(self._logged), strict=True):
            at = logged if compaction.cut == "" else self._index.get(compaction.cut)
            if at is None:
                continue
            while 0 < at < len(self.messages) and self.messages[at].role == "tool":
                at -= 1
            return at, compaction
        return 0, None

    def _marked(self, message: Message) -> Message:
        """`message` as the view shows it: markers for what was omitted (M24); itself when nothing of it was."""
        bare = bool(message.reasoning) and self._index[message.id] < self._bare
        if not bare and message.id not in self._changed:
            return message
        known = self._marks.get(message.id)
        if known is None:
            known = self._marks[message.id] = self._with_marks(replace(message, reasoning="") if bare else message)
        return known

    def _with_marks(self, message: Message) -> Message:
        if message.tool_calls:
            calls = tuple(self._inputs_marked(message.id, i, c) for i, c in enumerate(message.tool_calls))
            message = message if calls == message.tool_calls else replace(message, tool_calls=calls)
        if isinstance(message.content, str):
            text = self._text_marked(message.id, -1, message.content)
            return message if text is message.content else replace(message, content=text)
        parts: list[Part] = []
        for i, part in enumerate(message.content):
            text = self._text_marked(message.id, i, part.text if isinstance(part, TextPart) else "")
            parts.append(TextPart(text) if text and text != getattr(part, "text", "") else part)
        content = tuple(parts)
        return message if content == message.content else replace(message, content=content)

    def _text_marked(self, message_id: str, part: int, text: str) -> str:
        """The marker of an omitted text or other part, head and tail of a shortened one; else `text` itself."""
        whole = self.omitted.get((message_id, part))
        if whole is not None:
            return marker(whole.omission_id, whole.chars, whole.label)
        cut = self.shortened.get((message_id, part))
        if cut is None:
            return text
        stored = marker(cut.omission_id, cut.chars, cut.label)
        return f"{head_tail(text, cut.keep)}\n{stored if cut.omission_id else unstored_marker(cut.chars, cut.label)}"

    def _inputs_marked(self, message_id: str, number: int, call: ToolCall) -> ToolCall:
        by_path = self.inputs.get((message_id, number))
        return call if not by_path else replace(call, arguments=arguments_marked(call.arguments, by_path))


def fold(entries: Iterable[Entry]) -> Conversation:
    """The conversation those entries make."""
    conversation = Conversation()
    for entry in entries:
        conversation.apply(entry)
    return conversation
