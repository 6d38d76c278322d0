"""Which stored outputs are referred to: as the fold would show them (I6, case 81)."""

from __future__ import annotations

import pytest

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    Summary,
    SummaryItem,
    SummarySection,
)
from marextui.context.messages import Message
from marextui.store.log import LogStore


def said(n: int) -> MessageAdded:
    return MessageAdded(Message(f"m{n}", "tool", "x", tool_call_id=f"c{n}"))


def ref(n: int) -> OmissionRef:
    return OmissionRef(f"m{n}", -1, f"omitted-{n:03d}", 700)


def compaction(cycle: int, cut: str, text: str = "nothing") -> CompactionCommitted:
    summary = Summary((SummarySection("Current State", (SummaryItem(text),)),))
    return CompactionCommitted(cycle, "manual", cut, summary, "offline", 2, 1, 10, 5, 0.1)


STORED = [e for n in range(1, 7) for e in (said(n), OutputStored(ref(n)))]
ALL = {f"omitted-{n:03d}" for n in range(1, 7)}
CASES: dict[str, tuple[list[Entry], set[str]]] = {
    "what was stored when it was produced": ([], ALL),
    "markers": ([OutputsOmitted(3, (ref(1), ref(2)))], ALL),
    "before a cut": ([compaction(1, "m4")], {"omitted-004", "omitted-005", "omitted-006"}),
    "named by the summary": ([compaction(1, "m6", "details in omitted-002")], {"omitted-002", "omitted-006"}),
    "nothing kept": ([compaction(1, "")], set()),
    "undone": ([compaction(1, "m4"), CompactionUndone(1)], ALL),
    "the last one counts": ([compaction(1, "m2"), compaction(2, "m5")], {"omitted-005", "omitted-006"}),
    "back to the one before": (
        [compaction(1, "m3"), compaction(2, "m5"), CompactionUndone(2)],
        {"omitted-003", "omitted-004", "omitted-005", "omitted-006"},
    ),
    "a cut the log does not hold": ([compaction(1, "m5"), compaction(2, "m99")], {"omitted-005", "omitted-006"}),
}


@pytest.mark.parametrize(("entries", "shown"), CASES.values(), ids=CASES.keys())
async def test_ids_in_views(entries: list[Entry], shown: set[str]) -> None:
    log = await LogStore.open(":memory:")
    await log.create("c-1", project="p", title="", at=1.0)
    await log.create("c-2", project="other", title="", at=1.0)
    await log.append("c-1", [*STORED, *entries], at=1.0)
    await log.append("c-2", [said(9), OutputStored(ref(9))], at=1.0)
    assert await log.omissions_in_views("p") == shown
    assert await log.omissions_in_views("nothing") == frozenset()
    await log.close()
