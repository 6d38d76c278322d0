"""Runs the screen on a real terminal: engine and app in one loop, the terminal put back whatever happens."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from textual import constants
from textual.driver import Driver

from marextui import paths
from marextui.engine.api import EngineApi
from marextui.engine.events import ConversationOpened, Event
from marextui.engine.late import LateEngine
from marextui.engine.ports import RandomIds
from marextui.settings import Settings, chosen_keys, write_setting
from marextui.tui.app import MarexApp

RESET = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # mouse
    "\x1b[?2004l\x1b[?1004l\x1b[<u"  # bracketed paste, focus reports, kitty keys
    "\x1b[?25h\x1b[?1049l\x1b[0m"  # cursor, alternate screen, colours
)
"""What a terminal needs after a program that died in full-screen mode (case 31)."""


def run_screen(settings: Settings, *, problems: Sequence[str], root: Path, wanted: str, pick: bool) -> int:
    """Show the screen until the person leaves; returns the exit code. Raises `CannotStart`.

    `problems` are sentences about wrong settings, `wanted` the conversation to open, `pick` opens the picker first.
    """
    try:
        return asyncio.run(_run(settings, problems=problems, root=root, wanted=wanted, pick=pick))
    except BaseException:
        if sys.__stderr__ is not None and sys.__stderr__.isatty():
            sys.__stderr__.write(RESET)
            sys.__stderr__.flush()
        raise


def _driver() -> type[Driver] | None:
    """The driver that no input can end; None leaves the choice to Textual."""
    if sys.platform == "win32" or constants.DRIVER is not None:
        return None
    from marextui.tui.driver import SafeDriver

    return SafeDriver


async def _run(settings: Settings, *, problems: Sequence[str], root: Path, wanted: str, pick: bool) -> int:
    async def build() -> EngineApi:
        await asyncio.to_thread(importlib.import_module, "marextui.engine.build")  # a hundred modules
        from marextui.engine.build import build_engine

        gc.freeze()  # modules and classes are never garbage: no collection looks at them again
        gc.enable()
        project_file = paths.project_marex(root) / "config.toml"
        chosen = await asyncio.to_thread(chosen_keys, paths.config_file(), project_file, os.environ)
        offer = chosen.isdisjoint(("compact_continuation", "prewarm", "proj_snapshot"))
        return await build_engine(settings, cwd=root, root=root, wanted=wanted, env=os.environ, offer_economy=offer)

    engine = LateEngine(build, RandomIds(), after=lambda: app.painted.wait())
    try:  # from here on something may run that would keep a failed start from ending
        app = MarexApp(
            engine,
            settings=settings,
            themes_dir=paths.config_dir() / "themes",
            history_file=paths.data_dir() / "history.jsonl",
            problems=problems,
            driver_class=_driver(),
            unsent_dir=paths.data_dir() / "unsent",
            remember=lambda key, value: write_setting(paths.config_file(), key, value),
        )

        def opened(event: Event) -> None:
            if isinstance(event, ConversationOpened):
                forget()
                app.call_later(app.action_resume)

        forget = engine.subscribe(opened) if pick else lambda: None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: app.exit(return_code=0))
        await app.run_async(mouse=settings.mouse)
    finally:
        await engine.close()
    if app.failure is not None:
        raise app.failure
    if not app.return_code and app.model.items:
        sys.stdout.write(f"To go on with this conversation: marextui --resume {app.model.conversation_id}\n")
    return app.return_code or 0
