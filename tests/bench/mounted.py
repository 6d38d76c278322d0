"""How many widgets are mounted as a conversation grows: the window of mounted blocks must not grow with it.

    python -m tests.bench.mounted [--turns N]

Plays N turns (default 400; every tenth with two tool calls and a long Markdown answer) into the screen and counts the
nodes of the whole screen and those of the conversation, and what a turn costs. Also after a jump to the beginning.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import replace

from marextui.context.messages import Message, ToolCall
from marextui.engine import events as ev
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.tui.scenes import ANSWER, make_app, short_turn, usage


def long_turn(n: int) -> list[ev.Event]:
    """A turn with two tool calls and a Markdown answer, under ids of its own."""
    calls = tuple(ToolCall(f"c{n}-{i}", "Read", f'{{"file_path": "src/part_{i}.py"}}') for i in range(2))
    events: list[ev.Event] = [
        ev.MessageAppended(Message(f"u{n}", "user", f"Question {n}?", turn=n), 0),
        ev.MessageAppended(Message(f"a{n}", "assistant", "", calls, origin="model", turn=n), 0),
    ]
    output = "\n".join(f"{i:4d}  line {i}" for i in range(200))
    for i, call in enumerate(calls):
        result = Message(f"t{n}-{i}", "tool", output, tool_call_id=call.id, name="Read", origin="tool", turn=n)
        events += [
            ev.ToolStarted(call.id, "Read", call.arguments, f"Read src/part_{i}.py"),
            ev.ToolFinished(call.id, False, "200 lines", len(output), 0.01),
            ev.MessageAppended(result, 0),
        ]
    answer = Message(f"b{n}", "assistant", ANSWER, origin="model", turn=n)
    return [*events, ev.MessageAppended(answer, 0), ev.TurnFinished(n, "done", replace(usage(n), turn=n))]


def row(app: MarexApp, turns: int, seconds: float) -> str:
    everything = sum(1 for _ in app.screen.walk_children())
    items = len(app.model.items)
    blocks = len(app.main.conversation.mounted)
    return f"{turns:>6} {items:>7} {blocks:>8} {app.main.conversation.nodes:>13} {everything:>7} {seconds * 1000:>9.1f}"


async def run(turns: int) -> None:
    engine = FakeEngine()
    app = make_app(engine)
    marks = sorted({m for m in (1, 10, 50, 100, 200, turns) if m <= turns})
    nodes: dict[int, int] = {}
    print(f"{'turns':>6} {'items':>7} {'blocks':>8} {'conversation':>13} {'screen':>7} {'ms/turn':>9}")
    async with app.run_test(size=(120, 40)) as pilot:
        started, done = time.perf_counter(), 0
        for n in range(1, turns + 1):
            engine.emit(*(long_turn(n) if n % 10 == 0 else short_turn(n)))
            await pilot.pause()
            if n in marks:
                print(row(app, n, (time.perf_counter() - started) / (n - done)))
                nodes[n] = app.main.conversation.nodes
                started, done = time.perf_counter(), n
        nodes[done] = app.main.conversation.nodes
        base = min(50, turns)
        print(f"ratio of mounted nodes, {turns} turns to {base}: {nodes[done] / nodes[base]:.2f}")
        app.main.conversation.reveal(app.model.first)
        await pilot.pause()
        print(row(app, turns, 0.0) + "   (at the beginning)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=400)
    asyncio.run(run(parser.parse_args().turns))


if __name__ == "__main__":
    main()
