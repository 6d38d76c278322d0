"""The conversation log in SQLite: appended to, never changed (I5, I16)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from marextui.context.entries import Entry, MessageAdded, Record, TurnOpened, WholeOutput
from marextui.context.messages import Message
from marextui.context.redaction import redact
from marextui.store import recall, references
from marextui.store.database import Database, LogMoved, StoreError, uninterrupted
from marextui.store.recall import Recalled
from marextui.store.rows import from_rows, json_inside, like, storable, to_rows

CHUNK = 500
"""Rows decoded at a time when a whole conversation is read."""
INDEXED_AT_ONCE = 1_000_000
"""Characters of outputs that are made searchable as they are written; larger ones are when somebody searches."""

_ENTRY = "seq, at, kind, payload"
_APART = "kind <> 'WholeOutput'"
"""Whole outputs are read one by one (`LogStore.whole`): a conversation is opened without them."""

_ROW = "id, title, project, created_at, updated_at, messages, turns"

PAGE_SQL = f"SELECT {_ENTRY} FROM entry WHERE conversation_id = ? AND seq < ? AND {_APART} ORDER BY seq DESC LIMIT ?"
"""The tail-first page: walks the primary key backwards, so a page costs its own rows and no more (case 4)."""

_ALL_SQL = f"SELECT {_ENTRY} FROM entry WHERE conversation_id = ? AND seq > ? AND {_APART} ORDER BY seq LIMIT {CHUNK}"

# The first LIKE finds candidates in the raw JSON, the second looks at the text alone ("user" stands in every message).
_SAYS = """EXISTS (
    SELECT 1 FROM entry AS e,
    json_tree(CASE WHEN json_valid(e.payload) THEN e.payload ELSE '{}' END, '$.message.content') AS j
    WHERE e.conversation_id = c.id AND e.kind = 'MessageAdded' AND e.payload LIKE ? ESCAPE '\\'
    AND j.type = 'text' AND (j.key IS NULL OR j.key IN ('content', 'text')) AND j.atom LIKE ? ESCAPE '\\')"""


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation as listed. Times are seconds since the epoch; `messages` counts all roles, `turns` is the last."""

    id: str
    title: str
    project: str
    created_at: float
    updated_at: float
    messages: int
    turns: int


class Outputs(Protocol):
    """Where stored tool outputs are read (`store.omissions.OmissionStore`). May raise OSError."""

    async def get(self, omission_id: str) -> str | None: ...


