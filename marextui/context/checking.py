"""Checks of compactions from the log alone: what survived, what was fetched again, the questions of `/probe` (P16–P20).

Nothing here asks a model or costs context; a whole log is folded, so callers keep it out of the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from marextui.context.ask import searchable
from marextui.context.entries import (
    CompactionChecked,
    CompactionCommitted,
    CompactionUndone,
    Entry,
    Summary,
    SummaryItem,
)
from marextui.context.fold import fold
from marextui.context.probes import Check, Probe, ProbeResult, check_probes, checklist, extract_probes
from marextui.context.refetch import FetchReport, fetch_reports
from marextui.context.search import Doc
from marextui.context.sections import SECTIONS

QUIZ_LIMIT = 20
"""Questions that `/probe` asks: their answers must fit one reply."""
_LOST_CHARS = 200


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is known of a compaction by now; `checked` None: not probed, `fetches` None: nothing followed it yet."""

    cycle: int
    undone: bool
    checked: CompactionChecked | None
    fetches: FetchReport | None


@dataclass(frozen=True, slots=True)
class Graded:
    """A question of `/probe` with the model's answer to it; `correct`: it contains an expected string."""

    probe: Probe
    answer: str
    correct: bool


def _place(entries: Sequence[Entry], cycle: int) -> int | None:
    return next((i for i, e in enumerate(entries) if isinstance(e, CompactionCommitted) and e.cycle == cycle), None)


def probes_of(entries: Sequence[Entry], cycle: int, *, limit: int = 40) -> tuple[Probe, ...]:
    """Facts of the span that the compaction of `cycle` cut away, () when the log holds no such compaction."""
    at = _place(entries, cycle)
    if at is None:
        return ()
    before = fold(entries[:at]).kept()
    kept = fold(entries[: at + 1]).kept()
    return extract_probes(before[: max(0, len(before) - len(kept))], limit=limit)


def check_compaction(entries: Sequence[Entry], cycle: int) -> CompactionChecked | None:
    """Whether those facts stand in the view right after the compaction, or are one search away (P17), else None."""
    at = _place(entries, cycle)
    if at is None:
        return None
    after = fold(entries[: at + 1])
    docs = [Doc(m.id, searchable(m)) for m in after.messages]
    result = check_probes(probes_of(entries, cycle), after.history(), docs)
    return CompactionChecked(cycle, result.in_view, result.by_recall, tuple(map(told, result.lost)), result.total)


def told(probe: Probe) -> str:
    """A probe in one line: its answer, and what was asked."""
    answer = " ".join(probe.expected[0].split())
    if len(answer) > _LOST_CHARS:
        answer = answer[: _LOST_CHARS - 1] + "…"
    return f"{answer} ({probe.kind}: {' '.join(probe.question.split())})"


def aftermaths(entries: Sequence[Entry]) -> tuple[Aftermath, ...]:
    """One for each compaction of the log, by cycle."""
    checked = {e.cycle: e for e in entries if isinstance(e, CompactionChecked)}
    fetches = {r.cycle: r for r in fetch_reports(entries)}
    found: dict[int, Aftermath] = {}
    for entry in entries:
        if isinstance(entry, CompactionCommitted):
            cycle = entry.cycle
            found[cycle] = Aftermath(cycle, False, checked.get(cycle), fetches.get(cycle))
        elif isinstance(entry, CompactionUndone):
            found.update({c: replace(one, undone=True) for c, one in found.items() if c >= entry.cycle})
    return tuple(found[cycle] for cycle in sorted(found))


def context_checks(
    entries: Sequence[Entry],
    *,
    trigger_share: float | None,
    stored: Sequence[str] = (),
    sections: Sequence[str] = SECTIONS,
) -> tuple[Check, ...]:
    """The five lines of `/context check` about the compaction in force (P19).

    `trigger_share` is the share of the window at which compaction triggers, None when it never does; `stored` are the
    texts of items that left the summary for long-term memory.
    """
    live = fold(entries).compactions
    if not live:
        return checklist(trigger_share=trigger_share, sections=sections, summary=None)
    summary: Summary = live[-1].summary
    after = next(a for a in aftermaths(entries) if a.cycle == live[-1].cycle)
    return checklist(
        trigger_share=trigger_share,
        sections=sections,
        summary=summary,
        earlier=live[-2].summary if len(live) > 1 else None,
        folded=tuple(SummaryItem(text) for text in stored),
        probes=None if after.checked is None else _result(after.checked),
        refetch_rate=after.fetches.rate if after.fetches is not None else 0.0,
    )


def _result(checked: CompactionChecked) -> ProbeResult:
    lost = tuple(Probe("recall", "", (text,), "") for text in checked.lost)
    return ProbeResult(checked.in_view, checked.by_recall, lost, checked.total)


# --- the questions of /probe ----------------------------------------------------------------------------------------


def quiz(probes: Sequence[Probe]) -> str:
    """One message that asks all of them, to be answered line by line."""
    questions = "\n".join(f"{n}. {' '.join(p.question.split())}" for n, p in enumerate(probes, start=1))
    return (
        "A check of what you still know of this conversation. Answer each question from the conversation above, on one "
        'line that starts with its number; quote names, paths and messages exactly. Write "unknown" where the '
        f"conversation above does not say. Call no tools and add nothing else.\n\n{questions}"
    )


_NUMBERED = re.compile(r"^[ \t>*#_-]{0,6}(?:Q|question )?(\d{1,3})[.):]\**[ \t]*", re.MULTILINE | re.IGNORECASE)


def grade(probes: Sequence[Probe], reply: str) -> tuple[Graded, ...]:
    """Each probe with its answer in `reply`, graded by containment whatever the case and white space (P17).

    Answers are found by their number; a reply without numbers is taken line by line when it has as many lines.
    """
    answers = _answers(reply, len(probes))
    graded: list[Graded] = []
    for n, probe in enumerate(probes, start=1):
        answer = answers.get(n, "")
        text = _folded(answer)
        graded.append(Graded(probe, answer, any(_folded(e) in text for e in probe.expected if _folded(e))))
    return tuple(graded)


def _answers(reply: str, wanted: int) -> dict[int, str]:
    marks = [m for m in _NUMBERED.finditer(reply) if 1 <= int(m.group(1)) <= wanted]
    answers: dict[int, str] = {}
    ends = [*(m.start() for m in marks[1:]), len(reply)]
    for mark, end in zip(marks, ends, strict=False):  # no mark at all leaves the last end over
        answers.setdefault(int(mark.group(1)), reply[mark.end() : end].strip())
    if answers:
        return answers
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return dict(enumerate(lines, start=1)) if len(lines) == wanted else {}


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
