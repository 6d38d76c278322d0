"""The conversation log: append-only, durable, paged from its tail (I5, I16, case 4)."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    MessageAdded,
    NoticeLogged,
    OmissionRef,
    OutputsOmitted,
    Summary,
    SummaryItem,
    SummarySection,
    TurnClosed,
    TurnOpened,
    UsageMeasured,
)
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall
from marextui.store import database
from marextui.store.log import PAGE_SQL, LogStore, StoreError
from marextui.store.schema import APPLICATION_ID, SCHEMA_VERSION

EVERY_KIND: tuple[Entry, ...] = (
    TurnOpened(1),
    MessageAdded(Message("m1", "user", 'a "quoted" \\ line\r\nnext \x00 \ud800 é', turn=1)),
    MessageAdded(
        Message(
            "m2",
            "assistant",
            (TextPart("see"), ImagePart("data:image/png;base64,AA", "low"), OtherPart('{"type":"odd","n":1}')),
            tool_calls=(ToolCall("c1", "Read", '{"path": "x"'),),
            reasoning="hm",
            origin="model",
            turn=1,
        )
    ),
    MessageAdded(Message("m3", "tool", "text", tool_call_id="c1", name="Read", is_error=True, origin="tool", turn=1)),
    OutputsOmitted(3, (OmissionRef("m3", -1, "omitted-001", 1234),)),
    CompactionCommitted(
        1,
        "threshold",
        "m3",
        Summary((SummarySection("Goal", (SummaryItem("do it", "k", 1, 1, ("m1",), "done"),)),)),
        "model x",
        10,
        3,
        9000,
        900,
        1.5,
    ),
    CompactionUndone(1),
    UsageMeasured("m2", 100, 20, "x"),
    NoticeLogged("error", "network"),
    TurnClosed(1, "done", 100, None, None, 2.5, "x", "note"),
)


def said(n: int) -> MessageAdded:
    return MessageAdded(Message(f"m{n}", "user", f"message {n}", turn=n))


@pytest.fixture
async def log() -> AsyncIterator[LogStore]:
    store = await LogStore.open(":memory:")
    await store.create("c-1", project="/p", title="First", at=1.0)
    yield store
    await store.close()


def direct(path: Path, sql: str, arguments: Sequence[object] = ()) -> list[tuple[object, ...]]:
    """Run `sql` beside the store, as another program would."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(sql, arguments).fetchall()
    finally:
        connection.close()


async def test_every_kind_of_entry_comes_back_as_it_was(log: LogStore) -> None:
    written = await log.append("c-1", EVERY_KIND, at=5.0)
    assert [r.seq for r in written] == list(range(1, len(EVERY_KIND) + 1))
    assert await log.records("c-1") == written
    assert tuple(r.entry for r in written) == EVERY_KIND
    assert {r.at for r in written} == {5.0}


async def test_log_survives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "conversations.db"
    first = await LogStore.open(path)
    await first.create("c-1", project="/p", title="T", at=1.0)
    written = await first.append("c-1", EVERY_KIND, at=2.0)
    await first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    second = await LogStore.open(path)
    assert await second.records("c-1") == written
    assert (await second.append("c-1", [TurnOpened(2)], at=3.0))[0].seq == len(EVERY_KIND) + 1
    await second.close()


async def test_sequences_are_per_conversation(log: LogStore) -> None:
    await log.create("c-2", project="/p", title="Second", at=1.0)
    await log.append("c-1", [said(1), said(2)], at=1.0)
    assert [r.seq for r in await log.append("c-2", [said(1)], at=1.0)] == [1]
    assert [r.seq for r in await log.append("c-1", [said(3)], at=1.0)] == [3]


@pytest.mark.parametrize("sql", ["UPDATE entry SET payload = '{}'", "DELETE FROM entry"])
async def test_no_entry_can_change_or_go(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title="T", at=1.0)
    await log.append("c-1", [said(1)], at=1.0)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        direct(path, sql)
    await log.close()


