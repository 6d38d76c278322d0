"""Structured summaries: reading a model's reply as data and rendering it for the view (P6–P8, P11)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.facts import paths
from marextui.context.fusion import fit
from marextui.context.reply_check import SummaryRejected, check_reply, says_nothing, unfenced, without_wrapping
from marextui.context.section_titles import canonical_title, is_files, plain
from marextui.context.sections import SECTIONS, place_for
from marextui.context.summary_render import EMPTY, FOLDED_LINE, render_sections

UNSTRUCTURED = "unstructured"
"""`key` of the items of a reply without any heading (P6)."""

LONG_ITEM = 400
"""Characters from which an item is a lump that is cut into pieces."""

_HASH_HEADING = re.compile(r"\s{0,3}(#{1,6})\s*(.*?)\s*#*\s*$")
_BOLD_HEADING = re.compile(r"\s*(?:[-*+•]\s+|\d{1,2}[.)]\s+)?(\*\*|__)(.+?)\1\s*[:：]?\s*(.*)$")
_TAG_HEADING = re.compile(r"\s*<([A-Za-z][\w ]{2,40})>\s*(.*)$")
_PLAIN_HEADING = re.compile(r"\s*(?:[-*+•]\s+|\d{1,2}[.)]\s+)?([^:：]{3,45}?)\s*(?:[:：]\s*(.*))?$")
_UNDERLINE = re.compile(r"\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$")
_BULLET = re.compile(r"^(\s*)(?:[-*+•–—‣◦▪●]|\d{1,3}[.)])\s+(.*)$")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]+\|?\s*$")
_SENTENCE_END = re.compile(r"[.!?…;](?=\s)|[。！？；]")
_CYCLE_TAG = re.compile(r"\s*\(cycles? (\d{1,6})(?:[–-](\d{1,6}))?\)\s*$")
_SAID_IN = re.compile(r"\s*\(said in [\w-]{1,60}(?:, [\w-]{1,60})*\)\s*$")
_REPLACES = re.compile(r'\s*\(supersedes: "[^"]*"\)\s*$')


def path_key(text: str) -> str:
    """The path an item is about, `./` and quotes removed; "" when it names none."""
    lead = re.match(r"\s*(?:`([^`]+)`|\*\*([^*]+)\*\*|\"([^\"]+)\")", text)
    quoted = next((g for g in lead.groups() if g), "") if lead else ""
    found = paths(quoted or text) or paths(text)
    if found:
        return found[0].removeprefix("./")
    word = re.match(r"([^\s:]+)(?:\s*[:(]|\s+[-–—]\s|$)", quoted or text.strip())
    return word.group(1).strip("`*\"'") if word else ""


@dataclass(slots=True)
class _Draft:
    """A section being read: finished items and the open one."""

    title: str
    known: bool
    level: int = 2
    items: list[str] = field(default_factory=list)
    indent: int = 0
    open: bool = False
    label: str = ""
    none: bool = False

    def start(self, text: str, indent: int) -> None:
        self.items.append(f"{self.label}{text}")
        self.indent, self.open = indent, True

    def extend(self, text: str, joint: str = " ") -> None:
        last = self.items[-1]
        self.items[-1] = f"{last} {text}" if last.endswith((":", "：")) else f"{last}{joint}{text}"


def _heading(line: str, wanted: dict[str, str]) -> tuple[str, int, str, bool] | None:
    """(title, level, rest of the line, whether it is a configured section) when `line` is a heading."""
    if m := _HASH_HEADING.fullmatch(line):
        title, _, rest = re.sub(r"[*_`]", "", m.group(2)).partition(":")
        title = title.strip()
        if not title:
            return None
        known = wanted.get(canonical_title(title))
        return known or re.sub(r"^\d+[.)]\s*", "", title), len(m.group(1)), rest.strip(), known is not None
    for pattern, group in ((_BOLD_HEADING, 2), (_TAG_HEADING, 1), (_PLAIN_HEADING, 1)):
        m = pattern.fullmatch(line)
        known = wanted.get(canonical_title(m.group(group))) if m else None
        if m and known:
            rest = (m.group(m.re.groups) or "").strip()
            # "- Status: green" is an item of its section; "Current state: green" on a line of its own is a heading
            if pattern is _PLAIN_HEADING and rest and (_BULLET.match(line) or " " not in m.group(1).strip()):
                return None
            if pattern is _PLAIN_HEADING and _BULLET.match(line) and not line.rstrip().endswith((":", "：")):
                return None
            return known, 2, rest, True
    return None


def _table_row(line: str) -> str:
    return ": ".join(c for c in (cell.strip() for cell in line.strip().strip("|").split("|")) if c)


def _read(text: str, wanted: dict[str, str], fallback: str) -> tuple[list[_Draft], bool]:
    """Sections in the order of the reply, and whether it had any heading of a configured one."""
    drafts = [_Draft(fallback, True)]
    structured, fence, code = False, "", list[str]()
    lines = text.splitlines()
    for n, line in enumerate(lines):
        now = drafts[-1]
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence:
            if mark and mark.group(1).startswith(fence):
                joined = " ⏎ ".join(c.strip() for c in code if c.strip())
                if joined and now.open:
                    now.extend(joined)
                elif joined:
                    now.start(joined, 0)
                fence, code = "", []
            else:
                code.append(line)
            continue
        if mark:
            fence = mark.group(1)
            continue
        if not line.strip() or _UNDERLINE.fullmatch(line) or re.fullmatch(r"\s*</[\w ]+>\s*", line):
            now.open = now.open and bool(line.strip())
            continue
        heading = _heading(line, wanted)
        if heading:
            title, level, rest, known = heading
            if known:
                structured = True
                drafts.append(_Draft(title, True, level))
            elif structured and now.known and level > now.level:
                now.label, now.open = f"{title}: ", False
            else:
                drafts.append(_Draft(title, False, level))
            drafts[-1].none = bool(rest) and says_nothing(rest)
            if rest and not says_nothing(rest):
                drafts[-1].start(rest, 0)
            continue
        if line.lstrip().startswith("|") and line.rstrip().endswith("|"):
            following = lines[n + 1] if n + 1 < len(lines) else ""
            if not _TABLE_RULE.fullmatch(line) and not ("-" in following and _TABLE_RULE.fullmatch(following)):
                now.start(_table_row(line), 0)
            continue
        bullet = _BULLET.match(line)
        if bullet:
            indent, content = len(bullet.group(1).expandtabs(4)), bullet.group(2).strip()
            if now.open and now.items and indent > now.indent + 1:
                now.extend(content, "; ")
            else:
                now.start(content, indent)
        elif now.open and now.items and not (is_files(now.title) and _opens_with_path(line)):
            now.extend(line.strip())
        else:
            now.start(line.strip(), 0)
    if code:
        drafts[-1].start(" ⏎ ".join(c.strip() for c in code if c.strip()), 0)
    return drafts, structured


def _opens_with_path(line: str) -> bool:
    first = line.strip().split(maxsplit=1)[0].strip("`*:,\"'")
    return bool(paths(first))


def _cycles(text: str, cycle: int) -> tuple[str, int, int]:
    """`text` without a repeated cycle tag, and the cycles it stated if they are possible ones (P11)."""
    first = last = cycle
    for _ in range(3):  # a model may have copied a tag and added another
        m = _CYCLE_TAG.search(text)
        if m is None:
            break
        stated_first, stated_last = int(m.group(1)), int(m.group(2) or m.group(1))
        if 1 <= stated_first <= stated_last <= cycle:
            first, last = stated_first, stated_last
        text = text[: m.start()]
    return _SAID_IN.sub("", _REPLACES.sub("", text)).strip(), first, last


def _split_files(text: str) -> Iterator[str]:
    """One item per path when an item opens with a list of them: `a.py, b.py: moved`."""
    m = re.match(
        r"((?:[`\"*]*[\w./@+-]+[`\"*]*(?:\s*,\s*|\s+(?:and|et|&)\s+))+[`\"*]*[\w./@+-]+[`\"*]*)\s*(?:[:–—]|-\s)(.*)$",
        text,
    )
    names = re.split(r"\s*,\s*|\s+(?:and|et|&)\s+", m.group(1)) if m else []
    if m and len(names) > 1 and all(paths(name.strip('`"*')) for name in names):
        yield from (f"{name}: {m.group(2).strip()}" for name in names)
    else:
        yield text


def without_lumps(summary: Summary) -> Summary:
    """`summary` with each long item in pieces of at most `LONG_ITEM` characters, files apart: a small model writes a
    page without a bullet, and as one item it would leave the view where there is no room for all of it."""
    return Summary(
        tuple(
            s
            if is_files(s.title)
            else replace(s, items=tuple(replace(i, text=t) for i in s.items for t in _pieces(i.text)))
            for s in summary.sections
        )
    )


def _once(text: str) -> str:
    """`text` with each sentence once: a small model goes round in circles until its answer is full."""
    ends = [0, *(m.end() for m in _SENTENCE_END.finditer(text)), len(text)]
    said = [sentence for a, b in pairwise(ends) if (sentence := text[a:b].strip())]
    once = dict.fromkeys(said)
    return text if len(once) == len(said) else " ".join(once)


def _pieces(text: str) -> Iterator[str]:
    """`text` cut between sentences, else words."""
    if len(text) > LONG_ITEM:
        text = _once(text)
    while len(text) > LONG_ITEM:
        ends = [m.end() for m in _SENTENCE_END.finditer(text, 0, LONG_ITEM)]
        at = ends[-1] if ends else text.rfind(" ", 0, LONG_ITEM)
        if at <= 0:
            break
        yield text[:at].strip()
        text = text[at:].strip()
    if text:
        yield text


def _items(draft: _Draft, cycle: int, sources: tuple[str, ...], key: str) -> Iterator[SummaryItem]:
    files = is_files(draft.title)
    for raw in draft.items:
        for text in _split_files(raw) if files else (raw,):
            bare, first, last = _cycles(" ".join(text.split()), cycle)
            if says_nothing(bare) or FOLDED_LINE.fullmatch(bare):
                continue
            yield SummaryItem(bare, path_key(bare) if files else key, first, last, sources)


def parse_summary(
    text: str, *, cycle: int, sections: Sequence[str] = SECTIONS, sources: tuple[str, ...] = ()
) -> Summary:
    """The reply `text` as data: all of `sections`, in order, then unknown ones that hold something (P6).

    Headings may be Markdown, bold, numbered, translated or plain; bullets, tables and prose become items; items under
    Files Modified are keyed by path. A reply without any known heading is filed under Current State (or what stands
    for it among `sections`), its items keyed `UNSTRUCTURED`. Every item gets `cycle` (a tag the model repeated counts
    if it is not of the future) and `sources`.
    """
    wanted = {canonical_title(title): title for title in sections}
    fallback = sections[place_for("current state", sections)] if sections else "Current State"
    drafts, structured = _read(unfenced(without_wrapping(text)), wanted, fallback)
    found: dict[str, dict[str, SummaryItem]] = {title: {} for title in sections}
    none = {d.title for d in drafts if d.none or any(map(says_nothing, d.items))}
    for draft in drafts:
        key = "" if structured else UNSTRUCTURED
        for item in _items(draft, cycle, sources, key):
            found.setdefault(draft.title, {}).setdefault(plain(item.text), item)
    return Summary(
        tuple(
            SummarySection(title, tuple(items.values()), settled=title in none and not items)
            for title, items in found.items()
        )
    )


def render_summary(summary: Summary, *, cap_chars: int | None = None) -> str:
    """Markdown of the active items: `## Title`, one bullet per item with its cycle tag, `none` where there is none.

    With `cap_chars`, the oldest items of lowest value are left out until it fits (`fusion.fit` gives them back; use it
    where they must be kept). Deterministic: same summary, same bytes (I7).
    """
    text = render_sections(summary)
    if cap_chars is None or len(text) <= cap_chars:
        return text
    return render_sections(fit(summary, cap_chars)[0])[: max(0, cap_chars)]


__all__ = [
    "EMPTY",
    "LONG_ITEM",
    "SECTIONS",
    "UNSTRUCTURED",
    "SummaryRejected",
    "check_reply",
    "parse_summary",
    "path_key",
    "render_summary",
    "without_lumps",
]
