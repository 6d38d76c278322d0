"""Runs the product, started as its command line starts it, without a terminal up to its first paint.

    python -m tests.stubs.first_paint          prints the modules that are loaded then, one a line

Meant for a process of its own: it changes classes and streams that nobody may use afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from textual.app import App

SIZE = (120, 40)


def when_painted(then: Callable[[], None]) -> None:
    """Call `then` after the first paint of the app that is run next, and leave it."""

    def on_ready(self: App[Any]) -> None:
        def painted() -> None:
            then()
            self.exit()

        self.call_after_refresh(painted)

    App.on_ready = on_ready  # type: ignore[attr-defined]


class _Terminal:
    """A stream that says it is a terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return True


def run_product(then: Callable[[], None]) -> int:
    """The exit code of `marextui` with no arguments, which calls `then` after the first paint and ends."""
    from marextui import cli

    run_async = App.run_async

    async def headless(self: App[Any], **_options: Any) -> Any:
        return await run_async(self, headless=True, size=SIZE)

    when_painted(then)
    App.run_async = headless  # type: ignore[method-assign, assignment]
    sys.stdin, sys.stdout = _Terminal(sys.stdin), _Terminal(sys.stdout)
    return cli.main([])


if __name__ == "__main__":
    out = sys.stdout
    sys.exit(run_product(lambda: print("\n".join(sorted(sys.modules)), file=out, flush=True)))
