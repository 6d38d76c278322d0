"""Probes: facts of a span that must have survived its compaction, and whether they did (P16–P19).

They are taken from the span before the cut and looked for after it by exact containment, without a model: never by
lexical or embedding similarity (P16).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from marextui.context.ask import RESULT_CHARS, RESULTS, searchable
from marextui.context.entries import Summary, SummaryItem
from marextui.context.facts import error_lines
from marextui.context.mentions import CUT, Material, Mention
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.orders import open_request, order_history
from marextui.context.quoting import code, quoted
from marextui.context.redaction import redact
from marextui.context.refetch import REFETCH_LIMIT
from marextui.context.search import Doc, Index
from marextui.context.section_titles import canonical_title, plain
from marextui.context.speech import is_request, own_words, tame
from marextui.context.summary_needs import core_of, ways_to_name
from marextui.context.worklog import WorkLog, work_log

ProbeKind = Literal["recall", "artifact", "continuation", "decision"]
PROBE_KINDS: tuple[ProbeKind, ...] = ("recall", "artifact", "continuation", "decision")

LATEST_TRIGGER = 0.80
"""Share of the window above which a compaction comes too late (P3, P19)."""
_LEAD, _SHOWN = 160, 80


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about the span, and the strings any of which answers it; `message_id` is where the answer stood.

    The question does not contain the answer, so that a model can be asked it (`/probe`). The strings are exact but for
    white space; paths are looked up with regard to case.
    """

    kind: ProbeKind
    question: str
    expected: tuple[str, ...]
    message_id: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`total` = `in_view` + `by_recall` + len(`lost`); `recalled` are those found by recall only."""

    in_view: int
    by_recall: int
    lost: tuple[Probe, ...]
    total: int
    recalled: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist (P19)."""

    name: str
    passed: bool
    detail: str


def _one_line(text: str) -> str:
    return " ".join(text.split())


def extract_probes(span: Sequence[Message], *, limit: int = 40) -> tuple[Probe, ...]:
    """At most `limit` probes of `span`, the kinds in turn, the newest of each kind first; in message order (P17).

    recall: error lines of failed calls, and those users quoted. artifact: files that calls created, changed or
    deleted. continuation: the open request (else the last one) and open to-do entries. decision: the user's orders in
    force, and choices the assistant stated. Facts with a secret in them are left out: they are redacted on purpose.
    """
    log = work_log(span)
    kinds = (
        list(_errors(span, log)),
        list(_artifacts(span, log)),
        list(_continuations(span)),
        list(_decisions(span)),
    )
    clean = [[p for p in kind if redact(p.expected[0]) == p.expected[0]] for kind in kinds]
    turns = zip_longest(*(reversed(list(dict.fromkeys(kind))) for kind in clean))
    chosen = [p for turn in turns for p in turn if p is not None][: max(0, limit)]
    place = {m.id: n for n, m in reversed(list(enumerate(span)))}
    return tuple(sorted(chosen, key=lambda p: (place.get(p.message_id, 0), PROBE_KINDS.index(p.kind))))


def _tells(error: str) -> bool:
    """A bare "ERROR" tells nothing."""
    return len(plain(error).split()) > 1


def _errors(span: Sequence[Message], log: WorkLog) -> Iterator[Probe]:
    seen: set[str] = set()
    for message in span:
        if is_request(message):
            for line in error_lines(tame(message.text))[:3]:
                if (core := core_of(line)) not in seen and _tells(core):
                    seen.add(core)
                    yield Probe("recall", "Which error did the user report?", (core,), message.id)
    for run in log.runs:
        core = core_of(run.error)
        if run.status == "failed" and core not in seen and _tells(core):
            seen.add(core)
            question = f"Which error did {code(run.text.replace(core, CUT), _SHOWN)} end with?"
            yield Probe("recall", question, (core,), run.result_id or run.message_id)


def _artifacts(span: Sequence[Message], log: WorkLog) -> Iterator[Probe]:
    requests = {}
    request: Message | None = None
    for message in span:
        request = message if is_request(message) else request
        requests[message.id] = request
    changed = [r for r in log.files if any(t.kind != "read" and t.status == "done" for t in r.touches)]
    for record in changed:
        last = [t for t in record.touches if t.kind != "read" and t.status == "done"][-1]
        expected = ways_to_name(record.path, [r.path for r in changed])
        asked = requests.get(last.message_id)
        lead = _one_line(own_words(asked)[:2000]) if asked is not None else ""
        about = f" for {quoted(lead, _SHOWN)}" if lead and expected[0] not in lead else ""
        yield Probe("artifact", f"Which file was {last.kind}{about}?", expected, last.message_id)


def _continuations(span: Sequence[Message]) -> Iterator[Probe]:
    current = open_request(span)
    for section in offline_summary(span, cycle=1, max_chars=20_000).sections:
        if canonical_title(section.title) == "next steps":
            for item in section.items:
                entry = item.text.partition(": ")[2]
                if entry and not entry.startswith("“"):
                    question = "Which entries of the to-do list are still open?"
                    yield Probe("continuation", question, (_one_line(entry)[:_LEAD].rstrip(),), item.sources[0])
    last = current or next((m for m in reversed(span) if is_request(m)), None)
    if last is not None and (lead := _one_line(last.text[:2000])[:_LEAD].rstrip()):
        question = "Which request of the user is still open?" if current else "What did the user ask for last?"
        own = _one_line(own_words(last)[:2000])[:_LEAD].rstrip()
        yield Probe("continuation", question, tuple(dict.fromkeys(filter(None, (lead, own)))), last.id)


