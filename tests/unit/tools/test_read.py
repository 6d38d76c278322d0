"""Read: windows of text, what is refused, and that it is noted for Edit."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from marextui.tools import read
from marextui.tools.box import Box
from marextui.tools.offload import Stop
from marextui.tools.read_state import ReadState
from tests.unit.tools.conftest import Call


async def test_numbered_lines(call: Call, root: Path, state: ReadState) -> None:
    (root / "a.py").write_text("one\n\n  three")
    result = await call("Read", file_path="a.py")
    assert (result.text, result.is_error, result.summary) == ("    1→one\n    2→\n    3→  three", False, "3 lines")
    assert state.check_fresh(root / "a.py") == ""


async def test_a_window_says_where_it_is_and_how_to_go_on(call: Call, root: Path) -> None:
    (root / "a").write_text("".join(f"l{n}\n" for n in range(1, 11)))
    middle = await call("Read", file_path="a", offset=3, limit=2)
    assert middle.text == "    3→l3\n    4→l4\n[lines 3-4 of 10; continue with offset=5]"
    end = await call("Read", file_path="a", offset=10)
    assert end.text == "   10→l10\n[lines 10-10 of 10]"
    assert (await call("Read", file_path="a", offset=0, limit=1)).text.startswith("    1→l1\n")


async def test_the_default_is_two_thousand_lines(call: Call, root: Path) -> None:
    (root / "a").write_text("x\n" * 2001)
    result = await call("Read", file_path="a")
    assert result.text.count("→") == 2000
    assert result.text.endswith("[lines 1-2000 of 2001; continue with offset=2001]")


async def test_a_limit_of_zero_is_one_left_open(call: Call, root: Path) -> None:
    """The embedded model fills every optional number with 0."""
    (root / "a").write_text("x\ny\n")
    assert (await call("Read", file_path="a", offset=0, limit=0)).text == (await call("Read", file_path="a")).text


async def test_past_the_end_and_bad_limit_are_said(call: Call, root: Path) -> None:
    (root / "a").write_text("x\ny\n")
    past = await call("Read", file_path="a", offset=9)
    assert past.is_error
    assert "has 2 lines; there is no line 9" in past.text
    assert (await call("Read", file_path="a", limit=-1)).is_error


async def test_long_lines_are_cut_with_a_note(call: Call, root: Path) -> None:
    (root / "a").write_text("a" * 2000 + "\n" + "b" * 2001 + "\n")
    result = await call("Read", file_path="a")
    first, second, note = result.text.split("\n")
    assert first == "    1→" + "a" * 2000
    assert second == "    2→" + "b" * 2000 + "… [1 more character in this line]"
    assert note.startswith("[1 line cut at 2000 characters")


async def test_a_call_returns_at_most_what_an_omission_holds(call: Call, root: Path) -> None:
    """M27: what is returned can be stored whole, so that nothing of it is lost."""
    (root / "a").write_text(("z" * 1500 + "\n") * 300)
    result = await call("Read", file_path="a")
    assert 190_000 < len(result.text) < 201_000
    shown = result.text.count("→")
    assert result.text.endswith(f"[lines 1-{shown} of 300; continue with offset={shown + 1}]")


async def test_empty_file(call: Call, root: Path, state: ReadState) -> None:
    (root / "a").touch()
    result = await call("Read", file_path="a")
    assert (result.text, result.is_error) == ("(a is empty)", False)
    assert state.check_fresh(root / "a") == ""


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
        (b"\xff\xd8\xff\xe0JFIF", "JPEG image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "WebP image"),
        (b"PK\x03\x04zip", "ZIP archive"),
        (b"\x7fELF\2\1", "ELF program"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"text then \0 nul", "binary data"),
        (b"x" * 9000 + b"\0", "binary data"),
    ],
)
async def test_binary_files_are_refused_by_what_they_are(
    call: Call, root: Path, state: ReadState, data: bytes, what: str
) -> None:
    (root / "f").write_bytes(data)
    result = await call("Read", file_path="f")
    assert result.is_error
    assert what in result.text
    assert " B)" in result.text or " kB)" in result.text
    assert ("Pictures cannot be shown" in result.text) is ("image" in what)
    assert not state.seen(root / "f")


async def test_letters_that_look_like_magic_are_text(call: Call, root: Path) -> None:
    (root / "f").write_text("BM is a bank\n")
    assert (await call("Read", file_path="f")).text == "    1→BM is a bank"


async def test_directory_and_missing_file_get_hints(call: Call, root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "app.py").touch()
    assert "Use Ls" in (await call("Read", file_path="src")).text
    missing = await call("Read", file_path="src/ap.py")
    assert missing.is_error
    assert missing.text == "Read: src/ap.py does not exist. Did you mean src/app.py?"
    assert "Use Glob or Ls" in (await call("Read", file_path="zzz")).text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfhi\r\nyou\r\n", "    1→hi\n    2→you"),
        ("\ufeffné\n".encode("utf-16-le"), "    1→né\n[stored as UTF-16 LE with BOM]"),
        ("\ufeffné\n".encode("utf-16-be"), "    1→né\n[stored as UTF-16 BE with BOM]"),
        (b"caf\xe9\n", "    1→caf\ufffd\n[some bytes are not UTF-8 and are shown as \ufffd]"),
        (b"a\rb\x0cc\xc2\x85d\n", "    1→a\rb\x0cc\x85d"),
    ],
)
async def test_encodings(call: Call, root: Path, data: bytes, shown: str) -> None:
    (root / "f").write_bytes(data)
    result = await call("Read", file_path="f")
    assert result.text == shown
    assert not result.is_error


async def test_outside_is_asked_with_the_real_path(box: Box, root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x\n")
    os.symlink("../other", root / "link")
    for written in ("link", "../other", str(tmp_path / "other")):
        need = await box.permission("Read", json.dumps({"file_path": written}))
        assert need is not None
        assert (need.kind, need.scope) == ("outside", os.path.realpath(tmp_path / "other"))
        assert os.path.realpath(tmp_path / "other") in need.detail
    (root / "in").touch()
    assert await box.permission("Read", '{"file_path": "in"}') is None


async def test_a_gigabyte_of_nothing_is_refused_from_its_first_bytes(call: Call, root: Path) -> None:
    (root / "sparse").touch()
    os.truncate(root / "sparse", 1 << 30)
    result = await call("Read", file_path="sparse")
    assert result.is_error
    assert "binary data (1.1 GB)" in result.text


async def test_large_files_are_streamed(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers whether a file is loaded whole or gone through in pieces."""
    lines = [f"line {n} " + "é" * (n % 7) for n in range(1, 3001)]
    lines[10] = "q" * 9000
    lines[11] = ""
    for ending in ("\n", ""):
        (root / "f").write_text("\n".join(lines) + ending)
        windows = [{}, {"offset": 5, "limit": 10}, {"offset": 2990}, {"offset": 2999, "limit": 1}, {"offset": 4000}]
        with monkeypatch.context() as patch:
            whole = [await call("Read", file_path="f", **window) for window in windows]
            patch.setattr(read, "HASHED_BYTES", 1000)
            for size in (64, 1 << 20):
                patch.setattr(read, "_CHUNK", size)
                streamed = [await call("Read", file_path="f", **window) for window in windows]
                assert [one.text for one in streamed] == [one.text for one in whole]


