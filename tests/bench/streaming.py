"""How fast an answer may stream before the screen stutters.

    python -m tests.bench.streaming [--rates 20 100 ...] [--seconds S] [--fence LINES]

Feeds a Markdown answer (prose, lists, fences of code) as N text events a second into the real screen, headless, with
the update interval of the product, under a conversation that is already full. "gap" is the longest the event loop was
held in one turn, in milliseconds of processor time: how long a key press would have waited on an idle core. A frame is
dropped when that is more than 50 ms (20 pictures a second; the stream itself is drawn about 8 times a second). "late"
is by the clock: the latest of a turn asked for every 5 ms, which other work on the machine makes longer. "fed" below
the rate means that the screen could not keep up. At the end one block of code of LINES lines, at 100 lines a second,
closed and coloured, and one paragraph of as many words.
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
from tests.bench.turns import watched
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.ports import FakePorts
from tests.tui.scenes import ANSWER, SomeSettings, short_turn

PROBE = 0.005
LONG = ANSWER + "\n" + "A paragraph with some **bold** words and `code` in it, as answers have. " * 6 + "\n\n"


def tokens() -> Iterator[str]:
    """An endless answer in pieces of about a token (4 characters)."""
    return cycle([LONG[i : i + 4] for i in range(0, len(LONG), 4)])


def fence(lines: int) -> Iterator[str]:
    """An answer that is one block of code, a line each."""
    yield "Here it is:\n\n```python\n"
    yield from (f"    value_{n} = compute(value_{n - 1}, 'some text')  # step {n}\n" for n in range(1, lines - 3))
    yield "```\n\nDone.\n"


async def probe(late: list[float]) -> None:
    while True:
        wanted = time.perf_counter() + PROBE
        await asyncio.sleep(PROBE)
        late.append(max(0.0, time.perf_counter() - wanted))


async def feed(
    engine: FakeEngine, pieces: Iterator[str], rate: int, seconds: float, message_id: str
) -> tuple[int, str]:
    """Emit `rate` events a second, those that are due in one go; returns how many, and their text."""
    begun = time.perf_counter()
    sent: list[str] = []
    while (now := time.perf_counter() - begun) < seconds:
        for _ in range(int(now * rate) - len(sent)):
            piece = next(pieces, "")
            engine.emit(ev.TextStreamed(message_id, piece))
            sent.append(piece)
        await asyncio.sleep(1 / max(rate, 100))
    return len(sent), "".join(sent)


async def measure(name: str, pieces: Iterator[str], rate: int, seconds: float) -> tuple[str, float]:
    """A row, and the gap."""
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
        with watched() as turns:
            sent, text = await feed(engine, pieces, rate, seconds, "answer")
            engine.emit(ev.MessageAppended(Message("answer", "assistant", text, origin="model", turn=61), 0))
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.pause()
        nodes = app.main.conversation.nodes
        watching.cancel()
    row = (
        f"{name:>12} {sent / seconds:>7.0f} {turns.worst:>8.1f} {turns.dropped:>8} {max(late) * 1000:>8.0f} "
        f"{turns.total / 10 / seconds:>6.0f} {nodes:>6}"
    )
    return row, turns.worst


async def run(rates: list[int], seconds: float, lines: int) -> None:
    print(f"{'tokens/s':>12} {'fed/s':>7} {'gap ms':>8} {'dropped':>8} {'late ms':>8} {'CPU %':>6} {'nodes':>6}")
    gaps: list[float] = []
    for rate in rates:
        row, gap = await measure(str(rate), tokens(), rate, seconds)
        gaps.append(gap)
        print(row, flush=True)
    print((await measure(f"fence {lines}", fence(lines), 100, lines / 100))[0], flush=True)
    print((await measure("paragraph", iter(["word " * 10] * lines), 100, lines / 100))[0], flush=True)
    print(f"ratio of gaps, {rates[-1]} tokens/s to {rates[0]}: {gaps[-1] / gaps[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=[20, 50, 100, 200, 500, 1000, 2000])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--fence", type=int, default=500)
    options = parser.parse_args()
    asyncio.run(run(options.rates, options.seconds, options.fence))


if __name__ == "__main__":
    main()
