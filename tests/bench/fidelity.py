"""What survives compaction: planted facts in long conversations, asked for after up to 10 compactions and more.

    python -m tests.bench.fidelity [--turns N ...] [--window W] [--seed S]

Six kinds of fact are planted (paths, error strings, values that are corrected later among distractors, ids, commands,
decisions), most of them early. The conversation goes through the real engine (`engine.replay`); then each fact is asked
for: does it stand in the last view, does one recall with the words of the question find it, or is it lost. The table
gives percentages per kind and cycle, and tokens of the view, for both strategies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.ask import Question
from marextui.context.recording import read_recording
from marextui.engine.replay import ReplayOptions, replay
from marextui.models.tokenizer import o200k_counter

Strategy = Literal["anchored", "regenerative"]
AREAS = ("billing", "search", "export", "login", "upload", "report", "mailer", "cache", "audit", "quota")
FAULTS = ("KeyError", "TimeoutError", "ValueError", "ConnectionResetError", "PermissionError", "IndexError")
NOUNS = ("retry limit", "batch size", "page size", "queue depth", "pool size", "chunk size", "lease time", "backoff")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact of `kind`, planted in turn `turn`: the question and what its answer must contain."""

    kind: str
    turn: int
    question: str
    accept: str


def conversation(turns: int, seed: int) -> tuple[list[dict[str, Any]], list[Planted]]:
    """A coding conversation of `turns` turns in OpenAI chat form, and what was planted in it."""
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding assistant. Be brief."}]
    facts: list[Planted] = []
    for n in range(turns):
        area = AREAS[n % len(AREAS)]
        kind = ("path", "error", "value", "id", "command", "decision")[n % 6]
        user, work, answer, planted = _turn(rng, kind, area, n)
        if planted is not None:
            facts.append(planted)
        messages.append({"role": "user", "content": user})
        for name, arguments, output in work:
            call = {"id": f"c{len(messages)}", "type": "function"}
            call_body = {**call, "function": {"name": name, "arguments": json.dumps(arguments)}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call_body]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})
        messages.append({"role": "assistant", "content": answer})
    return messages, facts


Work = list[tuple[str, dict[str, Any], str]]


def _turn(rng: random.Random, kind: str, area: str, n: int) -> tuple[str, Work, str, Planted | None]:
    path = f"services/{area}/{rng.choice(('core', 'api', 'jobs'))}_{rng.randrange(100, 999)}.py"
    code = "".join(f"def {area}_{i}(x):\n    return x + {rng.randrange(9999)}\n" for i in range(rng.randrange(20, 60)))
    read: Work = [("Read", {"file_path": path}, code)]
    if kind == "path":
        edit = {"file_path": path, "old_string": "return x", "new_string": "return x or 0"}
        work: Work = [*read, ("Edit", edit, f"Edited {path}.")]
        question = f"Which file of the {area} service was edited in step {n}?"
        user = f"Step {n}: in the {area} service, guard against empty input."
        return user, work, f"I edited {path} in step {n}.", Planted(kind, n, question, path)
    if kind == "error":
        error = f"{rng.choice(FAULTS)}: {area} worker {rng.randrange(1000, 9999)} gave up"
        log = "".join(f"INFO {area} job {rng.randrange(99999)} ok\n" for _ in range(60)) + error + "\nexit code 1"
        user = f"Step {n}: run the {area} worker and tell me what fails."
        question = f"What error did the {area} worker raise in step {n}?"
        work = [("Bash", {"command": f"python -m services.{area}.worker --step {n}"}, log)]
        return user, work, f"The {area} worker fails: {error}.", Planted(kind, n, question, error)
    if kind == "value":
        noun = NOUNS[n % len(NOUNS)]
        first, final = rng.randrange(10, 99), rng.randrange(100, 999)
        user = f"Step {n}: set the {noun} of {area} to {first}. No, wait: make the {area} {noun} {final}."
        noise = "".join(f"{noun.replace(' ', '_')}_{i} = {rng.randrange(10, 999)}\n" for i in range(40))
        question = f"What is the {noun} of {area} (step {n})?"
        answer = f"The {area} {noun} is now {final}."
        return (
            user,
            [("Read", {"file_path": f"config/{area}.toml"}, noise)],
            answer,
            Planted(kind, n, question, str(final)),
        )
    if kind == "id":
        ticket = f"{area.upper()[:3]}-{rng.randrange(10000, 99999)}"
        question = f"Which ticket is the {area} work of step {n} for?"
        user = f"Step {n}: this {area} work is for ticket {ticket}."
        return user, read, f"Noted, {ticket}.", Planted(kind, n, question, ticket)
    if kind == "command":
        command = f"make {area}-check LEVEL={rng.randrange(2, 9)} SHARD={rng.randrange(10, 99)}"
        question = f"With which make command is {area} checked (step {n})?"
        user = f"Step {n}: check {area} the usual way."
        return (
            user,
            [("Bash", {"command": command}, "ok\nexit code 0")],
            "It passes.",
            Planted(kind, n, question, command),
        )
    choice, other = rng.sample(("SQLite", "Redis", "Kafka", "S3", "plain files", "Postgres"), 2)
    question = f"What must {area} use for its storage (step {n})?"
    user = f"Step {n}: for {area} always use {choice} for storage, never {other}."
    return user, read, f"Understood: {choice} for {area}.", Planted("decision", n, question, f"(?i){choice}")


