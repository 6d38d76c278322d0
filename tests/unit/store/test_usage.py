"""The usage journal (M44)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.store.usage import UsageJournal


@pytest.fixture
def journal(tmp_path: Path) -> UsageJournal:
    return UsageJournal(tmp_path / "project" / ".marex")


async def test_one_line_a_turn(journal: UsageJournal) -> None:
    assert await journal.read() == []
    await journal.append({"v": 1, "turn": 1, "inp": 900, "cache_read": None, "model": "é\n\ud800"})
    await journal.append({"v": 1, "turn": 2, "inp": None})
    raw = journal.path.read_bytes()
    assert raw.count(b"\n") == 2
    assert b"\r" not in raw
    assert b'"cache_read":null' in raw
    assert "é".encode() in raw
    lines = await journal.read()
    assert [line["turn"] for line in lines] == [1, 2]
    assert lines[0]["cache_read"] is None


async def test_folder_keeps_itself_out_of_git(journal: UsageJournal) -> None:
    await journal.append({"turn": 1})
    ignore = journal.path.parent / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("mine\n")
    await journal.append({"turn": 2})
    assert ignore.read_text() == "mine\n"


async def test_a_torn_line_is_skipped_and_takes_no_other_with_it(journal: UsageJournal) -> None:
    await journal.append({"turn": 1})
    with journal.path.open("ab") as file:
        file.write(b'{"turn": 2, "inp": 9')
    assert [line["turn"] for line in await journal.read()] == [1]
    await journal.append({"turn": 3})
    with journal.path.open("ab") as file:
        file.write(b"\xff\xfe\n[1]\n\nnull\n")
    await journal.append({"turn": 4})
    assert [line["turn"] for line in await journal.read()] == [1, 3, 4]


async def test_each_line_is_a_single_write(journal: UsageJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    await journal.append({"turn": 1})
    written: list[bytes] = []
    real = os.write

    def write(handle: int, data: bytes) -> int:
        written.append(bytes(data))
        return real(handle, data)

    with journal.path.open("ab") as file:
        file.write(b"torn")
    monkeypatch.setattr(os, "write", write)
    await journal.append({"turn": 2})
    assert written == [b'\n{"turn":2}\n']


async def test_a_link_is_not_followed(journal: UsageJournal, tmp_path: Path) -> None:
    victim = tmp_path / "profile"
    victim.write_text("mine")
    journal.path.parent.mkdir(parents=True)
    journal.path.symlink_to(victim)
    with pytest.raises(OSError):
        await journal.append({"turn": 1})
    assert victim.read_text() == "mine"


async def test_not_a_number_is_refused(journal: UsageJournal) -> None:
    with pytest.raises(ValueError):
        await journal.append({"cost_usd": float("nan")})
    assert await journal.read() == []


async def test_secrets_stay_out_of_the_journal(journal: UsageJournal) -> None:
    """I10."""
    key = "sk-" + "a1B2" * 10
    await journal.append({"turn": 1, "model": f"x?key={key}", "inp": 5})
    assert key not in journal.path.read_text()
    assert (await journal.read())[0]["inp"] == 5
