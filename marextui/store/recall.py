"""The index behind Recall: SQLite FTS5 over the messages of the log and the stored outputs they show a part of.

It holds terms, no text (contentless), in rows of a passage each; it finds the messages to look at, and where in them,
and `context.search` looks there. Terms are those of `context.search.tokens`: stems, identifiers whole and in parts,
single and paired characters of scripts without blanks. A row is written in the transaction that writes its message;
what was logged before there was an index, or without one, or was very large, is added when it is first asked for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from marextui.context.entries import Entry, MessageAdded, OmissionRef, OutputStored
from marextui.context.recalling import recall_text
from marextui.context.redaction import redact
from marextui.context.search import phrases, query_terms, tokens
from marextui.store.rows import storable

_PROBE = "CREATE VIRTUAL TABLE temp.recall_probe USING fts5(text)"
_TABLE = """CREATE VIRTUAL TABLE IF NOT EXISTS recall USING fts5(
    conversation, text, content='', tokenize='unicode61 remove_diacritics 2')"""
_FIND = """SELECT r.message_id, e.at, r.start FROM recall JOIN recall_row AS r ON r.rowid = recall.rowid
    JOIN entry AS e ON e.conversation_id = r.conversation_id AND e.seq = r.seq
    WHERE recall MATCH ? ORDER BY bm25(recall, 0.0, 1.0), r.seq DESC LIMIT ?"""

PASSAGE_CHARS = 2_000
ROWS = 200
"""Most rows looked at per query, the exact ones first."""

_TERMS = 60
"""Most terms of a query; a pasted page is not all asked for."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that may answer a query; `at` is when it was logged, in seconds since the epoch.

    `starts` are the places in its text (`context.recalling.recall_text`) of the passages that were found, best first.
    """

    message_id: str
    at: float
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A passage to index: the position of its message in the entries given, where it begins in the text of that, and
    its terms."""

    entry: int
    message_id: str
    start: int
    terms: str


def prepare(database: sqlite3.Connection) -> bool:
    """Make the index table if it is missing; False when this SQLite has no FTS5 (then nothing is indexed)."""
    try:
        database.execute(_PROBE)  # the table may be there from an SQLite that had the module
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            return False
        raise
    database.execute("DROP TABLE temp.recall_probe")
    database.execute(_TABLE)
    return True


def index_rows(entries: Sequence[Entry], outputs: Mapping[str, str]) -> list[IndexRow]:
    """What to index of `entries`; `outputs` holds, by the id of a message, the whole output it shows a part of.

    Secrets are left out (I10). Slow for large outputs, so never in the loop.
    """
    rows: list[IndexRow] = []
    for n, entry in enumerate(entries):
        if isinstance(entry, MessageAdded):
            message = entry.message
            text = redact(recall_text(message, outputs.get(message.id)))
            rows += [IndexRow(n, message.id, at, terms) for at, p in passages(text) if (terms := terms_of(p))]
    return rows


def terms_of(text: str) -> str:
    """The terms of `text` in their order, as the index holds them."""
    return storable(" ".join(term for term, _ in tokens(text)))


def passages(text: str) -> Iterable[tuple[int, str]]:
    """(where it begins, stretch of whole lines of about `PASSAGE_CHARS`); longer lines are cut at blanks."""
    start = 0
    while start < len(text):
        end = min(len(text), start + PASSAGE_CHARS)
        if end < len(text):
            for sign in ("\n", " "):
                cut = text.rfind(sign, start + PASSAGE_CHARS // 2, end)
                if cut > 0:
                    end = cut + 1
                    break
        yield start, text[start:end]
        start = end


def add(
    database: sqlite3.Connection, conversation_id: str, first_seq: int, last_seq: int, rows: Sequence[IndexRow]
) -> bool:
    """Index `rows` of the entries `first_seq` to `last_seq`, inside the caller's transaction.

    False, and nothing done, when an earlier entry is not indexed yet: then all of them wait for `recall` to add them.
    """
    if upto(database, conversation_id) != first_seq - 1:
        return False
    key = conversation_key(conversation_id)
    for row in rows:
        cursor = database.execute(
            "INSERT INTO recall_row (conversation_id, seq, message_id, start) VALUES (?, ?, ?, ?)",
            (conversation_id, first_seq + row.entry, storable(row.message_id), row.start),
        )
        database.execute(
            "INSERT INTO recall (rowid, conversation, text) VALUES (?, ?, ?)", (cursor.lastrowid, key, row.terms)
        )
    database.execute(
        "INSERT INTO recall_state (conversation_id, seq) VALUES (?, ?)"
        " ON CONFLICT (conversation_id) DO UPDATE SET seq = excluded.seq",
        (conversation_id, last_seq),
    )
    return True


def upto(database: sqlite3.Connection, conversation_id: str) -> int:
    """The last entry of the conversation that is indexed, 0 for none."""
    sql = "SELECT seq FROM recall_state WHERE conversation_id = ?"
    row = database.execute(sql, (conversation_id,)).fetchone()
    return int(row[0]) if row else 0


def conversation_key(conversation_id: str) -> str:
    """The one term that stands for a conversation, whatever characters its id has."""
    return "c" + sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def questions(conversation_id: str, query: str) -> list[str]:
    """FTS5 expressions for `query`, to be tried in order: what stands literally, then any of its words."""
    conversation = f'conversation : "{conversation_key(conversation_id)}"'
    exact = [f'"{terms}"' for p in phrases(query)[:_TERMS] if (terms := terms_of(p))]
    words = [
        f'"{storable(term)}"{" *" if term.isalpha() and term.isascii() and len(term) > 3 else ""}'
        for term in list(query_terms(query))[:_TERMS]
    ]
    return [f"{conversation} AND text : ({' OR '.join(some)})" for some in (exact, words) if some]


def find(database: sqlite3.Connection, conversation_id: str, query: str) -> tuple[Recalled, ...]:
    """The messages that may answer `query`, best first, each once."""
    found: dict[str, tuple[float, list[int]]] = {}
    for question in questions(conversation_id, query):
        for message_id, at, start in database.execute(_FIND, (question, ROWS)):
            starts = found.setdefault(message_id, (at, []))[1]
            if start is not None:  # rows of an earlier version do not know it
                starts.append(start)
    return tuple(Recalled(message_id, at, tuple(starts)) for message_id, (at, starts) in found.items())


def stored(entries: Iterable[Entry]) -> list[OmissionRef]:
    """The stored outputs among these entries of which `index_rows` wants the whole."""
    return [e.ref for e in entries if isinstance(e, OutputStored) and e.ref.part == -1]
