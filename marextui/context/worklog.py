"""The work log: what tool calls did, read from the calls and their results only, never from a model's account of them
(issue section 2; cases 9, 51, 57, 58; Part 2, 1)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from marextui.context.calls import TouchKind, arguments, call_command
from marextui.context.file_contents import (
    Content,
    after_edit,
    after_write,
    asked_range,
    directory_in,
    named_in,
    shown_range,
    total_lines,
)
from marextui.context.messages import Message, ToolCall, canonical_json
from marextui.context.outcomes import (
    Status,
    Step,
    change_failed,
    errors_in,
    exit_code,
    files_of,
    status_of,
    steps,
    test_run,
)
from marextui.context.speech import tame
from marextui.context.work_records import Fetch, FileRecord, FileTouch, Run, WorkLog
from marextui.context.worklog_render import render_work_log

_QUIET_TOOL = re.compile(r"todo|think|thought|plan$|update_plan|^finish$", re.IGNORECASE)
_LOOKING_TOOL = re.compile(
    r"glob|grep|search|find|list|(?:^|_)ls$|^get|^read|^view|^recall|^show|^fetch_?doc|omitted", re.IGNORECASE
)
_WEB_TOOL = re.compile(r"fetch|brows|url|http|web|goto|navigat|download", re.IGNORECASE)
_WEB_COMMAND = re.compile(r"\b(?:curl|wget|http|git\s+clone|aria2c)\b")
_URL = re.compile(r"https?://[^\s<>\"'`)\]}\\]{1,500}")
_LOOKS = """
    ls cat head tail less more nl grep rg egrep fgrep find fd pwd cd echo wc file stat tree which type env sort uniq
    sed awk cut tr true du df printenv whoami date
    """
_LOOKING_COMMANDS = frozenset(_LOOKS.split())
_GIT_LOOKS = frozenset(["status", "diff", "log", "show", "branch", "remote", "blame", "rev-parse", "ls-files"])
_CHANGED_TO = re.compile(r"\s*cd\s+(?P<q>[\"']?)(?P<dir>[^\s\"';&|]{1,300})(?P=q)\s*(?:&&|;|\n)")
_CODE_CALL = re.compile(r"\s*\w{1,60}\(")
_QUOTED_WORDS = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_OPEN_FILE_EDIT = re.compile(r"edit|insert|append|edit_file_by_\w+|undo_edit", re.IGNORECASE)
_TRAILER = re.compile(
    r"\s*(?:\((?:Open file|Current directory):.*\)|bash-\$|</?\w{1,30}>|<returncode>.*|\(no output\)"
    r"|Your command ran successfully and did not produce any output\."
    r"|\[Jupyter current working directory.*|\[(?:Python|Command|The command)\b.*\]"
    r"|\W?(?:exit(?:ed)?|return) ?(?:code|status)?\W{0,3}\d{1,5}\W?)\s*"
)
_SAID_CHARS = 160


class _Log:
    def __init__(self) -> None:
        self.count = 0
        self.order: dict[str, None] = {}
        self.touches: dict[str, list[tuple[int, FileTouch]]] = {}  # numbered, so that they can be merged in order
        self.names: dict[str, tuple[str, str]] = {}
        self.contents: dict[str, Content] = {}
        self.runs: list[Run] = []
        self.fetches: list[Fetch] = []
        self.directory = ""
        self.opened = ""

    def take(self, step: Step) -> None:
        call, result = step.call, step.result.text if step.result is not None else ""
        self.order[step.message.id] = None
        if stated := directory_in(result):
            self._move_to(stated)
        status = status_of(step.result)
        command = call_command(call)
        args = arguments(call)
        changed = self._files(step, args, command, status, result)
        if _WEB_TOOL.search(call.name) or _WEB_COMMAND.search(command):
            found = dict.fromkeys(u.rstrip(".,;:") for u in _URL.findall(command or canonical_json(dict(args))))
            self.fetches.extend(Fetch(u, status, step.message.id) for u in found)
        told = changed and (not command or bool(_CODE_CALL.match(command)))
        if not told and not _QUIET_TOOL.search(call.name):
            self._run(step, args, command, status)

    def _files(self, step: Step, args: Mapping[str, Any], command: str, status: Status, result: str) -> bool:
        """Log the files of one call; True when the call is told by them alone."""
        call = step.call
        shell = bool(command) and not any(k in args for k in ("path", "file_path"))
        touched = list(files_of(call))
        if not touched and not shell:
            touched = self._unnamed(call, args, status, result)
        where = ""
        if shell and (moved := _CHANGED_TO.match(command)):
            where = moved.group("dir")
        for path, kind in touched:
            if not path.strip() or len(path) > 400:
                continue
            outcome = status
            if outcome == "done" and kind != "read" and step.result is not None:
                outcome = "failed" if change_failed(step.result, in_command=shell) else "done"
            key = self._key(path, where)
            first, last = (0, 0)
            if kind == "read" and outcome == "done" and not shell:
                first, last = shown_range(result)
                first, last = (first, last) if first else asked_range(args)
            self.names.setdefault(key, (path, where))
            self.count += 1
            maybe_done = shell and outcome == status
            touch = FileTouch(kind, outcome, step.message.id, first, last, maybe_done)
            self.touches.setdefault(key, []).append((self.count, touch))
            self._content(key, kind, outcome, args, result, shell)
            self.opened = key if outcome == "done" else self.opened
        return bool(touched)

    def _unnamed(
        self, call: ToolCall, args: Mapping[str, Any], status: Status, result: str
    ) -> list[tuple[str, TouchKind]]:
        """The file of a call that does not name it: the result does, or it is the one the editor has open."""
        if not _OPEN_FILE_EDIT.search(call.name) and not re.search(r"create|write", call.name, re.IGNORECASE):
            return []
        kind: TouchKind = "created" if re.search(r"create|write", call.name, re.IGNORECASE) else "modified"
        if status == "done" and (named := named_in(result)):
            return [(named, kind)]
        if self.opened and args.keys() & {"search", "replace", "text", "new_content", "content"}:
            return [(self.names[self.opened][0], kind)]
        return []

    def _key(self, path: str, where: str) -> str:
        return posixpath.normpath(posixpath.join(self.directory, where, path))

    def _move_to(self, directory: str) -> None:
        """Relative names seen so far are taken as of the first directory a result states."""
        if not self.directory:
            for key in [k for k in self.touches if not k.startswith("/")]:
                self._join(key, posixpath.normpath(posixpath.join(directory, key)))
            self.opened = posixpath.normpath(posixpath.join(directory, self.opened)) if self.opened else ""
        self.directory = directory

    def merged(self) -> None:
        """Join `src/a.py` to `/project/src/a.py` where that is the only file it can be."""
        by_tail: dict[str, list[str]] = {}
        for key in self.touches:
            parts = key.split("/")
            if key.startswith("/"):
                for n in range(2, min(len(parts), 12)):
                    by_tail.setdefault("/".join(parts[-n:]), []).append(key)
        for key in list(self.touches):
            whole = by_tail.get(key, []) if not key.startswith("/") else []
            if len(whole) == 1 and any(t.status == "done" for _, t in self.touches[whole[0]]):
                self._join(key, whole[0])

    def _join(self, key: str, to: str) -> None:
        """Take the file known as `key` for the one known, or from now on known, as `to`."""
        mine, other = self.touches.pop(key), self.touches.get(to, [])
        newest = to if other and other[-1][0] > mine[-1][0] else key
        content = self.contents.get(newest, Content())
        self.contents.pop(key, None)
        self.touches[to] = sorted(other + mine, key=lambda t: t[0])
        self.names[to] = self.names.pop(key)
        self.contents[to] = content

    def _content(
        self, key: str, kind: TouchKind, outcome: Status, args: Mapping[str, Any], result: str, shell: bool
    ) -> None:
        if outcome in {"denied", "not run"} or (outcome == "failed" and not shell):
            return
        if outcome != "done" or shell:
            if kind != "read":
                self.contents.pop(key, None)  # changed in a way its words do not tell
        elif kind == "read":
            known = self.contents.setdefault(key, Content())
            known.lines = known.lines if known.text is not None else total_lines(result) or known.lines
        elif kind == "created":
            self.contents[key] = after_write(args, result)
        elif kind == "modified":
            self.contents[key] = after_edit(self.contents.get(key, Content()), args, result)
        else:
            self.contents.pop(key, None)

    def _run(self, step: Step, args: Mapping[str, Any], command: str, status: Status) -> None:
        text = command or _call_text(step.call, args)
        raw = step.result.text if step.result is not None else ""
        tests = test_run(raw) if status in {"done", "failed"} and raw else None
        error = said = ""
        if status in {"done", "failed"} and raw:
            lines = [line.strip() for line in raw.splitlines()[:8] if line.strip() and not _TRAILER.fullmatch(line)]
            said = lines[0] if len(lines) == 1 and len(lines[0]) <= _SAID_CHARS else ""
            if status == "failed":
                error = next(iter(reversed(errors_in(tame(raw), limit=1))), "")
                error = error or (said if not tests else "")
        self.runs.append(
            Run(
                step.call.name,
                text,
                status,
                step.message.id,
                step.result.id if step.result is not None else "",
                exit_code(raw) if status in {"done", "failed"} else None,
                error,
                said,
                tests,
                _only_looks(command) if command else bool(_LOOKING_TOOL.search(step.call.name)),
            )
        )


def _call_text(call: ToolCall, args: Mapping[str, Any]) -> str:
    values = [v for v in args.values() if v not in ("", None)]
    if len(values) == 1 and isinstance(values[0], str | int | float):
        return f"{call.name} {values[0]}"
    return f"{call.name} {canonical_json(dict(args))}" if values else call.name


def _only_looks(command: str) -> bool:
    for part in re.split(r"\|\||&&|[;|\n]", _QUOTED_WORDS.sub("_", command)):
        words = part.split()
        while words and re.fullmatch(r"\w{1,60}=\S*|sudo|time|command|then|do|\(", words[0]):
            words.pop(0)
        if not words:
            continue
        looks = words[0] in _LOOKING_COMMANDS or (words[0] == "git" and words[1:2] and words[1] in _GIT_LOOKS)
        if not looks or (">" in part and not re.search(r"2>|>\s?/dev/null", part)):
            return False
        if words[0] == "sed" and any(w.startswith("-i") or w == "--in-place" for w in words):
            return False
    return True


def work_log(messages: Sequence[Message]) -> WorkLog:
    """The work log of `messages` (raw, oldest first), linear in their length.

    A call that was denied, interrupted, not run or has no result is kept with that status, never as done (51, 58).
    """
    log = _Log()
    for step in steps(messages):
        log.take(step)
    log.merged()
    files = []
    for key, touches in log.touches.items():
        path, where = log.names[key]
        content = log.contents.get(key, Content())
        files.append(FileRecord(path, tuple(t for _, t in touches), where, content.lines, content.sha))
    return WorkLog(tuple(files), tuple(log.runs), tuple(log.fetches), tuple(log.order))


__all__ = ["Fetch", "FileRecord", "FileTouch", "Run", "Status", "WorkLog", "render_work_log", "work_log"]
