"""The `.marex` folder of a project: what lies there is the person's own, and never leads out of the project."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from marextui.context.project import is_name, plain_name

Stamp = tuple[tuple[str, int, int], ...]
"""(file, time of change in ns, size in bytes) of every page or tracker; changes when any of them does."""


def ensure_marex(folder: Path) -> None:
    """Make the project's `.marex` with its own `.gitignore` if it is not there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (folder / ".gitignore").open("x", encoding="utf-8") as ignore:
            ignore.write("*\n")
    except FileExistsError:
        pass


def inside(path: Path, root: Path) -> bool:
    """Whether `path` really lies below `root`: a cloned repository must not lead us to a file elsewhere by a link."""
    return path.resolve().is_relative_to(root.resolve())


def named_file(folder: Path, name: str, suffix: str) -> Path | None:
    """The file of a page or tracker: the one that bears this very name, else the one its plain name gives; None when
    nothing of it can be a name. Never leads out of `folder`."""
    exact = name.strip().removesuffix(suffix)
    if is_name(exact) and (folder / f"{exact}{suffix}").exists():
        return folder / f"{exact}{suffix}"
    safe = plain_name(name)
    return folder / f"{safe}{suffix}" if safe else None


def named_files(folder: Path, suffix: str) -> list[tuple[Path, os.stat_result]]:
    """The pages or trackers in `folder`, by name: files that are no links and whose names are such; [] without it."""
    try:
        with os.scandir(folder) as entries:
            found = [
                (folder / e.name, e.stat())
                for e in entries
                if e.is_file(follow_symlinks=False) and e.name.endswith(suffix) and is_name(e.name.removesuffix(suffix))
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found)


def stamp_of(files: Iterable[tuple[Path, os.stat_result]]) -> Stamp:
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in files)


def read_bounded(path: Path, limit: int) -> str | None:
    """The first `limit` bytes of a text file, undecodable ones replaced; None when there is no such file."""
    try:
        with path.open("rb") as file:
            data = file.read(limit)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return data.decode("utf-8-sig", "replace")


def changed_at(path: Path) -> tuple[int, int] | None:
    """(time of change in ns, size in bytes); None: absent."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_size
