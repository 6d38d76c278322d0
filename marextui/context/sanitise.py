"""Untrusted text made safe for a screen: no escape sequence, no control byte, no invisible reordering.

Stores keep raw text; this runs where text meets a screen. Three stages, each of which can also work on text that
arrives in pieces (`StreamSanitiser`):

1. Escape sequences are dropped. OSC, DCS, APC, PM and SOS go with their bodies, introduced by ESC or by an 8-bit C1
   byte; an unterminated body ends with its line, so that one stray introducer cannot swallow an answer. (A sixel body
   may span lines: its alphabet has no blank, so it ends by itself.) What controls remain become visible: C0 as control
   pictures (U+2400 block), C1, DEL and lone surrogates as U+FFFD, bidi controls as `BIDI_MARK`.
2. Line ends become LF: CR LF, VT, FF, NEL, U+2028, U+2029. A lone CR is a newline, unless the line is a progress
   display: then only its last state is kept.
3. Tabs become blanks up to the next multiple of 4 columns (Textual counts a tab as 0 cells), and a line longer than
   `max_line` cells is broken with `SOFT_BREAK`.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

BIDI_MARK = "⇄"
"""Stands for one bidi control (U+202A–E, U+2066–9, U+200E, U+200F, U+061C)."""

SOFT_BREAK = "↲\n"
"""Put where a too long line was broken; the mark is one cell wide and comes on top of `max_line`."""

REPLACEMENT = "\ufffd"
TAB = 4
_OVERHANG = 16  # combining marks that may still follow a full line, so that a character is not torn from its accents

_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_STRING_BODY = f"[^\x07\x18\x1a\x1b\x9c{_LINE_ENDS}]*"
_SEQUENCE = re.compile(
    # DCS whose body is sixel data, then any string sequence up to its terminator or the end of the line
    r"(?P<string>(?:(?:\x1bP|\x90)[0-9;]*q[!-$\-0-9;?-~\r\n]*|\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])"
    + _STRING_BODY
    + r")(?P<st>\x1b\\|[\x07\x18\x1a\x9c])?"
    r"|(?P<csi>(?:\x1b\[|\x9b)[0-?]*[ -/]*)(?P<final>[@-~])?"
    r"|(?P<esc>\x1b(?=[ -~])[ -/]*)(?P<last>[0-~])?"
)
_SIXEL = re.compile(r"(?:\x1bP|\x90)[0-9;]*q[!-$\-0-9;?-~\r\n]*")
_DCS_PARAMETERS = re.compile(r"(?:\x1bP|\x90)[0-9;]*")

# whatever stages 1 and 2 may change: a text without any of these goes straight to stage 3
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_VISIBLE: dict[str, str] = (
    {chr(c): chr(0x2400 + c) for c in range(0x20)}
    | {chr(c): REPLACEMENT for c in range(0x7F, 0xA0)}
    | {chr(c): REPLACEMENT for c in range(0xD800, 0xE000)}
    | dict.fromkeys(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))), BIDI_MARK)
    | dict.fromkeys(_LINE_ENDS, "\n")
)

_CR_LF = re.compile(r"\r+\n")
_PROGRESS = re.compile(
    r"\d\s?%|\d\s?/\s?\d|\d\s?[kKMGT]i?B|[⠁-⣿▁-▓━╸]{1}|\[[=#*.>\- ]{3,}\]|^\s*[|/\\-](?:\s|$)|(?:\.\.\.|…)\s*$"
)
_DIGITS = re.compile(r"[\d.,]+")
_PROGRESS_LINE = 400  # characters; a longer state is not a progress display


def sanitise(text: str, *, max_line: int = 2000, collapse_progress: bool = True) -> str:
    """`text` for a screen, lines separated by LF. `max_line` is in cells.

    With `collapse_progress` off no text is left out for a lone CR: for diffs and commands a person has to approve.
    """
    if _SUSPECT.search(text) is not None:
        text = _visible(_SEQUENCE.sub("", text))
        text = _line_ends(text, collapse_progress)
    return _lay_out(text, 0, 0, max_line)[0]


def without_sequences(text: str) -> str:
    """`text` without escape sequences; everything else, other control bytes too, stays as it is."""
    return _SEQUENCE.sub("", text) if "\x1b" in text or _SUSPECT.search(text) is not None else text


def one_line(text: str, limit: int = 200) -> str:
    """`text` as one line of at most `limit` cells: runs of blanks and line ends are one blank, "…" where it was cut."""
    if limit < 1:
        return ""
    head = text[: max(4096, limit * 16)]
    line = " ".join(_visible(_SEQUENCE.sub("", head)).split())
    if len(head) == len(text) and _cost(line) <= limit:
        return line
    return line[: _fit(line, limit - 1)].rstrip() + "…"


class StreamSanitiser:
    """`sanitise` for text that arrives in pieces (a model's answer, a command's output).

    What the feeds and the flush return, joined, is `sanitise(whole, collapse_progress=False)` however the text was
    split (a line already shown cannot be taken back, so a lone CR is a newline). Only an unfinished escape sequence or
    CR is held back, in bounded space: bodies are dropped as they come.
    """

    def __init__(self, *, max_line: int = 2000) -> None:
        self._max_line = max_line
        self._held = ""
        self._returns = 0
        self._column = 0
        self._run = 0

    def feed(self, chunk: str) -> str:
        """The part of the text that can be shown now."""
        if not self._held and not self._returns and _SUSPECT.search(chunk) is None:
            return self._place(chunk)
        return self._place(self._unreturn(_visible(self._unescape(self._held + chunk))))

    def flush(self) -> str:
        """What was held back at the end of the text; the sanitiser can then be used for the next one."""
        rest = self._unreturn(_visible(_SEQUENCE.sub("", self._held)))
        shown = self._place(rest + "\n" * self._returns)
        self._held, self._returns, self._column, self._run = "", 0, 0, 0
        return shown

    def _unescape(self, text: str) -> str:
        pieces = []
        start = 0
        self._held = ""
        for match in _SEQUENCE.finditer(text):
            pieces.append(text[start : match.start()])
            start = match.end()
            if match["st"] or match["final"] or match["last"]:
                continue
            rest = text[start:]
            if not rest or (rest == "\x1b" and match["string"]):
                self._held = _shortened(match) + rest
                return "".join(pieces)
        if text.endswith("\x1b"):
            self._held = "\x1b"
            pieces.append(text[start:-1])
        else:
            pieces.append(text[start:])
        return "".join(pieces)

    def _unreturn(self, text: str) -> str:
        """CRs to LFs; those at the end are counted instead, for an LF may follow."""
        if not text:
            return text
        body = text.rstrip("\r")
        before, self._returns = self._returns, len(text) - len(body)
        if not body:
            self._returns += before
            return ""
        if before and not body.startswith("\n"):
            body = "\r" * before + body
        return _CR_LF.sub("\n", body).replace("\r", "\n")

    def _place(self, text: str) -> str:
        placed, self._column, self._run = _lay_out(text, self._column, self._run, self._max_line)
        return placed


def _shortened(match: re.Match[str]) -> str:
    """The shortest text that continues like the unfinished sequence of `match`: its content is dropped anyway."""
    if match["csi"]:
        return "\x1b[ " if match["csi"][-1] in " !\"#$%&'()*+,-./" else "\x1b["
    if match["esc"]:
        return match["esc"][:2]
    body = match["string"]
    if _DCS_PARAMETERS.fullmatch(body):
        return "\x1bP"
    return "\x1bPq" if _SIXEL.fullmatch(body) else "\x1b]"


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda m: _VISIBLE[m[0]], text)


def _line_ends(text: str, collapse_progress: bool) -> str:
    if "\r" not in text:
        return text
    text = _CR_LF.sub("\n", text)
    if "\r" not in text:
        return text
    if collapse_progress:
        return "\n".join(line if "\r" not in line else _last_state(line) for line in text.split("\n"))
    return text.replace("\r", "\n")


def _last_state(line: str) -> str:
    """The last state of a progress line; any other line with its CRs as newlines."""
    states = [s for s in line.split("\r") if s.strip()]
    if not states:
        return ""
    shapes = [_DIGITS.sub("0", s).strip() for s in states]
    alike = [one == two and "0" in one for one, two in pairwise(shapes)]
    for i, state in enumerate(states[:-1]):
        if len(state) > _PROGRESS_LINE or not (_PROGRESS.search(state) or alike[i] or (i and alike[i - 1])):
            return line.replace("\r", "\n")
    return states[-1]


def _wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _cost(text: str) -> int:
    """Upper bound of the cells of `text`: combining marks count 1, so that a line of them has an end too."""
    return len(text) if text.isascii() else len(text) + sum(map(_wide, text))


def _fit(text: str, cells: int) -> int:
    """How many characters of `text` fit into `cells`."""
    if text.isascii():
        return cells
    for i, char in enumerate(text):
        cells -= 2 if _wide(char) else 1
        if cells < 0:
            return i
    return len(text)


def _lay_out(text: str, column: int, run: int, max_line: int) -> tuple[str, int, int]:
    """Expand tabs and break long lines of `text`, whose first line goes on at `column` (cells since its newline, for
    tabs) and `run` (cells since its newline or soft break). Returns the text and where its last line stands.
    """
    max_line = max(2, max_line)
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if i:
            column = run = 0
        if not line:
            continue
        if "\t" not in line and run + 2 * len(line) <= max_line:
            if i == len(lines) - 1:
                cost = _cost(line)
                column, run = column + cost, run + cost
        elif line.isascii():
            lines[i], column, run = _lay_out_ascii(line, column, run, max_line)
        else:
            lines[i], column, run = _lay_out_wide(line, column, run, max_line)
    return "\n".join(lines), column, run


def _lay_out_ascii(line: str, column: int, run: int, max_line: int) -> tuple[str, int, int]:
    if "\t" in line:
        phase = column % TAB
        line = (" " * phase + line).expandtabs(TAB)[phase:]
    column += len(line)
    if run + len(line) <= max_line:
        return line, column, run + len(line)
    first = max(0, max_line - run)
    pieces = [line[:first], *(line[k : k + max_line] for k in range(first, len(line), max_line))]
    return SOFT_BREAK.join(pieces), column, len(pieces[-1])


def _lay_out_wide(line: str, column: int, run: int, max_line: int) -> tuple[str, int, int]:
    placed: list[str] = []
    for char in line:
        for cell in " " * (TAB - column % TAB) if char == "\t" else char:
            width = 2 if _wide(cell) else 1
            if run + width > max_line and not (run < max_line + _OVERHANG and _joins(cell)):
                placed.append(SOFT_BREAK)
                run = 0
            placed.append(cell)
            column, run = column + width, run + width
    return "".join(placed), column, run


def _joins(char: str) -> bool:
    """True for marks that are drawn on the character before them."""
    return unicodedata.category(char) in {"Mn", "Me", "Cf"}
