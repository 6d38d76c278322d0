"""What a work log holds: files, commands and URLs as calls and results told of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marextui.context.calls import TouchKind
from marextui.context.outcomes import Status, TestRun

_TEST_COMMAND = re.compile(
    r"(?:^|[\s;&|/])(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ctest|phpunit|rspec"
    r"|(?:go|cargo|npm|yarn|pnpm|bun|make|mix|dotnet|swift|gradle|\./gradlew|mvn|deno) (?:run )?test"
    r"|python3? -m (?:unittest|pytest)|manage\.py test|rake test)(?=$|[\s;&|:])"
)


@dataclass(frozen=True, slots=True)
class FileTouch:
    """One call that touched a file; lines `first` to `last` (1-based) for a read that says so, else 0.

    `in_command`: a shell command did it; when that failed, the file may have been touched all the same.
    """

    kind: TouchKind
    status: Status
    message_id: str
    first: int = 0
    last: int = 0
    in_command: bool = False


@dataclass(frozen=True, slots=True)
class FileRecord:
    """All that calls did to one file, in order.

    `path` is as a call wrote it, `where` the directory its command had changed to before ("" when it had not). `lines`
    and `sha` (first 8 hex digits of SHA-256) are of the last content that calls and results tell for certain.
    """

    path: str
    touches: tuple[FileTouch, ...]
    where: str = ""
    lines: int | None = None
    sha: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A command, or a call of another tool: `text` is the command, or name and arguments.

    `error` is the last line that states an error, `said` the output when it is a single line. A `lookup` only looked.
    """

    tool: str
    text: str
    status: Status
    message_id: str
    result_id: str = ""
    exit_code: int | None = None
    error: str = ""
    said: str = ""
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
    """Files in the order of their first call, commands and URLs in the order of the calls."""

    files: tuple[FileRecord, ...] = ()
    runs: tuple[Run, ...] = ()
    fetches: tuple[Fetch, ...] = ()
    order: tuple[str, ...] = ()
    """Ids of the messages that made calls, in order."""

    @property
    def last_tests(self) -> Run | None:
        """The last run that printed test counts or was a test command that ran."""
        ran = (r for r in reversed(self.runs) if r.status in {"done", "failed"})
        return next((r for r in ran if r.tests is not None or _TEST_COMMAND.search(r.text[:2000])), None)
