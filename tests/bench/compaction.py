"""What a compaction costs without a model: processor time, and how long the loop was held meanwhile.

    python -m tests.bench.compaction [--tokens N]

A conversation of N tokens goes through the real engine and is compacted by hand, summarised without a model; then once
more, with some turns since. Everything but the answers of a model is the product.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from marextui.context.budget import Window
from marextui.context.entries import MessageAdded, TurnClosed, TurnOpened
from marextui.context.messages import Message
from marextui.context.recording import read_recording
from marextui.engine.events import CompactionFinished
from marextui.engine.policy import Policy
from marextui.models.tokenizer import o200k_counter
from tests.bench.fidelity import conversation
from tests.bench.turns import watched
from tests.stubs.engine_rig import Rig


async def measure(tokens: int) -> list[str]:
    """A line for each of two compactions."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        count = o200k_counter()
        policy = Policy(auto_compress=False, check_compactions=False)
        r = await Rig(Path(folder), window=Window(tokens * 2, "override"), policy=policy, count=count).start()
        said = _messages()
        for more in (tokens, tokens // 10):
            goal = r.engine.state.reading().used + more
            while r.engine.state.reading().used < goal:
                await _log(r, said)
            mark, started, before = len(r.events), time.process_time(), time.perf_counter()
            with watched() as turns:
                r.engine.compact(offline=True)
                done = await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
                await r.idle()
            assert isinstance(done, CompactionFinished)
            entry = done.entry
            lines.append(
                f"{entry.tokens_before} -> {entry.tokens_after} tokens, {entry.messages_before} messages: "
                f"{time.process_time() - started:.2f} s of processor time, "
                f"{time.perf_counter() - before:.2f} s in all; "
                f"loop held {turns.worst:.0f} ms at worst, {turns.dropped} turns over 50 ms"
            )
        await r.engine.close()
    return lines


def _messages() -> list[Message]:
    wire, _ = conversation(2_000, 7)
    return [m for m in read_recording(json.dumps(wire).encode(), name="x").messages if m.role != "system"][::-1]


async def _log(r: Rig, said: list[Message]) -> None:
    """Log what was said, up to the next question."""
    turn = r.engine.session.conversation.turn + 1
    entries: list[MessageAdded] = [MessageAdded(said.pop())]
    while said and said[-1].role != "user":
        entries.append(MessageAdded(said.pop()))
    await r.engine.state.archive.ensure_created(0.0)
    closed = TurnClosed(turn, "done", None, None, None, 1.0, "m")
    await r.engine.session.append(TurnOpened(turn), *entries, closed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=200_000)
    for line in asyncio.run(measure(parser.parse_args().tokens)):
        print(line)


if __name__ == "__main__":
    main()
