"""How a summary looks in the view: headings, bullets, cycle tags (P6, P11)."""

from __future__ import annotations

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.section_titles import is_files
from marextui.context.sections import rule_of

EMPTY = "none"
"""What stands under a heading without items."""

_REPLACED_CHARS = 80


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


def render_section(section: SummarySection) -> str:
    """Heading and active items; a decision that replaced another says which, a requirement who said it (I12)."""
    replaced = {}
    if not is_files(section.title):
        replaced = {i.key: i.text for i in section.items if i.status == "superseded" and i.key}
    cites = rule_of(section.title) == "quoted"
    lines = [item_line(i, replaced.get(i.key, ""), cites=cites) for i in section.items if i.status == "active"]
    return "\n".join([f"## {section.title}", *(lines or [EMPTY])])


def render_sections(summary: Summary) -> str:
    """All sections, a blank line between them."""
    return "\n\n".join(render_section(s) for s in summary.sections)