async def test_tail_page_of_a_long_conversation_reads_its_own_rows_only(tmp_path: Path) -> None:
    """Case 4: 5,000 messages, first page of 60."""
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title="T", at=1.0)
    await log.append("c-1", [said(n) for n in range(1, 5001)], at=1.0)
    assert log.rows_read == 0
    records, more = await log.page("c-1", before_seq=None, limit=60)
    assert log.rows_read == 61
    assert [r.seq for r in records] == list(range(4941, 5001))
    assert more
    older, more = await log.page("c-1", before_seq=records[0].seq, limit=60)
    assert log.rows_read == 122
    assert [r.seq for r in older] == list(range(4881, 4941))
    plan = [str(row[3]) for row in direct(path, f"EXPLAIN QUERY PLAN {PAGE_SQL}", ("c-1", 2**62, 61))]
    assert len(plan) == 1
    assert "conversation_id=? AND seq<?" in plan[0], "an index search, no scan and no sort"
    await log.close()


async def test_pages_end_at_the_beginning(log: LogStore) -> None:
    await log.append("c-1", [said(n) for n in range(1, 6)], at=1.0)
    records, more = await log.page("c-1", before_seq=4, limit=3)
    assert ([r.seq for r in records], more) == ([1, 2, 3], False)
    assert await log.page("c-1", before_seq=1, limit=3) == ((), False)
    assert await log.page("c-9", before_seq=None, limit=3) == ((), False)


async def test_entries_of_a_newer_version_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title="T", at=1.0)
    await log.append("c-1", [said(1), said(2)], at=1.0)
    insert = "INSERT INTO entry (conversation_id, seq, at, kind, payload) VALUES ('c-1', ?, 1.0, ?, ?)"
    for seq in (3, 4, 5):
        direct(path, insert, (seq, "FromTheFuture", '{"x": 1}'))
    direct(path, insert, (6, "MessageAdded", '{"message": {"id"'))
    assert [r.seq for r in await log.records("c-1")] == [1, 2]
    assert log.unreadable_entries == 4
    records, more = await log.page("c-1", before_seq=None, limit=2)
    assert ([r.seq for r in records], more) == ([1, 2], False), "an empty page would look like the end"
    assert log.unreadable_entries == 4, "counted once"
    assert [c.id for c in await log.conversations(project=None, query="message 2")] == ["c-1"]
    await log.close()


async def test_a_failed_append_writes_nothing(log: LogStore) -> None:
    await log.append("c-1", [said(1)], at=1.0)
    with pytest.raises(StoreError, match="no conversation c-9"):
        await log.append("c-9", [said(2)], at=1.0)
    bad = MessageAdded(Message("m2", "user", "x", turn=object()))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        await log.append("c-1", [said(2), bad], at=1.0)
    assert [r.entry for r in await log.records("c-1")] == [said(1)]
    assert (await log.append("c-1", [said(2)], at=1.0))[0].seq == 2


async def test_cancelling_an_append_never_leaves_it_half_done(log: LogStore) -> None:
    """I5: a cancellation comes after the records were returned, and is not lost."""
    got: list[int] = []
    reached = False

    async def turn() -> None:
        nonlocal reached
        records = await log.append("c-1", [said(1), said(2)], at=1.0)
        got.extend(r.seq for r in records)
        await asyncio.sleep(0)
        reached = True

    task = asyncio.create_task(turn())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert got == [1, 2]
    assert not reached
    assert [r.seq for r in await log.records("c-1")] == [1, 2]


async def test_a_timeout_around_an_append_stays_a_timeout(log: LogStore) -> None:
    async def hurried() -> None:
        async with asyncio.timeout(0):
            await log.append("c-1", [said(1)], at=1.0)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await hurried()
    assert len(await log.records("c-1")) == 1


async def test_two_processes_on_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    one, two = await asyncio.gather(LogStore.open(path), LogStore.open(path))
    await one.create("c-1", project="/p", title="T", at=1.0)
    await asyncio.gather(*(store.append("c-1", [said(n)], at=1.0) for n in range(20) for store in (one, two)))
    records = await one.records("c-1")
    assert [r.seq for r in records] == list(range(1, 41))
    assert records == await two.records("c-1")
    await one.close()
    await two.close()


