"""How long until marextui is on the screen, against an empty Textual app in the same run.

    python -m tests.bench.startup [--runs N]

Each run starts a fresh interpreter, with an empty home, for an empty Textual app and for marextui (real engine, log,
settings and tools; an endpoint that refuses connections, so that no model is loaded), both headless, in turns. Times
are from the start of the process to the end of the first paint, in milliseconds. The ratio is what to compare between
machines; a busy machine makes both slower.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EMPTY = """
import time
from textual.app import App
imported = time.monotonic()

class Empty(App):
    def on_ready(self):
        self.call_after_refresh(self.painted)

    def painted(self):
        print(imported, time.monotonic(), flush=True)
        self.exit()

Empty().run(headless=True, size=(120, 40))
"""
PRODUCT = """
import asyncio, os, time
from pathlib import Path
from marextui import paths
from marextui.engine.build import build_engine
from marextui.settings import load_settings
from marextui.tui.app import MarexApp
imported = time.monotonic()

def on_ready(self):
    def painted():
        print(imported, time.monotonic(), flush=True)
        self.exit()

    self.call_after_refresh(painted)

MarexApp.on_ready = on_ready

async def main():
    root = Path.cwd()
    settings, problems = load_settings(paths.config_file(), None, os.environ)
    engine = await build_engine(settings, cwd=root, root=root)
    try:
        app = MarexApp(engine, settings=settings, history_file=paths.data_dir() / "history.jsonl")
        await app.run_async(headless=True, size=(120, 40))
    finally:
        await engine.close()

asyncio.run(main())
"""


def measure(code: str, home: Path) -> tuple[float, float]:
    """(until everything is imported, until it is painted) of one process, in ms."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAREX", "OPENAI_", "XDG_"))}
    env |= {"HOME": str(home), "MAREX_BASE_URL": "http://127.0.0.1:9/v1", "MAREX_MODEL": "none"}
    source = Path(__file__).resolve().parents[2]
    env["PYTHONPATH"] = os.pathsep.join(p for p in (str(source), env.get("PYTHONPATH", "")) if p)
    start = time.monotonic()
    told = subprocess.run([sys.executable, "-c", code], cwd=home, env=env, capture_output=True, text=True, check=True)
    imported, painted = (float(t) for t in told.stdout.split()[:2])
    return (imported - start) * 1000, (painted - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    found: dict[str, list[tuple[float, float]]] = {"empty Textual app": [], "marextui": []}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for n in range(runs + 1):
            for name, code in zip(found, (EMPTY, PRODUCT), strict=True):
                times = measure(code, home)
                if n:  # the first of each fills the caches
                    found[name].append(times)
    print(f"{'':20} {'imported':>9} {'painted':>9} {'fastest':>9} {'slowest':>9}   (ms, median of {runs})")
    painted = {}
    for name, measured in found.items():
        ready = [both[1] for both in measured]
        painted[name] = statistics.median(ready)
        imported = statistics.median(both[0] for both in measured)
        print(f"{name:20} {imported:9.0f} {painted[name]:9.0f} {min(ready):9.0f} {max(ready):9.0f}")
    print(f"ratio {painted['marextui'] / painted['empty Textual app']:.2f}")


if __name__ == "__main__":
    main()
