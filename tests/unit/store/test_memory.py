"""MAREX.md and MEMORY.md on disk (M31, M32, M34, M37)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marextui.context.memory import MEMORY_CAP, RULES_CAP, MemoryEntry, excerpt, parse_memory
from marextui.store.memory import MemoryStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def store(tmp_path: Path, root: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "mh" / "memory" / "p", root)


def entry(cycle: int, *facts: str) -> MemoryEntry:
    return MemoryEntry("2026-01-31T09:30:00Z", "c-1", cycle, facts)


async def test_nothing_there(store: MemoryStore) -> None:
    assert await store.read() == ""
    assert await store.size() == 0
    assert await store.rules() == ("", False)
    assert await store.stamp() == (None, None)
    assert not store.memory_path.parent.exists()


async def test_entries_are_added_in_order(store: MemoryStore) -> None:
    """M32: two compactions, two entries."""
    await store.feed(entry(1, "the server listens on 8443"))
    await store.feed(entry(2, "tests run with make check"))
    assert [e.cycle for e in parse_memory(await store.read())] == [1, 2]
    assert "8443" in store.memory_path.read_text()
    assert await store.size() == store.memory_path.stat().st_size
    assert store.memory_path.parent.stat().st_mode & 0o777 == 0o700
    assert store.memory_path.stat().st_mode & 0o777 == 0o600


async def test_two_processes_lose_no_entry(store: MemoryStore, tmp_path: Path, root: Path) -> None:
    other = MemoryStore(tmp_path / "mh" / "memory" / "p", root)
    await asyncio.gather(*(s.feed(entry(n, f"fact {n}")) for n, s in enumerate([store, other] * 5)))
    assert sorted(e.cycle for e in parse_memory(await store.read())) == list(range(10))


async def test_memory_stays_under_its_cap(store: MemoryStore) -> None:
    """M34."""
    store.memory_path.parent.mkdir(parents=True)
    store.memory_path.write_text("## 2026-01-01T00:00:00Z · conversation c · cycle 1\n- " + "x" * (MEMORY_CAP - 100))
    await store.feed(entry(2, "new"))
    assert await store.size() <= MEMORY_CAP
    assert parse_memory(await store.read())[-1].facts == ("new",)


async def test_the_archive_is_capped_and_says_what_it_drops(store: MemoryStore) -> None:
    """I14: both files stay bounded after any sequence."""
    store.memory_path.parent.mkdir(parents=True)
    big = "## 2026-01-01T00:00:00Z · conversation c · cycle 1\n- " + "x" * (MEMORY_CAP - 100)
    dropped = 0
    for n in range(3):
        store.memory_path.write_text(big)
        dropped += (await store.feed(entry(2, f"new {n}"))).dropped
    assert dropped == 2
    assert store.archive_path.stat().st_size <= MEMORY_CAP


async def test_a_correction_strikes_the_earlier_fact(store: MemoryStore) -> None:
    """Case 131: kept in the file, not in the excerpt."""
    await store.feed(entry(1, "Decision: use SQLite"))
    fed = await store.feed(entry(2, "Decision: use Postgres"))
    assert fed.superseded == ("Decision: use SQLite",)
    assert "~~Decision: use SQLite~~" in await store.read()
    assert "SQLite" not in excerpt(await store.read(), None)


async def test_secrets_do_not_reach_memory(store: MemoryStore) -> None:
    """Case 137."""
    secret = "sk-ant-api03-" + "A1b2C3d4" * 8
    await store.feed(entry(1, f"the key is {secret}"))
    assert secret not in store.memory_path.read_text()


async def test_clear_empties_the_file_and_leaves_the_rest(store: MemoryStore) -> None:
    """M37."""
    await store.feed(entry(1, "x"))
    omission = store.memory_path.parent / "omissions" / "omitted-001.txt"
    omission.parent.mkdir()
    omission.write_text("kept")
    store.archive_path.write_text("older")
    await store.clear()
    assert store.memory_path.read_bytes() == b""
    assert not store.archive_path.exists()
    assert await store.size() == 0
    assert omission.read_text() == "kept"


async def test_a_disk_that_refuses_is_an_oserror(tmp_path: Path, root: Path) -> None:
    """M32: the engine makes a warning of it."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError):
        await MemoryStore(tmp_path / "file" / "p", root).feed(entry(1, "x"))


async def test_rules_are_read_as_they_are_now(store: MemoryStore) -> None:
    """M31."""
    store.rules_path.write_text("Use tabs.\n")
    assert await store.rules() == ("Use tabs.\n", False)
    before = await store.stamp()
    store.rules_path.write_text("Use tabs. Never spaces.\n")
    assert await store.stamp() != before
    assert (await store.rules())[0] == "Use tabs. Never spaces.\n"
    store.rules_path.unlink()
    assert await store.rules() == ("", False)
    assert await store.stamp() == (None, None)
    await store.feed(entry(1, "x"))
    assert (await store.stamp())[1] is not None


async def test_long_rules_are_cut_with_a_notice(store: MemoryStore) -> None:
    store.rules_path.write_text("rule\n" * 20_000)
    text, cut = await store.rules()
    assert cut
    assert len(text.encode()) <= RULES_CAP + 200
    assert "too long" in store.rules_notice
    store.rules_path.write_text("short")
    await store.rules()
    assert store.rules_notice == ""


async def test_rules_that_are_not_utf8_are_used_with_a_notice(store: MemoryStore) -> None:
    store.rules_path.write_bytes(b"\xef\xbb\xbfcaf\xe9 rules\n")
    assert await store.rules() == ("caf\ufffd rules\n", False)
    assert "UTF-8" in store.rules_notice
    store.rules_path.write_text("a real \ufffd is no error")
    await store.rules()
    assert store.rules_notice == ""


async def test_rules_must_be_a_file_of_the_project(store: MemoryStore, tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "id_rsa"
    outside.write_text("private")
    store.rules_path.symlink_to(outside)
    assert await store.rules() == ("", False)
    assert "outside the project" in store.rules_notice
    store.rules_path.unlink()
    (root / "docs").mkdir()
    (root / "docs" / "rules.md").write_text("inside")
    store.rules_path.symlink_to("docs/rules.md")
    assert await store.rules() == ("inside", False)
    store.rules_path.unlink()
    store.rules_path.mkdir()
    assert await store.rules() == ("", False)


async def test_memory_that_is_not_utf8_is_still_read(store: MemoryStore) -> None:
    store.memory_path.parent.mkdir(parents=True)
    store.memory_path.write_bytes(b"caf\xe9")
    assert await store.read() == "caf\ufffd"