class LogStore:
    """All conversations of a user in one file. Every method raises `StoreError`; several processes may use the file."""

    def __init__(self, database: Database, *, searchable: bool = False, outputs: Outputs | None = None) -> None:
        """Use `open`."""
        self._searchable = searchable
        self._outputs = outputs
        self._database = database
        self._unreadable: set[tuple[str, int]] = set()
        self.rows_read = 0
        """Entry rows fetched so far: what reading costs."""

    @property
    def unreadable_entries(self) -> int:
        """Entries met so far that this version cannot read (written by a newer one, or damaged); they were left out."""
        return len(self._unreadable)

    @classmethod
    async def open(cls, path: Path | str, *, outputs: Outputs | None = None) -> LogStore:
        """Open or make the database `path` (":memory:" for none), bringing an older schema up to date.

        The file is private (0600). A file that is damaged, not ours or of a newer version raises `StoreError` and is
        left as it is. `outputs` are the stored tool outputs that Recall is to find whole.
        """
        database = await Database.open(path)
        try:
            searchable = await uninterrupted(database.run(recall.prepare))
        except StoreError:
            await database.close()
            raise
        return cls(database, searchable=searchable, outputs=outputs)

    async def close(self) -> None:
        """Finish what is being written, then close the file. Closing twice is fine."""
        await self._database.close()

    async def create(self, conversation_id: str, *, project: str, title: str, at: float) -> None:
        """Add an empty conversation."""
        await self._write(
            "INSERT INTO conversation (id, project, title, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            (storable(conversation_id), storable(project), storable(redact(title)), at, at),
        )

    async def rename(self, conversation_id: str, title: str) -> None:
        """Give a conversation another title; the log itself is not touched."""
        if not await self._write(
            "UPDATE conversation SET title = ? WHERE id = ?", (storable(redact(title)), storable(conversation_id))
        ):
            raise StoreError(f"There is no conversation {conversation_id}.")

    async def append(
        self, conversation_id: str, entries: Sequence[Entry], *, at: float, after: int | None = None
    ) -> tuple[Record, ...]:
        """Add `entries` to the log in one transaction: all of them or none, on the disk when this returns.

        With `after`, the log must end with that seq, else nothing is written and `LogMoved` is raised (case 119).

        What is written is without secrets (I10); the records returned hold the entries as they were given, so that the
        running conversation goes on with what was really said.

        It cannot be interrupted half way: a cancellation that arrives meanwhile takes effect at the caller's next
        await, after the records were returned, so that caller and log never disagree about what was said.
        """
        return await uninterrupted(self._append(conversation_id, tuple(entries), at, after))

    async def page(
        self, conversation_id: str, *, before_seq: int | None, limit: int
    ) -> tuple[tuple[Record, ...], bool]:
        """(the last `limit` records before `before_seq`, oldest first; whether there are older ones). None: the end.

        A page is empty only when nothing older is left, even if entries had to be left out as unreadable.
        """
        before = 2**62 if before_seq is None else before_seq
        while True:
            rows = await self._fetch(PAGE_SQL, (storable(conversation_id), before, limit + 1))
            self.rows_read += len(rows)
            more = len(rows) > limit
            records = await self._decoded(conversation_id, rows[:limit][::-1])
            if records or not more:
                return tuple(records), more
            before = rows[limit - 1][0]

    async def records(self, conversation_id: str) -> tuple[Record, ...]:
        """The whole log of a conversation, in order; unreadable entries are left out and counted.

        Outputs that a message shows a part of stand in the log as well; they are read apart (`whole`).
        """
        return await self.since(conversation_id, 0)

    async def since(self, conversation_id: str, after: int) -> tuple[Record, ...]:
        """As `records`, only those behind the seq `after`."""
        records: list[Record] = []
        while True:
            rows = await self._fetch(_ALL_SQL, (storable(conversation_id), after))
            self.rows_read += len(rows)
            records += await self._decoded(conversation_id, rows)
            if len(rows) < CHUNK:
                return tuple(records)
            after = rows[-1][0]

    async def message(self, conversation_id: str, message_id: str) -> Message | None:
        """One message by its id; None when there is none."""
        found = await self.logged(conversation_id, message_id)
        return None if found is None else found[0]

    async def logged(self, conversation_id: str, message_id: str) -> tuple[Message, float] | None:
        """(a message by its id, when it was logged in seconds since the epoch); None when there is none."""
        for record in await self._about(conversation_id, message_id, f"{_APART} ORDER BY seq LIMIT 1"):
            if isinstance(record.entry, MessageAdded):
                return record.entry.message, record.at
        return None

    async def whole(self, conversation_id: str, message_id: str, part: int) -> str | None:
        """All of the output of which this message holds head and tail; None when it holds all of it itself."""
        for record in await self._about(conversation_id, message_id, "kind = 'WholeOutput' ORDER BY seq"):
            if isinstance(record.entry, WholeOutput) and record.entry.part == part:
                return record.entry.text
        return None

    async def _about(self, conversation_id: str, message_id: str, which: str) -> list[Record]:
        rows = await self._fetch(
            f"SELECT {_ENTRY} FROM entry WHERE conversation_id = ? AND message_id = ? AND {which}",
            (storable(conversation_id), storable(message_id)),
        )
        self.rows_read += len(rows)
        return await self._decoded(conversation_id, rows)

    async def save_unfinished(self, conversation_id: str, message: Message) -> None:
        """Keep an answer that is still arriving, without secrets, in place of what was kept of it before."""
        ((_, _, payload),) = await asyncio.to_thread(to_rows, (MessageAdded(message),))
        await self._write(
            "INSERT INTO unfinished (conversation_id, payload) VALUES (?, ?)"
            " ON CONFLICT (conversation_id) DO UPDATE SET payload = excluded.payload",
            (storable(conversation_id), payload),
        )

    async def unfinished(self, conversation_id: str) -> Message | None:
        """The answer that was arriving when a process was killed; None when there is none."""
        sql = "SELECT 0, 0.0, 'MessageAdded', payload FROM unfinished WHERE conversation_id = ?"
        for record in await self._decoded(conversation_id, await self._fetch(sql, (storable(conversation_id),))):
            if isinstance(record.entry, MessageAdded):
                return record.entry.message
        return None

    async def drop_unfinished(self, conversation_id: str) -> None:
        """The answer is in the log, or nobody's."""
        await self._write("DELETE FROM unfinished WHERE conversation_id = ?", (storable(conversation_id),))

    async def conversations(self, *, project: str | None, query: str = "", limit: int = 200) -> list[ConversationRow]:
        """Conversations of `project` (None: of all), last written to first. `query` must stand in the title or in the
        text of a message; ASCII letters match in either case.
        """
        where, arguments = ["1"], []
        if project is not None:
            where.append("c.project = ?")
            arguments.append(storable(project))
        if query.strip():
            text = storable(query.strip())
            where.append(f"(c.title LIKE ? ESCAPE '\\' OR {_SAYS})")
            arguments += [like(text), like(json_inside(text)), like(text)]
        rows = await self._fetch(
            f"SELECT {_ROW} FROM conversation AS c WHERE {' AND '.join(where)}"
            " ORDER BY updated_at DESC, created_at DESC, id LIMIT ?",
            (*arguments, limit),
        )
        return [ConversationRow(*row) for row in rows]

    async def omissions_in_views(self, project: str) -> frozenset[str]:
        """Ids of stored outputs that the views of this project's conversations refer to (I6, case 81)."""
        rows = await self._fetch(references.SQL, (storable(project),))
        return await asyncio.to_thread(references.in_views, rows)

    async def recall(self, conversation_id: str, query: str) -> tuple[Recalled, ...] | None:
        """Messages that may answer `query`, best first; None when this SQLite cannot search (no FTS5).

        Entries that are not indexed yet are added first, in chunks, the loop free in between.
        """
        if not self._searchable:
            return None
        key = storable(conversation_id)
        while await uninterrupted(self._index_more(key)):
            pass
        return await self._database.run(lambda connection: recall.find(connection, key, query))

    async def _index_more(self, key: str) -> bool:
        """Index the next chunk of a conversation; False when nothing is left."""

        def next_chunk(connection: sqlite3.Connection) -> tuple[int, list[Any]]:
            done = recall.upto(connection, key)
            return done, connection.execute(_ALL_SQL, (key, done)).fetchall()

        done, rows = await self._database.run(next_chunk)
        if not rows:
            return False
        records = await self._decoded(key, rows)
        texts = await self._outputs_of(key, [r.entry for r in records])
        passages = await asyncio.to_thread(recall.index_rows, [r.entry for r in records], texts)
        placed = [replace(p, entry=records[p.entry].seq - done - 1) for p in passages]
        await self._database.transaction(lambda c: recall.add(c, key, done + 1, rows[-1][0], placed))
        return True

    async def _outputs_of(self, conversation_id: str, entries: Sequence[Entry]) -> dict[str, str]:
        """The whole outputs these entries show a part of, by message: from among them, the log or the store.

        One that cannot be read is found by what the message shows of it.
        """
        texts = {e.message_id: e.text for e in entries if isinstance(e, WholeOutput) and e.part == -1}
        for ref in recall.stored(entries):
            if ref.message_id in texts:
                continue
            text = await self.whole(conversation_id, ref.message_id, -1)
            try:
                if text is None and self._outputs is not None:
                    text = await self._outputs.get(ref.omission_id)
            except OSError:
                continue
            if text is not None:
                texts[ref.message_id] = text
        return texts

    async def find(self, id_or_prefix: str) -> ConversationRow | None:
        """The conversation of this id, or the only one whose id begins with it; None when there is none or several."""
        wanted = storable(id_or_prefix)
        if not wanted:
            return None
        rows = await self._fetch(
            f"SELECT {_ROW} FROM conversation WHERE substr(id, 1, ?) = ? ORDER BY id = ? DESC LIMIT 2",
            (len(wanted), wanted, wanted),
        )
        if rows and (len(rows) == 1 or rows[0][0] == wanted):
            return ConversationRow(*rows[0])
        return None

    async def latest(self, project: str) -> ConversationRow | None:
        """The conversation of `project` last written to; one without a message does not count."""
        rows = await self._fetch(
            f"SELECT {_ROW} FROM conversation WHERE project = ? AND messages > 0"
            " ORDER BY updated_at DESC, created_at DESC LIMIT 1",
            (storable(project),),
        )
        return ConversationRow(*rows[0]) if rows else None

    async def _append(
        self, conversation_id: str, entries: tuple[Entry, ...], at: float, after: int | None
    ) -> tuple[Record, ...]:
        large = sum(len(e.text) for e in entries if isinstance(e, WholeOutput)) > INDEXED_AT_ONCE
        indexed = self._searchable and not large
        texts = await self._outputs_of(conversation_id, entries) if indexed else {}
        encoded = await asyncio.to_thread(to_rows, entries)
        passages = await asyncio.to_thread(recall.index_rows, entries, texts) if indexed else []
        key = storable(conversation_id)
        messages = sum(isinstance(e, MessageAdded) for e in entries)
        turn = max((e.turn for e in entries if isinstance(e, TurnOpened)), default=0)

        def add(connection: sqlite3.Connection) -> int:
            found = connection.execute("SELECT last_seq FROM conversation WHERE id = ?", (key,)).fetchone()
            if not found:
                raise StoreError(f"There is no conversation {conversation_id}.")
            first = int(found[0]) + 1
            if after is not None and first != after + 1:
                raise LogMoved("Another marextui has written to this conversation meanwhile; nothing was changed.")
            connection.executemany(
                "INSERT INTO entry (conversation_id, seq, at, kind, message_id, payload) VALUES (?, ?, ?, ?, ?, ?)",
                [(key, first + i, at, *row) for i, row in enumerate(encoded)],
            )
            connection.execute(
                "UPDATE conversation SET last_seq = ?, updated_at = max(updated_at, ?), messages = messages + ?,"
                " turns = max(turns, ?) WHERE id = ?",
                (first + len(entries) - 1, at, messages, turn, key),
            )
            if indexed:
                recall.add(connection, key, first, first + len(entries) - 1, passages)
            return first

        first = await self._database.transaction(add)
        return tuple(Record(first + i, at, entry) for i, entry in enumerate(entries))

    async def _write(self, sql: str, arguments: Sequence[object]) -> int:
        return await self._database.transaction(lambda connection: connection.execute(sql, arguments).rowcount)

    async def _fetch(self, sql: str, arguments: Sequence[object]) -> list[Any]:
        return await self._database.run(lambda connection: connection.execute(sql, arguments).fetchall())

    async def _decoded(self, conversation_id: str, rows: Iterable[Sequence[Any]]) -> list[Record]:
        records, unreadable = await asyncio.to_thread(from_rows, rows)
        self._unreadable.update((conversation_id, seq) for seq in unreadable)
        return records


__all__ = ["PAGE_SQL", "ConversationRow", "LogStore", "Recalled", "StoreError"]