async def test_a_streamed_line_without_end_is_not_kept_whole(
    call: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "HASHED_BYTES", 1000)
    monkeypatch.setattr(read, "_CHUNK", 4096)
    (root / "f").write_text("ab" * 500_000)
    result = await call("Read", file_path="f")
    assert len(result.text) < 2200
    assert "[998 000 more characters in this line]" in result.text


async def test_nobody_waits_for_a_cancelled_read(
    call: Call, root: Path, state: ReadState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread notices between two pieces of a large file; it does not count to the end of it."""
    monkeypatch.setattr(read, "HASHED_BYTES", 1000)
    monkeypatch.setattr(read, "_CHUNK", 10)
    (root / "f").write_text("line\n" * 10_000)
    loop, reached, go_on, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), asyncio.Event()
    pieces: list[bytes] = []
    real = read._fill_from_chunks

    def watched(chunks: Iterator[bytes], window: read._Window, stop: Stop) -> None:
        def counted() -> Iterator[bytes]:
            for chunk in chunks:
                pieces.append(chunk)
                loop.call_soon_threadsafe(reached.set)
                go_on.wait(30)
                yield chunk

        try:
            real(counted(), window, stop)
        finally:
            loop.call_soon_threadsafe(ended.set)

    monkeypatch.setattr(read, "_fill_from_chunks", watched)
    task = asyncio.ensure_future(call("Read", file_path="f"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await ended.wait()
    assert len(pieces) == 1
    assert not state.seen(root / "f")
