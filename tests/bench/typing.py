"""What a key press in the composer costs under a long conversation.

    python -m tests.bench.typing [--turns N] [--keys K]

Plays N turns into the screen, then types K letters and K new lines, each until the screen is idle again, in an empty
conversation and in the long one. Milliseconds of processor time: all of it, and the longest turn of the event loop; the
ratio says what the conversation adds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

from textual.pilot import Pilot

from tests.bench.mounted import long_turn
from tests.bench.turns import watched
from tests.stubs.fake_engine import FakeEngine
from tests.tui.scenes import make_app, short_turn


async def press(pilot: Pilot[None], key: str) -> tuple[float, float]:
    """(all, longest turn) of one key, in ms."""
    with watched() as turns:
        await pilot.press(key)
        await pilot.pause()
    return turns.total, turns.worst


async def measure(turns: int, keys: int) -> dict[str, list[tuple[float, float]]]:
    engine = FakeEngine()
    app = make_app(engine)
    found: dict[str, list[tuple[float, float]]] = {"letter": [], "new line": []}
    async with app.run_test(size=(120, 40)) as pilot:
        for n in range(1, turns + 1):
            engine.emit(*(long_turn(n) if n % 10 == 0 else short_turn(n)))
        await pilot.pause()
        await pilot.pause()
        for _ in range(keys):
            found["letter"].append(await press(pilot, "x"))
            found["new line"].append(await press(pilot, "ctrl+j"))
            if len(app.main.composer.text) > 25:
                app.main.composer.set_text("")
                await pilot.pause()
    return found


async def run(turns: int, keys: int) -> None:
    medians: dict[int, dict[str, float]] = {}
    print(f"{'turns':>6} {'key':>9} {'all, median':>12} {'all, worst':>11} {'turn, median':>13} {'turn, worst':>12}")
    for count in (0, turns):
        medians[count] = {}
        for key, costs in (await measure(count, keys)).items():
            every, longest = (list(column) for column in zip(*costs, strict=True))
            medians[count][key] = statistics.median(every)
            print(
                f"{count:>6} {key:>9} {statistics.median(every):>12.1f} {max(every):>11.1f} "
                f"{statistics.median(longest):>13.1f} {max(longest):>12.1f}"
            )
    print(*(f"{key}: ratio {medians[turns][key] / medians[0][key]:.2f}" for key in medians[0]), sep="; ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--keys", type=int, default=30)
    options = parser.parse_args()
    asyncio.run(run(options.turns, options.keys))


if __name__ == "__main__":
    main()
