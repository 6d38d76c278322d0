"""What all tests of the screen share."""

from __future__ import annotations

import pytest

from marextui.tui.markdown.highlighting import coloured


@pytest.fixture(scope="session", autouse=True)
def python_is_met() -> None:
    """The rules of the language that the scenes use are loaded: its colours are there with the first picture."""
    coloured("", "python")
