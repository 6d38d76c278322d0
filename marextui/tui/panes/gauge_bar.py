"""What the gauge says, as text with styles: pure functions of a `Gauge` and a width in cells."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.cells import cell_len
from textual.content import Content

from marextui.context.sanitise import one_line
from marextui.engine.event_values import Gauge
from marextui.tui import formats
from marextui.tui.glyphs import UNICODE, Glyphs
from marextui.tui.panes.gauge_cache import Cache
from marextui.tui.text import line

ZONE_STYLES: dict[formats.Zone, str] = {
    "unknown": "bold",
    "ok": "$text-success",
    "soon": "$text-warning",
    "compacting next": "bold $text-warning",
    "over": "bold $text-error",
    "not compacting": "bold $text-error",
    "stopped": "bold $text-warning",
}
MARK_STYLE = "bold"
COUNTING = "Context: counting..."
"""Until the first figures are there: a zero would be a lie."""


def _segments(g: Gauge, glyphs: Glyphs) -> list[tuple[str, int, str, str]]:
    """(name, tokens, glyph, style) of what the history is made of, in the order of the bar."""
    return [
        ("summary", g.summary, glyphs.summary, "$text-secondary"),
        ("conversation", g.conversation, glyphs.conversation, "$text-primary"),
        ("tool outputs", g.outputs, glyphs.outputs, "$text-accent"),
    ]


def title(g: Gauge, width: int = 80) -> Content:
    """ "Context 42 % of budget · ok", words so that nobody reads a progress bar (case 47).

    Shorter where `width` cells are not enough: the word at the end must never be cut.
    """
    word = (formats.gauge_word(g), ZONE_STYLES[formats.zone(g)])
    tokens = f"{formats.about(g)}{formats.tokens(g.used + g.system_part)} tokens · "
    percent = formats.percent(g.used, g.budget)
    starts = (
        ("Context " + tokens, tokens, "")
        if g.budget is None
        else (f"Context {percent} of budget · ", f"Context {percent} · ", f"{percent} · ")
    )
    titles = [Content.assemble(start, word) for start in starts]
    return next((t for t in titles if t.cell_length <= width), titles[-1])


def subtitle(g: Gauge, width: int = 80) -> Content:
    """ "mark 65 % = 17 194 of 26 452": where compaction comes; why there is none when the window is unknown."""
    if g.budget is None:
        return Content.styled(
            "the window comes with the model" if g.loading else "no window, no compaction", "$foreground"
        )
    start = f"mark {formats.share(g.compact_at)}"
    long = f"{start} = {formats.tokens(g.threshold)} of {formats.tokens(g.budget)}"
    short = f"{start} of {formats.tokens(g.budget, compact=True)}"
    return Content.styled(long if len(long) <= width else short, "$foreground")


def cells(g: Gauge, width: int) -> list[int]:
    """Cells of a bar `width` wide for summary, conversation, tool outputs and free, summing to `width`.

    A part that holds anything gets at least one cell while there is room; an overfull budget fills the bar.
    """
    parts = [g.summary, g.conversation, g.outputs]
    budget = max(g.budget or 0, g.used, 1)
    wanted = [p * width / budget for p in parts]
    out = [max(1, math.floor(w)) if p > 0 else 0 for p, w in zip(parts, wanted, strict=True)]
    while sum(out) > width:
        out[out.index(max(out))] -= 1
    target = min(width, max(sum(out), math.floor(g.used * width / budget)))
    while sum(out) < target:  # the rounding goes where most was cut off
        rest = [w - o if p > 0 else -math.inf for p, o, w in zip(parts, out, wanted, strict=True)]
        out[rest.index(max(rest))] += 1
    return [*out, width - sum(out)]


def mark_cell(g: Gauge, width: int) -> int | None:
    """The cell of the compaction mark in a bar `width` wide; None when there is no threshold."""
    if not g.budget or g.budget <= 0 or g.threshold is None:
        return None
    return min(width - 1, math.floor(g.threshold * width / max(g.budget, g.used)))


def bar(g: Gauge, width: int, glyphs: Glyphs = UNICODE) -> Content:
    """The bar: segments, free room, and the mark where compaction comes."""
    counts = cells(g, width)
    kinds = [(glyph, style) for _, _, glyph, style in _segments(g, glyphs)] + [(glyphs.free, "$text-secondary")]
    drawn = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    mark = mark_cell(g, width)
    if mark is not None:
        drawn[mark] = (glyphs.mark, MARK_STYLE)
    runs: list[tuple[str, str]] = []
    for glyph, style in drawn:
        if runs and runs[-1][1] == style and runs[-1][0][0] == glyph:
            runs[-1] = (runs[-1][0] + glyph, style)
        else:
            runs.append((glyph, style))
    return Content.assemble(*runs)


def mark_label(g: Gauge, width: int) -> str:
    """What the mark is, placed under it: "65 % = 17 857"; always inside `width` when it fits at all."""
    text = f"{formats.share(g.compact_at)} = {formats.tokens(g.threshold)}"
    mark = mark_cell(g, width)
    if mark is None:
        return ""
    start = max(0, min(mark - 1, width - len(text)))
    return " " * start + text


def _row(mark: str, name: str, n: int, g: Gauge, width: int, style: str) -> Content:
    number = f"{formats.tokens(n):>9}"
    of = f"{formats.percent(n, g.budget):>6}" if g.budget else ""
    room = max(1, width - len(number) - len(of) - 2)
    return Content.assemble((mark, style), f" {name[:room]:<{room}}{number}{of}")


def _left(g: Gauge) -> str:
    """Tokens and turns until compaction, or why there is none."""
    about = formats.about(g)
    if g.until_compaction is None:
        return ""
    will = g.auto and not g.why_not
    if g.until_compaction == 0:
        return "past the compaction mark: " + ("the next turn compacts first" if will else "nothing compacts")
    if not will:
        return f"{about}{formats.tokens(g.until_compaction)} tokens to the compaction mark: nothing compacts there"
    text = f"{about}{formats.tokens(g.until_compaction)} tokens until compaction"
    turns = g.turns_until_compaction
    if turns is not None:
        text += f", ~{formats.tokens(turns)} turn{'' if turns == 1 else 's'} at the recent rate"
    return text


def _why(g: Gauge) -> str:
    """Why nothing will be compacted, "" when it will, or when the window is still to come."""
    if g.loading:
        return ""
    if g.why_not:
        return f"Not compacting: {one_line(g.why_not, 300)}"
    if g.budget is None:
        return "Not compacting: the window is unknown, and nothing is guessed"
    if not g.auto:
        return "Not compacting: automatic compaction is off; /compact works"
    if g.budget <= 0:
        return "The system part and the reserve leave no room in this window."
    return ""


def _system(g: Gauge) -> str:
    about = formats.about(g)
    return (
        f"System part {about}{formats.tokens(g.system_part)}: system {formats.tokens(g.system)}, "
        f"tools {formats.tokens(g.tools)}, memory {formats.tokens(g.memory)}"
        + (f", project {formats.tokens(g.project)}" if g.project else "")
    )


def _window(g: Gauge) -> str:
    if g.window is None:
        return "Window: the model that has it is loading" if g.loading else "Window unknown"
    return f"Window {formats.tokens(g.window)} ({one_line(g.window_source, 60)}), reserve {formats.tokens(g.reserve)}"


def fold(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at blanks only: Textual would also break a number at its
    no-break space. A longer word is left for the widget to fold.
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def body(g: Gauge, width: int, glyphs: Glyphs = UNICODE, cache: Cache | None = None) -> Content:
    """Everything below the title, `width` cells wide."""
    return Content("\n").join(_body(g, max(10, width), glyphs, cache or Cache()))


def _body(g: Gauge, width: int, glyphs: Glyphs, cache: Cache) -> Iterator[Content]:
    about = formats.about(g)

    def prose(text: str) -> Iterator[Content]:
        return map(Content, fold(text, width) if text else [])

    if g.budget is None:
        yield Content(f"{about}{formats.tokens(g.used)} tokens of history")
    else:
        yield Content(f"{about}{formats.tokens(g.used)} of {formats.tokens(g.budget)} tokens")
        yield bar(g, width, glyphs)
        yield Content(mark_label(g, width))
        yield from prose(_left(g))
    yield from prose(_why(g))
    for name, n, glyph, style in _segments(g, glyphs):
        yield _row(glyph, name, n, g, width, style)
    if g.budget is not None:
        yield _row(glyphs.free, "free", max(0, g.budget - g.used), g, width, "$text-secondary")
    for text in cache.lines():
        yield from prose(text)
    yield from prose(_system(g))
    yield from prose(_window(g))


def one_row(g: Gauge, width: int, glyphs: Glyphs = UNICODE) -> Content:
    """The gauge in one row of at most `width` cells: the richest wording that fits.

    Budget and compaction mark are in every one of them; only below 40 cells may the row be cut.
    """
    for candidate in _rows(g, glyphs, width):
        if candidate.cell_length <= width:
            return candidate
    return candidate.truncate(width, ellipsis=True)


def _rows(g: Gauge, glyphs: Glyphs, width: int) -> Iterator[Content]:
    about, word = formats.about(g), (formats.gauge_word(g), ZONE_STYLES[formats.zone(g)])
    total = formats.tokens(g.used + g.system_part)
    if g.budget is None and g.loading:
        yield Content.assemble(f"Context {about}{total} tokens · ", word)
        yield Content.assemble(f"{about}{formats.tokens(g.used + g.system_part, compact=True)} · ", word)
        return
    if g.budget is None:
        why = g.why_not or "nothing will be compacted"
        yield Content.assemble(f"Context {about}{total} tokens · ", word, " · ", line(why, max(20, width)))
        yield Content.assemble(f"Context {about}{total} tokens · ", word, " · not compacting")
        yield Content.assemble(f"{about}{formats.tokens(g.used + g.system_part, compact=True)} · ", word)
        return
    pct, at = formats.percent(g.used, g.budget), formats.share(g.compact_at)
    used, budget, mark = formats.tokens(g.used), formats.tokens(g.budget), formats.tokens(g.threshold)
    figures = f"{about}{used} of {budget}"
    left = _left(g)
    for bar_width in (40, 30, 20):
        drawn = bar(g, bar_width, glyphs)
        if left:
            yield Content.assemble(
                f"Context {pct} of budget ", drawn, f" {figures} · mark {at} = {mark} · ", word, f" · {left}"
            )
        yield Content.assemble(f"Context {pct} of budget ", drawn, f" {figures} · mark {at} = {mark} · ", word)
    yield Content.assemble(f"Context {pct} ", bar(g, 12, glyphs), f" {figures} · mark {at} = {mark} · ", word)
    yield Content.assemble(f"Context {pct} of budget · {figures} · mark {at} = {mark} · ", word)
    yield Content.assemble(f"Context {pct} · {figures} · mark {at} = {mark} · ", word)
    short = f"{about}{formats.tokens(g.used, compact=True)}/{formats.tokens(g.budget, compact=True)}"
    yield Content.assemble(f"Context {pct} · {short} · mark {at} · ", word)
    yield Content.assemble(f"ctx {pct} {short} mark {at} ", word)
    yield Content.assemble(f"{pct} {short} |{at} ", word)
