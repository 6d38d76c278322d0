"""Forms in which models answer when they should write notes: data, pages, small talk, echoes, loops (cases 37–39, 50).

Lengths are characters. Nothing here decides; `reply_check.check_reply` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from marextui.context.facts import sentences
from marextui.context.section_titles import canonical_title, plain
from marextui.context.sections import KINDS

_PAGE = re.compile(r"\A\s*(?:<!doctype\s+html|<html\b|<\?xml\b|<head\b|<body\b)", re.IGNORECASE)

_MATERIAL = re.compile(
    r"</?(?:material|existing_notes)>|^\s*\[(?:user|assistant|result of [^\]\n]{1,80})\]", re.MULTILINE
)
_INSTRUCTIONS = re.compile(
    r"the working notes of a conversation|Write the notes now, under the headings"
    r"|is about to leave the assistant's memory",
    re.IGNORECASE,
)
_GUIDES = tuple(plain(kind.guide) for kind in KINDS.values())
_GUIDE_WORDS = 4

_OPENINGS = (
    # English
    r"i(?:['’]m| am) (?:sorry|afraid|unable|not able|an? (?:ai|assistant|language))|sorry\b|i apologi[sz]e|as an ai",
    r"i (?:can(?:not|['’]t)|do(?:n['’]t| not)|will not|won['’]t|would be|['’]d be|need) |unfortunately",
    r"i(?:['’]ll| will| can) (?:now |then )?(?:summari[sz]e|write|create|provide|help|continue|proceed|start|do|read)",
    r"i(?:['’]ll| will| can) (?:now |then )?(?:run|look|fix|check)|next,? i(?:['’]ll| will)",
    r"now,? (?:i(?:['’]ll| will)|let)|sure\b|of course|certainly|absolutely|understood|got it",
    r"here(?:['’]s| is| are)|let me\b|let['’]s",
    r"please (?:provide|share|paste|send|give|let|upload|tell|specify)|(?:could|can|would) you|what would you",
    r"how can i|is there anything|feel free|it (?:looks|seems|appears) (?:like|that)",
    r"(?:(?:there is|there['’]s|i see|i have) )?no (?:conversation|material|text|content|transcript|history|summary) ",
    # French
    r"je (?:suis désolée?|ne peux pas|vais)|désolée?\b|bien sûr|voici|pouvez-vous|veuillez|merci de|n['’]hésitez",
    # German
    r"es tut mir leid|entschuldigung|ich kann|gerne|natürlich|bitte (?:geben|teilen|senden|stellen)|hier (?:ist|sind)",
    # Spanish
    r"lo siento|no puedo|claro\b|por supuesto|aquí (?:está|tiene)|por favor",
    # Chinese, Japanese
    r"抱歉|对不起|好的|当然|请提供|以下是|我无法|我不能|すみません|申し訳|承知|もちろん",
)
_TALK = re.compile(r"\W*(?:" + "|".join(_OPENINGS) + ")", re.IGNORECASE)
"""How sentences begin in which an assistant speaks about itself and its task."""

_LONGEST_LOOP = 12
"""Words of a phrase whose repetition is looked for."""
_ENOUGH_TIMES = 4


def is_page(text: str) -> bool:
    """Whether a proxy's web page came instead of a reply."""
    return bool(_PAGE.match(text))


def is_echo(text: str) -> bool:
    """Whether the reply repeats what it was given to summarise, or what it was told to do."""
    return len(_MATERIAL.findall(text)) >= 2 or bool(_INSTRUCTIONS.search(text))


def is_guide(line: str) -> bool:
    """Whether a bullet only repeats, in part or whole, what was said to belong under its heading."""
    bare = plain(line)
    return bare.count(" ") >= _GUIDE_WORDS - 1 and any(bare in guide for guide in _GUIDES)


