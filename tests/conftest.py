"""Shared set-up: top-level snapshots, a clean environment, no network but loopback."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import pytest_textual_snapshot as pts
from hypothesis import settings

# A landing must not depend on luck: CI tries the same examples every time, people's machines new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOTS = ROOT / "snapshots"


class TopLevelSvg(pts.SVGImageExtension):  # type: ignore[misc]
    """Keeps pictures in `snapshots/` at the top of the repository, in folders named after the test modules."""

    _file_extension = file_extension = "svg"

    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        rel = Path(test_location.filepath).resolve().relative_to(ROOT / "tests")
        return str(SNAPSHOTS / rel.with_suffix(""))


pts.SVGImageExtension = TopLevelSvg

# Anything that changes what the screen looks like or where files go must not leak in from the developer's shell.
for _name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL", "VISUAL", "EDITOR", "PAGER"):
    os.environ.pop(_name, None)
for _name in [n for n in os.environ if n.startswith(("MAREX", "OPENAI_"))]:
    os.environ.pop(_name)
os.environ["TZ"] = "UTC"
time.tzset()


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own empty home, so none can read or change the developer's."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name, sub in (
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_CACHE_HOME", ".cache"),
        ("XDG_STATE_HOME", ".local/state"),
    ):
        monkeypatch.setenv(name, str(home / sub))
    monkeypatch.setenv("MAREX_HOME", str(home / ".marex"))
    return home


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails at once and says where it wanted to go."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"network access in a test: {address!r}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def corpus() -> Path:
    """The recorded conversations beside the checkout; the test skips where they are absent."""
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip("no recorded conversations beside the checkout")
    return folder
