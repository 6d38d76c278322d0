"""Where things are kept. Functions compute paths and make nothing; `ensure_private` makes a folder."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import platformdirs

from marextui.private_files import ensure_private as ensure_private

APP = "marextui"
RULES_NAME = "MAREX.md"
MEMORY_NAME = "MEMORY.md"
_SLUG_NAME = 40  # characters of the folder name kept in a slug


def marex_home() -> Path:
    """`$MAREX_HOME`, or `~/.marex` (B11)."""
    configured = os.environ.get("MAREX_HOME", "").strip()
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".marex"


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds `.git`, `.marex` or `MAREX.md`; else `start`, made absolute.

    The home of marextui itself is no mark: else every folder below the user's home would belong to one project.
    """
    start = start.resolve()
    home = marex_home()
    for folder in (start, *start.parents):
        marex = folder / ".marex"
        if (folder / ".git").exists() or (folder / RULES_NAME).is_file():
            return folder
        if marex != home and marex.is_dir():
            return folder
    return start


def project_slug(root: Path) -> str:
    """Folder name of a project below `~/.marex/memory`: its name and 8 hex of its real path, so that two clones of one
    repository are two projects (B11).
    """
    real = os.path.realpath(root)
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(real)).strip("-.")[:_SLUG_NAME] or "project"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def memory_dir(root: Path) -> Path:
    """`~/.marex/memory/<project>` (M32)."""
    return marex_home() / "memory" / project_slug(root)


def omissions_dir(root: Path) -> Path:
    """`~/.marex/memory/<project>/omissions` (M33)."""
    return memory_dir(root) / "omissions"


def project_marex(root: Path) -> Path:
    """`.marex` of the project: its settings and usage journal (M44)."""
    return root / ".marex"


def data_dir() -> Path:
    """The platform's folder for data of this application."""
    return platformdirs.user_data_path(APP, appauthor=False)


def cache_dir() -> Path:
    """The platform's folder for what can be made again (joined model weights)."""
    return platformdirs.user_cache_path(APP, appauthor=False)


def config_dir() -> Path:
    """The platform's folder for settings."""
    return platformdirs.user_config_path(APP, appauthor=False)


def config_file() -> Path:
    """The user's settings file."""
    return config_dir() / "config.toml"


def conversations_db() -> Path:
    """The database of all conversations."""
    return data_dir() / "conversations.db"
