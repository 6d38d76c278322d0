"""The files of a directory tree that are worth searching: ignored ones left out, by rg or git where they are there."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from marextui.tools.capture import Captured, capture
from marextui.tools.offload import Abandoned, Stop, look
from marextui.tools.process import Clock, RealClock
from marextui.tools.workspace import SKIPPED_DIRS

MAX_FILES = 100_000


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the base, `/` between parts, in no order. `complete` False: there were more, or time was up."""

    files: tuple[str, ...]
    complete: bool


def skip_globs() -> list[str]:
    """rg arguments that keep it out of the skipped directories."""
    return [f"--glob=!{name}/" for name in sorted(SKIPPED_DIRS)]


async def list_files(base: Path, *, limit: int = MAX_FILES, clock: Clock | None = None) -> Listing:
    """Files under `base`, hidden ones too; without those in `SKIPPED_DIRS` and (with rg, or git in a repository)
    those that .gitignore names. A base that is itself ignored is listed all the same.

    Raises OSError when `base` cannot be read.
    """
    clock = clock if clock is not None else RealClock()
    for argv in _listers():
        listing = await _listed_by(argv, base, limit, clock)
        if listing is not None and (listing.files or not listing.complete):
            return listing
    return await look(lambda stop: _walk(base, limit, stop))


def _listers() -> list[list[str]]:
    found: list[list[str]] = []
    rg, git = shutil.which("rg"), shutil.which("git")
    if rg is not None:
        found.append([rg, "--no-config", "--no-messages", "--files", "--hidden", "--null", *skip_globs(), "--", "./"])
    elif git is not None:
        # the project's own settings must not run a program: fsmonitor is one
        found.append([git, "-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-o", "--exclude-standard"])
    return found


async def _listed_by(argv: list[str], base: Path, limit: int, clock: Clock) -> Listing | None:
    """None when the program has nothing to say about `base` (git outside a repository)."""
    files: list[str] = []
    rest = b""

    def take(data: bytes) -> bool:
        nonlocal rest
        *whole, rest = (rest + data).split(b"\0")
        files.extend(_relative(name) for name in whole if not _skipped(name))
        return len(files) <= limit

    ended: Captured = await capture(argv, cwd=base, clock=clock, take=take)
    if ended.code not in {0, 1, None}:
        return None
    return Listing(tuple(dict.fromkeys(files[:limit])), complete=ended.code is not None and len(files) <= limit)


def _relative(name: bytes) -> str:
    return os.fsdecode(name.removeprefix(b"./"))


def _skipped(name: bytes) -> bool:
    return any(part in _SKIPPED_BYTES for part in name.split(b"/")[:-1])


_SKIPPED_BYTES = frozenset(os.fsencode(name) for name in SKIPPED_DIRS)


def _walk(base: Path, limit: int, stop: Stop) -> Listing:
    files: list[str] = []

    def fail(error: OSError) -> None:
        if error.filename == str(base):
            raise error

    for folder, dirs, names in os.walk(base, onerror=fail):
        if stop:
            raise Abandoned
        dirs[:] = sorted(name for name in dirs if name not in SKIPPED_DIRS)
        inner = os.path.relpath(folder, base)
        for name in sorted(names):
            files.append(name if inner == "." else f"{inner}/{name}")
            if len(files) > limit:
                return Listing(tuple(files[:limit]), complete=False)
    return Listing(tuple(files), complete=True)
