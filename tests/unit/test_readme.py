"""The README tells the truth: generated tables are current, its commands exist, its test line is what CI runs (M46)."""

from __future__ import annotations

import re
from pathlib import Path

from marextui.tui.actions import ACTIONS
from marextui.tui.reference import filled

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_tables_are_current() -> None:
    """Run `python -m marextui.tui.reference README.md` when this fails."""
    assert filled(README) == README


def test_the_five_topics_are_there() -> None:
    """M46."""
    for title in ("Budget", "Automatic compaction", "Readable omissions", "Long-term memory", "Cost and usage"):
        assert f"\n## {title}\n" in README


def test_every_slash_command_it_names_exists() -> None:
    known = {a.slash for a in ACTIONS if a.slash}
    for name in re.findall(r"`/([a-z ]+?)(?: \[[^`]*)?`", README.replace("\n", " ")):
        assert name in known, name


def test_ci_runs_the_line_of_the_readme() -> None:
    lines = [x for x in README.splitlines() if x.startswith("python3 -m venv .venv-test ")]
    assert len(lines) == 1
    assert lines[0].count("&&") == 2
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_pictures_it_shows_exist() -> None:
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