def _decisions(span: Sequence[Message]) -> Iterator[Probe]:
    for section in offline_summary(span, cycle=1, max_chars=20_000).sections:
        if canonical_title(section.title) == "decisions made":
            for item in section.items:
                if not item.text.startswith("“") and item.sources:
                    lead = item.text[:_LEAD].rstrip("… ")
                    yield Probe("decision", "What did the assistant decide or find?", (lead,), item.sources[0])
    for order in order_history(span):
        if order.kind in {"constraint", "toggle"} and not order.superseded_by:
            question = "What did the user order, demand or forbid?"
            yield Probe("decision", question, (_one_line(order.text)[:_LEAD].rstrip(),), order.message_id)


class _Text:
    """A text in which expected strings are looked up."""

    def __init__(self, texts: Sequence[str]) -> None:
        joined = [_one_line(t) for t in texts]
        self._names = Material(joined)
        self._folded = "\n".join(joined).casefold()

    def answers(self, probe: Probe) -> bool:
        if probe.kind == "artifact":
            return any(self._names.holds(Mention(e, False)) for e in probe.expected)
        return any(_one_line(e).casefold() in self._folded for e in probe.expected)


def check_probes(probes: Sequence[Probe], view: Sequence[Message], docs: Sequence[Doc]) -> ProbeResult:
    """Where each probe's answer is: in `view` (texts, calls and their arguments), within one search of `docs`, or lost.

    A search asks the question; failing that the answer itself, as one who half remembers it would ("did you edit
    config/redis.ts?"). Either must return the answer within three passages. `docs` are indexed only when needed.
    """
    shown = _Text([searchable(m) for m in view])
    index: Index | None = None
    recalled: list[Probe] = []
    lost: list[Probe] = []
    for probe in probes:
        if shown.answers(probe):
            continue
        index = index or Index(docs)
        hits = (
            index.search(query, limit=RESULTS, max_chars=RESULT_CHARS)
            for query in (probe.question, f'"{probe.expected[0]}"')
        )
        found = any(_Text([h.text for h in some]).answers(probe) for some in hits)
        (recalled if found else lost).append(probe)
    in_view = len(probes) - len(recalled) - len(lost)
    return ProbeResult(in_view, len(recalled), tuple(lost), len(probes), tuple(recalled))


def checklist(
    *,
    trigger_share: float | None,
    sections: Sequence[str],
    summary: Summary | None,
    earlier: Summary | None = None,
    folded: Sequence[SummaryItem] = (),
    probes: ProbeResult | None = None,
    refetch_rate: float | None = None,
) -> tuple[Check, ...]:
    """The five lines of `/context check`, in order (P19). Before the first compaction the last four pass as not due.

    `trigger_share` is the share of the window at which compaction triggers (None: never, the window is unknown).
    `summary` is the one in force, `earlier` the one before it, `folded` what left for the store. `refetch_rate` is of
    the last compaction (None: not counted).
    """
    return (
        _trigger(trigger_share),
        _due(summary, "Sections", lambda s: _sections(s, sections)),
        _due(summary, "Merged incrementally", lambda s: _merged(s, earlier, folded)),
        _due(summary, "Probes", lambda _: _probed(probes)),
        _due(summary, "Re-fetches", lambda _: _watched(refetch_rate)),
    )


def _trigger(share: float | None) -> Check:
    name = "Trigger"
    if share is None:
        return Check(name, False, "the window is unknown: nothing compacts by itself")
    limit = f"{LATEST_TRIGGER:.0%}"
    if share > LATEST_TRIGGER:
        return Check(name, False, f"compacts at {share:.1%} of the window, later than {limit}: lower compact_at")
    return Check(name, True, f"compacts at {share:.1%} of the window (at most {limit})")


def _due(summary: Summary | None, name: str, check: Callable[[Summary], tuple[bool, str]]) -> Check:
    if summary is None:
        return Check(name, True, "nothing was compacted yet")
    return Check(name, *check(summary))


def _sections(summary: Summary, wanted: Sequence[str]) -> tuple[bool, str]:
    there = [canonical_title(s.title) for s in summary.sections]
    absent = [title for title in wanted if canonical_title(title) not in there]
    if absent:
        return False, f"missing: {', '.join(absent)}"
    return True, f"all {len(wanted)} sections are there"


def _merged(summary: Summary, earlier: Summary | None, folded: Sequence[SummaryItem]) -> tuple[bool, str]:
    if earlier is None:
        return True, "the first summary"
    kept = {plain(i.text) for s in summary.sections for i in s.items} | {plain(i.text) for i in folded}
    before = [i for s in earlier.sections for i in s.items]
    gone = [i for i in before if plain(i.text) not in kept]
    if gone:
        return False, f"{len(gone)} of {len(before)} earlier items are gone, such as {quoted(gone[0].text, _SHOWN)}"
    return True, f"all {len(before)} earlier items are kept or stored"


def _probed(probes: ProbeResult | None) -> tuple[bool, str]:
    if probes is None:
        return False, "the last compaction was not probed"
    told = f"{probes.in_view}/{probes.total} in view, {probes.by_recall} by recall, {len(probes.lost)} lost"
    if probes.lost:
        told += f", such as {quoted(probes.lost[0].expected[0], _SHOWN)}"
    return not probes.lost, told


def _watched(rate: float | None) -> tuple[bool, str]:
    if rate is None:
        return False, "re-fetches after the last compaction are not counted"
    if rate > REFETCH_LIMIT:
        return False, f"{rate:.0%} of what was read since had been read before: something was lost"
    return True, f"{rate:.0%} of what was read since had been read before (at most {REFETCH_LIMIT:.0%})"


__all__ = [
    "LATEST_TRIGGER",
    "PROBE_KINDS",
    "Check",
    "Probe",
    "ProbeKind",
    "ProbeResult",
    "check_probes",
    "checklist",
    "extract_probes",
]
