"""What a local engine computes and what it has in its cache: turns, summaries, turns after a compaction, resumed ones.

    python -m tests.bench.cache                   the embedded 1.5B model
    python -m tests.bench.cache --model file.gguf [--window 8192]

Every row is a request of the real engine to the real llama.cpp server: tokens computed and from the cache as the server
counts them, and the time until the answer begins. For a summary, which is not streamed, that is the server's own time
for the prompt. Compare times within one run alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from marextui.engine.api import LATEST
from marextui.engine.events import CompactionFailed, CompactionFinished, PrewarmChanged, TextStreamed, TurnFinished
from marextui.settings import Settings
from tests.stubs.live_engine import LiveEngine, live_engine

ROOM = 40
"""Lines of log in a message: some 1,000 tokens of a real model."""
MOST_TURNS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """One request: tokens, and seconds until its answer began."""

    name: str
    computed: int
    cached: int
    seconds: float


def message(n: int) -> str:
    lines = "".join(
        f"night {n}, 02:{i:02d}: payment {5000 + 20 * n + i} declined, code {51 + i}\n" for i in range(ROOM)
    )
    return f"Never change port 8080. These are the failed payments of night {n}:\n{lines}Just answer OK."


async def measure(settings: Settings, folder: Path) -> list[Row]:
    """The rows for the model that `settings` name, in projects below `folder`. The keys are set as each row says.

    Raises RuntimeError when the model does not come to a compaction.
    """
    plain = replace(settings, compact_continuation=False, prewarm="off", warm_resume="off")
    by_hand = replace(plain, compact_at=0.95)
    warm = replace(by_hand, prewarm="on", warm_resume="on")
    return [
        *await _conversation(by_hand, folder / "plain", "", "resumed, computed anew"),
        *await _conversation(warm, folder / "warm", ", prewarmed", "resumed warm"),
        await _gone_on(replace(plain, compact_continuation=True), folder / "gone on"),
    ]


async def _conversation(settings: Settings, project: Path, how: str, resumed: str) -> list[Row]:
    """Three turns, a compaction by hand, a turn after it, and one after the conversation was left and resumed."""
    async with live_engine(settings, project) as live:
        rows = [await _turn(live, message(1), "first turn")]
        for n in (2, 3):
            await _prewarmed(live, settings)
            row = await _turn(live, message(n), f"next turn{how}")
        rows.append(row)
        await _compacted(live)
        rows.append(_summary(project, "summary, separate request"))
        await _prewarmed(live, settings)
        rows.append(await _turn(live, message(4), f"turn after it{how}"))
        await _prewarmed(live, settings)
    async with live_engine(settings, project, wanted=LATEST) as live:
        rows.append(await _turn(live, message(5), resumed))
    return rows


async def _gone_on(settings: Settings, project: Path) -> Row:
    """The summary of a compaction that a turn began with: only those may go on with the conversation (L28)."""
    async with live_engine(settings, project) as live:
        for n in range(1, MOST_TURNS):
            await _turn(live, message(n), f"turn {n}")
            if live.of(CompactionFinished):
                return _summary(project, "summary, continuation")
    raise RuntimeError(f"no compaction: {live.of(CompactionFailed)}")


async def _compacted(live: LiveEngine) -> None:
    for _ in range(3):  # a small model sometimes writes nothing that can be kept
        mark = len(live.events)
        await live.compact()
        if live.of(CompactionFinished, mark):
            return
    raise RuntimeError(f"the model wrote no summary that can be used: {live.of(CompactionFailed)}")


async def _turn(live: LiveEngine, text: str, name: str) -> Row:
    began: list[float] = []

    def hear(event: object) -> None:
        if isinstance(event, TextStreamed):
            began.append(time.monotonic())

    stop = live.engine.subscribe(hear)
    sent = time.monotonic()
    done: TurnFinished = await live.ask(text)
    stop()
    used = done.usage
    if done.end != "done" or used.inp is None or used.cache_read is None:
        raise RuntimeError(f"{name}: the turn ended with {done.end}, {used}")
    return Row(name, used.inp - used.cache_read, used.cache_read, began[0] - sent if began else 0.0)


async def _prewarmed(live: LiveEngine, settings: Settings) -> None:
    """Until the next turn's prompt has been computed; a person reads in the meantime."""
    if settings.prewarm != "off":
        at = max(i for i, e in enumerate(live.events) if isinstance(e, TurnFinished | CompactionFinished))
        told = await live.until(
            lambda e: isinstance(e, PrewarmChanged) and e.state in ("ready", "refused"), after=at + 1
        )
        if not isinstance(told, PrewarmChanged) or told.state != "ready":
            raise RuntimeError(f"not prewarmed: {told}")


def _summary(project: Path, name: str) -> Row:
    lines = [json.loads(line) for line in (project / ".marex" / "usage.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["kind"] == "compact"][-1]
    return Row(name, told["computed"], told["cache_read"], (told["prompt_ms"] or 0.0) / 1000)


def table(rows: Sequence[Row]) -> str:
    """The rows for people; the ratio is that of the time to the time of the row it is to be compared with."""
    against = {
        "next turn, prewarmed": "next turn",
        "resumed warm": "resumed, computed anew",
        "summary, continuation": "summary, separate request",
        "turn after it, prewarmed": "turn after it",
    }
    seconds = {row.name: row.seconds for row in rows}
    lines = [f"{'':<28}{'computed':>9}{'cached':>8}{'seconds':>9}   ratio"]
    for row in rows:
        other = seconds.get(against.get(row.name, ""))
        ratio = f"{other / row.seconds:.1f} x less" if other and row.seconds else ""
        lines.append(f"{row.name:<28}{row.computed:>9}{row.cached:>8}{row.seconds:>9.2f}   {ratio}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--window", type=int, default=8192)
    options = parser.parse_args()
    settings = Settings(model=options.model, local_window=options.window, temperature=0.0)
    with tempfile.TemporaryDirectory() as folder:
        print(table(asyncio.run(measure(settings, Path(folder)))))


if __name__ == "__main__":
    main()
