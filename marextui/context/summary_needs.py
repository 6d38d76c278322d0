"""What a summary must not miss: must-keep facts of the span, and something of each third of it (Part 2, 7; case 57).

Every need carries the item that code would add for it. Needs are a function of the span alone, in a fixed order within
a fixed share of the room, whatever the summary holds: checking a repaired summary again therefore adds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

from marextui.context.beside_labels import labels
from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.facts import error_lines, paths
from marextui.context.mentions import Material, Mention
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.orders import open_request, order_history
from marextui.context.quoting import code, inert, quoted
from marextui.context.section_titles import canonical_title, is_files, plain
from marextui.context.sections import place_for
from marextui.context.speech import is_request, own_words, tame
from marextui.context.work_records import FileRecord
from marextui.context.worklog import work_log

NeedKind = Literal["file", "error", "tests", "constraint", "request", "third"]
NEED_KINDS: tuple[NeedKind, ...] = ("request", "tests", "error", "file", "constraint", "third")

THIRDS = ("first", "middle", "last")
_SHORTEST_SPAN = 9
"""Messages from which thirds are looked at."""
_PER_THIRD = 3
"""Facts of a third that a summary should have."""
_CANDIDATES = 8
_TEXT, _COMMAND, _QUOTE = 300, 140, 600
SHARED_WORDS = 0.8
_SHARED_OF_REQUEST = 0.6
_NEGATION_WORDS = "not never no without avoid don stop cannot forbidden ne pas jamais sans aucun aucune nicht nunca"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())


@dataclass(frozen=True, slots=True)
class View:
    """The active items of a summary, made comparable once."""

    texts: tuple[str, ...]
    plain: tuple[str, ...]
    whole: str
    names: Material

    def has(self, text: str) -> bool:
        """Whether `text` stands in it, white space and case apart."""
        return " ".join(text.split()).casefold() in self.whole


def view_of(summary: Summary) -> View:
    """`View` of the active items of `summary`."""
    texts = tuple(i.text for s in summary.sections for i in s.items if i.status == "active")
    whole = "\n".join(" ".join(t.split()).casefold() for t in texts)
    return View(texts, tuple(map(plain, texts)), whole, Material(texts))


@dataclass(frozen=True, slots=True)
class Need:
    """Something a summary must tell: `met` says whether it does; `item` is added to the section `place` otherwise."""

    kind: NeedKind
    what: str
    place: str
    item: SummaryItem
    met: Callable[[View], bool]


def words_of(text: str) -> frozenset[str]:
    """The words of a `plain` text that say something."""
    return frozenset(w for w in text.split() if len(w) > 2 or w.isdigit())


def is_negated(text: str) -> bool:
    """Whether a `plain` text forbids or denies."""
    return not _NEGATIONS.isdisjoint(text.split())


def _told(text: str, share: float, view: View) -> bool:
    """Whether one item says `text`: verbatim, or most of its words and the same way round (never / always)."""
    short = " ".join(text.split()).casefold()[:160].rstrip()
    if short and short in view.whole:
        return True
    bare = plain(text)
    words, negated = words_of(bare), is_negated(bare)
    if len(words) < 3:
        return False
    return any(
        len(words.intersection(item.split())) >= share * len(words) and is_negated(item) == negated
        for item in view.plain
    )


def core_of(error: str) -> str:
    """The beginning of an error line without pytest's margin: what must be found again of it."""
    return re.sub(r"^E\s{1,9}", "", error.strip())[:120].rstrip()


def _asked(lead: str, whole: str, view: View) -> bool:
    return _told(lead, _SHARED_OF_REQUEST, view) or view.has(whole[:160].rstrip())


def _has_all(texts: Sequence[str], view: View) -> bool:
    return all(map(view.has, texts))


def _names_any(names: Sequence[Mention], view: View) -> bool:
    return any(map(view.names.holds, names))


