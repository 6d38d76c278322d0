"""Items that leave the view of a summary: told apart by section, stored as a text, an id in their place (P10, I6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace

from marextui.context.entries import Folded, Summary, SummaryItem, SummarySection
from marextui.context.fusion import fit
from marextui.context.section_titles import canonical_title, plain
from marextui.context.summary_render import folded_line, item_line, render_sections

PENDING = "omitted-000000"
"""Stands for the id that the store will give out: none is ever numbered 0, and none is longer for a long time."""

MOST_IDS = 8
"""Ids a section remembers."""
LEAST_CHARS = 160
"""Characters below which nothing is gained by making a summary shorter."""
_CHARS_PER_TOKEN = 4
_ITEM = re.compile(r"- (.*?)(?: \[(?:superseded|done)\])? \(cycles? \d{1,9}(?:–\d{1,9})?\)")
_STATUS = {"active": "", "superseded": " [superseded]", "done": " [done]"}


NOTHING = Summary(())


@dataclass(frozen=True, slots=True)
class Fitted:
    """A `summary` within its size, and the items that had no room in it, by section."""

    summary: Summary
    folded: Summary


def parted(summary: Summary, cap_chars: int) -> Fitted:
    """`summary` within `cap_chars` characters, and what was taken out of it (`fusion.fit`)."""
    kept, taken = fit(summary, cap_chars)
    return Fitted(kept, picked(summary, set(map(id, taken))))


def picked(summary: Summary, identities: Container[int]) -> Summary:
    """The items of `summary` with those identities, by section."""
    found = ((s.title, tuple(i for i in s.items if id(i) in identities)) for s in summary.sections)
    return Summary(tuple(SummarySection(title, items) for title, items in found if items))


def fold_out(summary: Summary, cap_chars: int) -> Fitted:
    """As `parted`, with `PENDING` in place of what was taken out. That may take a few characters more."""
    fitted = parted(summary, cap_chars)
    return Fitted(in_place(fitted.summary, fitted.folded), fitted.folded)


def fit_tokens(summary: Summary, cap: int, count: Callable[[str], int]) -> Fitted:
    """As `fold_out`, within `cap` tokens by `count`: characters are no measure where a script takes a token for each
    (case 91). A summary of headings alone may be longer.

    Where the lines with ids would take more than a quarter of it, one line in the first of their sections names them.
    """
    chars = cap * _CHARS_PER_TOKEN
    while True:
        fitted = fold_out(summary, chars)
        lines = "\n".join(folded_line(s.folded) for s in fitted.summary.sections)
        if count(lines) > cap / 4:
            fitted = replace(fitted, summary=gathered(fitted.summary))
        size = count(render_sections(fitted.summary))
        if size <= cap or chars <= LEAST_CHARS:
            return fitted
        chars = max(LEAST_CHARS, min(chars * 9 // 10, int(chars * cap / size)))


def gathered(summary: Summary) -> Summary:
    """`summary` with all that was folded out of it named in the first section something left."""
    counts: dict[str, int] = {}
    for folded in sorted((f for s in summary.sections for f in s.folded), key=lambda f: f.omission_id == PENDING):
        counts[folded.omission_id] = counts.get(folded.omission_id, 0) + folded.count
    together = tuple(Folded(omission_id, n) for omission_id, n in counts.items())
    while len(together) > MOST_IDS:
        together = _shorter(together)
    first = next((n for n, s in enumerate(summary.sections) if s.folded), -1)
    return Summary(tuple(replace(s, folded=together if n == first else ()) for n, s in enumerate(summary.sections)))


def _shorter(folded: Sequence[Folded]) -> tuple[Folded, ...]:
    """Of many ids the oldest goes: the text of the next one names it (I16)."""
    first, second, *rest = folded
    return Folded(second.omission_id, first.count + second.count), *rest


def in_place(summary: Summary, gone: Summary) -> Summary:
    """`summary` with `PENDING` standing for the items of `gone` in their sections; one it lacks is added."""
    counts = {canonical_title(s.title): s for s in gone.sections}
    sections = [
        _counted(s, counts.pop(canonical_title(s.title)).items) if canonical_title(s.title) in counts else s
        for s in summary.sections
    ]
    sections += [_counted(SummarySection(s.title, ()), s.items) for s in counts.values()]
    return Summary(tuple(sections))


def carried(summary: Summary, earlier: Summary) -> Summary:
    """`summary` with the ids that stand in the sections of `earlier`; a section it lacks is added for its ids."""
    ids: dict[str, SummarySection] = {}
    for section in earlier.sections:
        if section.folded:
            known = ids.setdefault(canonical_title(section.title), SummarySection(section.title, ()))
            ids[canonical_title(section.title)] = replace(known, folded=(*known.folded, *section.folded))
    sections = []
    for section in summary.sections:
        before = ids.pop(canonical_title(section.title), None)
        sections.append(section if before is None else replace(section, folded=(*before.folded, *section.folded)))
    return Summary((*sections, *ids.values()))


def _counted(section: SummarySection, gone: Sequence[SummaryItem]) -> SummarySection:
    """Only items that stood in the view are missed there; others are stored all the same."""
    shown = sum(i.status == "active" for i in gone)
    before = section.folded
    if before and before[-1].omission_id == PENDING:
        before, shown = before[:-1], before[-1].count + shown
    if len(before) >= MOST_IDS:
        before = _shorter(before)
    return replace(section, folded=(*before, Folded(PENDING, shown)))


def named(summary: Summary, omission_id: str) -> Summary:
    """`summary` with the id the store gave instead of `PENDING`; "" takes `PENDING` out: nothing was stored."""

    def told(folded: Folded) -> Iterator[Folded]:
        if folded.omission_id != PENDING:
            yield folded
        elif omission_id:
            yield replace(folded, omission_id=omission_id)

    return Summary(tuple(replace(s, folded=tuple(f for o in s.folded for f in told(o))) for s in summary.sections))


def joined(kept: Summary, *parts: Summary) -> Summary:
    """The items of `parts` by section, each once, without those that stand in `kept` as they are."""
    standing = {
        (canonical_title(s.title), plain(i.text)) for s in kept.sections for i in s.items if i.status == "active"
    }
    titles: dict[str, str] = {}
    found: dict[str, dict[tuple[str, str], SummaryItem]] = {}
    for section in (s for part in parts for s in part.sections):
        key = canonical_title(section.title)
        for item in section.items:
            if (key, plain(item.text)) not in standing:
                titles.setdefault(key, section.title)
                found.setdefault(key, {}).setdefault((plain(item.text), item.status), item)
    return Summary(tuple(SummarySection(titles[key], tuple(items.values())) for key, items in found.items()))


def folded_text(gone: Summary, cycle: int, summary: Summary) -> str:
    """What is stored of the items of `gone` in compaction `cycle`: each as it stood, with its cycle and status.

    Ends with the ids under which `summary` keeps what was folded out before, so that one leads to all.
    """
    lines = [f"Items folded out of the summary in compaction {cycle}, to keep it within its size."]
    for section in gone.sections:
        lines += ["", f"## {section.title}"]
        lines += [item_line(replace(i, text=i.text + _STATUS[i.status])) for i in section.items]
    before = dict.fromkeys(f.omission_id for s in summary.sections for f in s.folded if f.omission_id != PENDING)
    if before:
        lines += ["", f"Folded out earlier: {', '.join(before)}"]
    return "\n".join(lines)


def read_folded(text: str) -> tuple[str, ...]:
    """The texts of the items in a stored text, as `folded_text` wrote it; secrets it held are placeholders now."""
    return tuple(m.group(1) for m in map(_ITEM.fullmatch, text.splitlines()) if m is not None)


def items_of(summary: Summary) -> tuple[SummaryItem, ...]:
    """All items, section by section."""
    return tuple(i for s in summary.sections for i in s.items)
