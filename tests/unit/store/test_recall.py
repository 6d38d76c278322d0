"""The index of Recall: kept up to date with the log, filled for older files, absent without FTS5 (Part 2, 2)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marextui.context.entries import Entry, MessageAdded, OmissionRef, OutputStored
from marextui.context.messages import Message, ToolCall
from marextui.store import log as log_module
from marextui.store import recall
from marextui.store.database import StoreError
from marextui.store.log import LogStore
from marextui.store.schema import APPLICATION_ID, UPGRADES


def said(n: int, text: str, **kw) -> MessageAdded:
    return MessageAdded(Message(f"m{n}", kw.pop("role", "user"), text, turn=n, **kw))


class Outputs:
    """Stored outputs by id; some cannot be read."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    async def get(self, omission_id: str) -> str | None:
        if omission_id == "omitted-009":
            raise OSError(5, "input/output error")
        return self.texts.get(omission_id)


@pytest.fixture
async def log() -> AsyncIterator[LogStore]:
    store = await LogStore.open(
        ":memory:", outputs=Outputs({"omitted-001": "row\n" * 9000 + "the needle\n" + "row\n" * 99})
    )
    await store.create("c-1", project="p", title="", at=1.0)
    await store.create("c-2", project="p", title="", at=1.0)
    yield store
    await store.close()


async def found(log: LogStore, query: str, conversation: str = "c-1") -> list[str]:
    hits = await log.recall(conversation, query)
    assert hits is not None
    return [h.message_id for h in hits]


async def test_words_stems_identifiers_and_calls(log: LogStore) -> None:
    call = ToolCall("t", "Bash", json.dumps({"command": "make billing-check LEVEL=7"}))
    await log.append(
        "c-1",
        [
            said(1, "The retry limit of billing is 37."),
            said(2, "we talked about something else"),
            said(3, "", role="assistant", tool_calls=(call,)),
            said(4, "fixed parseHeader in src/net/http_parser.py", role="assistant"),
            said(5, "数据库使用 8443 端口"),
            said(6, "Le café est à l'étage"),
        ],
        at=5.0,
    )
    assert (await found(log, "What is the retry limit?"))[0] == "m1"
    assert (await found(log, "retries limited"))[0] == "m1"
    assert (await found(log, "src/net/http_parser.py"))[0] == "m4"
    assert (await found(log, "http_parser"))[0] == "m4"
    assert (await found(log, "parseHeader"))[0] == "m4"
    assert (await found(log, "billing-check"))[0] == "m3"
    assert (await found(log, "端口"))[0] == "m5"
    assert (await found(log, "cafe"))[0] == "m6"
    assert await found(log, "xylophone") == []
    assert await found(log, "") == []
    hits = await log.recall("c-1", "retry")
    assert hits is not None
    assert hits[0].at == 5.0


async def test_what_stands_literally_comes_first(log: LogStore) -> None:
    """Exact before BM25: one literal mention outweighs many of the words."""
    await log.append(
        "c-1", [said(n, "connection refused refused connection by peer " * 5) for n in range(1, 9)], at=1.0
    )
    await log.append("c-1", [said(10, "long text " * 40 + "peer refused the connection" + " more text" * 40)], at=1.0)
    assert (await found(log, '"peer refused the connection"'))[0] == "m10"


async def test_conversations_are_apart(log: LogStore) -> None:
    await log.append("c-1", [said(1, "alpha port")], at=1.0)
    await log.append("c-2", [said(2, "beta port")], at=1.0)
    assert await found(log, "port") == ["m1"]
    assert await found(log, "port", "c-2") == ["m2"]
    assert await found(log, "port", "c-9") == []


async def test_a_stored_output_is_found_whole_and_its_repetitions_are_not(log: LogStore) -> None:
    """The message shows a part; reading back and earlier recalls would only echo."""
    ref = OmissionRef("m2", -1, "omitted-001", 40_000)
    lost = OmissionRef("m3", -1, "omitted-009", 40_000)
    entries: list[Entry] = [
        said(1, "", role="assistant", tool_calls=(ToolCall("t", "Recall", '{"query":"needle"}'),)),
        said(2, "row\n[…]\nrow", role="tool", name="Bash"),
        OutputStored(ref),
        said(3, "unreadable but shown", role="tool", name="Bash"),
        OutputStored(lost),
        said(4, "the needle", role="tool", name="ReadOmittedContent"),
        said(5, "the needle", role="tool", name="Recall"),
        MessageAdded(Message("s", "user", "the needle", origin="summary")),
    ]
    await log.append("c-1", entries, at=1.0)
    assert await found(log, "needle") == ["m2"]
    assert await found(log, "unreadable") == ["m3"]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "' OR 1=1",
        "a AND b NOT c",
        "conversation : x",
        "NEAR(a b)",
        "*",
        "(((",
        "{text}:x",
        "\0",
        "\ud800",
        "a" * 9000,
    ],
)
async def test_no_query_is_syntax(log: LogStore, query: str) -> None:
    """Text from a model is data."""
    await log.append("c-1", [said(1, "alpha beta"), said(2, f"odd {query} text")], at=1.0)
    await found(log, query)


