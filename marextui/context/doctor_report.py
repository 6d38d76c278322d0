"""An examination as text and as JSON. Everything a server said passes the sanitiser here.

The JSON (`"schema": 1`; keys are only ever added):

    schema, complete, usable, url, local, kind, version, model, models, problem, ended
    window         {tokens, source, trained_only}
    findings       [{id, verdict: "yes" | "no" | "unknown", words, meaning}]
    measurements   {name: {computed, cached, first_token_s}}, names: opening, continuation, separate, back, prewarmed
    savings        [{name, computed, instead_of, times_sooner}]
    settings       [{key, value, line, why, set_already}]
    sent           {requests, prompt_tokens, at_most: {requests, prompt_tokens, answer_tokens}}

Numbers the server did not tell are null; `prompt_tokens` are the server's own count of all requests, 0 without one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.doctor_chart import Chart
from marextui.context.doctor_findings import Advice, Finding, Verdict, findings, savings, tokens
from marextui.context.doctor_requests import Bound
from marextui.context.omission import grouped
from marextui.context.sanitise import one_line

SCHEMA = 1
MARKS: dict[Verdict, str] = {"yes": "✓", "no": "✗", "unknown": "?"}
_ROWS = {
    "opening": "first request, nothing cached",
    "continuation": "summary by going on",
    "separate": "summary by a request of its own",
    "back": "next turn after that",
    "prewarmed": "turn whose prompt was sent ahead",
}
TELLING = 1.5
"""A first word that came fewer times sooner says nothing: times of one run differ that much by themselves."""
_SHOWN = 300
"""Most cells of one text of the server."""

Tone = Literal["", "title", "yes", "no", "unknown", "faint", "code"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the report; `tone` is how its first `lead` characters may be coloured (all of them when 0)."""

    text: str
    tone: Tone = ""
    lead: int = 0


def _said(text: str) -> str:
    return one_line(text, _SHOWN)


def statement(url: str, limit: Bound, *, local: bool, note: str = "", width: int = 100) -> list[Line]:
    """What is sent, told before anything is; `note` is a further sentence."""
    told = (
        f"Sends {one_line(url)} at most {limit.requests} requests: about {grouped(limit.about)} tokens, never more "
        f"than {grouped(limit.tokens)}, and asks for at most {grouped(limit.answers)} tokens of answers."
    )
    if not local:
        told += " It is not a local server: this may cost money."
    return [*_wrapped(told, "", width), *(_wrapped(note, "", width) if note else ())]


def report(chart: Chart, advised: Sequence[Advice], *, config: str, width: int = 100) -> list[Line]:
    """The report, `width` cells wide. `config` is the settings file."""
    lines = [*_head(chart, width)]
    found = findings(chart)
    label = max((len(f.label) for f in found), default=0)
    for finding in found:
        lines += _row(finding, label, width)
    lines += _measurements(chart, width)
    lines += _settings(advised, config, width)
    if chart.requests:
        counted = f", {grouped(chart.counted)} prompt tokens by the server's own count" if chart.counted else ""
        lines += [Line(""), Line(f"Sent {chart.requests} requests{counted}.", "faint")]
    return lines


def _head(chart: Chart, width: int) -> list[Line]:
    lines = []
    if chart.problem:
        lines += _wrapped(f"This server cannot be used. {_said(chart.problem)}", "", width, tone="no")
    elif chart.usable:
        lines.append(Line(f"{_said(chart.name)} can be used.", "yes"))
    else:
        lines.append(Line(f"{_said(chart.name)}: not known whether it can be used.", "unknown"))
    if chart.ended:
        lines += _wrapped(f"Not everything was looked at: {_said(chart.ended)}", "", width, tone="unknown")
    return [*lines, Line("")]


def _row(finding: Finding, label: int, width: int) -> list[Line]:
    head = f"{MARKS[finding.verdict]} {finding.label:<{label}}  "
    lines = _wrapped(f"{head}{_said(finding.words)}", " " * len(head), width, tone=finding.verdict, lead=1)
    if finding.meaning:
        lines += _wrapped(f"{' ' * len(head)}{finding.meaning}", " " * len(head), width, tone="faint")
    return lines


