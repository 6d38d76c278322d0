"""`marextui replay FILE`: arguments, files and exit codes around `engine.replay`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marextui import paths
from marextui.context.ask import Question, read_questions
from marextui.context.budget import check_compact_at, check_window
from marextui.context.messages import file_json
from marextui.context.recording import Recording, RecordingError, read_recording
from marextui.context.redacted import redacted_arguments
from marextui.context.sanitise import one_line
from marextui.context.shapes import SHAPES
from marextui.context.strategy_names import STRATEGY_NAMES
from marextui.context.trigger_names import CHOSEN_TRIGGERS
from marextui.context.triggers import chosen_trigger
from marextui.engine.build import build_hub
from marextui.engine.replay import ReplayOptions, ReplayOutcome, replay
from marextui.models.tokenizer import load_counter
from marextui.models.types import Connection, ModelError
from marextui.settings import load_settings


class _Refused(Exception):
    """Wrong arguments or an unreadable file: one clear line, exit 2."""


def replay_main(arguments: Sequence[str]) -> int:
    """Run the command; 0 even for odd recordings (they are repaired, with notes), 2 for an unreadable file."""
    options = _parser().parse_args(arguments)
    try:
        _check_outputs(options)
        recording = _recording(Path(options.file))
        wanted = ReplayOptions(
            window=None if options.window is None else check_window(options.window, key="--window"),
            reserve=None if options.reserve is None else _reserve(options.reserve),
            compact_at=check_compact_at(options.compact_at, key="--compact-at"),
            strategy=options.strategy,
            trigger=chosen_trigger(options.trigger),
            questions=_questions(options.ask),
            shape=options.shape,
        )
        outcome = asyncio.run(_run(recording, wanted, options.summarizer == "model"))
        _write(options, outcome)
    except (_Refused, RecordingError, ValueError, ModelError) as problem:
        print(f"marextui replay: {one_line(str(problem), 500)}", file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"marextui replay: {problem.filename or ''}: {problem.strerror or problem}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="marextui replay",
        description="Feed a recorded conversation (OpenAI chat format, JSON array or JSON lines, .gz too) through the "
        "engine and report what it would have done.",
    )
    parser.add_argument("file")
    parser.add_argument("--window", metavar="N", help="tokens the model can hold; without it nothing is compacted")
    parser.add_argument("--reserve", metavar="N", help="tokens kept for the answer (default: min(4096, window/4))")
    parser.add_argument("--compact-at", metavar="X", default="0.65", help="share of the budget (default 0.65)")
    parser.add_argument("--strategy", choices=STRATEGY_NAMES, default="anchored")
    parser.add_argument("--trigger", choices=CHOSEN_TRIGGERS, default="threshold")
    parser.add_argument("--summarizer", choices=("offline", "model"), default="offline")
    parser.add_argument("--report", metavar="FILE", help="write the report as JSON")
    view = "write the last view, one message a line: exactly what would be sent, so secrets in it are not replaced"
    parser.add_argument("--view", metavar="FILE", help=view)
    parser.add_argument(
        "--shape",
        choices=SHAPES,
        help="write the view as this provider takes it, and report what it would refuse (default: as it was sent)",
    )
    parser.add_argument("--ask", metavar="FILE", help="JSON list of {question, accept: [regex…]}")
    return parser


def _check_outputs(options: argparse.Namespace) -> None:
    """Where the results go is known to work before the work begins, and is none of the files that are read."""
    inputs = [Path(name) for name in (options.file, options.ask) if name]
    outputs = [Path(name) for name in (options.report, options.view) if name]
    for at, output in enumerate(outputs):
        taken = [p for p in (*inputs, *outputs[:at]) if _same(p, output)]
        if taken:
            raise _Refused(f"{output} is read or written already ({taken[0]}); give another name")
        new = not output.exists()
        try:
            output.open("ab").close()
        except OSError as problem:
            raise _Refused(f"{output} cannot be written: {problem.strerror or problem}") from problem
        if new:
            output.unlink()


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.absolute() == other.absolute()


def _reserve(text: str) -> int:
    if not text.isdecimal():
        raise _Refused(f"--reserve must be a whole number of tokens, got {text!r}")
    return int(text)


def _recording(file: Path) -> Recording:
    try:
        data = file.read_bytes()
    except OSError as problem:
        raise _Refused(f"{file} cannot be read: {problem.strerror or problem}") from problem
    return read_recording(data, name=file.name)


def _questions(file: str | None) -> tuple[Question, ...]:
    if file is None:
        return ()
    try:
        raw: Any = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as problem:
        raise _Refused(f"{file} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, RecursionError) as problem:
        raise _Refused(f"{file} is not JSON: {problem}") from problem
    return read_questions(raw)


async def _run(recording: Recording, options: ReplayOptions, with_model: bool) -> ReplayOutcome:
    count = await load_counter()
    if not with_model:
        return await replay(recording, options, count=count, progress=_progress)
    connection = await _model()
    try:
        return await replay(recording, options, count=count, summarizer=connection.chat, progress=_progress)
    finally:
        await connection.aclose()


def _progress(done: int, total: int) -> None:
    """One line on a terminal that is written over and gone at the end: long recordings take minutes."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K" + ("" if done == total else f"turn {done} of {total}"))
        sys.stderr.flush()


async def _model() -> Connection:
    """The model the settings name. Raises `ModelError`, `_Refused`."""
    settings, _ = load_settings(paths.config_file(), None, os.environ)
    hub = build_hub(settings, os.environ)
    choice = await hub.default()
    if choice is None:
        raise _Refused("--summarizer model needs a model: install marextui[local] or configure an endpoint")
    return await hub.connect(choice, lambda _progress: None)


def _write(options: argparse.Namespace, outcome: ReplayOutcome) -> None:
    if options.report:
        report = json.loads(redacted_arguments(json.dumps(outcome.report)))
        Path(options.report).write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if options.view:
        # asked for to see what is sent: exact, so a new file is for its owner only
        with open(options.view, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.writelines(file_json(m) + "\n" for m in outcome.view)
    _summary(outcome.report)


def _summary(report: dict[str, Any]) -> None:
    totals = report["totals"]
    print(
        f"{totals['recorded_messages']} messages, {totals['turns']} turns, {totals['steps']} steps: "
        f"{totals['compactions']} compactions, {totals['omissions']} stored outputs, {totals['refused']} refused, "
        f"{totals['invalid_views']} invalid views, {totals['final_used']} tokens at the end"
    )
    for compaction in report["compactions"]:
        print(
            f"  cycle {compaction['cycle']} ({compaction['trigger']}): {compaction['tokens_before']} → "
            f"{compaction['tokens_after']} tokens, cut before message {compaction['cut']}"
        )
    for answer in report["answers"]:
        found = [w for w, yes in (("in view", answer["in_view"]), ("reachable", answer["reachable"])) if yes]
        print(f"  {', '.join(found) or 'lost'}: {one_line(answer['question'], 160)}")
    if shape := report.get("shape"):
        count = len(shape["violations"])
        told = f"{count or 'no'} violation{'' if count == 1 else 's'}"
        print(f"  as {shape['name']} takes it: {shape['lines']} lines, {told}")
        for violation in shape["violations"]:
            print(f"    {one_line(violation, 300)}")
    for note in report["notes"]:
        print(f"  note: {one_line(note, 300)}")