def must_keep(span: Sequence[Message], *, cycle: int, language: str) -> tuple[Need, ...]:
    """Files changed by calls, the last error, the last test run, the user's constraints, the open request of `span`.

    Most important first, within a kind the newest. Only from calls, results and the user's own words (51, 58, 126).
    """
    words = labels(language)
    log = work_log(span)

    def item(text: str, *sources: str, key: str = "") -> SummaryItem:
        return SummaryItem(text, key, cycle, cycle, tuple(s for s in sources if s))

    needs: list[Need] = []
    request = open_request(span)
    if request is not None and request.text.strip():
        said = own_words(request) or request.text
        text = f"{words['open']}: {quoted(said, _QUOTE)}"
        lead = tame(said[:2000])[:400]
        told = item(text, request.id)
        needs.append(Need("request", text, "next steps", told, partial(_asked, lead, request.text[:2000])))
    tests = log.last_tests
    if tests is not None and tests.tests is not None:
        counts = tests.tests.text
        text = f"{words['tests']}: {inert(counts, _TEXT)} ({code(tests.text, _COMMAND)})"
        told = item(text, tests.message_id, tests.result_id)
        needs.append(Need("tests", text, "current state", told, partial(_has_all, counts.split(", "))))
    failed = next((r for r in reversed(log.runs) if r.status == "failed" and r.error), None)
    if failed is not None:
        exit_code = words["exit"].format(code=failed.exit_code) + ", " if failed.exit_code else ""
        text = f"{code(failed.text, _COMMAND)} → {exit_code}{code(failed.error, _TEXT)}"
        told = item(text, failed.message_id, failed.result_id)
        needs.append(Need("error", text, "current state", told, partial(_has_all, [core_of(failed.error)])))
    changed = [r for r in log.files if any(t.kind != "read" and t.status == "done" for t in r.touches)]
    order = {message_id: n for n, message_id in enumerate(log.order)}
    for record in sorted(changed, key=lambda r: -order[r.touches[-1].message_id]):
        needs.append(_file_need(record, changed, words, item))
    for said_order in reversed(order_history(span)):
        if said_order.kind in {"constraint", "toggle"} and not said_order.superseded_by:
            told = item(quoted(said_order.text, _QUOTE), said_order.message_id)
            met = partial(_told, said_order.text, SHARED_WORDS)
            needs.append(Need("constraint", told.text, "requirements", told, met))
    return tuple(needs)


def ways_to_name(path: str, all_paths: Sequence[str]) -> tuple[str, ...]:
    """`path`, and its last directory and name alone where no other of `all_paths` ends so."""
    path = path.removeprefix("./")
    tail = "/".join(path.split("/")[-2:])
    unique = sum(("/" + other).endswith("/" + tail) for other in all_paths) == 1
    return tuple(dict.fromkeys((path, tail))) if unique and "/" in tail else (path,)


def _file_need(
    record: FileRecord, changed: Sequence[FileRecord], words: Mapping[str, str], item: Callable[..., SummaryItem]
) -> Need:
    """The file by its path; the name and the directory it is in will do when no other changed file has both."""
    done = [t for t in record.touches if t.kind != "read" and t.status == "done"]
    kinds = ", ".join(dict.fromkeys(words[t.kind] for t in done))
    path = record.path.removeprefix("./")
    accepted = [Mention(name, False) for name in ways_to_name(record.path, [r.path for r in changed])]
    told = item(f"{inert(path, _TEXT)}: {kinds}", done[-1].message_id, key=path)
    return Need("file", told.text, "files modified", told, partial(_names_any, accepted))


