"""Models already on disk, found where each program keeps them."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from marextui.models import gguf_files
from marextui.models.gguf_files import GgufFile, find_gguf, is_chat_model


def write(path: Path, architecture: str = "qwen2", *, tensors: int = 3, magic: bytes = b"GGUF", pad: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pair = b"".join(
        (struct.pack("<Q", 20), b"general.architecture", b"\x08\0\0\0", struct.pack("<Q", len(architecture)))
    )
    path.write_bytes(magic + struct.pack("<IQQ", 3, tensors, 1) + pair + architecture.encode() + b"\0" * pad)
    return path


async def names(home: Path, **env: str) -> list[tuple[str, str]]:
    return [(f.source, f.name) for f in await find_gguf(home, env)]


@pytest.fixture(autouse=True)
def no_system_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    real = gguf_files.places
    monkeypatch.setattr(gguf_files, "places", lambda h, e: [p for p in real(h, e) if "/usr/share" not in str(p[1])])


async def test_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_files.sys, "platform", "linux")
    write(tmp_path / ".lmstudio/models/Qwen/q/qwen-q4.gguf")
    write(tmp_path / ".cache/lm-studio/models/o/m/old.gguf")
    write(tmp_path / ".cache/llama.cpp/ggml-org_x.gguf")
    hub = tmp_path / ".cache/huggingface/hub/models--o--m"
    blob = write(hub / "blobs/abc")
    link = hub / "snapshots/rev/m-q8.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(blob, link.parent))
    assert await names(tmp_path) == [
        ("LM Studio", "qwen-q4"),
        ("LM Studio", "old"),
        ("llama.cpp", "ggml-org_x"),
        ("Hugging Face", "m-q8"),
    ]


async def test_the_environment_moves_the_places(tmp_path: Path) -> None:
    write(tmp_path / "l/a.gguf")
    write(tmp_path / "h/hub/b.gguf")
    write(tmp_path / "x/c.gguf")
    env = {"LLAMA_CACHE": str(tmp_path / "l"), "HF_HOME": str(tmp_path / "h")}
    assert await names(tmp_path / "home", **env) == [("llama.cpp", "a"), ("Hugging Face", "b")]
    assert ("Hugging Face", "c") in await names(tmp_path / "home", **env, HF_HUB_CACHE=str(tmp_path / "x"))


async def test_ollama_blobs_get_their_names_from_the_manifests(tmp_path: Path) -> None:
    root = tmp_path / "ollama"
    digest = "ab" * 32
    write(root / f"blobs/sha256-{digest}", pad=100)
    for name in ("registry.ollama.ai/library/qwen3/8b", "registry.ollama.ai/me/mine/latest"):
        manifest = root / "manifests" / name
        manifest.parent.mkdir(parents=True)
        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
        evil = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../../etc/passwd"}
        manifest.write_text(json.dumps({"layers": [{"mediaType": "x", "digest": "sha256:1"}, evil, "odd", layer]}))
    (root / "manifests/registry.ollama.ai/library/broken").mkdir()
    (root / "manifests/registry.ollama.ai/library/broken/latest").write_text("{not json")
    found = await find_gguf(tmp_path, {"OLLAMA_MODELS": str(root)})
    assert [(f.source, f.name) for f in found] == [("Ollama", "qwen3:8b")], "one blob, one entry"
    assert found[0].path == root / f"blobs/sha256-{digest}"


async def test_shards_count_once_with_all_their_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    parts = [write(folder / f"big-0000{i}-of-00003.gguf", pad=i * 10) for i in (1, 2, 3)]
    write(folder / "torn-00001-of-00002.gguf")
    found = await find_gguf(tmp_path / "home", {"LLAMA_CACHE": str(folder)})
    assert found == [GgufFile(parts[0], sum(p.stat().st_size for p in parts), "llama.cpp", "big")]


def test_what_cannot_chat_is_left_out(tmp_path: Path) -> None:
    assert is_chat_model(write(tmp_path / "ok.gguf"))
    assert not is_chat_model(write(tmp_path / "mmproj-x.gguf"))
    assert not is_chat_model(write(tmp_path / "ggml-vocab-qwen2.gguf"))
    assert not is_chat_model(write(tmp_path / "empty.gguf", tensors=0)), "vocabulary only"
    assert not is_chat_model(write(tmp_path / "embed.gguf", "nomic-bert"))
    assert not is_chat_model(write(tmp_path / "proj.gguf", "clip"))
    assert not is_chat_model(write(tmp_path / "other.gguf", magic=b"XXXX"))
    (tmp_path / "short.gguf").write_bytes(b"GGUF")
    assert not is_chat_model(tmp_path / "short.gguf")


async def test_loops_and_links_out_of_the_tree_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    write(root / "a/one.gguf")
    (root / "a/loop").symlink_to(root)
    (root / "a/self").symlink_to(root / "a")
    write(tmp_path / "outside/two.gguf")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "gone").symlink_to(tmp_path / "nowhere")
    (root / "ring").symlink_to(root / "ring")
    write(root / "/".join("d" * 12) / "deep.gguf")
    assert await names(tmp_path / "home", LLAMA_CACHE=str(root)) == [("llama.cpp", "one")]


async def test_the_walk_ends_after_a_bounded_number_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_files, "_MAX_ENTRIES", 5)
    for i in range(9):
        write(tmp_path / f"m/{i}.gguf")
    assert len(await names(tmp_path / "home", LLAMA_CACHE=str(tmp_path / "m"))) == 5


async def test_nothing_there(tmp_path: Path) -> None:
    assert await find_gguf(tmp_path / "nobody", {}) == []
