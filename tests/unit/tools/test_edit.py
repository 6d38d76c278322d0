"""Edit and Write: exact, never on what was not seen, all or nothing, and every byte besides kept."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from marextui.tools import atomic, textfile
from marextui.tools.box import Box, default_toolbox
from marextui.tools.changes import Refusal
from marextui.tools.edit import replaced
from marextui.tools.read_state import ReadState
from marextui.tools.types import ToolContext, ToolResult
from tests.unit.tools.conftest import Call

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@settings(deadline=None)
@given(TEXT, TEXT.filter(bool), TEXT, TEXT)
def test_replacing_is_exact_on_any_text(before: str, old: str, new: str, after: str) -> None:
    text = before + old + after
    assume(old != new)
    found = text.count(old)
    assert replaced(text, old, new, every=True) == (text.replace(old, new), found)
    if found == 1:
        assert replaced(text, old, new, every=False) == (before + new + after, 1)
    else:
        with pytest.raises(Refusal, match=f"{found} times"):
            replaced(text, old, new, every=False)


@settings(deadline=None)
@given(TEXT, TEXT.filter(bool), TEXT, TEXT)
@example(before="", old="\n0", new="", after="")
def test_in_a_crlf_file_the_models_line_feeds_are_crlf(before: str, old: str, new: str, after: str) -> None:
    text = before + old + after + "\n"
    assume(old != new and text.count(old) == 1)
    result, times = replaced(textfile.to_crlf(text), old, new, every=False)
    assert times == 1
    assert result == textfile.to_crlf(before + new + after + "\n")


@settings(deadline=None)
@given(st.binary())
def test_any_text_file_comes_back_byte_for_byte(data: bytes) -> None:
    try:
        text, encoding = textfile.decode(data)
    except textfile.NotText:
        return
    assert textfile.encode(text, encoding) == data
    textfile.shown(text).encode("utf-8")


async def _edit(call: Call, old: str, new: str, **more: Any) -> ToolResult:
    return await call("Edit", file_path="f", old_string=old, new_string=new, **more)


@pytest.mark.parametrize(
    ("data", "old", "new", "result"),
    [
        (b"one\ntwo", "two", "2", b"one\n2"),
        (b"one\ntwo\n", "one\ntwo", "1", b"1\n"),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", "one\ntwo", "1\n2", b"\xef\xbb\xbf1\r\n2\r\n"),
        (b"mixed\r\nends\nhere\r\n", "ends", "x", b"mixed\r\nx\nhere\r\n"),
        (b"caf\xe9 one\n", "one", "1", b"caf\xe9 1\n"),
        ("\ufeffa b".encode("utf-16-be"), "b", "é", "\ufeffa é".encode("utf-16-be")),
        (b"tab\there \n", "\there ", "\t", b"tab\t\n"),
        (b"$1 \\1 \\g<0>", "\\1", "\\g<0>", b"$1 \\g<0> \\g<0>"),
    ],
)
async def test_encoding_line_ends_and_final_newline_are_kept(
    call: Call, root: Path, data: bytes, old: str, new: str, result: bytes
) -> None:
    (root / "f").write_bytes(data)
    await call("Read", file_path="f")
    made = await _edit(call, old, new)
    assert not made.is_error, made.text
    assert (root / "f").read_bytes() == result


async def test_result_has_a_diff_and_a_summary(call: Call, root: Path) -> None:
    (root / "f").write_text("a\nb\nc\n")
    await call("Read", file_path="f")
    made = await _edit(call, "b\n", "B\nBB\n")
    assert (made.text, made.summary) == ("Updated f (+2 -1 lines).", "+2 -1")
    assert made.diff == "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+BB\n c\n"


async def test_unread_and_stale_files_are_refused(call: Call, root: Path) -> None:
    """Case 67, case 74: one source of truth for what was seen."""
    (root / "f").write_text("one\n")
    unread = await _edit(call, "one", "two")
    assert unread.is_error
    assert "Read it first" in unread.text
    await call("Read", file_path="f")
    (root / "f").write_text("one one\n")
    stale = await _edit(call, "one one", "two")
    assert stale.is_error
    assert "Read it again" in stale.text
    assert (root / "f").read_text() == "one one\n"


async def test_what_was_written_counts_as_seen(call: Call, root: Path) -> None:
    await call("Write", file_path="f", content="one\n")
    assert not (await _edit(call, "one", "two")).is_error
    assert not (await _edit(call, "two", "three")).is_error
    assert (root / "f").read_text() == "three\n"


async def test_having_read_survives_a_restart(root: Path, call: Call, state: ReadState) -> None:
    """Case 67: read, compaction or restart, edit of the unchanged file."""
    (root / "f").write_text("one\n")
    await call("Read", file_path="f")
    later = ReadState()
    later.load(state.take_noted())
    box = default_toolbox(root, bash_timeout=60, read_state=later)
    raw = json.dumps({"file_path": "f", "old_string": "one", "new_string": "two"})
    assert not (await box.run("Edit", raw, ToolContext())).is_error


async def test_ambiguous_text_gives_count_and_lines(call: Call, root: Path) -> None:
    (root / "f").write_text("x = 1\ny\nx = 1\n")
    await call("Read", file_path="f")
    result = await _edit(call, "x = 1", "x = 2")
    assert result.is_error
    assert "2 times (lines 1, 3)" in result.text
    every = await _edit(call, "x = 1", "x = 2", replace_all=True)
    assert (root / "f").read_text() == "x = 2\ny\nx = 2\n"
    assert "2 replacements" in every.text


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("def compute(a, c):", "closest lines are:\n    2→    def compute(a, b):"),
        ("  def compute(a, b):\n  pass", "2→    def compute(a, b):"),
        ("        return a +  b", "closest lines are:\n    3→        return a + b"),
        ("    2→    def compute(a, b):", "Leave out the line numbers"),
        ("quite another thing", "Nothing in the file is close"),
    ],
)
async def test_text_that_is_not_there_gets_a_way_forward(call: Call, root: Path, old: str, hint: str) -> None:
    (root / "f").write_text("class A:\n    def compute(a, b):\n        return a + b\n")
    await call("Read", file_path="f")
    result = await _edit(call, old, "new")
    assert result.is_error
    assert hint in result.text


async def test_other_refusals(call: Call, root: Path) -> None:
    (root / "f").write_text("one\n")
    (root / "d").mkdir()
    (root / "bin").write_bytes(b"\0\1")
    await call("Read", file_path="f")
    assert "are the same" in (await _edit(call, "one", "one")).text
    assert "use Write" in (await _edit(call, "", "x")).text
    assert "lone surrogate" in (await _edit(call, "one", "\ud800")).text
    for path, why in (("d", "is a directory"), ("none", "Use Write for a new file"), ("bin", "Read it first")):
        result = await call("Edit", file_path=path, old_string="a", new_string="b")
        assert result.is_error
        assert why in result.text
    assert (root / "f").read_text() == "one\n"


async def test_a_file_too_large_to_edit_is_refused(call: Call, root: Path, state: ReadState) -> None:
    (root / "f").touch()
    os.truncate(root / "f", 1 << 30)
    state.note_read(root / "f")
    result = await _edit(call, "a", "b")
    assert result.is_error
    assert "too large to edit" in result.text


async def test_mode_is_kept_and_a_link_stays_a_link(call: Call, root: Path) -> None:
    (root / "real").write_text("one\n")
    (root / "real").chmod(0o751)
    os.symlink("real", root / "f")
    await call("Read", file_path="f")
    assert not (await _edit(call, "one", "two")).is_error
    assert (root / "f").is_symlink()
    assert (root / "real").read_text() == "two\n"
    assert stat.S_IMODE((root / "real").stat().st_mode) == 0o751
    assert sorted(os.listdir(root)) == ["f", "real"]


async def test_a_new_file_gets_the_mode_of_the_umask_and_its_directories(call: Call, root: Path) -> None:
    made = await call("Write", file_path="new/deep/f", content="x")
    assert (made.text, made.diff.splitlines()[0]) == ("Wrote new/deep/f (+1 -0 lines).", "--- /dev/null")
    (root / "plain").touch()
    assert stat.S_IMODE((root / "new/deep/f").stat().st_mode) == stat.S_IMODE((root / "plain").stat().st_mode)
    assert (root / "new/deep/f").read_bytes() == b"x"


async def test_write_needs_an_existing_file_to_be_read(call: Call, root: Path) -> None:
    (root / "f").write_text("precious\n")
    assert "Read it first" in (await call("Write", file_path="f", content="x")).text
    await call("Read", file_path="f")
    assert not (await call("Write", file_path="f", content="x")).is_error
    (root / "f").write_text("someone else's\n")
    assert "Read it again" in (await call("Write", file_path="f", content="y")).text
    assert (root / "f").read_text() == "someone else's\n"
    (root / "empty").touch()
    assert not (await call("Write", file_path="empty", content="y")).is_error
    assert "is a directory" in (await call("Write", file_path=".", content="y")).text


async def test_write_keeps_what_the_model_could_not_see(call: Call, root: Path) -> None:
    (root / "f").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await call("Read", file_path="f")
    made = await call("Write", file_path="f", content="1\n2\n")
    assert "CRLF line ends kept" in made.text
    assert (root / "f").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"


async def test_write_of_the_same_content_touches_nothing(call: Call, root: Path) -> None:
    await call("Write", file_path="f", content="same")
    before = (root / "f").stat()
    result = await call("Write", file_path="f", content="same")
    assert "already has exactly this content" in result.text
    assert (root / "f").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("path", "kind", "scope"), [("a/f", "write", "{root}/a/f"), ("../f", "outside", "write {parent}/f")]
)
async def test_permission_of_write(box: Box, root: Path, path: str, kind: str, scope: str) -> None:
    need = await box.permission("Write", json.dumps({"file_path": path, "content": "one\ntwo\n"}))
    assert need is not None
    real = os.path.realpath(root)
    assert (need.kind, need.scope) == (kind, scope.format(root=real, parent=os.path.dirname(real)))
    assert need.diff.endswith("@@ -0,0 +1,2 @@\n+one\n+two\n")
    assert ("outside the project" in need.detail) is (kind == "outside")
    assert not (root / "a").exists()


async def test_permission_of_edit_shows_the_diff_and_warns(box: Box, call: Call, root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "hooks" / "pre-commit").write_text("true\n")
    await call("Read", file_path=".git/hooks/pre-commit")
    raw = json.dumps({"path": ".git/hooks/pre-commit", "old_str": "true", "new_str": "rm -rf ~"})
    need = await box.permission("Edit", raw)
    assert need is not None
    assert (need.kind, need.title) == ("edit", "Edit .git/hooks/pre-commit")
    assert "Warning: this is inside .git" in need.detail
    assert "-true\n+rm -rf ~\n" in need.diff


async def test_an_edit_that_cannot_be_made_is_not_asked(box: Box, root: Path) -> None:
    (root / "f").write_text("one\n")
    assert await box.permission("Edit", '{"file_path": "f", "old_string": "one", "new_string": "2"}') is None


async def test_permission_to_read_outside_does_not_cover_writing(box: Box, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    read = await box.permission("Read", '{"file_path": "../f"}')
    write = await box.permission("Write", '{"file_path": "../f", "content": "x"}')
    assert read is not None
    assert write is not None
    assert read.kind == write.kind == "outside"
    assert read.scope != write.scope


async def test_a_failing_disk_leaves_the_old_file(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "f").write_text("old\n")
    await call("Read", file_path="f")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    result = await call("Write", file_path="f", content="new\n")
    assert result.is_error
    assert "No space left on device" in result.text
    assert (root / "f").read_text() == "old\n"
    assert os.listdir(root) == ["f"]


async def test_a_file_changed_in_the_last_moment_is_not_overwritten(
    call: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old\n")
    await call("Read", file_path="f")
    real = os.fsync

    def meanwhile(fd: int) -> None:
        real(fd)
        (root / "f").write_text("someone was here\n")

    monkeypatch.setattr(atomic.os, "fsync", meanwhile)
    result = await call("Write", file_path="f", content="new\n")
    assert result.is_error
    assert (root / "f").read_text() == "someone was here\n"
    assert os.listdir(root) == ["f"]


async def test_cancelled_before_the_last_step_nothing_has_changed(
    box: Box, call: Call, root: Path, state: ReadState, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old\n")
    await call("Read", file_path="f")
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    real = os.fsync

    def slow(fd: int) -> None:
        loop.call_soon_threadsafe(reached.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
        real(fd)

    monkeypatch.setattr(atomic.os, "fsync", slow)
    task = asyncio.ensure_future(box.run("Write", '{"file_path": "f", "content": "new"}', ToolContext()))
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()  # it waits until the thread has seen the cancellation
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (root / "f").read_text() == "old\n"
    assert os.listdir(root) == ["f"]
    assert state.check_fresh(root / "f") == ""


async def test_many_edits_at_once_are_made_one_after_the_other(call: Call, root: Path) -> None:
    (root / "f").write_text("".join(f"item {n};\n" for n in range(20)))
    await call("Read", file_path="f")
    results = await asyncio.gather(*(_edit(call, f"item {n};", f"done {n};") for n in range(20)))
    assert not any(result.is_error for result in results)
    assert (root / "f").read_text() == "".join(f"done {n};\n" for n in range(20))
