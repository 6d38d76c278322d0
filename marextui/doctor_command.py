"""`marextui doctor [URL]`: arguments, consent, printing and exit codes around `engine.doctor`.

Exit codes: 0 the server can be used, 1 it cannot (or none was found), 2 wrong use, 130 stopped with Ctrl+C (what was
found so far is printed). With `--json` standard output holds one JSON object and nothing else; see
`context.doctor_report` for its shape.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from marextui import paths
from marextui.context.doctor_chart import Chart
from marextui.context.doctor_findings import Advice
from marextui.context.doctor_report import Line, Tone, as_json, report, statement
from marextui.context.doctor_requests import Bound
from marextui.context.sanitise import one_line
from marextui.engine.build import build_hub
from marextui.engine.doctor import (
    REQUEST_TIMEOUT,
    Address,
    ModelError,
    NothingToExamine,
    Visit,
    address_of,
    find_address,
)
from marextui.settings import Settings, load_settings, write_setting

EXIT_USABLE, EXIT_NOT_USABLE, EXIT_USAGE, EXIT_STOPPED = 0, 1, 2, 130
WIDEST = 110
LONGEST_TIMEOUT = 3600
_COLOURS: dict[Tone, str] = {"title": "1", "yes": "32", "no": "31", "unknown": "33", "faint": "2", "code": "36"}
_PLAIN = str.maketrans({"✓": "+", "✗": "x", "…": "~", "“": '"', "”": '"', "’": "'", "–": "-"})


class _WrongUse(Exception):
    """One clear line, exit 2."""


class _Unwritable(Exception):
    """Standard output takes no more; "" when its reader has seen enough: that is how pipes end."""


def doctor_main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit code."""
    options = _parser().parse_args(arguments)
    project = paths.project_marex(paths.project_root(Path.cwd()))
    settings, problems = load_settings(paths.config_file(), project / "config.toml", os.environ)
    for wrong in problems:
        _say(f"marextui: {wrong.where}: {wrong.message}")
    if options.model:
        settings = replace(settings, model=options.model)
    try:
        return _doctor(options, settings)
    except _WrongUse as problem:
        _say(f"marextui doctor: {problem}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except _Unwritable as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered would fail again
        if str(problem):
            _say(f"marextui doctor: the report could not be written: {problem}.")
        return EXIT_NOT_USABLE if str(problem) else EXIT_USABLE
    except OSError as problem:
        _say(f"marextui doctor: {problem.filename or 'this machine'}: {problem.strerror or problem}")
        return EXIT_NOT_USABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="marextui doctor",
        description="Examine a model's server: what it is and can do, what its cache saves, which settings fit. "
        "Without URL: the configured server, else what answers on this machine, else the embedded model.",
        epilog="Exit codes: 0 it can be used, 1 it cannot, 2 wrong use, 130 stopped.",
    )
    parser.add_argument("url", nargs="?", metavar="URL", help="such as http://127.0.0.1:8080 or http://nas:11434/v1")
    parser.add_argument("-m", "--model", metavar="NAME", help="a model id of the server; 'embedded' or a file.gguf")
    parser.add_argument("--embedded", action="store_true", help="examine the embedded model")
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", action="store_true", help="write the settings it recommends into your settings file")
    parser.add_argument("--yes", action="store_true", help="send it to a server on the internet without asking")
    parser.add_argument(
        "--timeout", metavar="S", type=float, default=REQUEST_TIMEOUT, help="seconds for one request (default 120)"
    )
    return parser


def _doctor(options: argparse.Namespace, settings: Settings) -> int:
    """Raises `_WrongUse`, `_Unwritable`."""
    try:
        return _visit(options, settings)
    except (ModelError, NothingToExamine) as problem:
        told = f"{problem.message} {problem.hint}" if isinstance(problem, ModelError) else str(problem)
        return _nobody(options, one_line(told, 1000))


def _visit(options: argparse.Namespace, settings: Settings) -> int:
    address = _address(options, settings)
    hub = build_hub(settings, os.environ, keep_states=settings.warm_resume != "off")
    visit = Visit(address, hub, timeout=options.timeout)
    width = min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
    told = statement(address.shown, visit.limit, local=address.local, note=address.note, width=width)
    _print(told, settings, to_json=options.json)
    if not address.local and not options.yes:
        _ask_consent()
    stopped = False
    try:
        asyncio.run(_examine(visit))
    except (KeyboardInterrupt, asyncio.CancelledError):
        stopped = True
    finally:
        _progress("")
    chart = visit.chart or Chart(url="", local=address.local, label=address.shown, ended="it was stopped")
    advised = visit.advice(settings)
    if options.json:
        _write(sys.stdout, json.dumps(as_json(chart, advised, visit.limit), indent=1))
    else:
        _print([Line(""), *report(chart, advised, config=str(paths.config_file()), width=width)], settings)
    if options.save and not stopped:
        _save(advised)
    return EXIT_STOPPED if stopped else EXIT_USABLE if chart.usable else EXIT_NOT_USABLE


