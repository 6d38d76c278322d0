"""What changed in the project since it was last announced: as a value, and as a block for the model (L53, L56–L58)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marextui.context.marks import CONTEXT_UPDATE_CLOSE, CONTEXT_UPDATE_OPEN
from marextui.context.messages import Content, TextPart
from marextui.context.project import Keyed, ProjectState
from marextui.context.project_block import GAP, neutral

CHARS_PER_TOKEN = 4

INDEX_HEAD = "Memory index (+ added, ~ changed, - removed):"
TRACKERS_HEAD = "Trackers (each line replaces the earlier one):"


@dataclass(frozen=True, slots=True)
class ListDelta:
    """Changes of a keyed list: lines that are new or different, in order, and keys that are gone, sorted.

    `order` are all keys afterwards, only when they do not follow from the rest.
    """

    set: tuple[Keyed, ...] = ()
    gone: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.gone or self.order)


@dataclass(frozen=True, slots=True)
class ProjectDelta:
    """From one state to a later one; None: this text did not change, "": it is gone."""

    day: str | None = None
    description: str | None = None
    prose: str | None = None
    pages: tuple[Keyed, ...] = ()
    pages_gone: tuple[str, ...] = ()
    page_order: tuple[str, ...] = ()
    trackers: tuple[Keyed, ...] = ()
    trackers_gone: tuple[str, ...] = ()
    agents: str | None = None

    @property
    def tells(self) -> bool:
        """Whether there is anything to say: another order of the same lines alone is not."""
        texts = (self.day, self.description, self.prose, self.agents)
        lists = self.pages or self.pages_gone or self.trackers or self.trackers_gone
        return bool(lists) or any(t is not None for t in texts)


def delta_between(announced: ProjectState, now: ProjectState) -> ProjectDelta:
    """What has to be announced for a model that knows `announced` to know `now`."""
    pages = _list_delta(announced.pages, now.pages)
    trackers = _list_delta(announced.trackers, now.trackers)
    return ProjectDelta(
        day=_changed(announced.day, now.day),
        description=_changed(announced.description, now.description),
        prose=_changed(announced.prose, now.prose),
        pages=pages.set,
        pages_gone=pages.gone,
        page_order=pages.order,
        trackers=trackers.set,
        trackers_gone=trackers.gone,
        agents=_changed(announced.agents, now.agents),
    )


def applied(delta: ProjectDelta, announced: ProjectState) -> ProjectState:
    """`announced` with `delta`: `applied(delta_between(a, b), a) == b`."""
    return ProjectState(
        day=_or(delta.day, announced.day),
        description=_or(delta.description, announced.description),
        prose=_or(delta.prose, announced.prose),
        pages=_list_applied(ListDelta(delta.pages, delta.pages_gone, delta.page_order), announced.pages),
        trackers=tuple(
            sorted(
                _list_applied(ListDelta(delta.trackers, delta.trackers_gone), announced.trackers), key=lambda k: k.key
            )
        ),
        agents=_or(delta.agents, announced.agents),
    )


def _or(new: str | None, old: str) -> str:
    return old if new is None else new


def _changed(old: str, new: str) -> str | None:
    return None if old == new else new


def _list_delta(old: Sequence[Keyed], new: Sequence[Keyed]) -> ListDelta:
    known = {line.key: line.text for line in old}
    keys = [line.key for line in new]
    changed = tuple(line for line in new if known.get(line.key) != line.text)
    gone = tuple(sorted(set(known) - set(keys)))
    followed = [line.key for line in _list_applied(ListDelta(changed, gone), old)]
    return ListDelta(changed, gone, () if followed == keys else tuple(keys))


def _list_applied(delta: ListDelta, old: Sequence[Keyed]) -> tuple[Keyed, ...]:
    """Changed lines in their places, new ones at the end, then put in the order that was given."""
    lines = {line.key: line for line in old if line.key not in delta.gone}
    lines.update({line.key: line for line in delta.set})
    if delta.order:
        return tuple(lines[key] for key in delta.order if key in lines)
    return tuple(lines.values())


def update_block(delta: ProjectDelta, before: ProjectState, at: str) -> str:
    """The block that announces `delta` to a model that knows `before`; `at` is the local time, on the line of the
    opening tag. The tag itself stays as it is everywhere (B20)."""
    now = applied(delta, before)
    parts: list[str] = []
    if delta.day is not None:
        parts.append(f"Today is {delta.day}.")
    parts += _text("The project description", delta.description)
    parts += _index(delta, before, now)
    if delta.trackers or delta.trackers_gone:
        parts.append("\n".join(["Trackers:", *_lines(delta.trackers, before.trackers), *_gone(delta.trackers_gone)]))
    parts += _text("AGENTS.md", delta.agents)
    return f"{CONTEXT_UPDATE_OPEN} {at}\n{neutral(GAP.join(parts))}\n{CONTEXT_UPDATE_CLOSE}"


def _text(name: str, text: str | None) -> list[str]:
    """A text in full: a model cannot apply a diff of prose (L58)."""
    if text is None:
        return []
    return [f"{name} now reads, in full:\n{text}"] if text else [f"{name} was removed."]


def _index(delta: ProjectDelta, before: ProjectState, now: ProjectState) -> list[str]:
    if delta.prose is not None:
        if not now.prose and not now.pages:
            return ["The memory index was removed."]
        lines = ([now.prose] if now.prose else []) + [f"- {line.text}" for line in now.pages]
        return ["\n".join(["The memory index now reads, in full:", *lines])]
    if delta.pages or delta.pages_gone:
        return ["\n".join([INDEX_HEAD, *_lines(delta.pages, before.pages), *_gone(delta.pages_gone)])]
    return []


def _lines(lines: Iterable[Keyed], before: Iterable[Keyed]) -> list[str]:
    known = {line.key for line in before}
    return [f"{'~' if line.key in known else '+'} {line.text}" for line in lines]


def _gone(keys: Iterable[str]) -> list[str]:
    return [f"- {key} (deleted)" for key in keys]


def delta_words(delta: ProjectDelta) -> str:
    """What an update speaks of, in one line for people: `db.md, ci.md deleted, weight, AGENTS.md`."""
    told = [] if delta.day is None else [f"today is {delta.day}"]
    told += ["description"] if delta.description is not None else []
    told += ["index"] if delta.prose is not None else []
    for lines, gone in ((delta.pages, delta.pages_gone), (delta.trackers, delta.trackers_gone)):
        told += [line.key for line in lines]
        told += [f"{key} deleted" for key in gone]
    told += ["AGENTS.md"] if delta.agents is not None else []
    return ", ".join(told)


def tokens_of(text: str) -> int:
    """The rough size of a block in tokens (L63)."""
    return len(text) // CHARS_PER_TOKEN


def update_limit(snapshot_tokens: int) -> int:
    """Tokens of accumulated updates above which a new copy is taken instead of one more (L63)."""
    return min(1_500, max(400, snapshot_tokens // 4))


def without_update(content: Content) -> Content:
    """`content` without the update at its very head: the inverse of `project_block.prefixed` (L65).

    A block quoted anywhere else stays. For messages that come from elsewhere (recordings of other programs): our own
    log never holds a block inside a message.
    """
    if isinstance(content, str):
        return _bare(content)
    if content and isinstance(content[0], TextPart) and _bare(content[0].text) == "" and content[0].text:
        return content[1:]
    return content


def _bare(text: str) -> str:
    if not text.startswith(CONTEXT_UPDATE_OPEN):
        return text
    _, close, rest = text.partition(f"\n{CONTEXT_UPDATE_CLOSE}{GAP}")
    return rest if close else text
