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


def when_painted(then: Callable[[App[Any]], None]) -> None:
    """Call `then` with the app that is run next, after its first paint."""

    def on_ready(self: App[Any]) -> None:
        self.call_after_refresh(then, self)

    App.on_ready = on_ready  # type: ignore[attr-defined]


class _Terminal:
    """A stream that says it is a terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return True


def run_product(then: Callable[[App[Any]], None]) -> int:
    """The exit code of `marextui` with no arguments, which calls `then` with its app after the first paint."""
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

    def tell(app: App[Any]) -> None:
        print("\n".join(sorted(sys.modules)), file=out, flush=True)
        app.exit()

    sys.exit(run_product(tell))