def _wrapped(text: str, indent: str, width: int, *, tone: Tone = "", lead: int = 0) -> list[Line]:
    pieces = textwrap.wrap(
        text, max(width, len(indent) + 24), subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
    )
    return [Line(p, tone if not i or not lead else "", lead if not i else 0) for i, p in enumerate(pieces)]


def _measurements(chart: Chart, width: int) -> list[Line]:
    rows = [(words, chart.measured[name]) for name, words in _ROWS.items() if name in chart.measured]
    if not rows:
        return []
    label = max(len(words) for words, _ in rows)
    lines = [
        Line(""),
        *_wrapped("Measured once, on a small prompt; a longer conversation gains more:", "", width, tone="title"),
        Line(f"  {'':<{label}}  {'computed':>9} {'from cache':>11} {'first word':>12}", "faint"),
    ]
    for words, m in rows:
        lines.append(
            Line(f"  {words:<{label}}  {tokens(m.computed):>9} {tokens(m.cached):>11} {m.first_token:>10.2f} s")
        )
    for saving in savings(chart):
        name = "A summary by going on" if saving.name == "continuation" else "A turn computed ahead"
        told = []
        if saving.computed is not None and saving.instead_of is not None:
            told.append(f"computed {grouped(saving.computed)} tokens instead of {grouped(saving.instead_of)}")
        if saving.sooner is not None and saving.sooner >= TELLING:
            told.append(f"its first word came {saving.sooner:.1f} times sooner")
        if told:
            lines += _wrapped(f"  {name}: {'; '.join(told)}.", "  ", width)
    return lines


def _settings(advised: Sequence[Advice], config: str, width: int) -> list[Line]:
    if not advised:
        return []
    label = max(len(a.line) for a in advised)
    head = f"Settings for this server, to put into {config}:"  # the path stays whole: it is to be copied
    lines = [
        Line(""),
        *(Line(part, "title") for part in textwrap.wrap(head, width, break_long_words=False, break_on_hyphens=False)),
    ]
    for a in advised:
        why = f"{a.why} (set already)" if a.set_already else a.why
        lines.append(Line(f"  {a.line:<{label}}  # {why}", "code", 2 + len(a.line)))
    return lines


def as_json(chart: Chart, advised: Sequence[Advice], limit: Bound) -> dict[str, Any]:
    """The examination as plain data; see the module."""
    return {
        "schema": SCHEMA,
        "complete": not chart.ended and not chart.problem,
        "usable": chart.usable,
        "url": _said(chart.url),
        "local": chart.local,
        "kind": chart.kind,
        "version": _said(chart.version),
        "model": _said(chart.model),
        "models": chart.models,
        "problem": _said(chart.problem),
        "ended": _said(chart.ended),
        "window": {"tokens": chart.window, "source": chart.window_from, "trained_only": chart.trained},
        "findings": [
            {"id": f.id, "verdict": f.verdict, "words": _said(f.words), "meaning": f.meaning} for f in findings(chart)
        ],
        "measurements": {
            name: {"computed": m.computed, "cached": m.cached, "first_token_s": round(m.first_token, 4)}
            for name, m in chart.measured.items()
        },
        "savings": [
            {
                "name": s.name,
                "computed": s.computed,
                "instead_of": s.instead_of,
                "times_sooner": None if s.sooner is None else round(s.sooner, 2),
            }
            for s in savings(chart)
        ],
        "settings": [
            {"key": a.key, "value": a.value, "line": a.line, "why": a.why, "set_already": a.set_already}
            for a in advised
        ],
        "sent": {
            "requests": chart.requests,
            "prompt_tokens": chart.counted,
            "at_most": {
                "requests": limit.requests,
                "prompt_tokens": limit.tokens,
                "answer_tokens": limit.answers,
            },
        },
    }
