"""What the project block holds: description, memory index, trackers, AGENTS.md (L51, L71; B11). Units: characters.

The block goes with every request, at the head of the first user message; so it is bounded by the window, each part by
a share of its own: a part that grows never takes room from another, which would have to be announced too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BLOCK_CHARS = 32_000
"""Most characters of the block, whatever the window."""
WINDOW_SHARE = 8
"""Else the block takes at most one part in this many of the window, at 4 characters a token."""
AGENTS_SHARE, INDEX_SHARE, TRACKERS_SHARE, DESCRIPTION_SHARE = 2, 4, 8, 8
"""One part in so many of the block that AGENTS.md, the index, the trackers and the description take at most."""

TITLE_CHARS, HOOK_CHARS, VALUE_CHARS, UNIT_CHARS, LINE_CHARS = 80, 160, 120, 24, 400

NAME_CHARS = 48
INDEX_NAME = "index"
"""The page file that holds a person's own words above the index; no page of its own."""

_NAME = re.compile(rf"[\w-]{{1,{NAME_CHARS}}}")
_PAGE_LINE = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(\[[^\n]*?\]\(([\w.-]+\.md)\)[^\n]*)")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of memory as the index shows it: `name` of its file without `.md`, title, and one line about it."""

    name: str
    title: str
    hook: str


@dataclass(frozen=True, slots=True)
class Tracker:
    """A value that is followed: `slug` identifies it, `date` (ISO day) says when it was last set."""

    slug: str
    value: str
    unit: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class ProjectSources:
    """What the files of a project say, unbounded. `index` is what a person wrote above the pages (`pages/index.md`);
    `agents` are (path, text) of each AGENTS.md, the nearest first."""

    description: str = ""
    index: str = ""
    pages: tuple[Page, ...] = ()
    trackers: tuple[Tracker, ...] = ()
    agents: tuple[tuple[str, str], ...] = ()

    @property
    def empty(self) -> bool:
        """Nothing to tell: such a project sends no block at all."""
        has_index = bool(self.index.strip()) or bool(self.pages)
        return not (self.description.strip() or has_index or self.trackers or any(t.strip() for _, t in self.agents))


