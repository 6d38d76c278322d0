"""The SQLite file and the thread it lives in; what is wrong with it, said in words people can act on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from marextui.private_files import ensure_private
from marextui.store.schema import APPLICATION_ID, SCHEMA_VERSION, UPGRADES

_T = TypeVar("_T")

BUSY_SECONDS = 10
"""How long a write waits for another process that is writing."""


class StoreError(Exception):
    """The store cannot be used; the text says what happened and what to do."""


class Database:
    """A connection that works in a thread of its own, one piece of work after the other.

    Between two statements of a piece nothing else happens on the connection, and a piece costs the loop one wait,
    however many statements it has. Cancelling that wait does not stop a piece that has begun.
    """

    def __init__(self, name: str, thread: ThreadPoolExecutor, connection: sqlite3.Connection) -> None:
        """Use `open`."""
        self._name = name
        self._thread = thread
        self._connection = connection
        self._closed = False

    @classmethod
    async def open(cls, path: Path | str) -> Database:
        """The database `path` (":memory:" for none), made (0600) if missing, its schema brought up to date.

        Raises StoreError for a file that is damaged, not ours or of a newer version, and leaves it as it is.
        """
        name, thread = str(path), ThreadPoolExecutor(1, thread_name_prefix="database")
        try:
            connection = await uninterrupted(_in(thread, name, lambda: _opened(name)))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(name, thread, connection)

    async def run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Result of `work` with the connection. Raises StoreError, also when the database has been closed."""
        if self._closed:
            raise StoreError(f"The conversation database {self._name} has been closed.")
        return await _in(self._thread, self._name, lambda: work(self._connection))

    async def transaction(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """As `run`, all of what `work` writes or none of it; on the disk when this returns. Goes on when cancelled."""
        return await uninterrupted(self.run(lambda connection: _in_transaction(connection, work)))

    async def close(self) -> None:
        """Finish what is being written, then close the file. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            await uninterrupted(_in(self._thread, self._name, self._connection.close))
            self._thread.shutdown(wait=False)


async def _in(thread: ThreadPoolExecutor, name: str, work: Callable[[], _T]) -> _T:
    with telling(name):
        return await asyncio.get_running_loop().run_in_executor(thread, work)


def _opened(name: str) -> sqlite3.Connection:
    if name != ":memory:":
        _make_file(Path(name))
    connection = sqlite3.connect(name, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        _prepare(connection, name)
    except BaseException:
        connection.close()
        raise
    return connection


def _in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return result


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


def _number(database: sqlite3.Connection, sql: str) -> int:
    for row in database.execute(sql):
        return int(row[0])
    return 0


def _prepare(database: sqlite3.Connection, name: str) -> None:
    database.execute("BEGIN")
    version = _number(database, "PRAGMA user_version")
    ours = _number(database, "PRAGMA application_id") == APPLICATION_ID
    tables = _number(database, "SELECT count(*) FROM sqlite_master")
    database.execute("COMMIT")
    if not ours and (version or tables):
        raise StoreError(f"{name} is a database of another program. It was left as it is; give another path.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{name} was written by a newer version of marextui (format {version}, this one reads {SCHEMA_VERSION})."
            " It was left as it is. Update marextui to open it."
        )
    database.execute("PRAGMA foreign_keys = ON")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    if version < SCHEMA_VERSION:
        _upgrade(database)


def _upgrade(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    # Read again: another process may have done it while this one waited.
    for version in range(_number(database, "PRAGMA user_version"), SCHEMA_VERSION):
        for statement in UPGRADES[version]:
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {version + 1}")
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute("COMMIT")


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
