"""What the files of a project say of it: description, pages, trackers, AGENTS.md, read when they changed (L51)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from marextui.context.project import ProjectSources, heading_paragraph
from marextui.paths import RULES_NAME
from marextui.store.pages import PageStore
from marextui.store.project_folder import changed_at, inside, read_bounded
from marextui.store.trackers import TrackerStore

AGENTS_NAME = "AGENTS.md"
DESCRIPTION_NAME = "project.md"
MAX_BYTES = 256 * 1024
"""Bytes read of each file; several times what may be used."""


class ProjectStore:
    """Files of the project at `root`, asked for from the folder `cwd` in it. Methods may raise OSError."""

    def __init__(self, root: Path, cwd: Path, project_marex: Path, memory_dir: Path) -> None:
        self.pages = PageStore(memory_dir / "pages")
        self.trackers = TrackerStore(project_marex, root)
        self.description_path = project_marex / DESCRIPTION_NAME
        self._root = root.resolve()
        self._rules = root / RULES_NAME
        self.agents_paths = _agents_paths(self._root, cwd.resolve())
        self.notices: tuple[str, ...] = ()
        """What was wrong with the files at the last `read`, as sentences."""

    async def stamp(self) -> tuple[object, ...]:
        """Changes when anything that `read` reads does: cheap enough to ask at each turn start."""
        files = (self.description_path, self._rules, *self.agents_paths)
        stamps = await asyncio.to_thread(lambda: tuple(map(changed_at, files)))
        return (*stamps, await self.pages.stamp(), await self.trackers.stamp())

    async def read(self) -> ProjectSources:
        """Everything, unbounded. MAREX.md's heading describes a project that has something else to tell, and no
        description of its own; by itself it makes no block, for it stands in the system part already."""
        told, notices = await asyncio.to_thread(self._texts)
        description, agents = told
        sources = ProjectSources(
            description=description,
            index=await self.pages.index(),
            pages=await self.pages.all(),
            trackers=await self.trackers.all(),
            agents=agents,
        )
        self.notices = (*notices, *([self.trackers.notice] if self.trackers.notice else ()))
        if sources.empty or description.strip():
            return sources
        rules = await asyncio.to_thread(self._inside, self._rules) or ""
        return replace(sources, description=heading_paragraph(rules))

    def _texts(self) -> tuple[tuple[str, tuple[tuple[str, str], ...]], list[str]]:
        notices: list[str] = []
        agents: list[tuple[str, str]] = []
        for path in self.agents_paths:
            text = self._inside(path)
            if text is not None:
                agents.append((path.relative_to(self._root).as_posix(), text))
            elif changed_at(path) is not None:
                notices.append(f"{path.name} is a link to a file outside the project, so it is not used.")
        return (self._inside(self.description_path) or "", tuple(agents)), notices

    def _inside(self, path: Path) -> str | None:
        return read_bounded(path, MAX_BYTES) if inside(path, self._root) else None


def _agents_paths(root: Path, cwd: Path) -> tuple[Path, ...]:
    """AGENTS.md of `cwd` and the folders above it up to `root`, the nearest first."""
    folders = [root]
    if cwd.is_relative_to(root):
        folders = [f for f in (cwd, *cwd.parents) if f.is_relative_to(root)]
    return tuple(folder / AGENTS_NAME for folder in folders)
