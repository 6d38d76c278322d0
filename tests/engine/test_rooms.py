"""The rooms stay apart at run time too: the engine works in a process that never imports the screen toolkit."""

from __future__ import annotations

import subprocess
import sys
import textwrap

SCRIPT = """
    import asyncio, sys
    from marextui.context.recording import read_recording
    from marextui.engine import build, once, replay

    recording = read_recording(b'[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]', name="x")
    outcome = asyncio.run(replay.replay(recording, replay.ReplayOptions(window=8192), count=len))
    assert outcome.report["totals"]["steps"] == 1
    # not rich: httpx brings it along for its own command line
    assert "textual" not in sys.modules
    assert not [m for m in sys.modules if m.startswith("marextui.tui")]
"""


def test_the_engine_runs_without_the_screen_toolkit() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
