"""Stored tool outputs: ids, caps, retention, and what a crash leaves (M25–M29, M33, I6)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from marextui.store.omissions import OmissionMeta, OmissionStore

DAY = 86_400.0


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 4_000_000_000.0  # later than any file of a test run can be

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mh" / "memory" / "proj" / "omissions"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(folder: Path, clock: Clock) -> OmissionStore:
    return OmissionStore(folder, clock)


async def put(store: OmissionStore, text: str = "some output", message_id: str = "m1") -> OmissionMeta:
    return await store.put(text, tool="Read", what="src/a.py", conversation_id="c-1", message_id=message_id)


async def test_what_was_stored_comes_back(store: OmissionStore, folder: Path, clock: Clock) -> None:
    text = "line one\r\n\tline\x1b[1m two \ud800 é\n" * 500
    meta = await put(store, text)
    assert meta == OmissionMeta(
        id="omitted-001",
        tool="Read",
        what="src/a.py",
        chars=len(text),
        stored_chars=len(text),
        created_at=clock.now,
        reads=0,
        preview=meta.preview,
        conversation_id="c-1",
        message_id="m1",
    )
    assert await store.get("omitted-001") == text
    assert await store.meta("omitted-001") == meta
    assert len(meta.preview) <= 200
    assert "\n" not in meta.preview
    assert folder.stat().st_mode & 0o777 == 0o700
    files = [p for p in folder.iterdir() if p.name.startswith("omitted")]
    assert len(files) == 2
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in files)
    assert await store.total_bytes() == sum(p.stat().st_size for p in files)


async def test_more_than_200_000_characters_are_shortened(store: OmissionStore) -> None:
    text = "é" * 250_000
    meta = await put(store, text)
    assert (meta.chars, meta.stored_chars) == (250_000, 200_000)
    stored = await store.get(meta.id)
    assert stored is not None
    assert len(stored) == 200_000
    assert (await put(store, "x" * 200_000)).stored_chars == 200_000


async def test_secrets_do_not_reach_the_disk(store: OmissionStore, folder: Path) -> None:
    """Case 135."""
    secret = "sk-ant-api03-" + "A1b2C3d4" * 8
    text = f"export ANTHROPIC_API_KEY={secret}\n" + "x" * 700
    meta = await store.put(text, tool="Bash", what=f"echo {secret}", conversation_id="c", message_id="m")
    assert meta.chars == len(text), "the marker tells the length of the original (M24)"
    assert all(secret.encode() not in p.read_bytes() for p in folder.iterdir())


async def test_ids_grow_past_999_and_are_never_given_twice(store: OmissionStore, folder: Path, clock: Clock) -> None:
    """M25."""
    await put(store)
    (folder / "counter").write_text("998\n")
    assert [(await put(store)).id for _ in range(3)] == ["omitted-999", "omitted-1000", "omitted-1001"]
    assert (await put(OmissionStore(folder, clock))).id == "omitted-1002", "a new process goes on"
    clock.now += 31 * DAY
    assert len(await store.purge(30)) == 5
    assert await store.all() == []
    assert (await put(store)).id == "omitted-1003"


async def test_a_damaged_counter_does_not_give_an_id_twice(store: OmissionStore, folder: Path) -> None:
    await put(store)
    await put(store)
    (folder / "counter").write_bytes(b"\xff nonsense")
    assert (await put(store)).id == "omitted-003"
    (folder / "counter").unlink()
    assert (await put(store)).id == "omitted-004"


async def test_two_processes_never_share_an_id(folder: Path, clock: Clock) -> None:
    stores = [OmissionStore(folder, clock) for _ in range(4)]
    metas = await asyncio.gather(*(put(s, f"text {n}") for n in range(5) for s in stores))
    assert sorted(m.id for m in metas) == [f"omitted-{n:03d}" for n in range(1, 21)]


@pytest.mark.parametrize(
    "bad",
    [
        "../../x",
        "omitted-001/../omitted-001",
        "omitted-1",
        "omitted-001\n",
        "omitted-٠٠١",
        "",
        "/etc/passwd",
        "\0",
        "omitted-" + "9" * 5000,
    ],
)
async def test_no_path_fits_into_an_id(store: OmissionStore, folder: Path, bad: str) -> None:
    await put(store)
    (folder.parent / "x.txt").write_text("outside")
    (folder.parent / "x.json").write_text("{}")
    assert await store.get(bad) is None
    assert await store.meta(bad) is None
    assert await store.mark_read(bad) == 0
    assert (await store.why_missing(bad, 30)).startswith("No such content")


async def test_reads_are_counted(store: OmissionStore) -> None:
    await put(store)
    await store.get("omitted-001")
    assert [await store.mark_read("omitted-001") for _ in range(2)] == [1, 2]
    meta = await store.meta("omitted-001")
    assert meta is not None
    assert meta.reads == 2
    assert await store.mark_read("omitted-002") == 0


async def test_newest_first(store: OmissionStore) -> None:
    for n in range(12):
        await put(store, message_id=f"m{n}")
    assert [m.message_id for m in await store.all()] == [f"m{n}" for n in reversed(range(12))]


async def test_retention(store: OmissionStore, clock: Clock) -> None:
    """M29: +29 d 23 h kept, +30 d 1 s gone; age by creation, whatever was read since."""
    await put(store)
    start = clock.now
    clock.now = start + 29 * DAY + 23 * 3600
    assert await store.purge(30) == []
    await store.mark_read("omitted-001")
    await put(store)
    clock.now = start + 30 * DAY + 1
    assert await store.purge(0) == [], "0 days: for ever"
    assert await store.purge(30) == ["omitted-001"]
    assert await store.get("omitted-001") is None
    assert [m.id for m in await store.all()] == ["omitted-002"]


async def test_purging_nothing_makes_nothing(store: OmissionStore, folder: Path) -> None:
    assert await store.purge(30) == []
    assert await store.all() == []
    assert await store.total_bytes() == 0
    assert not folder.exists()


async def test_why_missing(store: OmissionStore, folder: Path, clock: Clock) -> None:
    """M26."""
    await put(store)
    await put(store)
    clock.now += 31 * DAY
    await store.purge(30)
    await put(store)
    assert "omitted-001 expired after 30 days" in await store.why_missing("omitted-001", 30)
    assert "was deleted" in await store.why_missing("omitted-001", 0)
    assert (await store.why_missing("omitted-004", 30)).startswith("No such content: omitted-004")
    assert (await store.why_missing("omitted-000", 30)).startswith("No such content")
    assert (await store.why_missing("omitted-0001", 30)).startswith("No such content")
    (folder / "omitted-003.json").write_text("{")
    assert "is damaged" in await store.why_missing("omitted-003", 30)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"id": "omitted-001"}', b"\xff\xfe", b"null"],
)
async def test_damaged_metadata_are_left_out(store: OmissionStore, folder: Path, damage: bytes) -> None:
    await put(store)
    await put(store)
    (folder / "omitted-001.json").write_bytes(damage)
    assert [m.id for m in await store.all()] == ["omitted-002"]
    assert await store.get("omitted-001") is None


async def test_a_crash_between_text_and_metadata(store: OmissionStore, folder: Path, clock: Clock) -> None:
    """M33: the entry is ignored; its text goes when it is old enough."""
    await put(store)
    await put(store)
    (folder / "omitted-001.json").unlink()
    (folder / "omitted-002.txt").unlink()
    (folder / ".omitted-003.txt.abc.tmp").write_text("half")
    (folder / "notes.txt").write_text("not ours")
    young = folder / "omitted-004.txt"
    young.write_text("its metadata may be on their way")
    os.utime(young, (clock.now, clock.now))
    assert await store.all() == []
    assert await store.get("omitted-001") is None
    assert await store.get("omitted-002") is None
    assert await store.purge(30) == []
    assert {p.name for p in folder.iterdir()} - {".lock"} == {"counter", "notes.txt", "omitted-004.txt"}
    assert (await put(store)).id == "omitted-005"


async def test_metadata_of_another_entry_are_not_believed(store: OmissionStore, folder: Path) -> None:
    await put(store, "one")
    await put(store, "two")
    (folder / "omitted-001.json").write_bytes((folder / "omitted-002.json").read_bytes())
    assert await store.meta("omitted-001") is None


async def test_metadata_of_a_newer_version_are_read(store: OmissionStore, folder: Path) -> None:
    await put(store)
    path = folder / "omitted-001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pinned": True}))
    assert [m.id for m in await store.all()] == ["omitted-001"]


async def test_a_folder_that_cannot_be_made_is_an_oserror(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError):
        await put(OmissionStore(tmp_path / "file" / "omissions", clock))
