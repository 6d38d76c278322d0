"""Search without ripgrep: a program of its own, so that a slow pattern can be killed and never holds up the screen.

Run by path with the standard library only. Arguments: pattern, "literal" or "regex", "fold" or "exact", context
lines. Standard input: file names, NUL between them. Output: as `rg --null --line-number` writes it.
Exit code: 0 found, 1 not found, 2 the pattern is not valid (the reason on stderr).
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from typing import IO

LINE_BYTES = 1 << 20
SHOWN_CHARS = 500
SNIFFED_BYTES = 8_192


def search(name: bytes, pattern: re.Pattern[str], context: int, out: IO[bytes], first: bool) -> bool:
    """Write the matches of one file; True when there was one. Binary and unreadable files have none."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if b"\0" in file.read(SNIFFED_BYTES):
                return False
            file.seek(0)
            before: deque[tuple[int, str]] = deque(maxlen=context)
            number, after, last, found = 0, 0, 0, False
            while raw := file.readline(LINE_BYTES):
                number += 1
                line = raw.rstrip(b"\r\n").decode("utf-8", "replace")
                while not raw.endswith(b"\n") and (raw := file.readline(LINE_BYTES)):
                    pass  # the rest of a line of more than a megabyte is not searched
                if pattern.search(line):
                    start = before[0][0] if before else number
                    if context and (start > last + 1 if found else not first):
                        out.write(b"--\n")
                    for n, text in before:
                        _write(out, name, n, b"-", text)
                    before.clear()
                    _write(out, name, number, b":", line)
                    found, after, last = True, context, number
                elif after:
                    _write(out, name, number, b"-", line)
                    after, last = after - 1, number
                elif context:
                    before.append((number, line))
            return found
    except OSError:
        return False


def _write(out: IO[bytes], name: bytes, number: int, mark: bytes, line: str) -> None:
    out.write(b"%s\0%d%s%s\n" % (name, number, mark, line[:SHOWN_CHARS].encode("utf-8", "replace")))


def main(argv: list[str], names: IO[bytes], out: IO[bytes]) -> int:
    """Exit code of a search; see the module."""
    written, kind, case, context = argv
    try:
        pattern = re.compile(re.escape(written) if kind == "literal" else written, re.I if case == "fold" else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return 2
    found = False
    for name in names.read().split(b"\0"):
        if name and search(name, pattern, int(context), out, first=not found):
            found = True
            out.flush()
    return 0 if found else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer))
    except BrokenPipeError:
        os._exit(0)
