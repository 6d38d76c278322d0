"""The command line: the screen, `-p` for one answer without it, `replay` for recordings, `doctor` for servers."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import logging.handlers
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from marextui import paths
from marextui.engine.api import LATEST, NEW, CannotStart
from marextui.settings import Settings, SettingsProblem, load_settings

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
PICK = "?"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["replay"]:
        from marextui.replay_command import replay_main

        return replay_main(arguments[1:])
    if arguments[:1] == ["doctor"]:
        with contextlib.suppress(KeyboardInterrupt):  # also while its parts are loaded
            from marextui.doctor_command import doctor_main

            return doctor_main(arguments[1:])
        return 130
    options = _parser().parse_args(arguments)
    if options.version:
        print(_version())
        return EXIT_OK
    if empty := _given_empty(options):
        print(f"marextui: {empty} was given an empty value.", file=sys.stderr)
        return EXIT_USAGE
    if options.prompt is not None:
        if sys.stdout is None:
            print("marextui: -p has nowhere to write to: its output is closed.", file=sys.stderr)
            return EXIT_FAILED
        return _print_answer(options)
    return _screen(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="marextui",
        description="A full-screen terminal chat whose context you can see, trust and take back.",
        epilog="marextui doctor [URL] examines a model's server; marextui replay FILE shows what the engine would do "
        "with a recorded conversation. Both explain themselves with -h.",
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "-c",
        "--continue",
        dest="continue_",
        action="store_true",
        help="go on with the latest conversation of this project",
    )
    again.add_argument(
        "-r", "--resume", nargs="?", const=PICK, metavar="ID", help="resume a conversation; without ID, pick one"
    )
    parser.add_argument("-m", "--model", metavar="NAME", help="a model id, a file.gguf, 'embedded' or 'embedded-small'")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="work in this folder")
    parser.add_argument(
        "-p",
        "--prompt",
        nargs="?",
        const="",
        metavar="TEXT",
        help="print one answer and exit; piped input is added to TEXT, or is the prompt without TEXT",
    )
    parser.add_argument("--json", action="store_true", help="with -p: one JSON object a line, every engine event")
    parser.add_argument(
        "--allow", metavar="LIST", default="", help="with -p: what may run unasked, of edit,write,bash,outside,memory"
    )
    parser.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"marextui {version('marextui')}"
    except PackageNotFoundError:
        return "marextui (not installed)"


def _load(options: argparse.Namespace, cwd: Path) -> tuple[Settings, tuple[SettingsProblem, ...], Path]:
    root = paths.project_root(cwd)
    settings, problems = load_settings(paths.config_file(), paths.project_marex(root) / "config.toml", os.environ)
    if options.model:
        settings = replace(settings, model=options.model)
    if options.base_url is not None:
        settings = replace(settings, base_url=options.base_url)
    if options.no_mouse:
        settings = replace(settings, mouse=False)
    return settings, problems, root


def _folder(options: argparse.Namespace) -> Path | None:
    cwd = Path(options.cwd).expanduser() if options.cwd else Path.cwd()
    if cwd.is_dir():
        return cwd.resolve()
    print(f"marextui: {cwd} is not a folder.", file=sys.stderr)
    return None


def _wanted(options: argparse.Namespace) -> str:
    if options.continue_:
        return LATEST
    if options.resume and options.resume != PICK:
        return str(options.resume)
    return NEW


class CleanFormatter(logging.Formatter):
    """Log lines and tracebacks without secrets (I10): an exception quotes what it stumbled over."""

    def format(self, record: logging.LogRecord) -> str:
        from marextui.context.redaction import redact  # its many patterns are compiled when there is a line to clean

        return redact(super().format(record))


def _log_to_file() -> None:
    """Our own log goes to a small rotating file, never to the screen; a read-only home only means no log."""
    folder = paths.data_dir() / "logs"
    with contextlib.suppress(OSError):
        paths.ensure_private(folder)
        handler = logging.handlers.RotatingFileHandler(folder / "marextui.log", maxBytes=1_000_000, backupCount=2)
        handler.setFormatter(CleanFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logging.getLogger("marextui").addHandler(handler)
    logging.getLogger("marextui").propagate = False


def _complain(problems: Sequence[SettingsProblem]) -> None:
    for problem in problems:
        print(f"marextui: {problem.where}: {problem.message}", file=sys.stderr)


def _piped_input() -> str:
    """What was piped or redirected into us; nothing from a terminal or an inherited socket."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _given_empty(options: argparse.Namespace) -> str:
    """The option that was given an empty value: a script's unset variable must not pick another model."""
    empty = (o for o, v in (("--base-url", options.base_url), ("--model", options.model)) if v is not None and not v)
    return next(empty, "")


def _print_answer(options: argparse.Namespace) -> int:
    from marextui.engine.once import KINDS, ask_once
    from marextui.store.database import StoreError

    cwd = _folder(options)
    if cwd is None:
        return EXIT_USAGE
    allowed = {a.strip() for a in options.allow.split(",") if a.strip()}
    if unknown := allowed - KINDS:
        print(f"marextui: --allow knows {', '.join(sorted(KINDS))}, not {', '.join(sorted(unknown))}.", file=sys.stderr)
        return EXIT_USAGE
    settings, problems, root = _load(options, cwd)
    _complain(problems)
    if settings.keys:
        from marextui.tui.actions import keymap

        for problem in keymap(settings.keys)[1]:
            print(f"marextui: {problem}", file=sys.stderr)
    _log_to_file()
    given = "" if options.prompt == "-" else options.prompt
    text = "\n\n".join(t for t in (given, _piped_input()) if t.strip())
    if not text:
        print('marextui: -p needs some text: marextui -p "your question", or pipe it in.', file=sys.stderr)
        return EXIT_USAGE
    try:
        return asyncio.run(
            ask_once(
                text,
                settings,
                root=root,
                wanted=_wanted(options),
                allowed=frozenset(allowed),
                as_json=options.json,
                out=sys.stdout,
                err=sys.stderr,
            )
        )
    except (CannotStart, StoreError) as problem:
        print(f"marextui: {problem}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 130
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered would fail again
        if isinstance(problem, BrokenPipeError):  # the reader has seen enough: that is how pipes end
            return EXIT_OK
        print(f"marextui: the answer could not be written: {problem.strerror or problem}.", file=sys.stderr)
        return EXIT_FAILED


def _screen(options: argparse.Namespace) -> int:
    cwd = _folder(options)
    if cwd is None:
        return EXIT_USAGE
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "marextui is a full-screen program and needs a terminal.\n"
            'For one answer without a screen: marextui -p "your question"',
            file=sys.stderr,
        )
        return EXIT_USAGE
    gc.disable()  # what is loaded now stays: `tui.run` collects again when the engine is there
    settings, problems, root = _load(options, cwd)
    _log_to_file()
    from marextui.tui.run import run_screen

    try:
        return run_screen(
            settings,
            problems=[f"{p.where}: {p.message}" for p in problems],
            root=root,
            wanted=_wanted(options),
            pick=options.resume == PICK,
        )
    except CannotStart as problem:
        print(f"marextui: {problem}", file=sys.stderr)
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