@dataclass(frozen=True, slots=True)
class Keyed:
    """A line of a list; `key` identifies it: the file of a page, the slug of a tracker."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ProjectState:
    """What a model is told of the project, in comparable pieces; `prose` are the lines of the index that name no page.

    `day` is the ISO day it holds for, "" where the block carries no date (B21).
    """

    day: str = ""
    description: str = ""
    prose: str = ""
    pages: tuple[Keyed, ...] = ()
    trackers: tuple[Keyed, ...] = ()
    agents: str = ""

    @property
    def empty(self) -> bool:
        """No content; the day alone is none."""
        return not (self.description or self.prose or self.pages or self.trackers or self.agents)


def block_limit(window: int | None) -> int:
    """Most characters of the block for a window in tokens (None: unknown, the absolute limit only, M4)."""
    return BLOCK_CHARS if window is None else min(BLOCK_CHARS, max(0, window) * 4 // WINDOW_SHARE)


def project_state(sources: ProjectSources, window: int | None, *, day: str = "") -> ProjectState:
    """`sources` within the bounds for `window` (tokens): texts are clipped here, long lists where they are drawn.

    Lists keep all their lines, so that a line which no longer fits is not taken for one that is gone.
    """
    limit = block_limit(window)
    prose, pages = split_index(index_text(sources.index, sources.pages))
    return ProjectState(
        day=day,
        description=clipped(sources.description, limit // DESCRIPTION_SHARE, "the description"),
        prose=clipped(prose, limit // INDEX_SHARE, "the index"),
        pages=pages,
        trackers=tracker_lines(sources.trackers),
        agents=_agents(sources.agents, limit // AGENTS_SHARE)[0],
    )


def cut_agents(sources: ProjectSources, window: int | None) -> tuple[str, ...]:
    """A sentence for people for each AGENTS.md that is not sent whole: the nearest has the room first (case 134)."""
    told = []
    for path, chars, sent in _agents(sources.agents, block_limit(window) // AGENTS_SHARE)[1]:
        if sent:
            told.append(f"{path} is too long: of its {chars:,} characters only the first {sent:,} are sent.")
        else:
            told.append(f"{path} is not sent: there is no room for it beside what is nearer.")
    return tuple(told)


def clipped(text: str, limit: int, name: str) -> str:
    """The beginning of `text` within about `limit` characters, whole lines if near, with a notice where it was cut.

    The notice gives no number: an edit beyond the cut changes nothing of what is sent.
    """
    text = _tidy(text)
    kept = _beginning(text, limit)
    return text if kept == text else _noticed(kept, f"{name} goes on")


def _beginning(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[:limit]
    newline = kept.rfind("\n")
    return (kept[:newline] if newline > limit * 3 // 4 else kept).rstrip()


def _noticed(kept: str, what: str) -> str:
    notice = f"[cut here: {what}]"
    return f"{kept}\n{notice}" if kept.strip() else notice


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _agents(agents: Sequence[tuple[str, str]], limit: int) -> tuple[str, tuple[tuple[str, int, int], ...]]:
    """(the files one after the other within about `limit` characters, (path, characters, characters sent) of each that
    is not all there)."""
    told = [(path, _tidy(text)) for path, text in agents if text.strip()]
    heads = [f"({path})\n" if len(told) > 1 else "" for path, _ in told]
    whole = "\n\n".join(head + text for head, (_, text) in zip(heads, told, strict=True))
    kept = _beginning(whole, limit)
    if kept == whole:
        return whole, ()
    cut, at = [], 0
    for head, (path, text) in zip(heads, told, strict=True):
        at += len(head)
        sent = max(0, min(len(text), len(kept) - at))
        if sent < len(text):
            cut.append((path, len(text), sent))
        at += len(text) + 2
    begun = ", ".join(path for path, _, sent in cut if sent)
    out = ", ".join(path for path, _, sent in cut if not sent)
    parts = (f"{begun} goes on" if begun else "", f"{out} left out" if out else "")
    return _noticed(kept, "; ".join(p for p in parts if p)), tuple(cut)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def is_name(text: str) -> bool:
    """Whether `text` can be the name of a page or tracker as it stands: safe as a file name everywhere."""
    return bool(_NAME.fullmatch(text))


def plain_name(text: str) -> str:
    """The name for what a person or model wrote: small letters, digits, dashes; "" when nothing is left."""
    word = unicodedata.normalize("NFKC", text).strip().lower().removesuffix(".md").removesuffix(".toml")
    return re.sub(r"[^\w]+", "-", word).strip("-")[:NAME_CHARS].strip("-")


def page_line(page: Page) -> str:
    """`[Title](file.md) – one line`."""
    title = _short(page.title, TITLE_CHARS).replace("[", "(").replace("]", ")") or page.name
    hook = _short(page.hook, HOOK_CHARS)
    return f"[{title}]({page.name}.md)" + (f" – {hook}" if hook else "")


def page_of(name: str, text: str) -> Page:
    """The page in the file `name`.md: its first heading, and the first line of text that is none."""
    title = hook = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        told = line.strip()
        if not told or told.startswith(("```", "---")):
            continue
        if told.startswith("#"):
            title = title or told.lstrip("#").strip()
        else:
            hook = told.lstrip("-*> ").strip()
            if hook:
                break
    return Page(name, title or name, hook)


def index_text(hand: str, pages: Iterable[Page]) -> str:
    """The memory index: what a person wrote, without lines for pages that are gone; then the other pages by name."""
    known = {f"{page.name}.md": page for page in pages}
    lines: list[str] = []
    listed: set[str] = set()
    for line in _tidy(hand).split("\n") if hand.strip() else ():
        found = _PAGE_LINE.fullmatch(line.rstrip())
        if found is None or found[2] in known:
            lines.append(line.rstrip())
            listed.update((found[2],) if found else ())
    lines.extend(f"- {page_line(known[key])}" for key in sorted(known) if key not in listed)
    return "\n".join(lines)


def split_index(text: str) -> tuple[str, tuple[Keyed, ...]]:
    """(the prose of an index, its page lines in order), keyed by the file in `](file.md)` (L56).

    A second line for the same file counts as prose.
    """
    prose: list[str] = []
    pages: dict[str, str] = {}
    for line in text.split("\n"):
        found = _PAGE_LINE.fullmatch(line.rstrip())
        if found is not None and found[2] not in pages:
            pages[found[2]] = _short(found[1], LINE_CHARS)
        elif line.strip():
            prose.append(line.rstrip())
    return "\n".join(prose), tuple(Keyed(key, told) for key, told in pages.items())


def tracker_lines(trackers: Iterable[Tracker]) -> tuple[Keyed, ...]:
    """One complete line a tracker, by slug whatever order they come in (L57, L71); a repeated slug: the last counts."""
    by_slug = {t.slug: t for t in trackers}
    return tuple(Keyed(slug, tracker_line(by_slug[slug])) for slug in sorted(by_slug))


def tracker_line(tracker: Tracker) -> str:
    """`weight: 72.4 kg (2026-10-01)`."""
    value = " ".join(w for w in (_short(tracker.value, VALUE_CHARS), _short(tracker.unit, UNIT_CHARS)) if w)
    date = _short(tracker.date, UNIT_CHARS)
    return f"{tracker.slug}: {value or '(no value)'}" + (f" ({date})" if date else "")


def heading_paragraph(markdown: str, *, limit: int = 600) -> str:
    """What a MAREX.md says of its project before anything else: its first heading and the paragraph below it, which may
    be missing; "" when it starts with something else."""
    lines = [line.strip() for line in _tidy(markdown).split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    if not lines or not re.match(r"#{1,2} ", lines[0]):
        return ""
    told = [lines[0].lstrip("# ").strip()]
    body = lines[1:]
    while body and not body[0]:
        body.pop(0)
    for line in body:
        if not line or re.match(r"#|[-*+] |\d+[.)] |```|\||<", line):
            break
        told.append(line)
    text = ": ".join(t for t in (told[0], " ".join(told[1:])) if t)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
