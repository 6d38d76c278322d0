"""The project as the model is told of it: read from disk when it changed, sent live or as a frozen copy (L51–L70)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from marextui.context.messages import canonical_json
from marextui.context.project import Page, ProjectSources, Tracker, cut_agents, project_state
from marextui.context.project_block import FORMAT, frozen_block, live_block
from marextui.context.project_decision import FIRST, Basis, Moment, basis_of, decide
from marextui.context.project_delta import delta_words, tokens_of, update_limit
from marextui.context.project_entries import ContextUpdated, ProjectEntry, ProjectSnapshotTaken
from marextui.engine.bus import Bus
from marextui.engine.economy import EconomyLine
from marextui.engine.events import ContextUpdatePlaced, Notice, ProjectCopied
from marextui.engine.ports import Clock
from marextui.engine.prompt import SystemPart
from marextui.engine.session import Session

NO_FILES = "this conversation belongs to no project"


class Pages(Protocol):
    """`store.pages.PageStore`. All raise OSError."""

    async def all(self) -> Sequence[Page]: ...
    async def read(self, name: str) -> str | None: ...
    async def write(self, name: str, text: str) -> str: ...
    async def delete(self, name: str) -> bool: ...


class Trackers(Protocol):
    """`store.trackers.TrackerStore`. All raise OSError."""

    async def all(self) -> Sequence[Tracker]: ...
    async def set(self, tracker: Tracker) -> str: ...
    async def delete(self, slug: str) -> bool: ...


class ProjectFiles(Protocol):
    """`store.project.ProjectStore`. All raise OSError."""

    @property
    def pages(self) -> Pages: ...
    @property
    def trackers(self) -> Trackers: ...
    @property
    def notices(self) -> tuple[str, ...]: ...
    async def stamp(self) -> tuple[object, ...]: ...
    async def read(self) -> ProjectSources: ...


def local_time(clock: Clock) -> datetime.datetime:
    """The moment in the person's own time zone: what is dated is dated as they would (B21)."""
    return datetime.datetime.fromtimestamp(clock.now()).astimezone()


def local_day(clock: Clock) -> str:
    """The person's day, ISO 8601."""
    return local_time(clock).date().isoformat()


@dataclass(frozen=True, slots=True)
class Telling:
    """How the next request tells of the project: `on` as a frozen copy, `told` at all; `window` in tokens."""

    on: bool
    told: bool
    window: int | None


