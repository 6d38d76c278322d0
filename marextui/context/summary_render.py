"""How a summary looks in the view: headings, bullets, cycle tags (P6, P11)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marextui.context.entries import Folded, Summary, SummaryItem, SummarySection
from marextui.context.section_titles import is_files
from marextui.context.sections import rule_of

EMPTY = "none"
"""What stands under a heading without items."""

_REPLACED_CHARS = 80
_FOLDED_IDS = 3
"""Newest ids named in the view; each entry names the ones before it."""


def item_line(item: SummaryItem, replaces: str = "", *, cites: bool = False) -> str:
    """The bullet of `item`, ending with its cycle tag (P11); `replaces` is the text it supersedes (P10).

    With `cites` it names the messages it quotes.
    """
    first, last = item.first_cycle, item.last_cycle
    tag = f"(cycle {last})" if first == last else f"(cycles {first}–{last})"
    note = ""
    if replaces:
        quoted = replaces.replace('"', "'")
        if len(quoted) > _REPLACED_CHARS:
            quoted = quoted[: _REPLACED_CHARS - 1].rstrip() + "…"
        note = f' (supersedes: "{quoted}")'
    cited = f" (said in {', '.join(item.sources)})" if cites and item.sources else ""
    return f"- {item.text}{cited}{note} {tag}"


def folded_line(folded: Sequence[Folded]) -> str:
    """The bullet that stands for items folded out of the section, "" when none of them ever stood there."""
    count = sum(f.count for f in folded)
    if not count:
        return ""
    ids = ", ".join(f.omission_id for f in reversed(folded[-_FOLDED_IDS:]))
    return f"- … {count} earlier item{'' if count == 1 else 's'} → ReadOmittedContent {ids}"


FOLDED_LINE = re.compile(r"… \d{1,9} earlier items? → ReadOmittedContent omitted-\d{3,}(?:, omitted-\d{3,})*")
"""What `folded_line` writes, without its bullet: never an item, whoever repeats it."""


def render_section(section: SummarySection) -> str:
    """Heading and active items; a decision that replaced another says which, a requirement who said it (I12)."""
    replaced = {}
    if not is_files(section.title):
        replaced = {i.key: i.text for i in section.items if i.status == "superseded" and i.key}
    cites = rule_of(section.title) == "quoted"
    lines = [item_line(i, replaced.get(i.key, ""), cites=cites) for i in section.items if i.status == "active"]
    if more := folded_line(section.folded):
        lines.append(more)
    return "\n".join([f"## {section.title}", *(lines or [EMPTY])])


def render_sections(summary: Summary) -> str:
    """All sections, a blank line between them."""
    return "\n\n".join(render_section(s) for s in summary.sections)
