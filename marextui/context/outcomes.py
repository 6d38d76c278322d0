"""How calls ended, read from their results in any program's wording (cases 17, 51, 58). Never raises on any text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.calls import TouchKind, call_files, fenced_commands
from marextui.context.facts import test_counts
from marextui.context.messages import Message, ToolCall, canonical_json
from marextui.context.speech import is_echo, tame

Status = Literal["done", "failed", "denied", "interrupted", "not run", "unanswered"]
"""How a call ended. Only `done` and `failed` ran to their end; `interrupted` may have taken effect in part."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call, the assistant message that made it and its result, None when there is none."""

    call: ToolCall
    message: Message
    result: Message | None


def steps(messages: Sequence[Message]) -> Iterator[Step]:
    """Every call in order, each with the first result after it that carries its id.

    Agents without tool calls run their fenced shell blocks; those count when the echo of a command follows.
    """
    taken: set[int] = set()
    by_id: dict[str, list[int]] = {}
    for n, message in enumerate(messages):
        if message.role == "tool":
            by_id.setdefault(message.tool_call_id, []).append(n)
    for waiting in by_id.values():
        waiting.reverse()
    for n, message in enumerate(messages):
        if message.role != "assistant" or message.synthetic:
            continue
        if not message.tool_calls:
            following = messages[n + 1] if n + 1 < len(messages) else None
            if following is not None and is_echo(following):
                for command in fenced_commands(message.text):
                    yield Step(ToolCall("", "bash", canonical_json({"command": command})), message, following)
        for call in message.tool_calls:
            waiting = by_id.get(call.id, [])
            while waiting and (waiting[-1] < n or waiting[-1] in taken):
                waiting.pop()
            if waiting:
                taken.add(waiting[-1])
            yield Step(call, message, messages[waiting[-1]] if waiting else None)


def files_of(call: ToolCall) -> tuple[tuple[str, TouchKind], ...]:
    """As `calls.call_files`, each once."""
    return tuple(dict.fromkeys(call_files(call)))


_DENIED = re.compile(
    r"\W{0,3}(?:the user (?:did not allow|denied|rejected|declined|refused|doesn['’]t want to (?:proceed|take this))"
    r"|(?:tool (?:call|use|execution) )?(?:was )?(?:denied|rejected|declined) by (?:the )?user"
    r"|user (?:denied|rejected|declined)|not (?:approved|allowed) by the user|operation (?:denied|rejected) by user"
    r"|permission (?:to use \S{1,60} (?:has been )?|was )?(?:denied|rejected)(?: by the user)?[.:])",
    re.IGNORECASE,
)
_INTERRUPTED = re.compile(
    r"\W{0,3}(?:interrupted\b|request interrupted|(?:command|tool|operation|execution|call) (?:was )?"
    r"(?:interrupted|aborted|cancell?ed)|aborted by|cancell?ed by|no result was recorded)",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"\W{0,2}(?:timed out after|command timed out|ended by signal)", re.IGNORECASE)
_NOT_RUN = re.compile(r"\W{0,3}(?:not run\b|skipped due to|the call was not made)", re.IGNORECASE)
_FAILED = re.compile(
    r"\s*(?:error\b(?!s? found: 0)|failed\b|<error>|<tool_use_error>|\[?no exact match|no match|refused\b"
    r"|no replacement was performed|\[?your proposed edit has introduced"
    r"|(?:edit|write|read|str_replace)\w{0,20}: .{0,300}(?:not found|does not exist|nothing was (?:written|changed)"
    r"|cannot be))"
    r"|.{0,200}(?:not (?:been )?(?:applied|changed|modified)\b|string to replace not found)",
    re.IGNORECASE | re.DOTALL,
)
_EXIT = re.compile(
    r"^\s{0,9}[\[(<]?(?:error: )?(?:(?:the )?(?:command|process|program|script|shell)\s)?"
    r"(?:failed |completed |finished )?(?:with )?(?:an? )?"
    r"(?:exit(?:ed)?(?:[ _-]?(?:code|status|value)|[ _-]with(?: (?:exit )?(?:code|status))?)?|return[ _]?code)"
    r"\s?(?:is|was|of|=|:|>)?\s?(-?\d{1,5})(?:[\])<.,;!]|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_EXIT_FIELD = re.compile(
    r"[\"'](?:exit_?code|return_?code|exit_?status)[\"']\s{0,3}:\s{0,3}(-?\d{1,5})\b", re.IGNORECASE
)
_EDGE = 400


