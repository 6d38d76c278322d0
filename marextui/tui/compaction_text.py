"""Compactions as text for the line viewer: what one would do. Readable at 80 columns, harmless.

The texts name untrusted things (paths, messages): each goes through `one_line`, so that a row stays a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.fates import FateRow, totals
from marextui.context.preview import CompactionPreview
from marextui.context.sanitise import one_line
from marextui.tui import formats

FATE_WORDS = {
    "kept": "kept word for word",
    "condensed": "condensed into the summary",
    "omitted": "omitted, can be read back by id",
    "superseded": "earlier summary, taken into the new one",
}
_LINE = 42
"""Cells of the text of a row; with the columns before it a row fits 80 columns."""


def tok(n: int, *, about: bool = False) -> str:
    """ "~12 480 tokens", with an ordinary blank: columns of a fixed-width text never wrap at it."""
    return f"{'~' if about else ''}{formats.tokens(n)} token{'' if n == 1 else 's'}"


def messages(n: int) -> str:
    return f"{formats.tokens(n)} message{'' if n == 1 else 's'}"


def rule(title: str) -> list[str]:
    """A heading inside a text."""
    return ["", title, "─" * min(len(title), 78)]


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
    head = [f"What /compact would do now (compaction {p.cycle}). Nothing was sent, nothing is changed.", ""]
    if p.reason:
        head += [f"Nothing can be compacted: {one_line(p.reason, 300)}."]
        head += [f"The conversation takes {tok(p.tokens_now, about=p.estimated)}, {messages(p.messages_now)}."]
    else:
        cut = next((r for r in p.rows if r.message_id == p.cut), None)
        share = formats.percent(p.saved, p.tokens_now)
        head += [
            f"Now      {tok(p.tokens_now, about=p.estimated):>16}  {messages(p.messages_now):>14}",
            f"After    {tok(p.tokens_after):>16}  {messages(p.messages_after):>14}  at most",
            f"Saved    {tok(p.saved):>16}  at least {share} (the summary may take {tok(p.summary_cap)})",
            "",
            f"Kept word for word from {one_line(p.cut, 40)}: {one_line(cut.line if cut else '', 40)}",
            "",
            *fate_totals(p.rows),
        ]
    rows = [*rule("Messages, oldest first"), *fate_lines(p.rows)] if p.rows else []
    foot = ["", "/compact does it, /compact offline without a model, /compact undo takes it back."] if p.cut else []
    return "\n".join([*head, *rows, *foot])