@dataclass(slots=True)
class ProjectDesk:
    """What of the project is on the desk now. `refresh` is called at every turn start; in between it does not move.

    `files` None: nothing is ever told (replays).
    """

    files: ProjectFiles | None
    bus: Bus
    clock: Clock
    folder: str
    sources: ProjectSources = field(default_factory=ProjectSources)
    carrier: str = ""
    """Id of the newest user message while no request was made with it: the one that may carry an update."""
    sent: str = ""
    """The block as the last look at the system part found it."""
    _restarted: bool = True
    _used: bool = False
    _stamp: tuple[object, ...] | None = None
    _live: tuple[tuple[ProjectSources, int | None], str] | None = None

    def opened(self) -> None:
        """Another conversation is open (L67)."""
        self.carrier, self._restarted, self._used = "", True, False

    async def refresh(self) -> bool:
        """Re-read the files if they changed; True when they had. A read error is a notice."""
        if self.files is None:
            return False
        try:
            stamp = await self.files.stamp()
            if stamp == self._stamp:
                return False
            self.sources = await self.files.read()
        except OSError as problem:
            text = f"The pages and trackers of this project could not be read: {problem.strerror or problem}"
            self.bus.warn_once(text, "The conversation goes on with what was read before.")
            return False
        for notice in self.files.notices:
            self.bus.warn_once(notice)
        self._stamp = stamp
        return True

    # -- what people do with it ----------------------------------------------------------------------------------------

    async def page_text(self, name: str) -> str | None:
        """The text of a page; None: there is none, or it cannot be read (which is told)."""
        try:
            return None if self.files is None else await self.files.pages.read(name)
        except OSError as problem:
            self.bus.emit(Notice("error", f"The page could not be read: {problem.strerror or problem}"))
            return None

    async def save_page(self, name: str, text: str) -> str:
        """Make or replace a page. Returns "" or why it was not saved."""
        if self.files is None:
            return NO_FILES
        try:
            return await self.files.pages.write(name, text)
        except OSError as problem:
            return problem.strerror or str(problem)

    async def delete_page(self, name: str) -> str:
        """Take a page away. Returns "" or why it is still there."""
        if self.files is None:
            return NO_FILES
        try:
            return "" if await self.files.pages.delete(name) else f"there is no page {name}"
        except OSError as problem:
            return problem.strerror or str(problem)

    async def set_tracker(self, slug: str, value: str, unit: str) -> str:
        """Set a tracker as of today. Returns "" or why it was not set."""
        if self.files is None:
            return NO_FILES
        try:
            return await self.files.trackers.set(Tracker(slug, value, unit, local_day(self.clock)))
        except OSError as problem:
            return problem.strerror or str(problem)

    async def delete_tracker(self, slug: str) -> str:
        """Take a tracker away. Returns "" or why it is still there."""
        if self.files is None:
            return NO_FILES
        try:
            return "" if await self.files.trackers.delete(slug) else f"there is no tracker {slug}"
        except OSError as problem:
            return problem.strerror or str(problem)

    def status(self, session: Session, wanted: bool, local: bool | None) -> EconomyLine:
        """How things stand with the frozen copy of `session`, for `/status` (issue 4, section 5).

        `local` None: no model was chosen yet.
        """
        key, view = "proj_snapshot", session.conversation.project
        if not wanted:
            return EconomyLine(key, "off", "Not switched on: the project context is made anew each turn.")
        if local is False:
            return EconomyLine(key, "off", "This is no local engine: the project context is made anew each turn.")
        if view.snapshot is None:
            return EconomyLine(key, "on", "The next message takes a dated copy of the project context.")
        if view.hidden:
            return EconomyLine(key, "suspended", "This model cannot use tools, so nothing of the project is sent.")
        copy = tokens_of(view.snapshot.text)
        said = f"A copy of turn {view.snapshot.turn} is sent, about {copy} tokens ({view.snapshot.why})"
        if not view.updates:
            return EconomyLine(key, "on", f"{said}; nothing has changed since.")
        size, limit = sum(tokens_of(text) for _, text in view.updates), update_limit(copy)
        many = f"{len(view.updates)} update{'' if len(view.updates) == 1 else 's'}"
        return EconomyLine(key, "on", f"{said}, then {many}: {size} of at most {limit} tokens.")

    # -- what is sent --------------------------------------------------------------------------------------------------

    def offers_tools(self, how: Telling) -> bool:
        """Whether MemoryPage and Tracker are offered: where there is something of theirs, and from then on for the
        whole conversation, since the list of tools is the beginning of the prompt. An unused project pays nothing for
        them; with a frozen copy the first page must not change the prompt (L60)."""
        self._used = self._used or (self.files is not None and (how.on or not self.sources.empty))
        return self._used

    def block(self, session: Session, how: Telling) -> str:
        """The block as the next request sends it; "" for none."""
        view = session.conversation.project
        if not how.told or self.files is None:
            self.sent = ""
        elif how.on and view.snapshot is not None:
            self.sent = view.block
        else:
            self.sent = self._live_block(how.window)
        return self.sent

    def _live_block(self, window: int | None) -> str:
        key = (self.sources, window)
        if self._live is None or self._live[0] != key:
            for text in cut_agents(self.sources, window):
                self.bus.warn_once(text, "Shorten it, or take a model with a larger window (/model).")
            self._live = key, live_block(project_state(self.sources, window), window)
        return self._live[1]

    async def settle(self, session: Session, turn: int, how: Telling, part: SystemPart, model: str) -> bool:
        """Decide and log what the next request of `session` sends of the project; True when the view changed.

        Called after everything that may have rewritten the view (L62, L64). What was decided against a version of the
        conversation that has passed meanwhile is not written: it will be decided again. Raises `StoreError`.
        """
        view = session.conversation.project
        if self.files is None or not (how.on or view.snapshot is not None):
            return False
        version = session.version
        if view.stale or self._restarted:  # a copy is about to be taken: it must be of now
            await self.refresh()
        moment = self._moment(session, turn, how, part, model)
        entries = decide(view, moment)
        if session.version != version:
            return False
        if entries:
            await session.append(*entries)
            self._announce(entries)
        self._restarted, self.carrier = False, ""
        return bool(entries)

    def _moment(self, session: Session, turn: int, how: Telling, part: SystemPart, model: str) -> Moment:
        live = project_state(self.sources, how.window, day=local_day(self.clock))
        last = session.conversation.messages[-1:]
        newest = last[0].id if last and last[0].role == "user" and not last[0].synthetic else ""
        return Moment(
            turn=turn,
            live=live,
            text=frozen_block(live, how.window, self.folder),
            basis=self._basis(part, how, model),
            on=how.on,
            told=how.told,
            carrier=newest if newest == self.carrier else "",
            at=local_time(self.clock).strftime("%Y-%m-%d %H:%M"),
            restarted=self._restarted,
        )

    def _basis(self, part: SystemPart, how: Telling, model: str) -> Basis:
        """What else a prompt begins with; a change of it is a reason for a new copy (L61)."""
        return basis_of(
            {
                "the system prompt": part.text,
                "the tools": canonical_json(part.tools),
                "the model": model,
                "the window": str(how.window),
                "the project": self.folder,
                "the wording": FORMAT,
            }
        )

    def _announce(self, entries: Sequence[ProjectEntry]) -> None:
        for entry in entries:
            if isinstance(entry, ContextUpdated):
                self.bus.emit(ContextUpdatePlaced(entry.turn, entry.message_id, entry.text, delta_words(entry.delta)))
            elif isinstance(entry, ProjectSnapshotTaken):
                self.bus.emit(ProjectCopied(entry.turn, entry.why, tokens_of(entry.text), entry.why != FIRST))
