"""Earlier prompts on disk: kept, private, without secrets, and never worth a prompt (I10, case 135)."""

from __future__ import annotations

import json
from pathlib import Path

from marextui.tui.history import KEEP, MOST_CHARS, PromptHistory

KEY = "sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy0123456789"


async def reopened(path: Path) -> PromptHistory:
    history = PromptHistory(path)
    await history.load()
    return history


async def test_history_is_kept_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.jsonl"
    one = await reopened(path)
    await one.add("two\nlines")
    await one.add("two\nlines")
    await one.add("[/] \u2028")
    assert (await reopened(path)).entries == ["two\nlines", "[/] \u2028"]
    assert (path.stat().st_mode & 0o077) == 0


async def test_a_secret_comes_back_in_this_run_and_never_reaches_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = await reopened(path)
    await history.add(f"why is OPENAI_API_KEY={KEY} refused?")
    assert KEY in (history.older("") or "")
    assert KEY not in path.read_text()
    [kept] = (await reopened(path)).entries
    assert kept.startswith("why is OPENAI_API_KEY=[redacted:")
    assert kept.endswith(" refused?")


async def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('"good"\n{broken\n3\n"also"\n')
    assert (await reopened(path)).entries == ["good", "also"]


async def test_a_long_file_is_cut_back_and_what_is_written_again_holds_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{json.dumps(f'{n} {KEY}')}\n" for n in range(2 * KEEP + 1)))
    await reopened(path)
    assert len(path.read_text().splitlines()) == KEEP
    assert KEY not in path.read_text()
    assert (path.stat().st_mode & 0o077) == 0


async def test_a_megabyte_is_remembered_for_this_run_only(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = await reopened(path)
    await history.add("x" * (MOST_CHARS + 1))
    assert history.older("") == "x" * (MOST_CHARS + 1)
    assert not path.exists()


async def test_a_history_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = PromptHistory(tmp_path / "file" / "history.jsonl")
    await history.load()
    await history.add("x")
    assert history.entries == ["x"]
    assert "Not a directory" in history.problem
