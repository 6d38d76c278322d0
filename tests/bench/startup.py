"""How long until marextui is on the screen, against an empty Textual app in the same run.

    python -m tests.bench.startup [--runs N]

Each run starts a fresh interpreter, with an empty home, for an empty Textual app and for marextui as its command line
starts it (real settings, engine, log and tools; an endpoint that refuses connections, so that no model is loaded), both
headless, in turns. "painted" is from the start of the process to the end of the first paint, "CPU" the processor time
until then, "counted" when the gauge shows the next request. The ratios are what to compare between machines; that of
the CPU hardly changes when the machine is busy with other things.
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
from tests.stubs.first_paint import when_painted

def painted(app):
    print(time.monotonic(), time.process_time(), time.monotonic(), flush=True)
    app.exit()

when_painted(painted)
App().run(headless=True, size=(120, 40))
"""
PRODUCT = """
import sys, time
from tests.stubs.first_paint import run_product

out = sys.stdout

def painted(app):
    print(time.monotonic(), time.process_time(), file=out)

    def heard(event):
        if type(event).__name__ == "GaugeChanged":
            print(time.monotonic(), file=out, flush=True)
            app.exit()

    app.engine.subscribe(heard)

sys.exit(run_product(painted))
"""
COLUMNS = ("painted", "CPU", "counted")


def measure(code: str, home: Path) -> tuple[float, ...]:
    """`COLUMNS` of one process, in ms."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAREX", "OPENAI_", "XDG_"))}
    env |= {"HOME": str(home), "MAREX_BASE_URL": "http://127.0.0.1:9/v1", "MAREX_MODEL": "none"}
    source = Path(__file__).resolve().parents[2]
    env["PYTHONPATH"] = os.pathsep.join(p for p in (str(source), env.get("PYTHONPATH", "")) if p)
    start = time.monotonic()
    told = subprocess.run([sys.executable, "-c", code], cwd=home, env=env, capture_output=True, text=True, check=True)
    painted, cpu, counted = (float(t) for t in told.stdout.split()[:3])
    return (painted - start) * 1000, cpu * 1000, (counted - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    found: dict[str, list[tuple[float, ...]]] = {"empty Textual app": [], "marextui": []}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for n in range(runs + 1):
            for name, code in zip(found, (EMPTY, PRODUCT), strict=True):
                times = measure(code, home)
                if n:  # the first of each fills the caches
                    found[name].append(times)
    print(f"{'':20}" + "".join(f"{c:>9}" for c in COLUMNS) + f"   (ms, median of {runs})")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, row in medians.items():
        print(f"{name:20}" + "".join(f"{value:9.0f}" for value in row))
    empty, ours = medians.values()
    print(f"ratio: painted {ours[0] / empty[0]:.2f}, CPU {ours[1] / empty[1]:.2f}")


if __name__ == "__main__":
    main()
