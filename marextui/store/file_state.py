"""Is a file still what it was when it was read? By the digest of its bytes, never by its time (case 70)."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path

from marextui.context.omission import preview

MOST_BYTES = 64 * 1024 * 1024
"""Larger files are not looked at: reading them costs more than the answer is worth."""

_CHUNK = 1 << 20


def file_digest(root: Path, path: str) -> str:
    """SHA-256 of the regular file `path` (relative to `root`, or absolute); "" for anything else.

    Also "" when it is too large or cannot be read. Pipes and devices are not read, so that nothing waits.
    """
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return ""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            return ""
        digest = sha256()
        while chunk := os.read(handle, _CHUNK):
            digest.update(chunk)
        return digest.hexdigest()
    except OSError:
        return ""
    finally:
        os.close(handle)


def since(root: Path, path: str, sha: str) -> str:
    """A sentence for a model on `path`, whose bytes had the digest `sha` when they were read."""
    shown = preview(path, 200)
    now = file_digest(root, path)
    if now == sha:
        return f"{shown} is unchanged on disk since this was read."
    if now:
        return f"{shown} has changed on disk since this was read: read the file itself for what it holds now."
    return f"{shown} can no longer be read on disk: it was removed, moved or replaced."