WRITER = """
import asyncio, sys
from marextui.context.entries import MessageAdded
from marextui.context.messages import Message
from marextui.store.log import LogStore

async def main():
    log = await LogStore.open(sys.argv[1])
    await log.create("c-1", project="/p", title="T", at=1.0)
    for n in range(100000):
        records = await log.append("c-1", [MessageAdded(Message(f"{n}-{i}", "user", "x")) for i in range(3)], at=1.0)
        print(records[-1].seq, flush=True)

asyncio.run(main())
"""


async def test_what_was_appended_survives_kill_9(tmp_path: Path) -> None:
    """I5: durable when append returns, and no transaction in halves."""
    path = tmp_path / "c.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:  # noqa: ASYNC220
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(10)][-1]
        writer.send_signal(signal.SIGKILL)
    log = await LogStore.open(path)
    seqs = [r.seq for r in await log.records("c-1")]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) >= acknowledged
    assert len(seqs) % 3 == 0
    await log.close()


async def test_a_busy_file_is_told_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title="T", at=1.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="Another process"):
        await log.append("c-1", [said(1)], at=1.0)
    other.close()
    assert (await log.append("c-1", [said(1)], at=1.0))[0].seq == 1
    await log.close()


async def refused(path: Path) -> str:
    """What opening says; the file must be the same afterwards."""
    before, files = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(StoreError) as caught:
        await LogStore.open(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == files
    return str(caught.value)


async def test_a_damaged_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(b"this was never a database " * 100)
    assert "is damaged" in await refused(path)
    assert "Move it away" in await refused(path)


async def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    direct(path, f"PRAGMA application_id = {APPLICATION_ID}")
    direct(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert "Update marextui" in await refused(path)


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    direct(path, "CREATE TABLE cookies (x)")
    assert "another program" in await refused(path)


async def test_a_path_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be opened"):
        await LogStore.open(tmp_path / "file" / "c.db")


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    log = await LogStore.open(":memory:")
    await log.close()
    await log.close()
    with pytest.raises(StoreError, match="has been closed"):
        await log.records("c-1")


async def test_listing_and_searching(log: LogStore) -> None:
    await log.create("c-2", project="/p", title="50% off_x", at=2.0)
    await log.create("d-3", project="/q", title="Other", at=3.0)
    await log.append("c-1", [TurnOpened(1), *map(said, range(1, 4)), TurnOpened(2)], at=9.0)
    parts = (ImagePart("data:secret"), TextPart('say "Déjà\nvu"'))
    await log.append("d-3", [MessageAdded(Message("m1", "user", parts))], at=4.0)

    async def ids(query: str = "", project: str | None = None) -> list[str]:
        return [c.id for c in await log.conversations(project=project, query=query)]

    assert await ids() == ["c-1", "d-3", "c-2"], "last written to first"
    assert await ids(project="/p") == ["c-1", "c-2"]
    assert await ids("MESSAGE 2") == ["c-1"]
    assert await ids('"Déjà\nvu"') == ["d-3"], "as it stands in the text, not in its JSON"
    assert await ids("50%") == ["c-2"]
    assert await ids("%") == ["c-2"], "no wildcard"
    assert await ids("off_x") == ["c-2"]
    assert await ids("user") == [], "roles and other keys are no text"
    assert await ids("secret") == []
    assert [c.id for c in await log.conversations(project=None, limit=1)] == ["c-1"]
    row = (await log.conversations(project="/p"))[0]
    assert (row.title, row.project, row.created_at, row.updated_at, row.messages, row.turns) == (
        "First",
        "/p",
        1.0,
        9.0,
        3,
        2,
    )


async def test_find_by_id_or_prefix(log: LogStore) -> None:
    await log.create("c-12", project="/p", title="Twelve", at=2.0)

    async def found(text: str) -> str | None:
        row = await log.find(text)
        return row.id if row else None

    assert await found("c-12") == "c-12"
    assert await found("c-1") == "c-1", "the whole id wins over a prefix"
    assert await found("c-") is None, "two begin like this"
    assert await found("C-12") is None
    assert await found("") is None
    assert await found("%") is None


async def test_latest_is_the_one_last_written_to(log: LogStore) -> None:
    assert await log.latest("/p") is None, "an empty conversation is nothing to continue"
    await log.create("c-2", project="/p", title="Second", at=5.0)
    await log.append("c-2", [said(1)], at=6.0)
    await log.append("c-1", [said(1)], at=7.0)
    row = await log.latest("/p")
    assert row is not None
    assert row.id == "c-1"
    assert await log.latest("/elsewhere") is None


async def test_rename_touches_the_title_only(log: LogStore) -> None:
    await log.append("c-1", [said(1)], at=2.0)
    await log.rename("c-1", "New \ud800 name")
    row = await log.find("c-1")
    assert row is not None
    assert (row.title, row.updated_at) == ("New \ufffd name", 2.0)
    assert [r.entry for r in await log.records("c-1")] == [said(1)]
    with pytest.raises(StoreError, match="no conversation"):
        await log.rename("c-9", "x")


async def test_one_message_by_its_id(log: LogStore) -> None:
    await log.append("c-1", [said(n) for n in range(50)], at=2.0)
    message = await log.message("c-1", "m17")
    assert message is not None
    assert message.text == "message 17"
    assert log.rows_read == 1
    assert await log.message("c-1", "m99") is None
    assert await log.message("c-2", "m17") is None


async def test_create_twice_is_refused(log: LogStore) -> None:
    with pytest.raises(StoreError):
        await log.create("c-1", project="/p", title="Again", at=2.0)
    row = await log.find("c-1")
    assert row is not None
    assert row.title == "First"


async def test_log_grows_with_new_content_only(tmp_path: Path) -> None:
    """I16: a compaction adds its entry, it copies no message."""
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title="T", at=1.0)
    compaction = next(e for e in EVERY_KIND if isinstance(e, CompactionCommitted))
    await log.append("c-1", [said(n) for n in range(100)], at=1.0)

    def rows() -> tuple[int, int]:
        count, size = direct(path, "SELECT count(*), sum(length(payload)) FROM entry")[0]
        return int(str(count)), int(str(size))

    count, size = rows()
    await log.append("c-1", [compaction], at=1.0)
    count_after, size_after = rows()
    assert count_after == count + 1
    assert size_after - size < 400
    await log.close()


async def test_secrets_stay_in_memory_and_never_reach_the_file(tmp_path: Path) -> None:
    """I10, case 135: the records returned are what was said; the file, its journal and a later reader see placeholders.

    Text, tool output, reasoning, arguments, a notice, the title.
    """
    key = "ghp_" + "a1B2" * 9
    path = tmp_path / "c.db"
    log = await LogStore.open(path)
    await log.create("c-1", project="/p", title=f"about {key}", at=1.0)
    await log.rename("c-1", f"all about {key}")
    call = ToolCall("t1", "Bash", f'{{"command":"curl -H X:{key}"}}')
    entries = (
        MessageAdded(Message("m1", "user", f"use {key}")),
        MessageAdded(Message("m2", "assistant", "", (call,), reasoning=f"with {key}")),
        MessageAdded(Message("m3", "tool", (TextPart(f"TOKEN={key}"),), tool_call_id="t1")),
        NoticeLogged("error", f"refused: {key}"),
    )
    written = await log.append("c-1", entries, at=1.0)
    assert tuple(r.entry for r in written) == entries
    read = await log.records("c-1")
    assert "[redacted: github token #" in str(read[0].entry)
    assert [r.seq for r in read] == [1, 2, 3, 4]
    assert all(key.encode() not in p.read_bytes() for p in tmp_path.rglob("*.db*"))
    await log.close()
    assert all(key.encode() not in p.read_bytes() for p in tmp_path.rglob("*.db*"))
