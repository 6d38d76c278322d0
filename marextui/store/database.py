"""Opening the SQLite file, and saying what is wrong with it in words people can act on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from marextui.private_files import ensure_private
from marextui.store.schema import APPLICATION_ID, SCHEMA_VERSION, UPGRADES

_T = TypeVar("_T")

BUSY_SECONDS = 10
"""How long a write waits for another process that is writing."""


class StoreError(Exception):
    """The store cannot be used; the text says what happened and what to do."""


async def connect(path: Path | str) -> aiosqlite.Connection:
    """A connection to the database `path`, made (0600) if missing, its schema brought up to date.

    Raises StoreError for a file that is damaged, not ours or of a newer version, and leaves it as it is.
    """
    name = str(path)
    database: aiosqlite.Connection | None = None
    try:
        with telling(name):
            if name != ":memory:":
                await asyncio.to_thread(_make_file, Path(path))
            database = await aiosqlite.connect(name, isolation_level=None, timeout=BUSY_SECONDS)
            await _prepare(database, name)
    except BaseException:
        if database is not None:
            await database.close()
        raise
    return database


class LogMoved(StoreError):
    """Another process has written to the conversation meanwhile: what was to be added was made for an older state."""


@contextmanager
def telling(name: str) -> Iterator[None]:
    """Turn errors of SQLite and of the disk into StoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(_told(error, name)) from error


async def uninterrupted(work: Coroutine[Any, Any, _T]) -> _T:
    """Result of `work`, which goes on to its end even if the awaiting task is cancelled meanwhile.

    The cancellation is not lost: it is delivered at the task's next await.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    waiting = asyncio.current_task()
    if cancelled and waiting is not None:
        waiting.uncancel()  # the count, which asyncio.timeout looks at, is to stay as it was
        waiting.cancel()
    return task.result()


def _make_file(path: Path) -> None:
    ensure_private(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


async def _number(database: aiosqlite.Connection, sql: str) -> int:
    for row in await database.execute_fetchall(sql):
        return int(row[0])
    return 0


async def _prepare(database: aiosqlite.Connection, name: str) -> None:
    await database.execute("BEGIN")
    version = await _number(database, "PRAGMA user_version")
    ours = await _number(database, "PRAGMA application_id") == APPLICATION_ID
    tables = await _number(database, "SELECT count(*) FROM sqlite_master")
    await database.execute("COMMIT")
    if not ours and (version or tables):
        raise StoreError(f"{name} is a database of another program. It was left as it is; give another path.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{name} was written by a newer version of marextui (format {version}, this one reads {SCHEMA_VERSION})."
            " It was left as it is. Update marextui to open it."
        )
    await database.execute("PRAGMA foreign_keys = ON")
    await database.execute("PRAGMA journal_mode = WAL")
    await database.execute("PRAGMA synchronous = FULL")
    if version < SCHEMA_VERSION:
        await _upgrade(database)


async def _upgrade(database: aiosqlite.Connection) -> None:
    await database.execute("BEGIN IMMEDIATE")
    # Read again: another process may have done it while this one waited.
    for version in range(await _number(database, "PRAGMA user_version"), SCHEMA_VERSION):
        for statement in UPGRADES[version]:
            await database.execute(statement)
        await database.execute(f"PRAGMA user_version = {version + 1}")
    await database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    await database.execute("COMMIT")


def _told(error: sqlite3.Error | OSError, name: str) -> str:
    if isinstance(error, OSError):
        return f"The conversation database {name} cannot be opened: {error.strerror or error}."
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return (
            f"The conversation database {name} is damaged ({error}). It was left as it is."
            " Move it away to start with an empty one, or put back a copy."
        )
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return (
            f"Another process kept the conversation database {name} busy for more than {BUSY_SECONDS} seconds."
            " Nothing was written. Try again, or end the other marextui."
        )
    if code == sqlite3.SQLITE_FULL:
        return f"The disk of {name} is full. Nothing was written. Make room and try again."
    if code == sqlite3.SQLITE_READONLY:
        return f"The conversation database {name} cannot be written to. Check who owns it and its permissions."
    return f"The conversation database {name} cannot be used: {error}."
