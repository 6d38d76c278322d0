"""Compactions as text for the line viewer: what one would do, what one did. Readable at 80 columns, harmless.

The texts name untrusted things (paths, messages): each goes through `one_line`, so that a row stays a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from marextui.context.compaction_diff import CompactionDiff, ItemChange
from marextui.context.entries import CompactionChecked
from marextui.context.fates import FateRow, totals
from marextui.context.preview import CompactionPreview
from marextui.context.probes import Check
from marextui.context.refetch import FetchReport
from marextui.context.sanitise import one_line
from marextui.engine.events import ProbesAnswered
from marextui.tui import formats
from marextui.tui.items import ordered_sections

FATE_WORDS = {
    "kept": "word for word",
    "condensed": "in the summary instead",
    "omitted": "can be read back by id",
    "superseded": "taken into the new summary",
}
_LINE = 40
"""Cells of the text of a row; with the columns before it, frame and line numbers it fits 80 columns."""


def tok(n: int, *, about: bool = False) -> str:
    """ "~12 480 tokens", with an ordinary blank: columns of a fixed-width text never wrap at it."""
    return f"{'~' if about else ''}{formats.tokens(n)} token{'' if n == 1 else 's'}"


def messages(n: int) -> str:
    return f"{formats.tokens(n)} message{'' if n == 1 else 's'}"


def rule(title: str) -> list[str]:
    """A heading inside a text."""
    return ["", title, "=" * min(len(title), 78)]


def fate_lines(rows: Sequence[FateRow]) -> list[str]:
    """One line per message: fate, role, tokens, what it says."""
    return [f"{r.fate:<10}  {r.role:<9}  {formats.tokens(r.tokens):>7}  {_said(r)}".rstrip() for r in rows]


def _said(row: FateRow) -> str:
    mark = f"[{one_line(row.omission_id, 16)}] " if row.omission_id else ""
    return mark + one_line(row.line, _LINE - len(mark))


def fate_totals(rows: Sequence[FateRow]) -> list[str]:
    """How many messages and tokens share each fate."""
    return [
        f"{fate:<10}  {messages(count):>14}  {tok(size):>14}  {FATE_WORDS[fate]}"
        for fate, (count, size) in totals(rows).items()
    ]


def preview_text(p: CompactionPreview) -> str:
    """`/compact preview`."""
    head = [f"What /compact would do now (compaction {p.cycle}). Nothing is sent or changed."]
    head += [*_unasked(p), ""]
    if p.reason:
        head += [f"Nothing can be compacted: {one_line(p.reason, 300)}."]
        head += [f"The conversation takes {tok(p.tokens_now, about=p.estimated)}, {messages(p.messages_now)}."]
    else:
        cut = next((r for r in p.rows if r.message_id == p.cut), None)
        share = formats.percent(p.saved, p.tokens_now)
        head += [
            f"Now      {tok(p.tokens_now, about=p.estimated):>16}  {messages(p.messages_now):>14}",
            f"After    {tok(p.tokens_after):>16}  {messages(p.messages_after):>14}  at most",
            f"Saved    {tok(p.saved):>16}  at least {share} (summary: up to {tok(p.summary_cap)})",
            "",
            f"Kept word for word from {one_line(p.cut, 40)}: {one_line(cut.line if cut else '', 40)}",
            "",
            *fate_totals(p.rows),
        ]
    rows = [*rule("Messages, oldest first"), *fate_lines(p.rows)] if p.rows else []
    foot = ["", "/compact does it, /compact offline without a model,", "/compact undo takes it back."] if p.cut else []
    return "\n".join([*head, *rows, *foot])


def _unasked(p: CompactionPreview) -> list[str]:
    """When a compaction begins by itself, as lines."""
    if not p.triggers:
        return ["None begins by itself: auto_compress = false."]
    return ["By itself one begins:", *(f"- {one_line(t, 70)}" for t in p.triggers)]


def diff_text(d: CompactionDiff) -> str:
    """What a compaction changed, for the viewer in its diff colours: "+" is new in the summary, "-" left it."""
    e = d.entry
    state = " It was undone: none of this applies any more." if d.undone else ""
    out = [
        f"Compaction {e.cycle} ({one_line(e.trigger, 20)}), summary by {one_line(e.summarizer, 60)} "
        f"in {formats.duration(e.seconds)}.{state}",
        "",
        f"Before   {tok(e.tokens_before):>16}  {messages(e.messages_before):>14}",
        f"After    {tok(e.tokens_after):>16}  {messages(e.messages_after):>14}",
        "",
        *fate_totals(d.rows),
        *rule("Summary: + new, = carried over, - superseded or done"),
        *_summary_lines(d),
    ]
    out += [*_survival(d.checked), *_fetches(d.fetches)]
    folded = d.changed("folded")
    if folded:
        title = "Folded out of the summary to keep its size; readable by id"
        out += [*rule(title), *(f"- [{one_line(c.by, 16)}] {_item(c)}" for c in folded)]
    gone = d.changed("gone")
    if gone:
        out += [*rule("No longer in the summary"), *(f"- {_item(c)}" for c in gone)]
    if d.memory:
        out += [*rule("Kept in long-term memory (MEMORY.md)"), *(f"* {one_line(f, 300)}" for f in d.memory)]
    out += [*rule("Messages of the view before it, oldest first"), *fate_lines(d.rows)]
    return "\n".join(out)


def _survival(checked: CompactionChecked | None) -> Iterator[str]:
    if checked is None:
        return
    yield from rule("Facts looked for after it, without a model")
    yield formats.probes(checked)
    yield from (f"- {one_line(text, 300)}" for text in checked.lost)


def _fetches(report: FetchReport | None) -> Iterator[str]:
    if report is None or not report.fetches:
        return
    yield from rule("Reads since")
    yield fetch_line(report)
    yield from (f"- again: {one_line(f.what, 120)}" for f in report.refetched)
    yield from (f"* needless, it was in view: {one_line(f.what, 100)}" for f in report.regretted)


def fetch_line(report: FetchReport) -> str:
    """ "3 of 12 reads fetched again (25 %), 1 of what was still in view" (P20)."""
    again, needless = len(report.refetched), len(report.regretted)
    share = formats.percent(again, report.fetches) if report.fetches else formats.share(0)
    reads = f"{again} of {report.fetches} read{'' if report.fetches == 1 else 's'} fetched again ({share})"
    return f"{reads}, {needless} of what was still in view"


def check_text(checks: Sequence[Check]) -> str:
    """`/context check`: five lines, passed or not (P19)."""
    lines = [f"{'ok' if c.passed else 'LOOK':<5} {c.name:<22} {one_line(c.detail, 300)}" for c in checks]
    return "\n".join(["Computed from the log, for the compaction in force.", "", *lines])


def probe_text(event: ProbesAnswered) -> str:
    """`/probe`: what was asked, what the model answered, what was expected."""
    right = sum(g.correct for g in event.graded)
    out = [
        f"The model was asked about what compaction {event.cycle} cut away.",
        "Neither questions nor answers entered the conversation.",
        f"{right} of {len(event.graded)} answers contain what was expected.",
    ]
    for n, graded in enumerate(event.graded, start=1):
        sign = "+" if graded.correct else "-"
        out += [
            "",
            f"{n}. {one_line(graded.probe.question, 200)}  ({graded.probe.kind})",
            f"{sign} {one_line(graded.answer, 300) or 'no answer'}",
        ]
        if not graded.correct:
            out.append(f"= {one_line(' | '.join(graded.probe.expected), 300)}")
    return "\n".join(out)


def _summary_lines(d: CompactionDiff) -> Iterator[str]:
    """Sections in their order, the two that people check first at the top (P18)."""
    for section in ordered_sections(d.entry.summary):
        mine = [c for c in d.items if c.section == section.title and c.change not in ("gone", "folded")]
        if not mine:
            continue
        yield one_line(section.title, 80)
        for change in mine:
            sign = {"new": "+", "carried": "="}.get(change.change, "-")
            note = "" if sign != "-" else f", {change.change}"
            by = f' by "{one_line(change.by, 120)}"' if change.by else ""
            yield f"{sign} {_item(change)}{note}{by}"


def _item(change: ItemChange) -> str:
    first, last = change.item.first_cycle, change.item.last_cycle
    tag = f"(cycle {last})" if first == last else f"(cycles {first}-{last})"
    return f"{one_line(change.item.text, 300)} {tag}"
