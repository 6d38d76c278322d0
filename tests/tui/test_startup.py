"""What the first paint may cost: counted in modules, which every machine counts alike (issue 2, section 5)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LATER = (
    *("tiktoken", "httpx", "httpx_sse", "sqlite3", "filelock", "xllamacpp"),
    *("markdown_it", "importlib.metadata"),
    *("marextui.store", "marextui.models", "marextui.tools"),
    *("marextui.engine.build", "marextui.engine.engine", "marextui.engine.setup"),
    *("marextui.context.fold", "marextui.context.entries", "marextui.context.checking", "marextui.context.tokens"),
    *("marextui.tui.panes.answer", "marextui.tui.screens.viewer", "marextui.tui.screens.picker"),
)
"""Not needed to show the screen: the engine and all that it works with, answers, dialogs."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Modules loaded when the product has painted its first screen."""
    home = tmp_path_factory.mktemp("home")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAREX", "OPENAI_", "XDG_"))}
    env |= {
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "MAREX_BASE_URL": "http://127.0.0.1:9/v1",
        "MAREX_MODEL": "none",
    }
    code = [sys.executable, "-m", "tests.stubs.first_paint"]
    told = subprocess.run(code, cwd=home, env=env, capture_output=True, text=True, timeout=50)
    assert told.returncode == 0, told.stderr
    return set(told.stdout.split())


@pytest.mark.parametrize("name", LATER)
def test_the_first_paint_waits_for_nothing_it_does_not_show(loaded: set[str], name: str) -> None:
    assert name not in loaded


def test_what_is_painted_was_loaded(loaded: set[str]) -> None:
    """The list above is read from a process that did paint."""
    assert {"marextui.tui.panes.conversation", "marextui.tui.panes.gauge", "marextui.tui.panes.composer"} <= loaded


def test_the_screen_adds_a_bounded_number_of_modules(loaded: set[str]) -> None:
    """Ours, all told; each costs about a millisecond before anything is seen."""
    assert len([m for m in loaded if m.startswith("marextui")]) <= 90
