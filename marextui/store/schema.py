"""The database of conversations: its tables and the ordered steps that bring an older file up to date."""

from __future__ import annotations

APPLICATION_ID = 0x4D415258
"""Marks a file as ours ("MARX"), so that someone else's database is never written to."""

UPGRADES: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE conversation (
            id TEXT PRIMARY KEY,
            project TEXT NOT NULL,
            title TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            last_seq INTEGER NOT NULL DEFAULT 0,
            messages INTEGER NOT NULL DEFAULT 0,
            turns INTEGER NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX conversation_by_time ON conversation (project, updated_at)",
        """CREATE TABLE entry (
            conversation_id TEXT NOT NULL REFERENCES conversation (id),
            seq INTEGER NOT NULL,
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            message_id TEXT,
            payload TEXT NOT NULL,
            PRIMARY KEY (conversation_id, seq)
        )""",
        """CREATE INDEX entry_by_message ON entry (conversation_id, message_id)
            WHERE message_id IS NOT NULL""",
        # The log is append-only: not even a defect of ours may change what was said.
        """CREATE TRIGGER entry_never_changes BEFORE UPDATE ON entry
            BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
        """CREATE TRIGGER entry_never_goes BEFORE DELETE ON entry
            BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    ),
    (
        # What Recall searches (`store.recall`); its FTS5 table is made apart, where SQLite has that module.
        """CREATE TABLE recall_row (
            rowid INTEGER PRIMARY KEY,
            conversation_id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            message_id TEXT NOT NULL
        )""",
        """CREATE TABLE recall_state (
            conversation_id TEXT PRIMARY KEY,
            seq INTEGER NOT NULL
        )""",
    ),
    # Where a passage begins in the text of its message: of megabytes of one output, pieces are looked at.
    ("ALTER TABLE recall_row ADD COLUMN start INTEGER",),
    # An answer that is still arriving, one for each conversation: no entry, for it is written again as it grows.
    (
        """CREATE TABLE unfinished (
            conversation_id TEXT PRIMARY KEY REFERENCES conversation (id),
            payload TEXT NOT NULL
        )""",
    ),
)
"""`UPGRADES[n]` turns schema version n into n + 1; a new file starts at 0. Steps are only ever added."""

SCHEMA_VERSION = len(UPGRADES)
