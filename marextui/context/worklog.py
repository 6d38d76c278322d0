"""The work log: what tool calls did, read from the calls and their results only, never from a model's account of them
(issue section 2; cases 9, 51, 57, 58; Part 2, 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.calls import TouchKind
from marextui.context.messages import Message

Status = Literal["done", "failed", "denied", "interrupted", "not run", "unanswered"]
"""How a call ended. Only `done` and `failed` ran to their end; `interrupted` may have taken effect in part."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """Counts of a test run; None where the output did not say. `failing` names failed tests, as printed."""

    text: str
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failing: tuple[str, ...] = ()

    __test__ = False


@dataclass(frozen=True, slots=True)
class FileTouch:
    """One call that touched a file; lines `first` to `last` (1-based) for a read whose result shows them, else 0."""

    kind: TouchKind
    status: Status
    message_id: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class FileRecord:
    """All that calls did to one file, in order.

    `path` is as a call wrote it, `where` the directory a command had changed to before ("" when it did not). `lines`
    and `sha` (first 8 hex digits of SHA-256) are of the last content the calls and results tell for certain.
    """

    path: str
    touches: tuple[FileTouch, ...]
    where: str = ""
    lines: int | None = None
    sha: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A command, or a call of another tool: `text` is the command, or name and arguments. `lookup`: it only looked."""

    tool: str
    text: str
    status: Status
    message_id: str
    result_id: str = ""
    exit_code: int | None = None
    error: str = ""
    tests: TestRun | None = None
    lookup: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """A URL a call asked for."""

    url: str
    status: Status
    message_id: str


@dataclass(frozen=True, slots=True)
class WorkLog:
    """Files, commands and URLs in the order of their first (files) or only (the rest) call."""

    files: tuple[FileRecord, ...] = ()
    runs: tuple[Run, ...] = ()
    fetches: tuple[Fetch, ...] = ()

    @property
    def last_tests(self) -> Run | None:
        """The last run that printed test counts."""
        return next((r for r in reversed(self.runs) if r.tests is not None), None)


def work_log(messages: Sequence[Message]) -> WorkLog:
    """The work log of `messages` (raw, oldest first). A call without a result, denied or interrupted is marked so."""
    return WorkLog()


def render_work_log(log: WorkLog, *, max_chars: int, language: str = "English") -> str:
    """Bullets, newest first within each kind, at most `max_chars` characters; "" for an empty log."""
    return ""