@dataclass(frozen=True, slots=True)
class Result:
    """Counts per kind after `cycles` compactions; `tokens` is the size of the last view's history."""

    strategy: Strategy
    cycles: int
    tokens: int
    kinds: dict[str, tuple[int, int, int, int]]
    """kind → (asked, in view, reachable by one recall, lost)."""

    def total(self, index: int) -> int:
        return sum(k[index] for k in self.kinds.values())


async def measure(turns: int, window: int, seed: int, strategy: Strategy) -> Result:
    """Replay one planted conversation and ask for every fact whose turn was summarised away or is still there."""
    messages, facts = conversation(turns, seed)
    recording = read_recording(json.dumps(messages).encode(), name="planted")
    questions = tuple(Question(f.question, (_pattern(f),)) for f in facts)
    options = ReplayOptions(window=window, strategy=strategy, questions=questions)
    outcome = await replay(recording, options, count=o200k_counter())
    kinds: dict[str, list[int]] = {}
    for fact, answer in zip(facts, outcome.report["answers"], strict=True):
        row = kinds.setdefault(fact.kind, [0, 0, 0, 0])
        row[0] += 1
        row[1] += answer["in_view"]
        row[2] += answer["reachable"]
        row[3] += not (answer["in_view"] or answer["reachable"])
    totals = outcome.report["totals"]
    counted = {k: (v[0], v[1], v[2], v[3]) for k, v in sorted(kinds.items())}
    return Result(strategy, totals["compactions"], totals["final_used"], counted)


def _pattern(fact: Planted) -> str:

    return fact.accept if fact.kind == "decision" else re.escape(fact.accept)


def table(results: Sequence[Result]) -> str:
    """The results as text: percentages in view / reachable / lost, per kind."""
    kinds = sorted({k for r in results for k in r.kinds})
    lines = ["strategy      cycles tokens   all (view/recall/lost)   " + "  ".join(f"{k:>14}" for k in kinds)]
    for r in results:
        cells = "  ".join(f"{_share(r.kinds.get(k)):>14}" for k in kinds)
        total = (r.total(0), r.total(1), r.total(2), r.total(3))
        lines.append(f"{r.strategy:<13} {r.cycles:>6} {r.tokens:>6}   {_share(total):>22}   {cells}")
    return "\n".join(lines)


def _share(counts: tuple[int, int, int, int] | None) -> str:
    if counts is None or not counts[0]:
        return "–"
    asked, view, recall, lost = counts
    return f"{100 * view // asked}/{100 * recall // asked}/{100 * lost // asked} %"


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--turns", type=int, nargs="*", default=[20, 40, 80, 120, 200])
    options = parser.parse_args()
    results: list[Result] = []
    for strategy in ("anchored", "regenerative"):
        for turns in options.turns:
            results.append(await measure(turns, options.window, options.seed, strategy))
    print(table(results))


if __name__ == "__main__":
    asyncio.run(main())