def _edges(text: str) -> tuple[str, str]:
    """The first and the last lines: where programs report, and where output can least pretend to."""
    head = "\n".join(text[:_EDGE].lstrip().split("\n")[:3])
    tail = text[-_EDGE:].rstrip().split("\n")
    return head, "\n".join((tail[1:] if len(text) > _EDGE and len(tail) > 1 else tail)[-4:])


def exit_code(text: str) -> int | None:
    """The exit code a result reports in its first or last lines, None when it does not."""
    head, tail = _edges(text)
    if (found := _EXIT.search(head)) is None:
        codes = _EXIT.findall(tail)
        if codes:
            return int(codes[-1])
        found = _EXIT_FIELD.search(head) or _EXIT_FIELD.search(tail)
    return None if found is None else int(found.group(1))


def status_of(result: Message | None) -> Status:
    """How the call ended that `result` answers. What is not known to have failed is done."""
    if result is None:
        return "unanswered"
    text = result.text
    head = text[:_EDGE]
    said_by_program = result.is_error or len(text) <= 2 * _EDGE
    if said_by_program:
        if _DENIED.match(head):
            return "denied"
        if _NOT_RUN.match(head):
            return "not run"
        if _INTERRUPTED.match(head):
            return "interrupted"
    if result.is_error or _TIMED_OUT.match(_edges(text)[1].rpartition("\n")[2]):
        return "failed"
    return "failed" if exit_code(text) else "done"


_EDIT_REFUSED = re.compile(
    r"\s*\[?(?:your proposed edit has introduced|no exact match|no match found|no replacement was performed)",
    re.IGNORECASE,
)


def change_failed(result: Message, *, in_command: bool = False) -> bool:
    """True when the result of an edit says that nothing was changed, whatever its error flag.

    `in_command`: the edit was part of a command, whose output may begin with any word.
    """
    return result.is_error or bool((_EDIT_REFUSED if in_command else _FAILED).match(result.text[:_EDGE]))