def _thirds(span: Sequence[Message]) -> list[Sequence[Message]]:
    """`span` in three, no tool group split; fewer when it is too short for that."""
    told = [m for m in span if m.role != "system" and not m.synthetic]
    if len(told) < _SHORTEST_SPAN:
        return [told]
    edges = [0]
    for n in (1, 2):
        at = max(edges[-1], len(told) * n // 3)
        while at < len(told) and told[at].role == "tool":
            at += 1
        edges.append(at)
    edges.append(len(told))
    return [told[a:b] for a, b in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something of a third that can be known again; a request also by most of its words."""

    text: str
    request: bool = False

    def known(self, view: View) -> bool:
        """Whether `view` tells it."""
        if self.request:
            return _told(self.text, _SHARED_OF_REQUEST, view)
        return view.has(self.text) or (
            "/" in self.text and " " not in self.text and view.names.holds(Mention(self.text, False))
        )


def _marks(messages: Sequence[Message]) -> Iterator[Mark]:
    """Paths that calls and answers name, errors, commands, requests."""
    log = work_log(messages)
    yield from (Mark(record.path.removeprefix("./")) for record in log.files)
    yield from (Mark(" ".join(run.text.split())[:60]) for run in log.runs if not run.lookup)
    for message in messages:
        if is_request(message):
            yield Mark(" ".join(tame(own_words(message)[:2000]).split())[:400], request=True)
        elif message.role == "tool":
            yield from (Mark(line[:80]) for line in error_lines(tame(message.text))[-2:])
        elif message.role == "assistant" and not message.tool_calls:
            yield from map(Mark, paths(tame(message.text[:4000]))[:3])


@dataclass(frozen=True, slots=True)
class Third:
    """A third of the span: `marks` of its own, and the items code would add, best first."""

    name: str
    marks: tuple[Mark, ...]
    candidates: tuple[tuple[str, SummaryItem], ...]

    def lacking(self, view: View) -> int:
        """How many of its facts are still to be told: at most three, fewer when it has no more."""
        known = 0
        for mark in self.marks:
            known += mark.known(view)
            if known >= _PER_THIRD:
                return 0
        return min(_PER_THIRD, len(self.marks)) - known


def thirds(span: Sequence[Message], *, cycle: int, max_chars: int) -> tuple[Third, ...]:
    """The thirds of `span` that have facts of their own, each with candidates of at most `max_chars` characters."""
    pieces = _thirds(span)
    if len(pieces) < 3:
        return ()
    marks = [tuple(dict.fromkeys(m for m in _marks(p) if len(m.text) > 3)) for p in pieces]
    found = []
    for n, (name, piece) in enumerate(zip(THIRDS, pieces, strict=True)):
        others = {m for k, other in enumerate(marks) if k != n for m in other}
        own = tuple(m for m in marks[n] if m not in others) or marks[n]
        if own:
            chosen = _candidates(piece, own, cycle, max_chars, last=n == 2)
            found.append(Third(name, own, tuple(chosen)))
    return tuple(found)


def _candidates(
    piece: Sequence[Message], marks: Sequence[Mark], cycle: int, max_chars: int, *, last: bool
) -> Iterator[tuple[str, SummaryItem]]:
    """(section, item) of the offline summary of a third that tell one of its marks; what only its end can say goes."""
    by_place: dict[str, list[SummaryItem]] = {}
    for section in offline_summary(piece, cycle=cycle, max_chars=20_000).sections:
        by_place[canonical_title(section.title)] = list(section.items)
    if not last:
        by_place.pop("next steps", None)
        by_place["current state"] = [i for i in by_place.get("current state", ()) if i.text.startswith("`")]
    used = count = 0
    order = ("session intent", "files modified", "current state", "decisions made")
    for place in order:
        for entry in by_place.get(place, ())[:4]:
            view = view_of(Summary((SummarySection("", (entry,)),)))
            if used + len(entry.text) > max_chars or count >= _CANDIDATES or not any(m.known(view) for m in marks):
                continue
            used, count = used + len(entry.text), count + 1
            yield place, entry


def with_items(summary: Summary, added: Sequence[tuple[str, SummaryItem]]) -> Summary:
    """`summary` with each item at the end of the section its place names, or of the one that comes nearest."""
    titles = [s.title for s in summary.sections]
    if not titles:
        return Summary((SummarySection("Current State", tuple(i for _, i in added)),)) if added else summary
    extra: dict[int, list[SummaryItem]] = {}
    for place, entry in added:
        at = place_for(place, titles)
        extra.setdefault(at, []).append(entry if is_files(summary.sections[at].title) else _unkeyed(entry))
    return Summary(tuple(replace(s, items=(*s.items, *extra.get(n, ()))) for n, s in enumerate(summary.sections)))


def _unkeyed(entry: SummaryItem) -> SummaryItem:
    return SummaryItem(entry.text, "", entry.first_cycle, entry.last_cycle, entry.sources, entry.status)
