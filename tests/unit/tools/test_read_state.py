"""What has been read survives, and notices every change (case 67, case 74)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marextui.tools import read_state
from marextui.tools.read_state import ReadState


def test_unread_fresh_stale_and_deleted(root: Path) -> None:
    state, path = ReadState(), root / "a"
    path.write_text("one")
    assert "has not been read" in state.check_fresh(path)
    state.note_read(path)
    assert state.check_fresh(path) == ""
    path.write_text("two")
    assert "changed on disk" in state.check_fresh(path)
    path.unlink()
    assert "deleted" in state.check_fresh(path)


def test_same_time_and_size_but_other_content_is_stale(root: Path) -> None:
    state, path = ReadState(), root / "a"
    path.write_text("one")
    os.utime(path, ns=(1, 1))
    state.note_read(path)
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    assert "changed" in state.check_fresh(path)


def test_touched_but_equal_is_fresh(root: Path) -> None:
    state, path = ReadState(), root / "a"
    path.write_text("one")
    state.note_read(path)
    os.utime(path, ns=(5, 5))
    assert state.check_fresh(path) == ""


def test_large_files_are_told_apart_by_time_and_size(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_state, "HASHED_BYTES", 2)
    state, path = ReadState(), root / "a"
    path.write_text("one")
    state.note_read(path)
    assert state.check_fresh(path) == ""
    os.utime(path, ns=(5, 5))
    assert "changed" in state.check_fresh(path)


def test_what_was_noted_is_handed_over_once_and_taken_back(root: Path) -> None:
    """As the engine does it: note, log, open again; also names that are not UTF-8."""
    state = ReadState()
    paths = [root / "a", root / "日本", Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9"))]
    for path in paths:
        path.write_text("x")
        state.note_read(path)
    noted = state.take_noted()
    assert state.take_noted() == ()
    again = ReadState()
    (root / "other").write_text("x")
    again.note_read(root / "other")
    again.load(noted)
    assert [again.check_fresh(path) for path in paths] == ["", "", ""]
    assert not again.seen(root / "other")
    assert again.take_noted() == ()


def test_the_oldest_are_forgotten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_state, "REMEMBERED_FILES", 2)
    state = ReadState()
    for name in ("a", "b", "a", "c"):
        (root / name).write_text("x")
        state.note_read(root / name)
    assert [name for name in ("a", "b", "c") if state.seen(root / name)] == ["a", "c"]
