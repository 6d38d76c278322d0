"""What one compaction changed, worked out from the log alone: messages, summary items, what left the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from marextui.context.entries import (
    CompactionChecked,
    CompactionCommitted,
    CompactionUndone,
    Entry,
    Summary,
    SummaryItem,
)
from marextui.context.fates import Count, FateRow, fates
from marextui.context.fold import fold
from marextui.context.refetch import FetchReport
from marextui.context.section_titles import canonical_title, plain


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item of the summary and what this compaction made of it.

    new: written by it; carried: said in an earlier cycle and still standing; superseded, done: it stood before and no
    longer does (`by` is the text that took its place, "" when none is known); folded: it had no room and can be read
    under the id `by`; gone: it is no longer in the summary.
    """

    section: str
    item: SummaryItem
    change: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class CompactionDiff:
    """A compaction as a diff of the view. `rows` are all messages of the view before it, oldest first.

    `memory` holds the facts that went to MEMORY.md; `undone` whether a later entry took the compaction back; `checked`
    what of the span survived it (None: not checked), `fetches` what was fetched again after it (None: nothing known).
    """

    entry: CompactionCommitted
    rows: tuple[FateRow, ...]
    items: tuple[ItemChange, ...]
    undone: bool = False
    memory: tuple[str, ...] = ()
    checked: CompactionChecked | None = None
    fetches: FetchReport | None = None

    def changed(self, *changes: str) -> tuple[ItemChange, ...]:
        """The items with one of those changes, in the order of the summary."""
        return tuple(i for i in self.items if i.change in changes)


def compaction_diff(entries: Sequence[Entry], cycle: int, count: Count) -> CompactionDiff | None:
    """The diff of the compaction of `cycle`, None when the log holds none. `count` gives the tokens of a message.

    Also for a compaction that was undone or followed by others: the log before it is folded again.
    """
    at = next((i for i, e in enumerate(entries) if isinstance(e, CompactionCommitted) and e.cycle == cycle), None)
    if at is None:
        return None
    entry = entries[at]
    assert isinstance(entry, CompactionCommitted)
    before = fold(entries[:at])
    after = fold(entries[: at + 1])
    cut = len(before.kept()) - len(after.kept())
    earlier = before.compactions[-1].summary if before.compactions else None
    return CompactionDiff(
        entry=entry,
        rows=fates(before, max(0, cut), count),
        items=tuple(item_changes(earlier, entry.summary, cycle)),
        undone=any(isinstance(e, CompactionUndone) and e.cycle <= cycle for e in entries[at + 1 :]),
    )


def item_changes(earlier: Summary | None, summary: Summary, cycle: int) -> Iterator[ItemChange]:
    """Every item of `summary`, then those of `earlier` that it no longer holds."""
    stored = _newly_folded(earlier, summary)
    standing = dict(_keyed(earlier))
    known = dict(_keyed(summary))
    for section in summary.sections:
        active = [i for i in section.items if i.status == "active"]
        for item in section.items:
            old = standing.get(_key(section.title, item))
            if item.status == "active":
                fresh = item.first_cycle == cycle or (old is None and item.last_cycle == cycle)
                yield ItemChange(section.title, item, "new" if fresh else "carried")
            elif old is None or old.status == "active":
                by = next((i.text for i in active if i.key and i.key == item.key), "")
                yield ItemChange(section.title, item, item.status, by)
    for section in earlier.sections if earlier else ():
        for item in section.items:
            if item.status == "active" and _key(section.title, item) not in known:
                omission_id = stored.get(canonical_title(section.title), "")
                yield ItemChange(section.title, item, "folded" if omission_id else "gone", omission_id)


def _newly_folded(earlier: Summary | None, summary: Summary) -> dict[str, str]:
    """Under which id the items are stored that this compaction took out of a section, by its canonical title."""
    before = {f.omission_id for s in (earlier.sections if earlier else ()) for f in s.folded}
    return {
        canonical_title(s.title): s.folded[-1].omission_id
        for s in summary.sections
        if s.folded and s.folded[-1].omission_id not in before
    }


def _keyed(summary: Summary | None) -> Iterator[tuple[tuple[str, str], SummaryItem]]:
    """Items by what tells them apart; an active one before others of the same words."""
    for section in summary.sections if summary else ():
        for item in sorted(section.items, key=lambda i: i.status == "active"):
            yield _key(section.title, item), item


def _key(title: str, item: SummaryItem) -> tuple[str, str]:
    return canonical_title(title), plain(item.text)
