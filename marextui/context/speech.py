"""Who really said it: a user's own words apart from what programs, tools and summaries put under a user's name.

A message of role user may hold the echo of a command, the feedback of a hook, a tagged block of the application or a
summary; none of that is a request or an order (cases 55, 126, 127).
"""

from __future__ import annotations

import re

from marextui.context.marks import CONTEXT_UPDATE_CLOSE, CONTEXT_UPDATE_OPEN, SUMMARY_MARK
from marextui.context.messages import Message

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<([A-Za-z][\w-]{0,40})(?:\s[^<>\n]{0,200})?>.*?(?:</\1>|\Z)", re.DOTALL)
_QUOTE_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_PROGRAM = re.compile(
    r"\s*(?:<(?:returncode|output|stdout|stderr|local-command|command-|system-reminder|tool_result|task-notification"
    r"|user-prompt-submit-hook|bash-|environment_details|function_results)"
    r"|diff --git |\[Image[^\]]{0,400}\]\s*\Z|\[Request interrupted"
    r"|(?:\w{1,30} ){0,2}hook (?:feedback|success|error|blocking)\b|Caveat: The messages below"
    r"|This (?:session|conversation) is (?:being )?(?:a )?continu|This is a (?:session|conversation) continuation"
    r"|OBSERVATION:|Observation:|EXECUTION RESULT|\[Tool result)",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"\s*(?:<(?:returncode|output|stdout|function_results)\b|diff --git |OBSERVATION:|EXECUTION RESULT)", re.I
)
_QUOTED = re.compile(
    r"“[^”]{0,2000}”|«[^»]{0,2000}»|„[^“”]{0,2000}[“”]|(?<!\w)\"[^\"\n]{0,2000}\"(?!\w)|`[^`\n]{0,600}`"
)


def is_echo(message: Message) -> bool:
    """True for the output of a command that an agent without tool calls gets as a user message."""
    return message.role == "user" and not message.synthetic and bool(_ECHO.match(message.text))


def by_program(message: Message) -> bool:
    """True for a message of role user that a program wrote: output echo, hook feedback, a command, a summary."""
    text = message.text
    return message.synthetic or text.startswith(SUMMARY_MARK) or only_update(message) or bool(_PROGRAM.match(text))


def only_update(message: Message) -> bool:
    """True for a message that holds nothing but a context update of an application (M7, L53)."""
    text = message.text.strip()
    return text.startswith(CONTEXT_UPDATE_OPEN) and text.endswith(CONTEXT_UPDATE_CLOSE)


def own_words(message: Message) -> str:
    """What the user wrote in their own words: no fenced code, quoted lines, tagged blocks; "" for other messages."""
    if message.role != "user" or by_program(message):
        return ""
    text = _FENCE.sub("\n", message.text)
    return _QUOTE_LINE.sub("", _TAGGED.sub("\n", text)).strip()


def is_request(message: Message) -> bool:
    """True for a message in which a user asks for something: their own words, code or pictures."""
    if message.role != "user" or by_program(message):
        return False
    return bool(message.text.strip()) or (not isinstance(message.content, str) and bool(message.content))


BLANKED = "…"


def unquoted(text: str) -> str:
    """`text` with each character in quotation marks or backticks as `BLANKED`: only the speaker's own words remain."""
    return _QUOTED.sub(lambda m: BLANKED * len(m.group()), text)


_LONG_WORD = re.compile(r"\S{300,}")
_LINE_CHARS = 2000


def _split_commas(m: re.Match[str]) -> str:
    return m.group().replace(",", ", ")


def tame(text: str) -> str:
    """`text` without words over 300 characters (encoded data, minified code), long lines broken at blanks.

    What is left keeps expressions that search it fast, whatever the text is.
    """
    if _LONG_WORD.search(text):
        text = _LONG_WORD.sub(" ", _LONG_WORD.sub(_split_commas, text))
    if len(text) <= _LINE_CHARS:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    while len(line) - start > _LINE_CHARS:
        cut = line.rfind(" ", start, start + _LINE_CHARS)
        cut = start + _LINE_CHARS if cut <= start else cut
        pieces.append(line[start:cut])
        start = cut
    pieces.append(line[start:])
    return pieces
