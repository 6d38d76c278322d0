"""How fast an answer may stream before the screen stutters.

    python -m tests.bench.streaming [--rates 20 100 ...] [--seconds S]

Feeds a Markdown answer (prose, lists, fences of code) as N text events a second into the real screen, headless, with
the update interval of the product, under a conversation that is already full. A probe asks the event loop for a turn
every 5 ms; how late it comes is how long a key press would have waited. A frame is dropped when the loop is blocked for
more than 50 ms (20 pictures a second; the stream itself is drawn about 8 times a second). "fed" below the rate means
that the screen could not keep up.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from itertools import cycle

from marextui.context.messages import Message
from marextui.engine import events as ev
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.ports import FakePorts
from tests.tui.scenes import ANSWER, SomeSettings, short_turn

FRAME = 0.05
PROBE = 0.005
LONG = ANSWER + "\n" + "A paragraph with some **bold** words and `code` in it, as answers have. " * 6 + "\n\n"


def tokens() -> Iterator[str]:
    """An endless answer in pieces of about a token (4 characters)."""
    return cycle([LONG[i : i + 4] for i in range(0, len(LONG), 4)])


async def probe(late: list[float]) -> None:
    while True:
        wanted = time.perf_counter() + PROBE
        await asyncio.sleep(PROBE)
        late.append(max(0.0, time.perf_counter() - wanted))


async def feed(engine: FakeEngine, rate: int, seconds: float, message_id: str) -> int:
    """Emit `rate` events a second, those that are due in one go; returns how many."""
    begun, sent = time.perf_counter(), 0
    pieces = tokens()
    while (now := time.perf_counter() - begun) < seconds:
        for _ in range(int(now * rate) - sent):
            engine.emit(ev.TextStreamed(message_id, next(pieces)))
            sent += 1
        await asyncio.sleep(1 / max(rate, 100))
    return sent


async def measure(rate: int, seconds: float) -> str:
    engine = FakeEngine()
    app = MarexApp(engine, settings=SomeSettings(), ports=FakePorts().bundle)
    late: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        for n in range(1, 61):
            engine.emit(*short_turn(n))
        await pilot.pause()
        engine.emit(
            ev.MessageAppended(Message("u", "user", "A long answer, please.", turn=61), 0), ev.PhaseChanged("streaming")
        )
        await pilot.pause()
        watching = asyncio.create_task(probe(late))
        cpu = time.process_time()
        sent = await feed(engine, rate, seconds, "answer")
        cpu = time.process_time() - cpu
        watching.cancel()
    late.sort()
    worst, p99 = late[-1] * 1000, late[int(len(late) * 0.99)] * 1000
    dropped = sum(x > FRAME for x in late)
    return f"{rate:>8} {sent / seconds:>8.0f} {worst:>9.1f} {p99:>8.1f} {dropped:>8} {100 * cpu / seconds:>6.0f}"


async def run(rates: list[int], seconds: float) -> None:
    print(f"{'tokens/s':>8} {'fed/s':>8} {'worst ms':>9} {'p99 ms':>8} {'dropped':>8} {'CPU %':>6}")
    for rate in rates:
        print(await measure(rate, seconds), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=[20, 50, 100, 200, 500, 1000, 2000])
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    asyncio.run(run(options.rates, options.seconds))


if __name__ == "__main__":
    main()
