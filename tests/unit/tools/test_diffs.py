"""Unified diffs: right, and small and quick whatever the texts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marextui.tools import diffs
from marextui.tools.diffs import added_removed, unified

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "d d"]), max_size=30).map("\n".join)


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch here")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_patch_makes_the_new_text_of_the_old(tmp_path: Path, before: str, after: str) -> None:
    diff = unified(before, after, "f")
    if before == after or not before:
        return
    (tmp_path / "f").write_text(before)
    subprocess.run(["patch", "-s", "-u", "f"], input=diff, text=True, cwd=tmp_path, check=True)
    assert ((tmp_path / "f").read_text() if (tmp_path / "f").exists() else "") == after


def test_equal_texts_have_none() -> None:
    assert unified("a\n", "a\n", "f") == ""
    assert added_removed("a\n", "a\n") == (0, 0)


def test_missing_final_newline_is_told() -> None:
    assert unified("a", "a\n", "f").endswith("-a\n\\ No newline at end of file\n+a\n")


def test_long_diffs_are_cut_with_the_number_of_lines_left_out() -> None:
    after = "".join(f"{n}\n" for n in range(1000))
    lines = unified("", after, "f").splitlines()
    assert len(lines) == diffs.MAX_DIFF_LINES + 1
    assert lines[-1] == f"[{1001 - 398} more lines of this diff are not shown]"
    wide = unified("", "x" * 5000 + "\n", "f")
    assert "… [4000 more]" in wide


def test_a_small_change_in_a_huge_file_compares_only_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    real = diffs.difflib.SequenceMatcher

    def counting(junk: None, a: list[str], b: list[str]) -> object:
        compared.append(len(a) + len(b))
        return real(junk, a, b)

    monkeypatch.setattr(diffs.difflib, "SequenceMatcher", counting)
    lines = [f"line {n}" for n in range(200_000)]
    before = "\n".join(lines)
    lines[100_000] = "changed"
    diff = unified(before, "\n".join(lines), "f")
    assert "@@ -99998,7 +99998,7 @@" in diff
    assert compared == [14]


def test_a_huge_change_is_not_compared_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs.difflib, "SequenceMatcher", None)
    before = "".join(f"a{n}\n" for n in range(5000))
    after = "".join(f"b{n}\n" for n in range(5000))
    assert added_removed(before, after) == (5000, 5000)
    assert unified(before, after, "f").splitlines()[2] == "@@ -1,5000 +1,5000 @@"


def test_bytes_that_are_not_text_do_not_reach_the_screen_as_surrogates() -> None:
    unified("a\udcff\n", "b\udcff\n", "f").encode("utf-8")
