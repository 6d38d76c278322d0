"""GGUF models already on disk: LM Studio, llama.cpp's cache, the Hugging Face hub cache, Ollama's blobs."""

from __future__ import annotations

import asyncio
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from marextui.models.lenient import as_text, at, items, parse_json

_MAX_ENTRIES = 20_000
"""Directory entries looked at for each place; a disk full of files must not hold up the picker."""
_MAX_DEPTH = 8
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_NOT_CHAT = frozenset(
    {"clip", "bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "gemma-embedding", "t5encoder"}
    | {"whisper", "flux", "sd1", "sdxl", "sd3", "wavtokenizer-dec", "modern-bert", "neo-bert", "eurobert"}
)
"""Architectures that cannot chat: projectors, embedders, speech and pictures."""


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A model on disk. `size` is bytes (all shards); `source` says whose folder it is, `name` is for people."""

    path: Path
    size: int
    source: str
    name: str


async def find_gguf(home: Path, env: Mapping[str, str]) -> list[GgufFile]:
    """Chat models on this disk, by source and name; each file once. Bounded, and outside the event loop."""
    return await asyncio.to_thread(scan, home, env)


def scan(home: Path, env: Mapping[str, str]) -> list[GgufFile]:
    """The blocking part of `find_gguf`."""
    seen: set[tuple[int, int]] = set()
    out: list[GgufFile] = []
    for source, root in places(home, env):
        candidates = _ollama(root) if source == "Ollama" else _walk(root)
        found = (_accept(path, name, source, seen) for path, name in candidates)
        out += sorted((f for f in found if f is not None), key=lambda f: (f.name.lower(), str(f.path)))
    return out


def places(home: Path, env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """(source, folder) where models may be; later folders of the same source are older habits."""

    def first(*names: str) -> Path | None:
        return next((Path(env[n]).expanduser() for n in names if env.get(n)), None)

    cache = first("XDG_CACHE_HOME") or home / ".cache"
    if sys.platform == "darwin":
        llama = home / "Library/Caches/llama.cpp"
    elif sys.platform == "win32":
        llama = (first("LOCALAPPDATA") or home / "AppData/Local") / "llama.cpp"
    else:
        llama = cache / "llama.cpp"
    hub = first("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
    if hub is None:
        hub = (first("HF_HOME") or cache / "huggingface") / "hub"
    out = [
        ("LM Studio", home / ".lmstudio/models"),
        ("LM Studio", home / ".cache/lm-studio/models"),
        ("llama.cpp", first("LLAMA_CACHE") or llama),
        ("Hugging Face", hub),
        ("Ollama", first("OLLAMA_MODELS") or home / ".ollama/models"),
    ]
    if sys.platform == "linux" and not env.get("OLLAMA_MODELS"):
        out.append(("Ollama", Path("/usr/share/ollama/.ollama/models")))
    return out


def _accept(path: Path, name: str, source: str, seen: set[tuple[int, int]]) -> GgufFile | None:
    """The file when it is a chat model not yet listed; unreadable files are passed over."""
    shard = _SHARD.search(path.name)
    if shard and shard[1] != "00001":
        return None
    try:
        info = path.stat()
        if (info.st_dev, info.st_ino) in seen or not is_chat_model(path):
            return None
        size = info.st_size if shard is None else _shards_size(path, shard)
    except OSError:
        return None
    seen.add((info.st_dev, info.st_ino))
    return GgufFile(path, size, source, _SHARD.sub("", name).removesuffix(".gguf"))


def _shards_size(path: Path, shard: re.Match[str]) -> int:
    """Bytes of all shards. Raises OSError when one is missing: the model cannot be loaded."""
    stem = path.name[: shard.start()]
    return sum(path.with_name(f"{stem}-{i:05d}-of-{shard[2]}.gguf").stat().st_size for i in range(1, int(shard[2]) + 1))


def is_chat_model(path: Path) -> bool:
    """Whether the header says GGUF, has tensors (not vocabulary only) and an architecture that can chat.

    Raises OSError when the file cannot be read.
    """
    if "mmproj" in path.name.lower() or path.name.lower().startswith("ggml-vocab"):
        return False
    with path.open("rb") as file:
        head = file.read(24)
        if len(head) < 24 or head[:4] != b"GGUF":
            return False
        version, tensors, pairs = struct.unpack("<IQQ", head[4:])
        if version not in {2, 3} or tensors == 0:
            return False
        return _architecture(file, pairs) not in _NOT_CHAT


def _architecture(file: BinaryIO, pairs: int) -> str:
    """`general.architecture`, which writers put first; "" when it is not among the first string pairs."""
    for _ in range(min(pairs, 4)):
        key = _string(file)
        kind = file.read(4)
        if kind != b"\x08\x00\x00\x00":
            return ""
        value = _string(file)
        if key == "general.architecture":
            return value
    return ""


def _string(file: BinaryIO) -> str:
    raw = file.read(8)
    length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else 0
    return file.read(min(length, 4096)).decode("utf-8", errors="replace")


def _walk(root: Path) -> Iterator[tuple[Path, str]]:
    """(path, name) of the .gguf files below `root`. Linked folders are entered once each and only inside `root`."""
    try:
        real_root = root.resolve(strict=True)
        info = real_root.stat()
    except (OSError, RuntimeError):
        return
    visited = {(info.st_dev, info.st_ino)}
    left = _MAX_ENTRIES
    stack: list[tuple[Path, int]] = [(real_root, 0)]
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(folder) as scan_of:
                entries = sorted(scan_of, key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return
            path = Path(entry.path)
            try:
                if entry.is_dir():
                    target = entry.stat()
                    inside = not entry.is_symlink() or path.resolve().is_relative_to(real_root)
                    key = (target.st_dev, target.st_ino)
                    if inside and depth < _MAX_DEPTH and key not in visited:
                        visited.add(key)
                        stack.append((path, depth + 1))
                elif entry.name.lower().endswith(".gguf") and entry.is_file():
                    yield path, entry.name
            except (OSError, RuntimeError):
                continue


def _ollama(root: Path) -> Iterator[tuple[Path, str]]:
    """(blob, "model:tag") of Ollama's manifests: manifests/REGISTRY/NAMESPACE/MODEL/TAG."""
    try:
        manifests = sorted((root / "manifests").glob("*/*/*/*"))[:_MAX_ENTRIES]
    except OSError:
        return
    for manifest in manifests:
        try:
            if not manifest.is_file() or manifest.stat().st_size > 1_000_000:
                continue
            layers = items(at(parse_json(manifest.read_bytes()), "layers"))
        except OSError:
            continue
        for layer in layers:
            digest = as_text(at(layer, "digest"))
            if at(layer, "mediaType") == "application/vnd.ollama.image.model" and re.fullmatch(
                r"sha256:[0-9a-f]{64}", digest
            ):
                _, namespace, model, tag = manifest.relative_to(root / "manifests").parts
                prefix = "" if namespace == "library" else f"{namespace}/"
                yield root / "blobs" / digest.replace(":", "-"), f"{prefix}{model}:{tag}"