_ERROR_HEAD = re.compile(
    r"[\w.]{0,80}(?-i:Error|Exception|Failure|Panic|Interrupt)(?:\s{0,3}[:(]|\s{0,3}$)"
    r"|(?:fatal|panic|erreur|fehler)\b[^:!]{0,40}[:!]"
    r"|(?:[^\s:]{1,80}:[ \t]{0,3}){0,6}(?:fatal )?error\b(?:\[\w{1,20}\]|\s{1,3}\w{1,20}\d{1,8})?\s{0,3}:"
    r"|E {2,8}\S|FAILED\b|FAIL\b|ERROR\b|--- FAIL:|npm ERR!|\S{1,80}\(\d{1,7},\d{1,7}\): error "
    r"|\[?Your proposed edit has introduced|make(?:\[\d{1,3}\])?: \*\*\*",
    re.IGNORECASE,
)
_ERROR_ANYWHERE = re.compile(
    r"command not found|No such file or directory|Permission denied|segmentation fault|undefined reference"
    r"|\bcannot find\b|panicked at|can't cd to|\S - \w{0,60}(?:Error|Exception)\b|AssertionError|SyntaxError:",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(r"\b(?:0|no) (?:errors?|failed|failures|issues)\b", re.IGNORECASE)
_CODE_LINE = re.compile(
    r"(?:raise|except|throw|catch|if|return|import|from|class|def|assert|#|//|\*|\}|console\.|log(?:ger|ging)?\.|slog\.)(?!\w)"
    r"|console\.|[\w.]{1,60}\.(?:error|errorf|fatal|fatalf|warn)\(|.*[;{]$",
    re.IGNORECASE,
)
_BARE_WORD = re.compile(r"\W{0,4}(?:FAIL(?:ED)?|ERRORS?)\W{0,4}", re.IGNORECASE)
_SOURCE_LINE = re.compile(r"\s*\d{1,6}\s{0,2}[→|:\t]")
_MAX_ERROR_LINE = 1000


def errors_in(text: str, *, limit: int = 50) -> tuple[str, ...]:
    """The last `limit` different lines that state an error, stripped but verbatim, in order; no numbered source."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        bare = line.strip()
        if (
            not bare
            or len(bare) > _MAX_ERROR_LINE
            or _SOURCE_LINE.match(line)
            or _NO_ERROR.search(bare)
            or _BARE_WORD.fullmatch(bare)
        ):
            continue
        if _CODE_LINE.match(bare):
            continue
        if _ERROR_HEAD.match(bare) or _ERROR_ANYWHERE.search(bare):
            found.pop(bare, None)
            found[bare] = None
    return tuple(found)[-limit:]


@dataclass(frozen=True, slots=True)
class TestRun:
    """Counts of a test run; None where the output did not say. `failing` names failed tests, as printed."""

    text: str
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failing: tuple[str, ...] = ()

    __test__ = False


_WORDS = (
    (("passed", "passing", "packages ok"), "passed"),
    (("failed", "failing", "failure", "failures", "error", "errors"), "failed"),
    (("skipped", "ignored", "pending"), "skipped"),
)
_FAILING = re.compile(
    r"^(?:(?:FAILED|ERROR) ([^\s]{1,300})(?: - .*)?|\s{0,8}--- FAIL: (\S{1,200})(?: \(.*)?"
    r"|test (\S{1,200}) \.\.\. FAILED|\s{0,4}● (.{1,200})|(?:FAIL|ERROR): (\S{1,200}) \(.{1,200}\)"
    r"|(\S{1,300}::\S{1,300}) FAILED\b.*)$",
    re.MULTILINE,
)
_FAILING_SHOWN = 5
_UNITTEST = re.compile(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE)
_PART = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d{1,9})")
_PASSING = re.compile(r"^[ \t]{0,8}(\d{1,9}) passing\b", re.MULTILINE)  # mocha: a line of its own
_NUMBER = re.compile(r"(\d{1,9}) (packages ok|[a-z]{1,20})")


def test_run(text: str) -> TestRun | None:
    """The last test result in `text`, None when there is none (pytest, unittest, cargo, go, jest, mocha…)."""
    text = tame(text)
    counts = test_counts(text)
    if not counts:
        return None
    totals: dict[str, int] = {}
    if unittest := _UNITTEST.search(text) if " run, " in counts else None:
        parts = {word: int(n) for word, n in _PART.findall(counts)}
        totals["failed"] = parts.get("failures", 0) + parts.get("errors", 0)
        totals["skipped"] = parts.get("skipped", 0)
        totals["passed"] = max(0, int(unittest.group(1)) - totals["failed"] - totals["skipped"])
    else:
        for n, word in _NUMBER.findall(counts):
            for names, total in _WORDS:
                if word in names:
                    totals[total] = totals.get(total, 0) + int(n)
    if "passed" not in totals and (passing := _PASSING.search(text)):
        totals["passed"] = int(passing.group(1))
        counts = f"{passing.group(1)} passing, {counts}"
    failing = dict.fromkeys(next(filter(None, groups)) for groups in _FAILING.findall(text))
    return TestRun(
        counts,
        totals.get("passed"),
        totals.get("failed"),
        totals.get("skipped"),
        tuple(name.strip() for name in failing if name.strip())[:_FAILING_SHOWN],
    )


test_run.__test__ = False  # type: ignore[attr-defined]  # pytest would collect the name where it is imported
