"""What calls and results tell for certain of a file's content: its text after a write, its lines, its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WHOLE_KEYS = ("content", "file_text", "contents", "text", "code_content", "file_content")
_OLD_NEW = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("search", "replace"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
    ("to_replace", "new_content"),
)
_TOTAL = re.compile(
    r"\((\d{1,8}) lines total|\[lines \d{1,8}-\d{1,8} of (\d{1,8})|\((?:file )?total:? (\d{1,8}) lines\)"
)
_DELTA = re.compile(r"\(\+(\d{1,7}) -(\d{1,7}) lines")
_NUMBERED = re.compile(r"[ \t]{0,8}(\d{1,7})[ \t]{0,2}(?:→|\t|\||:)")
_RESULT_PATH = re.compile(
    r"(?:The file (?P<a>\S.{0,300}?) has been (?:updated|edited|created|modified|written)"
    r"|File (?:created|written|updated|edited|saved) (?:successfully )?(?:at|to):? (?P<b>\S{1,300})"
    r"|\[File: (?P<c>[^\s\[\]()]{1,300}) \(\d{1,8} lines total)"
)
_DIRECTORY = re.compile(r"(?:Current directory|current working directory): (/[^\s)\]]{0,300})")
_EDGE_LINES = 12


@dataclass(slots=True)
class Content:
    """`text` is the whole content, None where it is not known; `lines` may be known without it."""

    text: str | None = None
    lines: int | None = None

    @property
    def sha(self) -> str:
        """First 8 hex digits of the SHA-256 of the UTF-8 text, "" when it is not known."""
        return "" if self.text is None else sha8(self.text)


def sha8(text: str) -> str:
    """First 8 hex digits of the SHA-256 of `text` in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _count(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def written(args: Mapping[str, Any]) -> str | None:
    """The whole text a call that creates or overwrites a file carries."""
    return next((args[k] for k in _WHOLE_KEYS if isinstance(args.get(k), str)), None)


def _replaced(text: str, args: Mapping[str, Any]) -> str | None:
    """`text` after the replacement of one edit, None when it cannot be told."""
    for old_key, new_key in _OLD_NEW:
        old, new = args.get(old_key), args.get(new_key)
        if isinstance(old, str) and isinstance(new, str) and old:
            found = text.count(old)
            every = args.get("replace_all") is True
            return text.replace(old, new) if found == 1 or (every and found) else None
    return None


def after_write(args: Mapping[str, Any], result: str) -> Content:
    """Content of a file a call created or overwrote."""
    text = written(args)
    return Content(text, _count(text)) if text is not None else Content(None, total_lines(result))


def after_edit(before: Content, args: Mapping[str, Any], result: str) -> Content:
    """Content of a file whose content was `before` after an edit that succeeded."""
    edits = args.get("edits")
    steps = [e for e in edits if isinstance(e, Mapping)] if isinstance(edits, list) else [args]
    text = before.text
    for step in steps:
        text = None if text is None else _replaced(text, step)
    if text is not None:
        return Content(text, _count(text))
    delta = _DELTA.search(result[:400])
    if before.lines is not None and delta:
        return Content(None, before.lines + int(delta.group(1)) - int(delta.group(2)))
    return Content(None, total_lines(result))


def total_lines(result: str) -> int | None:
    """The number of lines of the whole file, where a result states it."""
    found = _TOTAL.search(result[:600]) or _TOTAL.search(result[-600:])
    return int(next(filter(None, found.groups()))) if found else None


def shown_range(result: str) -> tuple[int, int]:
    """First and last line number a result of a read shows; (0, 0) when its lines carry no numbers."""
    lines = result.splitlines()
    first = next((int(m.group(1)) for line in lines[:_EDGE_LINES] if (m := _NUMBERED.match(line))), 0)
    last = 0
    for line in reversed(lines):  # notes may follow the file
        if m := _NUMBERED.match(line):
            last = int(m.group(1))
            break
    return (first, last) if 0 < first <= last else (0, 0)


def asked_range(args: Mapping[str, Any]) -> tuple[int, int]:
    """First and last line a call asked for; (0, 0) when it asked for the whole or said no end."""

    def number(*names: str) -> int:
        value = next((args[n] for n in names if n in args), 0)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000_000 else 0

    view = args.get("view_range")
    if isinstance(view, list) and len(view) == 2 and all(isinstance(v, int) for v in view):
        return (view[0], view[1]) if 0 < view[0] <= view[1] else (0, 0)
    first, last = number("start_line", "line_start", "start"), number("end_line", "line_end", "end")
    if first and last >= first:
        return first, last
    limit = number("limit")
    first = number("offset") or 1
    return (first, first + limit - 1) if limit else (0, 0)


def named_in(result: str) -> str:
    """The file a result says it created, changed or shows; "" when it names none."""
    found = _RESULT_PATH.search(result[:1500])
    return "" if found is None else next(filter(None, found.groups()))


def directory_in(result: str) -> str:
    """The working directory a result states in its last lines; "" when it does not."""
    found = _DIRECTORY.findall(result[-400:])
    return found[-1] if found else ""
