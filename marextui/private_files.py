"""Folders and files that only their owner can read, replaced as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def ensure_private(path: Path) -> Path:
    """Make the folder `path` and the missing ones above it, for their owner only (0700). Raises OSError.

    Folders that exist keep their mode: they may be shared on purpose.
    """
    missing = []
    folder = path
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace the file `path` as a whole (0600): after a crash it holds the old bytes or the new ones, never a mixture.

    A symbolic link is followed, not replaced (settings kept in a dotfiles folder). The parent must exist.
    Raises OSError, and then leaves no temporary file behind.
    """
    target = Path(os.path.realpath(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
