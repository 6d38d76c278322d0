"""Stored tool outputs: ids, caps, retention, and what a crash leaves (M25–M29, M33, I6)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import zlib
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from marextui.context.omission import read_slice
from marextui.store.omissions import Evicted, OmissionMeta, OmissionStore

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
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    )
    assert await store.get("omitted-001") == text
    assert await store.meta("omitted-001") == meta
    assert len(meta.preview) <= 200
    assert "\n" not in meta.preview
    assert folder.stat().st_mode & 0o777 == 0o700
    files = [folder / "omitted-001.json", folder / "blobs" / f"{meta.sha256}.z"]
    assert (folder / "blobs").stat().st_mode & 0o777 == 0o700
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
    assert all(secret.encode() not in p.read_bytes() for p in folder.rglob("*.*"))
    stored = await store.get(meta.id)
    assert stored is not None
    assert secret not in stored


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
    """M33: the entry is not there; its text goes at the next purge, whatever the retention."""
    first, second = await put(store, "one"), await put(store, "two")
    (folder / f"{first.id}.json").unlink()
    (folder / "blobs" / f"{second.sha256}.z").unlink()
    (folder / ".omitted-003.json.abc.tmp").write_text("half")
    (folder / "blobs" / ".xyz.tmp").write_text("half")
    (folder / "notes.txt").write_text("not ours")
    assert await store.all() == []
    assert await store.get(first.id) is None
    assert await store.get(second.id) is None
    assert "damaged" in await store.why_missing(second.id, 30)
    assert await store.purge(30) == []
    assert {p.name for p in folder.iterdir()} - {".lock"} == {"counter", "notes.txt", "blobs"}
    assert list((folder / "blobs").iterdir()) == []
    assert (await put(store)).id == "omitted-003"


async def test_a_text_is_kept_while_damaged_metadata_may_want_it(store: OmissionStore, folder: Path) -> None:
    """M33: what is damaged may be repaired by hand; an orphan beside it waits."""
    meta = await put(store, "precious")
    path = folder / f"{meta.id}.json"
    whole = path.read_text()
    path.write_text(whole[:50])
    await store.purge(0)
    path.write_text(whole)
    assert await store.get(meta.id) == "precious"


async def test_equal_texts_share_one_blob_and_keep_their_ids(store: OmissionStore, folder: Path, clock: Clock) -> None:
    """Two entries, one text on disk; it stays until the last one goes."""
    text = "same output\n" * 200
    first = await put(store, text, "m1")
    clock.now += 20 * DAY
    second = await put(store, text, "m2")
    assert (first.id, second.id, first.sha256 == second.sha256) == ("omitted-001", "omitted-002", True)
    assert len(list((folder / "blobs").iterdir())) == 1
    clock.now += 11 * DAY
    assert await store.purge(30) == [first.id]
    assert await store.get(second.id) == text
    clock.now += 20 * DAY
    assert await store.purge(30) == [second.id]
    assert list((folder / "blobs").iterdir()) == []


async def test_texts_are_compressed(store: OmissionStore) -> None:
    await put(store, "one line of a log that says little\n" * 5000)
    assert await store.total_bytes() < 5_000


@pytest.mark.parametrize("damage", [b"", b"not zlib", zlib.compress(b"another text"), zlib.compress(b"0" * 5_000_000)])
async def test_a_damaged_blob_is_no_text_and_is_written_anew(store: OmissionStore, folder: Path, damage: bytes) -> None:
    """Its name says what it must hold; one that unpacks without end is not unpacked to the end."""
    meta = await put(store, "some output")
    blob = folder / "blobs" / f"{meta.sha256}.z"
    blob.write_bytes(damage)
    assert await store.get(meta.id) is None
    assert await store.get((await put(store, "some output")).id) == "some output"
    assert await store.get(meta.id) == "some output"


def old_entry(folder: Path, n: int, text: str, at: float) -> str:
    """An entry as the first version wrote it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"omitted-{n:03d}.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    meta = {"id": f"omitted-{n:03d}", "tool": "Read", "what": "a", "chars": len(text), "stored_chars": len(text)}
    meta |= {"created_at": at, "reads": 3, "preview": text[:9], "conversation_id": "c", "message_id": "m"}
    (folder / f"omitted-{n:03d}.json").write_text(json.dumps(meta))
    return f"omitted-{n:03d}"


async def test_entries_of_the_first_version_are_read_and_moved_over(
    store: OmissionStore, folder: Path, clock: Clock
) -> None:
    """Same id, text, count and age before, between and after; a limited number at a time."""
    ids = [old_entry(folder, n, f"old text {n} \ud800", clock.now) for n in range(1, 61)]
    assert await store.get(ids[0]) == "old text 1 \ud800"
    assert [m.id for m in await store.all()] == ids[::-1]
    before = await store.meta(ids[5])
    assert await store.purge(30) == []
    assert len(list(folder.glob("*.txt"))) == 10
    assert await store.mark_read(ids[5]) == 4
    await store.purge(30)
    assert list(folder.glob("*.txt")) == []
    assert [await store.get(i) for i in ids] == [f"old text {n} \ud800" for n in range(1, 61)]
    after = await store.meta(ids[5])
    assert before is not None
    assert after == replace(before, reads=4, sha256=after.sha256 if after else "")
    assert (await put(store)).id == "omitted-061"


async def test_a_crash_while_moving_over_loses_nothing(store: OmissionStore, folder: Path, clock: Clock) -> None:
    """Blob and metadata are there, the old text too."""
    old = old_entry(folder, 1, "old text", clock.now)
    await store.purge(0)
    (folder / f"{old}.txt").write_text("old text")
    assert await store.get(old) == "old text"
    (folder / "blobs" / ((await store.meta(old)).sha256 + ".z")).unlink()  # type: ignore[union-attr]
    assert await store.get(old) == "old text", "the old text still serves"


