"""File names as text: any bytes a file system holds, on one line, in well-formed Unicode, and back again."""

from __future__ import annotations

import os
import re

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_SIMPLE = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([nrt]))")
_PLAIN = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def well_formed(text: str) -> str:
    """`text` with lone surrogates replaced, so that it can be stored and sent as UTF-8; control characters stay raw."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def show_name(name: str) -> str:
    r"""A name on one line of output: control characters and bytes that are not UTF-8 as `\n`, `\x1b`, `\xff`."""
    return _UNSAFE.sub(_escape, name) if _UNSAFE.search(name) else name


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SIMPLE:
        return _SIMPLE[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # os.fsdecode's way to carry a byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def unshow_name(shown: str) -> str:
    """Inverse of `show_name`; text without its escapes comes back as it is.

    Raises UnicodeEncodeError for lone surrogates that stand for no byte.
    """

    def raw(match: re.Match[bytes]) -> bytes:
        byte, code, plain = match.groups()
        if byte is not None:
            return bytes([int(byte, 16)])
        if code is not None:
            return chr(int(code, 16)).encode("utf-8", "replace")
        return _PLAIN[plain]

    return os.fsdecode(_ESCAPE.sub(raw, os.fsencode(shown)))


def human_size(size: int) -> str:
    """Bytes for people: `812 B`, `1.2 kB`, `3.4 MB` (powers of 1,000)."""
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95 or unit == "TB":
            break
    return f"{value:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """`1 line`, `12 480 lines`: the thousands separator is a space, as in the markers (M24)."""
    if number != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith(("ch", "s")) else "s")
    return f"{number:,} {noun}".replace(",", " ")
