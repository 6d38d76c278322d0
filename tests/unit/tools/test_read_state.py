"""What has been read survives, and notices every change (case 67, case 74)."""

from __future__ import annotations

import json
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


def test_survives_a_restart_as_plain_json(root: Path) -> None:
    state = ReadState()
    paths = [root / "a", root / "日本", Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9"))]
    for path in paths:
        path.write_text("x")
        state.note_read(path)
    text = json.dumps(state.dump(), ensure_ascii=False)
    text.encode("utf-8")
    again = ReadState()
    again.note_read(paths[0])
    again.load(json.loads(text))
    assert [again.check_fresh(path) for path in paths] == ["", "", ""]
    assert again.dump() == state.dump()


def test_a_damaged_dump_only_forgets() -> None:
    state = ReadState()
    state.load({"/a": [1, 2], "/b": "x", "/c": [1, 2, 3], "\0zz": [1, 2, ""], "/d": [1, 2, "ff"]})
    assert list(state.dump()) == ["/d"]


def test_the_oldest_are_forgotten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_state, "REMEMBERED_FILES", 2)
    state = ReadState()
    for name in ("a", "b", "a", "c"):
        (root / name).write_text("x")
        state.note_read(root / name)
    assert [Path(path).name for path in state.dump()] == ["a", "c"]