async def test_secrets_are_not_in_the_index(tmp_path: Path) -> None:
    """I10: the index is on disk too."""
    key = "ghp_" + "a1B2" * 9
    log = await LogStore.open(tmp_path / "c.db")
    await log.create("c-1", project="p", title="", at=1.0)
    await log.append("c-1", [said(1, f"the key is {key}")], at=1.0)
    assert await found(log, "key") == ["m1"]
    await log.close()
    assert key.lower().encode() not in b"".join(p.read_bytes() for p in tmp_path.glob("c.db*")).lower()


async def test_an_older_file_is_filled_when_first_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema 1 → 2: nothing is indexed at the upgrade; the first question fills it, in chunks, and appends wait."""
    path = tmp_path / "c.db"
    with sqlite3.connect(path) as old:
        for statement in UPGRADES[0]:
            old.execute(statement)
        old.execute("PRAGMA user_version = 1")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("INSERT INTO conversation VALUES ('c-1', 'p', '', 1, 1, 12, 12, 0)")
        for n in range(1, 13):
            payload = {
                "message": {
                    "id": f"m{n}",
                    "role": "user",
                    "content": f"said number{n} here",
                    "tool_calls": [],
                    "tool_call_id": "",
                    "name": "",
                    "reasoning": "",
                    "is_error": False,
                    "origin": "user",
                    "turn": n,
                }
            }
            kind = "MessageAdded" if n != 6 else "FromTheFuture"
            old.execute(
                "INSERT INTO entry VALUES ('c-1', ?, 2.0, ?, ?, ?)",
                (n, kind, f"m{n}", json.dumps(payload) if n != 7 else "{damaged"),
            )
    old.close()
    monkeypatch.setattr(log_module, "_ALL_SQL", log_module._ALL_SQL.replace(f"LIMIT {log_module.CHUNK}", "LIMIT 5"))
    log = await LogStore.open(path)
    await log.append("c-1", [said(13, "said number13 here")], at=3.0)
    assert (await found(log, "number13"))[0] == "m13"
    for n in (1, 5, 8, 12):
        assert (await found(log, f"number{n}"))[0] == f"m{n}"
    await log.append("c-1", [said(14, "said number14 here")], at=3.0)
    assert (await found(log, "number14"))[0] == "m14"
    await log.close()
    again = await LogStore.open(path)
    assert (await found(again, "number14"))[0] == "m14"
    await again.close()
    with sqlite3.connect(path) as check:
        assert check.execute("SELECT count(*), count(DISTINCT seq) FROM recall_row").fetchone() == (12, 12)
    check.close()


async def test_without_fts5_the_log_works_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller then searches by itself; a later SQLite with FTS5 fills the index."""
    monkeypatch.setattr(recall, "_PROBE", recall._PROBE.replace("fts5", "fts5_is_missing"))
    log = await LogStore.open(tmp_path / "c.db")
    await log.create("c-1", project="p", title="", at=1.0)
    await log.append("c-1", [said(1, "alpha")], at=1.0)
    assert await log.recall("c-1", "alpha") is None
    await log.close()
    monkeypatch.undo()
    log = await LogStore.open(tmp_path / "c.db")
    await log.append("c-1", [said(2, "beta")], at=1.0)
    assert await found(log, "alpha") == ["m1"]
    assert await found(log, "beta") == ["m2"]
    await log.close()


async def test_a_failed_append_leaves_no_row(log: LogStore) -> None:
    """Same transaction: index and log never disagree."""
    with pytest.raises(StoreError):
        await log.append("c-9", [said(1, "ghost")], at=1.0)
    assert await found(log, "ghost", "c-9") == []


async def test_two_processes_index_each_entry_once(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    one, two = await LogStore.open(path), await LogStore.open(path)
    await one.create("c-1", project="p", title="", at=1.0)
    for n in range(1, 9):
        await (one if n % 2 else two).append("c-1", [said(n, f"word{n} common")], at=1.0)
    assert sorted(await found(two, "common")) == [f"m{n}" for n in range(1, 9)]
    assert (await found(one, "word3"))[0] == "m3"
    await one.close()
    await two.close()
