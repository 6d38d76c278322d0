"""Joining the embedded weights: once, whole or not at all, and only what their maker published."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from marextui.models import weights
from marextui.models.types import LoadProgress, ModelError
from marextui.models.weights import WEIGHTS, WeightSpec, installed, join, join_files, joined, part_paths

CONTENT = os.urandom(3 << 20)
NAME = "test-model"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Three data packages with a model of 3 MiB, importable by nobody: their code would raise."""
    site = tmp_path / "site"
    out = []
    for i in range(3):
        package = site / f"fakepart{i}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('code of a data package ran')")
        (package / "part.bin").write_bytes(CONTENT[i << 20 : (i + 1) << 20])
        info = site / f"fakepart{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fakepart{i}\nVersion: 1.0\n")
        out.append(package / "part.bin")
    monkeypatch.syspath_prepend(str(site))
    spec = WeightSpec(
        NAME,
        "Test model",
        "test.gguf",
        tuple((f"fakepart{i}", f"fakepart{i}/part.bin") for i in range(3)),
        len(CONTENT),
        hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(WEIGHTS, NAME, spec)
    monkeypatch.setattr(weights, "_REPORT_EVERY", 1 << 20)
    return out


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every time the parts are really put together."""
    seen: list[str] = []
    real = weights._write

    def counted(spec: WeightSpec, *rest: object) -> Path:
        seen.append(spec.name)
        return real(spec, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(weights, "_write", counted)
    return seen


async def test_joins_with_progress_in_bytes(parts: list[Path], cache: Path) -> None:
    steps: list[LoadProgress] = []
    thread = threading.get_ident()

    def report(step: LoadProgress) -> None:
        assert threading.get_ident() == thread, "called in the event loop"
        steps.append(step)

    assert installed(NAME)
    assert joined(NAME, cache) is None
    path = await join(NAME, cache, report)
    await asyncio.sleep(0)
    assert path.read_bytes() == CONTENT
    assert joined(NAME, cache) == path
    assert [s.done for s in steps] == sorted(s.done for s in steps)
    assert steps[-1].done == steps[-1].total == len(CONTENT)
    assert len(steps) >= 3
    assert not [m for m in sys.modules if m.startswith("fakepart")]


async def test_joined_once(parts: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = writes(monkeypatch)
    for _ in range(3):
        await join(NAME, cache, lambda s: None)
    assert seen == [NAME]
    parts[0].unlink()
    assert not installed(NAME)
    assert await join(NAME, cache, lambda s: None) == joined(NAME, cache), "the packages may go once it is joined"


async def test_two_that_start_together_join_once(
    parts: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads with a lock of their own each, as two processes would have."""
    spec = WEIGHTS[NAME]
    first_writes, release = threading.Event(), threading.Event()
    real = weights._write
    order: list[str] = []

    def slow(*args: object) -> Path:
        order.append("write")
        first_writes.set()
        assert release.wait(20)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(weights, "_write", slow)
    waited: list[LoadProgress] = []

    def report(step: LoadProgress) -> None:
        waited.append(step)
        if step.stage.startswith("Waiting"):
            release.set()

    def run(report: Callable[[LoadProgress], None]) -> Path:
        return join_files(spec, parts, cache, report, threading.Event())

    one = asyncio.ensure_future(asyncio.to_thread(run, lambda s: None))
    await asyncio.to_thread(first_writes.wait, 20)
    two = asyncio.ensure_future(asyncio.to_thread(run, report))
    assert await one == await two
    assert order == ["write"]
    assert waited[0].stage.startswith("Waiting for another marextui")


@pytest.mark.parametrize("damage", ["truncate", "flip", "stamp"])
async def test_a_damaged_cache_is_joined_again(parts: list[Path], cache: Path, damage: str) -> None:
    path = await join(NAME, cache, lambda s: None)
    if damage == "truncate":
        path.write_bytes(CONTENT[:-1])
    elif damage == "flip":
        path.write_bytes(b"\0" + CONTENT[1:])
    else:
        (cache / "test.gguf.checked").write_text("{oops")
    assert joined(NAME, cache) is None
    assert (await join(NAME, cache, lambda s: None)).read_bytes() == CONTENT
    assert joined(NAME, cache) == path


async def test_a_touched_but_sound_file_is_checked_and_kept(
    parts: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await join(NAME, cache, lambda s: None)
    before = path.stat().st_ino
    os.utime(path, ns=(1, 1))
    steps: list[LoadProgress] = []
    assert await join(NAME, cache, steps.append) == path
    await asyncio.sleep(0)
    assert path.stat().st_ino == before
    assert {s.stage for s in steps} == {"Checking Test model"}


async def test_changed_parts_are_refused_and_leave_nothing(parts: list[Path], cache: Path) -> None:
    parts[1].write_bytes(b"\0" * (1 << 20))
    with pytest.raises(ModelError, match="do not make the file its maker published"):
        await join(NAME, cache, lambda s: None)
    assert [p.name for p in cache.iterdir()] == [".test.gguf.lock"]


async def test_leftovers_of_a_killed_join_are_removed(parts: list[Path], cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / ".test.gguf.abc.part").write_bytes(b"x")
    await join(NAME, cache, lambda s: None)
    assert not list(cache.glob("*.part")) + list(cache.glob(".*.part"))


def test_a_full_disk_is_told_before_anything_is_written(parts: list[Path], cache: Path) -> None:
    with pytest.raises(ModelError, match="Not enough disk space for Test model") as caught:
        join_files(WEIGHTS[NAME], parts, cache, lambda s: None, threading.Event(), lambda path: 1_000_000)
    assert "1 MB are free" in caught.value.message
    assert str(cache) in caught.value.message
    assert caught.value.hint
    assert [p.name for p in cache.iterdir()] == [".test.gguf.lock"]


async def test_a_cache_that_cannot_be_written_is_a_sentence(parts: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="could not be prepared"):
        await join(NAME, tmp_path / "file", lambda s: None)


async def test_cancelling_leaves_nothing(parts: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepped = asyncio.Event()
    task = asyncio.ensure_future(join(NAME, cache, lambda s: stepped.set()))
    real = weights._check_stop
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()

    def pause(spec: WeightSpec, stop: threading.Event) -> None:
        loop.call_soon_threadsafe(task.cancel)
        stop.wait(20)
        cancelled.set()
        real(spec, stop)

    monkeypatch.setattr(weights, "_check_stop", pause)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()
    assert [p.name for p in cache.iterdir()] == [".test.gguf.lock"]


async def test_missing_packages_are_named(parts: list[Path], cache: Path) -> None:
    parts[2].unlink()
    assert part_paths(WEIGHTS[NAME]) is None
    with pytest.raises(ModelError, match="not all installed") as caught:
        await join(NAME, cache, lambda s: None)
    assert "marextui[local]" in caught.value.hint


def test_the_real_specs_are_complete() -> None:
    assert set(WEIGHTS) >= {"qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"}
    assert [len(WEIGHTS[n].parts) for n in ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")] == [22, 6]
    assert all(len(s.sha256) == 64 for s in WEIGHTS.values())


@pytest.mark.embedded
@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"])
async def test_the_installed_weights_make_the_makers_file(name: str, tmp_path: Path) -> None:
    if not installed(name):
        pytest.skip(f"the data packages of {name} are not installed")
    path = await join(name, tmp_path, lambda s: None)
    assert path.stat().st_size == WEIGHTS[name].size
    assert joined(name, tmp_path) == path
    path.unlink()
