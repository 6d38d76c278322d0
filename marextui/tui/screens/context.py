"""`/context` (P18): what fills the next request, by category, as text that the command line could print too."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from marextui.context.breakdown import HISTORY_CATEGORIES, SYSTEM_CATEGORIES, Breakdown, Category, Share
from marextui.context.sanitise import one_line
from marextui.engine.api import ContextReport
from marextui.tui import formats
from marextui.tui.screens.reader import Reader
from marextui.tui.text import plain

SHOWN_PARTS = 5
"""Tools (schemas, and outputs) that have a row of their own."""

_NAMES: dict[Category, str] = {
    "system": "system prompt",
    "rules": "rules (MAREX.md)",
    "memory": "memory excerpt",
    "project": "project context",
    "tools": "tool descriptions",
    "summary": "summary",
    "user": "your messages",
    "assistant": "answers",
    "calls": "tool calls",
    "outputs": "tool outputs",
    "images": "images",
    "reasoning": "reasoning sent back",
    "other": "other",
}
_PARTED: tuple[Category, ...] = ("tools", "outputs", "other")
_SINGLE: tuple[Category, ...] = ("system", "rules", "memory", "project", "summary", "other")
_NAME, _FIGURE = 32, 10


def context_text(report: ContextReport) -> str:
    """The report as plain lines, at most 70 cells wide. Harmless: names of tools and parts are sanitised."""
    return "\n".join([*_frame(report), "", *_rows(report), "", *_measured(report)])


def _frame(report: ContextReport) -> Iterator[str]:
    g = report.gauge
    if g.window is None:
        yield _row("Window", None, "unknown: nothing is cut or compacted by itself")
    else:
        yield _row("Window", g.window, one_line(g.window_source, 30))
    yield _row("Reserve for the answer", g.reserve)
    if g.budget is not None:
        yield _row("Budget of the history", g.budget, "window - reserve - system")
    if g.threshold is not None:
        yield _row("Compaction from", g.threshold, f"{formats.share(g.compact_at)} of the budget")


def _rows(report: ContextReport) -> Iterator[str]:
    b, g = report.breakdown, report.gauge
    about = "~" if g.estimated else ""
    yield _row("Sent with the next request", b.total, about=about)
    yield _row("  system part", b.system_part, _share(b.system_part, b.total))
    for category in SYSTEM_CATEGORIES:
        yield from _category(b, category)
    yield _row("  history", b.used, _share(b.used, b.total), about=about)
    for category in HISTORY_CATEGORIES:
        yield from _category(b, category)
    why = "measured - estimated" if report.measured else "nothing was measured yet"
    yield _row("    not explained", b.residual, why)
    if g.budget is not None:
        yield _row("Free for history", g.budget - b.used, _share(g.budget - b.used, g.budget) + " of the budget")


def _category(b: Breakdown, category: Category) -> Iterator[str]:
    shares = b.of(category)
    if not shares:
        return
    tokens = b.tokens(category)
    count = sum(s.count for s in shares)
    many = f" ({formats.tokens(count)})" if category not in _SINGLE else ""
    yield _row(f"    {_NAMES[category]}{many}", tokens, _share(tokens, b.total))
    if category in _PARTED:
        yield from _named(shares)


def _named(shares: tuple[Share, ...]) -> Iterator[str]:
    for share in shares[:SHOWN_PARTS]:
        yield _row(f"      {one_line(share.label, _NAME - 7)}", share.tokens)
    rest = shares[SHOWN_PARTS:]
    if rest:
        yield _row(f"      {len(rest)} more", sum(s.tokens for s in rest))


def _measured(report: ContextReport) -> Iterator[str]:
    if report.measured is None:
        yield "All figures are estimates: the server has not counted this view yet."
        return
    prompt, answer = report.measured
    yield f"The server counted {formats.tokens(prompt)} tokens for the last request"
    yield f"and {formats.tokens(answer)} for its answer; what came since is estimated."


def _share(part: int, whole: int) -> str:
    return f"{formats.percent(part, whole):>5}"


def _row(name: str, tokens: int | None, note: str = "", *, about: str = "") -> str:
    figure = "" if tokens is None else f"{about}{formats.tokens(tokens)}"
    return f"{name:<{_NAME}}{figure:>{_FIGURE}}  {note}".rstrip()


class ContextScreen(Reader):
    """The breakdown, scrollable. Viewing it never enters the conversation (case 48)."""

    def __init__(self, report: ContextReport) -> None:
        super().__init__("Context")
        self.report = report

    def content(self) -> Content:
        return plain(context_text(self.report))
