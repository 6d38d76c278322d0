"""Paths as the model wrote them, resolved against the project: what they really are and whether they are inside it."""

from __future__ import annotations

import difflib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from marextui.tools.names import show_name, unshow_name

SKIPPED_DIRS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"})
"""Directories that searches do not enter unless they are searched themselves."""

SUGGESTIONS = 3
SUGGESTION_ENTRIES = 5_000
"""How many directory entries a search for a missing file's name looks at."""

_QUOTES = ("'", '"', "`")
_SPECIAL = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class PathRefused(ValueError):
    """The path cannot be used at all; the text is a sentence for the model."""


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved path. `real` has no symlinks and no `..` left; it need not exist. `display` is one line."""

    real: Path
    inside: bool
    display: str
    kind: str
    """"file", "dir" or "missing"; everything else was refused."""


class Workspace:
    """The project at `root`. All paths of tools go through `resolve`; nothing here changes a file."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, written: str) -> Target:
        """The target of `written`: absolute, relative to the project, `~`; surrounding blanks and quotes forgiven.

        A name that exists exactly as written always wins over a forgiven form. Raises `PathRefused` for empty text,
        NUL, names the file system cannot hold, symlink loops, devices, pipes and sockets.
        """
        if "\0" in written:
            raise PathRefused("the path holds a NUL character")
        if not written.strip():
            raise PathRefused("the path is empty; use . for the project")
        forms = list(dict.fromkeys(self._forms(written)))
        refusal: PathRefused | None = None
        first: Target | None = None
        for form in forms:
            try:
                target = self._target(form)
            except PathRefused as error:
                refusal = refusal or error
                continue
            if target.kind != "missing":
                return target
            # a new file gets the cleaned name, not the one with stray blanks or quotes
            if first is None or form == os.path.expanduser(_cleaned(written)):
                first = target
        if first is None or refusal is not None:
            raise refusal or PathRefused("the path cannot be resolved")
        return first

    def _forms(self, written: str) -> Iterator[str]:
        yield written
        clean = _cleaned(written)
        yield clean
        if clean.startswith("~"):
            yield os.path.expanduser(clean)
        try:
            yield unshow_name(clean)
        except UnicodeEncodeError:
            return

    def _target(self, form: str) -> Target:
        joined = os.path.join(self.root, form)
        try:
            real = os.path.realpath(joined)
            kind = _kind(real)
        except OSError as error:
            raise PathRefused(_reason(error)) from None
        except UnicodeEncodeError:  # lone surrogates: no file has such a name
            raise PathRefused("the path is not valid text") from None
        inside = self.holds(real)
        return Target(Path(real), inside, self.display(real), kind)

    def holds(self, real: str) -> bool:
        """Whether the real path is the project or under it."""
        root = str(self.root)
        return real == root or real.startswith(root if root.endswith(os.sep) else root + os.sep)

    def display(self, real: str | Path) -> str:
        """Relative to the project when inside (`.` for itself), else absolute; always one line."""
        text = str(real)
        return show_name(os.path.relpath(text, self.root) if self.holds(text) else text)

    def sensitive(self, target: Target) -> str:
        """A plain warning when writing to `target` can change what is run or allowed later, else ""."""
        parts = {part.lower() for part in target.real.parts}
        if ".git" in parts:
            return "Warning: this is inside .git; hooks and settings there can run commands."
        if ".marex" in parts:
            return "Warning: this is MAREX's own data in the project; settings there change what is asked and sent."
        return ""

    def nearest(self, target: Target) -> list[str]:
        """Up to three existing paths that may have been meant by a missing one, best first; looks at few entries."""
        name = target.real.name
        found = [self.display(path) for path in self._namesakes(name)] if target.inside or not name else []
        try:
            with os.scandir(target.real.parent) as entries:
                near = [entry.name for entry, _ in zip(entries, range(SUGGESTION_ENTRIES), strict=False)]
        except OSError:
            near = []
        folded = {one.lower(): one for one in near}
        close = difflib.get_close_matches(name.lower(), list(folded), n=SUGGESTIONS, cutoff=0.6)
        siblings = [self.display(target.real.parent / folded[one]) for one in close]
        return list(dict.fromkeys(siblings + found))[:SUGGESTIONS]

    def _namesakes(self, name: str) -> Iterator[Path]:
        seen = 0
        for folder, dirs, files in os.walk(self.root):
            dirs[:] = sorted(d for d in dirs if d not in SKIPPED_DIRS)
            if name in files:
                yield Path(folder, name)
            seen += len(files) + len(dirs)
            if seen > SUGGESTION_ENTRIES:
                return


def _cleaned(written: str) -> str:
    clean = written.strip()
    for quote in _QUOTES:
        if len(clean) > 2 and clean.startswith(quote) and clean.endswith(quote):
            clean = clean[1:-1].strip()
            break
    return clean


def _kind(real: str) -> str:
    try:
        mode = os.stat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    for is_kind, what in _SPECIAL:
        if is_kind(mode):
            raise PathRefused(f"it is {what}, not a file")
    raise PathRefused("it is not a regular file")


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "its symbolic links go round in a circle"
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long"
    return f"it cannot be reached ({os.strerror(error.errno) if error.errno else error})"