def is_talk(text: str, least: int) -> bool:
    """Whether half of the sentences, or all but `least` characters, are an assistant's about itself and its task."""
    told = [s for line in text.splitlines() for s in sentences(line) or [line] if s.strip()]
    notes = [s for s in told if not _TALK.match(s)]
    return len(notes) < len(told) and (2 * len(notes) <= len(told) or len(" ".join(notes)) < least)


def without_loops(text: str) -> str:
    """`text`, line by line, with what is said over and over kept once: small models get caught in such loops."""
    return "\n".join(_unlooped(line) for line in text.split("\n"))


def _unlooped(line: str) -> str:
    words = line.split()
    if len(words) < _ENOUGH_TIMES:
        return line
    kept: list[str] = []
    at = 0
    while at < len(words):
        length, times = _loop_at(words, at)
        kept.extend(words[at : at + length])
        at += length * times
    return line if len(kept) == len(words) else " ".join(kept)


def _loop_at(words: list[str], at: int) -> tuple[int, int]:
    """(words of the phrase that begins at `at`, how often it follows on itself); (1, 1) where nothing repeats."""
    for length in range(1, min(_LONGEST_LOOP, (len(words) - at) // _ENOUGH_TIMES) + 1):
        phrase, times = words[at : at + length], 1
        while words[at + length * times : at + length * (times + 1)] == phrase:
            times += 1
        if times >= _ENOUGH_TIMES:
            return length, times
    return 1, 1


# Data instead of Markdown


_WRAPPERS = ("summary", "notes", "content", "text", "answer", "output")


class NoNotes(ValueError):
    """The data holds no notes; the text is a sentence for people."""


def notes_in(text: str, wanted: Container[str]) -> str:
    """`text`, or the Markdown that its JSON stands for, when it is nothing but JSON.

    `wanted` are the canonical titles of the sections asked for. Raises `NoNotes` for JSON without any of them.
    """
    bare = text.strip()
    if bare[:1] not in ("{", "[") or bare[-1:] not in ("}", "]"):
        return text
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return text
    found = _sections(value, wanted)
    if found is None and isinstance(value, Mapping):
        found = next((value[k] for k in _WRAPPERS if isinstance(value.get(k), str)), None)
    if found is None:
        error = value.get("error") if isinstance(value, Mapping) else None
        raise NoNotes(
            "The server answered with an error." if error else "The model answered with data, not with notes."
        )
    return found


def _sections(value: Any, wanted: Container[str], depth: int = 0) -> str | None:
    """The sections in `value` as Markdown, also one or two wrappers down; None when there are none."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping) or depth > 2:
        return None
    titled = {_title(str(key)): inner for key, inner in value.items()}
    if any(canonical_title(title) in wanted for title in titled):
        return "\n".join(f"## {title}\n{_bullets(inner)}" for title, inner in titled.items())
    for inner in value.values():
        if (found := _sections(inner, wanted, depth + 1)) is not None:
            return found
    return None


def _title(key: str) -> str:
    """`session_intent`, `sessionIntent` as a title."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").replace("-", " ")
    title = " ".join(spaced.split())[:60]
    return title[:1].upper() + title[1:]


def _bullets(value: Any) -> str:
    return "\n".join(f"- {line}" for line in _lines(value)) or "none"


def _lines(value: Any) -> Iterator[str]:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, list):
        for item in value:
            yield _told(item) if isinstance(item, Mapping) else "; ".join(_lines(item))
    elif isinstance(value, Mapping):
        yield from (f"{key}: {'; '.join(_lines(inner))}" for key, inner in value.items())
    else:
        yield from (line.strip("-*• ") for line in str(value).splitlines() if line.strip())


def _told(item: Mapping[str, Any]) -> str:
    """`{"path": "a.py", "change": "split"}` as `a.py: split`."""
    values = ["; ".join(_lines(inner)) for inner in item.values()]
    return ": ".join(v for v in values if v)


__all__ = ["NoNotes", "is_echo", "is_guide", "is_page", "is_talk", "notes_in", "without_loops"]
