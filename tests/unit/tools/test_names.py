"""File names on one line and back."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.tools.names import count, human_size, show_name, unshow_name, well_formed


def test_control_bytes_and_foreign_bytes_are_shown_escaped() -> None:
    assert show_name("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert show_name(os.fsdecode(b"caf\xe9")) == "caf\\xe9"
    assert show_name("\u2028\x9b") == "\\u2028\\u009b"
    assert show_name("日本 ok") == "日本 ok"


@settings(deadline=None)
@given(st.binary(min_size=1).filter(lambda b: b"\0" not in b and b"\\" not in b))
def test_any_name_comes_back(name: bytes) -> None:
    decoded = os.fsdecode(name)
    shown = show_name(decoded)
    shown.encode("utf-8")
    assert "\n" not in shown
    assert unshow_name(shown) == decoded


@settings(deadline=None)
@given(st.text(st.characters()))
def test_well_formed_text_can_be_sent(text: str) -> None:
    well_formed(text).encode("utf-8")
    clean = text.encode("utf-8", "ignore").decode("utf-8")
    assert well_formed(clean) == clean


def test_sizes_and_counts() -> None:
    assert [human_size(n) for n in (0, 999, 1000, 999_949, 999_950, 3_400_000, 5 * 10**15)] == [
        "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "3.4 MB", "5000.0 TB",
    ]  # fmt: skip
    assert [count(1, "line"), count(12_480, "line"), count(2, "entry"), count(0, "match")] == [
        "1 line", "12 480 lines", "2 entries", "0 matches",
    ]  # fmt: skip
