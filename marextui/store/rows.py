"""Log entries as database rows, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from marextui.context.entries import Entry, MessageAdded, Record, WholeOutput
from marextui.context.entry_codec import decode, encode
from marextui.context.messages import canonical_json, file_json
from marextui.context.redacted import redacted_entry

_SURROGATE = re.compile("[\ud800-\udfff]")

EncodedEntry = tuple[str, str | None, str]
"""(kind, message id or None, payload as JSON)."""


def to_row(entry: Entry) -> EncodedEntry:
    """`entry` for the table, without secrets (I10: this is the only way into the log).

    SQLite holds UTF-8 only, so a lone surrogate is written as its JSON escape.
    """
    kind, payload = encode(redacted_entry(entry))
    text = file_json(payload)
    message_id = None
    if isinstance(entry, MessageAdded):
        message_id = storable(entry.message.id)
    elif isinstance(entry, WholeOutput):
        message_id = storable(entry.message_id)
    return kind, message_id, text


def to_rows(entries: Sequence[Entry]) -> list[EncodedEntry]:
    """`to_row` of each."""
    return [to_row(entry) for entry in entries]


def from_rows(rows: Iterable[Sequence[Any]]) -> tuple[list[Record], list[int]]:
    """(records, seqs that could not be read) of rows (seq, at, kind, payload).

    An entry of a newer version, or a damaged one, must not make the rest of a conversation unreadable.
    """
    records: list[Record] = []
    unreadable: list[int] = []
    for seq, at, kind, payload in rows:
        try:
            records.append(Record(seq, at, decode(kind, json.loads(payload))))
        except (ValueError, TypeError, KeyError, AttributeError):
            unreadable.append(seq)
    return records, unreadable


def storable(text: str) -> str:
    """`text` without lone surrogates, as SQLite wants it: for ids, titles and paths."""
    return _SURROGATE.sub("\ufffd", text)


def json_inside(text: str) -> str:
    """How `text` stands inside a JSON string of `to_row`."""
    return canonical_json(storable(text))[1:-1]


def like(text: str) -> str:
    """A LIKE pattern (ESCAPE '\\') that matches texts containing `text`."""
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"
