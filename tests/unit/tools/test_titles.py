"""What a call is about, in one line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.tools.titles import TITLE_CHARS, subject, title


@pytest.mark.parametrize(
    ("name", "arguments", "shown", "about"),
    [
        ("Read", '{"file_path": "src/app.py"}', "Read src/app.py", "src/app.py"),
        ("Read", '{"path": "a", "offset": 5}', "Read a from line 5", "a"),
        ("Bash", '{"command": "ls -la\\n  | wc"}', "Bash ls -la | wc", "ls -la | wc"),
        ("Grep", '{"pattern": "TODO", "path": "src"}', "Grep TODO in src", "TODO"),
        ("Glob", '{"pattern": "*.py", "path": "."}', "Glob *.py", "*.py"),
        ("Ls", "{}", "Ls .", "."),
        ("ReadOmittedContent", '{"content_id": "omitted-003"}', "ReadOmittedContent omitted-003", "omitted-003"),
        ("other_tool", '{"url": "http://x"}', "other_tool http://x", "http://x"),
        ("Edit", '{"file_pa', "Edit", ""),
        ("Edit", '{"file_path": 5}', "Edit", ""),
        ("Nothing", "", "Nothing", ""),
    ],
)
def test_titles(name: str, arguments: str, shown: str, about: str) -> None:
    assert (title(name, arguments), subject(name, arguments)) == (shown, about)


@settings(deadline=None)
@given(st.text(), st.text())
def test_always_one_bounded_line(name: str, arguments: str) -> None:
    line = title(name, arguments)
    assert "\n" not in line
    assert len(line) <= TITLE_CHARS


def test_long_commands_are_cut() -> None:
    assert title("Bash", '{"command": "' + "x" * 999 + '"}').endswith("x…")
