"""Texts on disk by their content: compressed, each kept once however many entries share it (M33, I16)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterator
from hashlib import sha256
from pathlib import Path

from marextui.private_files import ensure_private, write_private

MOST_BYTES = 4_000_000
"""Most bytes a blob unpacks to; more is damage or malice, never an entry of ours (200 000 characters, M27)."""

_NAME = re.compile(r"([0-9a-f]{64})\.z")


def digest(text: str) -> str:
    """SHA-256 of the text's UTF-8 in hex; lone surrogates count as themselves."""
    return sha256(_encoded(text)).hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Blobs:
    """The folder of blobs. Every method may raise OSError; writers hold the lock of the store around it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, sha: str) -> Path:
        """Where the blob of this digest stands. `sha` must be one of ours (64 hex digits)."""
        return self._folder / f"{sha}.z"

    def put(self, text: str) -> str:
        """Keep `text`; returns its digest. One that is there already, undamaged, is not written again."""
        sha = digest(text)
        if self.get(sha) is None:
            ensure_private(self._folder)
            write_private(self.path(sha), zlib.compress(_encoded(text), 6))
        return sha

    def get(self, sha: str) -> str | None:
        """The text of this digest; None when it is not there, damaged, or not what its name says."""
        try:
            packed = self.path(sha).read_bytes()
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(packed, MOST_BYTES)
        except (FileNotFoundError, zlib.error):
            return None
        if not unpacking.eof or sha256(data).hexdigest() != sha:
            return None
        return data.decode("utf-8", "surrogatepass")

    def size(self, sha: str) -> int:
        """Bytes on disk; 0 for one that is not there."""
        try:
            return self.path(sha).stat().st_size
        except FileNotFoundError:
            return 0

    def remove(self, sha: str) -> None:
        """Remove a blob; one that is not there is fine."""
        self.path(sha).unlink(missing_ok=True)

    def all(self) -> Iterator[str]:
        """The digests of all blobs."""
        if self._folder.is_dir():
            yield from (m.group(1) for p in self._folder.iterdir() if (m := _NAME.fullmatch(p.name)))

    def sweep(self, wanted: Container[str]) -> None:
        """Remove blobs no entry wants, and what a crash left half written. Nobody may be writing meanwhile."""
        for sha in list(self.all()):
            if sha not in wanted:
                self.remove(sha)
        if self._folder.is_dir():
            for path in self._folder.glob(".*.tmp"):
                path.unlink(missing_ok=True)
