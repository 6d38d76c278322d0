"""`/status` (M22): every number about the context, as text."""

from __future__ import annotations

from textual.content import Content

from marextui.context.checking import Aftermath
from marextui.context.sanitise import one_line
from marextui.engine.api import StatusReport
from marextui.engine.economy import CacheState
from marextui.tui import formats
from marextui.tui.compaction_text import fetch_line
from marextui.tui.panes.gauge_cache import held_now, last_request
from marextui.tui.screens.reader import Reader
from marextui.tui.text import plain

SHOWN_TURNS = 10
"""Newest usage lines, and newest compactions, listed."""


def status_text(report: StatusReport) -> str:
    """The report as plain lines; also what the command line prints. Harmless already: untrusted parts are sanitised."""
    g = report.gauge
    about = formats.about(g)

    def tok(n: int | None) -> str:
        return f"{formats.tokens(n)} tokens" if n is not None else "unknown"

    window = f"{tok(g.window)}, from {one_line(g.window_source, 120)}" if g.window is not None else "unknown"
    rows: list[tuple[str, str]] = [
        ("Model", one_line(report.model, 200) or "none"),
        ("Server", one_line(report.server, 200) or "none"),
        ("Conversation", f"{one_line(report.title, 120) or 'untitled'} ({one_line(report.conversation_id, 80)})"),
        ("Length", f"{formats.tokens(report.turns)} turns, {formats.tokens(report.messages)} messages"),
        ("", ""),
        ("Window (W)", window),
        ("Reserve (R)", tok(g.reserve)),
        (
            "System part (S)",
            f"{about}{tok(g.system_part)}: system {formats.tokens(g.system)}, tools {formats.tokens(g.tools)}, "
            f"memory {formats.tokens(g.memory)}" + (f", project {formats.tokens(g.project)}" if g.project else ""),
        ),
        ("Budget (B)", f"{tok(g.budget)} (W - R - S)" if g.budget is not None else "unknown, because the window is"),
        ("Compact at", f"{formats.share(g.compact_at)} of the budget"),
        ("Threshold", tok(g.threshold)),
        ("History (H)", _history(report)),
        (
            "  of it",
            f"summary {formats.tokens(g.summary)}, conversation {formats.tokens(g.conversation)}, "
            f"tool outputs {formats.tokens(g.outputs)}",
        ),
        ("State", formats.gauge_word(g)),
        ("Last request", _last_request(report.cache)),
        ("", ""),
        ("Auto-compaction", "on" if report.auto_compress else "off"),
        ("Will compact", _will(report)),
        ("Last compaction", one_line(report.last_compaction, 300) or "none yet"),
        ("Last failure", one_line(report.last_failure, 300) or "none"),
        ("", ""),
        ("Stored in", one_line(report.data_path, 300)),
    ]
    out = [f"{name:<17}{value}".rstrip() for name, value in rows]
    if report.economy:
        out += ["", "Local engine"]
        out += [f"  {line.key} is {line.state}. {one_line(line.why, 600)}" for line in report.economy]
    if report.aftermaths:
        out += ["", "Compactions (newest first)"]
        out += [f"  {_aftermath(a)}" for a in reversed(report.aftermaths[-SHOWN_TURNS:])]
    if report.usage:
        out += ["", "Tokens by turn (newest first)"]
        for usage in reversed(report.usage[-SHOWN_TURNS:]):
            model = one_line(usage.model, 60)
            steps = f"{usage.steps} step{'' if usage.steps == 1 else 's'}"
            spent = formats.duration(usage.seconds)
            out.append(f"  turn {usage.turn}: {one_line(formats.usage_line(usage), 200)} · {steps} · {spent} · {model}")
    return "\n".join(out)


def _aftermath(a: Aftermath) -> str:
    facts = [formats.probes(a.checked) if a.checked is not None else "not checked"]
    if a.fetches is not None and a.fetches.fetches:
        facts.append(fetch_line(a.fetches))
    return f"{a.cycle}{' (undone)' if a.undone else ''}: {' · '.join(facts)}"


def _last_request(cache: CacheState) -> str:
    told = "; ".join((*last_request(cache), *held_now(cache)))
    return told.removeprefix("Last request: ") or "cache not reported"


def _history(report: StatusReport) -> str:
    g = report.gauge
    text = f"{formats.about(g)}{formats.tokens(g.used)} tokens"
    return f"{text}, {formats.percent(g.used, g.budget)} of the budget" if g.budget else text


def _will(report: StatusReport) -> str:
    reason = report.why_no_compaction or report.gauge.why_not
    if reason:
        return f"no: {one_line(reason, 300)}"
    return f"yes, {one_line('; '.join(report.triggers), 400)}" if report.triggers else "yes, at the threshold"


class StatusScreen(Reader):
    """The report, scrollable. Viewing it never enters the conversation (case 48)."""

    def __init__(self, report: StatusReport) -> None:
        super().__init__("Status")
        self.report = report

    def content(self) -> Content:
        return plain(status_text(self.report))