async def _examine(visit: Visit) -> Chart:
    return await visit.examine(_progress)


def _address(options: argparse.Namespace, settings: Settings) -> Address:
    """What to examine. Raises `_WrongUse`, `NothingToExamine`, `ModelError`."""
    if not 0 < options.timeout <= LONGEST_TIMEOUT:
        raise _WrongUse(f"--timeout must be above 0 and at most {LONGEST_TIMEOUT} seconds.")
    if options.url and options.embedded:
        raise _WrongUse("give a URL or --embedded, not both.")
    if options.url is not None and not options.url.strip():
        raise _WrongUse("the URL is empty.")
    api_key = None
    if options.api_key_env:
        api_key = os.environ.get(options.api_key_env, "").strip()
        if not api_key:
            raise _WrongUse(f"the environment variable {options.api_key_env} is not set.")
    if options.url:
        try:
            return address_of(options.url, settings, api_key=api_key, model=options.model or "")
        except ModelError as problem:
            raise _WrongUse(f"{one_line(problem.message)} {problem.hint}") from problem
    if options.embedded and not options.model:
        settings = replace(settings, model="embedded")
    return asyncio.run(find_address(settings, build_hub(settings, os.environ), api_key=api_key))


def _save(advised: Sequence[Advice]) -> None:
    """Write what is not set already; comments and other settings of the file stay as they are."""
    new = [a for a in advised if not a.set_already]
    try:
        for a in new:
            write_setting(paths.config_file(), a.key, a.value)
    except (OSError, ValueError) as problem:
        told = problem.strerror if isinstance(problem, OSError) else ""
        raise _WrongUse(f"the settings could not be written: {told or problem}") from problem
    _say(f"{len(new)} settings written to {paths.config_file()}." if new else "There is nothing to write.")


def _ask_consent() -> None:
    """Raises `_WrongUse` unless a person says yes."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        raise _WrongUse("nothing was sent: say --yes to send it to a server that is not local.")
    print("Send it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes", "o", "oui"}:
        raise _WrongUse("nothing was sent.")


def _nobody(options: argparse.Namespace, told: str) -> int:
    """There is no server to examine, or our own engine does not start."""
    if options.json:
        found = Chart(url=options.url or "", local=True, problem=told)
        _write(sys.stdout, json.dumps(as_json(found, (), Bound(0, 0, 0)), indent=1))
    _say(f"marextui doctor: {told}")
    return EXIT_NOT_USABLE


def _progress(step: str) -> None:
    """One line on a terminal that is written over and gone at the end."""
    if sys.stderr is not None and sys.stderr.isatty():
        room = max(20, shutil.get_terminal_size().columns - 1)
        sys.stderr.write("\r\x1b[K" + (one_line(f"{step} ...", room) if step else ""))
        sys.stderr.flush()


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _print(lines: Sequence[Line], settings: Settings, *, to_json: bool = False) -> None:
    """Lines for people; beside JSON they go to standard error."""
    out = sys.stderr if to_json else sys.stdout
    if out is None:
        return
    coloured = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = (getattr(out, "encoding", None) or "ascii").lower().replace("-", "").replace("_", "")
    plain = settings.ascii or not encoding.startswith("utf")
    shown = []
    for line in lines:
        text = line.text.translate(_PLAIN).encode("ascii", "replace").decode() if plain else line.text
        shown.append(_coloured(text, line) if coloured else text)
    _write(out, "\n".join(shown))


def _write(out: TextIO | None, text: str) -> None:
    """Raises `_Unwritable`."""
    try:
        print(text, file=out, flush=True)
    except OSError as problem:
        raise _Unwritable("" if isinstance(problem, BrokenPipeError) else problem.strerror or problem) from problem


def _coloured(text: str, line: Line) -> str:
    code = _COLOURS.get(line.tone)
    if code is None or not text:
        return text
    lead = line.lead or len(text)
    return f"\x1b[{code}m{text[:lead]}\x1b[0m{text[lead:]}"
