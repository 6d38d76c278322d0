"""Log entries about the project context, and the part of a conversation's state that they make (L52–L69).

Nothing is ever edited in the log: a message stays what its author wrote. Which block heads the first user message, and
which update stands at the head of which later one, are decisions of their own; so is taking them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from marextui.context.project import Keyed, ProjectState
from marextui.context.project_delta import ProjectDelta, applied


@dataclass(frozen=True, slots=True)
class ProjectSnapshotTaken:
    """In `turn`, `text` became the block that is sent byte for byte from now on; updates before it are sent no more.

    `state` is what it says. `basis` are named digests of what else the beginning of the prompt is made of: where one
    differs, the prompt changes anyway (L61). `why` is for people.
    """

    turn: int
    why: str
    text: str
    state: ProjectState
    basis: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ContextUpdated:
    """In `turn`, the block `text` was put at the head of the message `message_id`; `delta` is what it announces."""

    turn: int
    message_id: str
    text: str
    delta: ProjectDelta


@dataclass(frozen=True, slots=True)
class ProjectSnapshotDropped:
    """In `turn`, the copy and its updates were given up: the block is live again (L68)."""

    turn: int
    why: str


@dataclass(frozen=True, slots=True)
class ProjectHidden:
    """From `turn` on nothing of the project is sent, or it is sent again; what was announced stays (L69)."""

    turn: int
    hidden: bool


ProjectEntry = ProjectSnapshotTaken | ContextUpdated | ProjectSnapshotDropped | ProjectHidden

Stale = Literal["", "compaction", "reduction"]


@dataclass(frozen=True, slots=True)
class ProjectView:
    """The project context of a conversation: a value, so that an undo can put an earlier one back.

    `snapshot` None: there is no frozen copy. `announced` is what the copy and its updates say together. `stale`: the
    beginning of the view was rewritten since the copy was taken, so a new one costs nothing more (L61, L62).
    """

    snapshot: ProjectSnapshotTaken | None = None
    announced: ProjectState = field(default_factory=ProjectState)
    updates: tuple[tuple[str, str], ...] = ()
    """(message id, block) of the updates in force, oldest first."""
    hidden: bool = False
    stale: Stale = ""

    @property
    def block(self) -> str:
        """The frozen block as it is sent now, "" for none."""
        return "" if self.snapshot is None or self.hidden else self.snapshot.text

    @property
    def heads(self) -> dict[str, str]:
        """The update at the head of each message that has one, as sent now."""
        return {} if self.hidden else dict(self.updates)

    def after(self, entry: ProjectEntry) -> ProjectView:
        """This with one more decision. A second update of one message changes nothing: the first was sent."""
        match entry:
            case ProjectSnapshotTaken():
                return ProjectView(entry, entry.state, (), self.hidden, "")
            case ContextUpdated(_, message_id, text, delta):
                if self.snapshot is None or any(known == message_id for known, _ in self.updates):
                    return self
                told = (*self.updates, (message_id, text))
                return replace(self, announced=applied(delta, self.announced), updates=told)
            case ProjectHidden(_, hidden):
                return replace(self, hidden=hidden)
            case ProjectSnapshotDropped():
                return ProjectView()

    def rewritten(self, why: Stale) -> ProjectView:
        """This after the view was rewritten. A compaction takes the updates away with what they stood in."""
        if self.snapshot is None:
            return self
        if why == "compaction":
            return replace(self, updates=(), stale=why)
        return replace(self, stale=self.stale or why)


def decode_project(cls: type[Any], data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a project entry from their JSON form; unknown ones of a newer version are left out."""
    if cls is ProjectSnapshotTaken:
        basis = tuple((str(name), str(digest)) for name, digest in data["basis"])
        return {**data, "state": _value(ProjectState, data["state"]), "basis": basis}
    if cls is ContextUpdated:
        return {**data, "delta": _value(ProjectDelta, data["delta"])}
    return data


def _value(cls: type[Any], raw: Mapping[str, Any]) -> Any:
    known = {f.name for f in fields(cls)}
    return cls(**{name: _plain(value) for name, value in raw.items() if name in known})


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return Keyed(str(value["key"]), str(value["text"]))
    return value
