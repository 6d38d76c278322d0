"""The view as a pure fold of the log: what is kept, what is omitted, what is summarised (M13, M23, I7, case 107)."""

from __future__ import annotations

from collections.abc import Iterable

from marextui.context.entries import CompactionCommitted, Entry, OmissionRef, TurnClosed, UsageMeasured
from marextui.context.messages import Message


class Conversation:
    """State of a conversation after some log entries: a pure function of the entries applied, in order."""

    messages: list[Message]
    """Every message of the log, in order, summarised or not."""
    omitted: dict[tuple[str, int], OmissionRef]
    """Outputs shown as markers, by (message id, part; -1: the whole string content)."""
    compactions: list[CompactionCommitted]
    """Compactions in force, oldest first; the last one defines the view."""
    cycle: int
    """Highest compaction cycle ever used; never reused, even after an undo."""
    turn: int
    open_turn: bool
    measured: UsageMeasured | None
    """The provider's last count, None once its prefix was rewritten (compaction, undo, omission)."""
    turns: list[TurnClosed]

    def __init__(self) -> None: ...

    def apply(self, entry: Entry) -> None:
        """Take one more log entry into account."""
        raise NotImplementedError

    def message(self, message_id: str) -> Message | None:
        """The logged message of that id."""
        raise NotImplementedError

    def kept(self) -> tuple[Message, ...]:
        """Raw messages after the cut in force (all of them without a compaction)."""
        raise NotImplementedError

    def dropped(self) -> tuple[Message, ...]:
        """Raw messages before the cut in force: what the summary stands for."""
        raise NotImplementedError

    def unmeasured(self) -> tuple[Message, ...]:
        """Raw messages the count in `measured` has not seen (all kept ones when there is no valid count)."""
        raise NotImplementedError

    def history(self) -> tuple[Message, ...]:
        """What is sent after the system message: summary pair, kept messages with markers, repaired. Never mutates."""
        raise NotImplementedError


def fold(entries: Iterable[Entry]) -> Conversation:
    """The conversation those entries make."""
    raise NotImplementedError


def summary_pair(summary_text: str, cycle: int) -> tuple[Message, Message]:
    """The user + assistant pair that stands for everything before the cut (B6); ids depend on `cycle` only."""
    raise NotImplementedError