def small(folder: Path, clock: Clock, mb: int = 1) -> OmissionStore:
    return OmissionStore(folder, clock, quota_mb=mb)


async def filled(store: OmissionStore, clock: Clock, count: int) -> list[str]:
    """`count` entries of about 100 kB that do not compress."""
    ids = []
    for n in range(count):
        clock.now += 1
        text = Random(n).randbytes(75_000).hex()
        ids.append((await put(store, text, f"m{n}")).id)
    return ids


async def test_over_the_quota_the_oldest_unreferenced_go_first(folder: Path, clock: Clock) -> None:
    """Case 81: then the referenced ones, told apart; what must be kept is kept."""
    store = small(folder, clock)
    ids = await filled(store, clock, 10)
    assert not await store.over_quota()
    ids += await filled(store, clock, 6)
    # equal seeds: six of them share the text of an earlier one
    assert not await store.over_quota()
    ids += [(await put(store, Random(100 + n).randbytes(75_000).hex())).id for n in range(6)]
    assert await store.over_quota()
    evicted = await store.evict({ids[0], ids[1]}, keep={ids[-1]})
    assert evicted.referenced == ()
    assert evicted.unreferenced[0] == ids[2]
    assert ids[0] not in evicted.unreferenced
    assert ids[-1] not in evicted.unreferenced
    assert await store.total_bytes() <= 950_000
    assert await store.get(ids[0]) is not None
    assert not await store.over_quota()
    assert await store.evict(set()) == Evicted()


async def test_when_all_are_referenced_they_go_and_are_named(folder: Path, clock: Clock) -> None:
    """I6: loudly, oldest first, never the one just stored."""
    store = small(folder, clock)
    ids = await filled(store, clock, 16)
    assert await store.over_quota()
    evicted = await store.evict(set(ids), keep={ids[-1]})
    assert evicted.unreferenced == ()
    assert evicted.referenced == tuple(ids[: len(evicted.referenced)])
    assert 0 < len(evicted.referenced) < 15
    assert "made room" in await store.why_missing(ids[0], 30)
    assert (await put(store)).id == "omitted-017", "an id is never given twice"


async def test_a_shared_blob_goes_with_its_last_entry(folder: Path, clock: Clock) -> None:
    """Evicting one of two equal entries frees no text, so more must go; the text of the kept one stays."""
    store = small(folder, clock)
    text = Random(1).randbytes(90_000).hex()
    first, last = await put(store, text), await put(store, text)
    ids = await filled(store, clock, 16)
    await store.evict(set(), keep={last.id})
    assert await store.meta(first.id) is None
    assert await store.get(last.id) == text
    assert await store.meta(ids[-1]) is not None


async def test_without_a_quota_nothing_is_evicted(folder: Path, clock: Clock) -> None:
    store = small(folder, clock, 0)
    await filled(store, clock, 16)
    assert not await store.over_quota()
    assert await store.evict(set()) == Evicted()


async def test_a_thousand_omissions_are_listed_and_none_referenced_is_lost(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 81."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    store = small(folder, clock)
    metas = [await put(store, f"output {n} " * 100, f"m{n}") for n in range(1000)]
    assert len(await store.all()) == 1000
    gone = await store.evict({m.id for m in metas[:10]})
    assert not set(gone.unreferenced) & {m.id for m in metas[:10]}
    assert all([await store.get(m.id) for m in metas[:10]])


async def test_the_reader_learns_whether_the_file_has_changed(tmp_path: Path, folder: Path, clock: Clock) -> None:
    """Case 70: by its bytes, not its time; gone and back again too."""
    root = tmp_path / "project"
    root.mkdir()
    file = root / "a.py"
    file.write_text("one\n")
    store = OmissionStore(folder, clock, root=root)

    async def stored(path: str, text: str = "1→one") -> str:
        meta = await store.put(text, tool="Read", what=path, conversation_id="c", message_id="m", file=path)
        return meta.id

    known = await stored("a.py")
    assert "a.py is unchanged on disk" in await store.about(known)
    os.utime(file, (1, 1))
    assert "unchanged" in await store.about(known)
    file.write_text("two\n")
    assert "a.py has changed on disk" in await store.about(known)
    file.unlink()
    assert "can no longer be read" in await store.about(known)
    os.mkfifo(file)
    assert "can no longer be read" in await store.about(known), "a pipe is not waited for"
    for other in ("", "missing.py", ".", "a.py", "bad\0name"):
        assert await store.about(await stored(other)) == ""
    assert await store.about("omitted-999") == ""
    assert await OmissionStore(folder, clock).about(known) == ""


async def test_what_is_beyond_the_cap_is_said(store: OmissionStore) -> None:
    """M27, case 83: 5 MB: beginning and end can be searched, and that the middle is missing is no secret."""
    lines = [f"line {n} of the log" for n in range(250_000)]
    lines[125_000] = "the needle"
    lines[10] = "an early needle"
    text = "\n".join(lines)
    assert len(text) > 5_000_000
    assert "the needle" in read_slice(text, offset=None, length=None, query="the needle", limit_chars=5_000).text
    meta = await put(store, text)
    about = await store.about(meta.id)
    assert "Only 200 000 of" in about
    assert "beginning and the end" in about
    stored = await store.get(meta.id)
    assert stored is not None
    assert "early needle" in read_slice(stored, offset=None, length=None, query="early needle", limit_chars=5_000).text
    assert await store.about((await put(store, "x" * 200_000)).id) == ""


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
