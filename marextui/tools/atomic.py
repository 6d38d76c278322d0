"""Replacing a file's content in one step: readers see the old bytes or the new ones, never a half."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from marextui.tools.offload import Abandoned, Stop


class Moved(RuntimeError):
    """The file is not as it was when the change was worked out; nothing was written."""


def replace_content(path: Path, data: bytes, before: os.stat_result | None, stop: Stop) -> os.stat_result:
    """Write `data` to `path` (a real path: no link is replaced) and return its new status.

    `before` is the file's status when the change was worked out, None when there was no file. Mode and, where
    allowed, owner are kept; a new file gets the usual mode of the umask. Raises `Moved` when the file has changed
    since, `Abandoned` when `stop` was set, OSError; the file is then untouched and no temporary file stays.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if before is None else 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                with contextlib.suppress(PermissionError):  # another person's file in a shared directory
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(file.fileno())
            after = os.fstat(file.fileno())
        if stop:
            raise Abandoned
        if _state(path) != (None if before is None else (before.st_mtime_ns, before.st_size, before.st_ino)):
            raise Moved
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return after


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
