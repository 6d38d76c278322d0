"""Names that can be made up — paths, URLs, ids — and whether a text really holds them (I12, case 38)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from marextui.context.ask import searchable
from marextui.context.entries import Summary
from marextui.context.facts import paths
from marextui.context.messages import ImagePart, Message, OtherPart
from marextui.context.speech import tame

CUT = "…"
"""Stands where a text was shortened: a name right before it is known by its beginning only."""

_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`)\]“”«»…]{1,2000}", re.IGNORECASE)
_ID = re.compile(
    r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,64}"
    r"|omitted-\d{3,9}"
    r"|[A-Z]{2,10}-\d{2,9}"
    r"|[a-z]{2,40}(?:_[a-z]{2,40}){1,4}_\d{3,12})(?![\w-])"
)
_STANDARD = re.compile(r"(?:UTF|SHA|ISO|RFC|AES|MD|HTTP|TLS|SSL|GPT|UTC|GMT|RSA|ES|HS|RS|CP|PEP)-")
_PRODUCT = re.compile(r"[A-Z]\w*\.(?:js|io|ai|net)")
_REDACTED = re.compile(r"\S{0,300}\[redacted: [\w -]{0,60}\]\S{0,300}")
_SENTENCE_END = ".,;:!?"
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text; `open_end`: the text is cut right behind it, so it may have been longer."""

    name: str
    open_end: bool


def mentions(text: str) -> tuple[Mention, ...]:
    """Paths, URLs, hashes, UUIDs, omission ids, ticket numbers and numbered snake-case ids in `text`, each once.

    Names of standards (UTF-8) and products (Node.js) are none; what holds a redacted secret is not looked at.
    """
    text = _REDACTED.sub(" ", tame(text))
    found = dict.fromkeys(m.group().rstrip(_SENTENCE_END) for m in _URL.finditer(text))
    bare = _URL.sub(" ", text)
    found.update(dict.fromkeys(p for p in paths(bare) if not _PRODUCT.fullmatch(p)))
    found.update(dict.fromkeys(m.group() for m in _ID.finditer(bare) if not _STANDARD.match(m.group())))
    return tuple(Mention(name, f"{name}{CUT}" in text) for name in found if len(name) <= _LONGEST)


def _is_name(char: str) -> bool:
    return char.isalnum() or char in "_-"


class Material:
    """Texts that were really there; names are looked up in them with regard to case."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts)

    def holds(self, mention: Mention) -> bool:
        """Whether the name occurs as a whole: itself, or as the end of a longer path.

        A path may also be put together from a directory and what was named in it (`cd src`, `cat a.py`), at one place.
        """
        name = mention.name.removeprefix("./").rstrip("/")
        if not name or self._occurs(name, mention.open_end):
            return True
        if "://" in name:
            return self._occurs(name.partition("://")[2], mention.open_end)
        at = name.find("/", 1)
        while at != -1:
            if self._occurs(name[at + 1 :], mention.open_end) and self._occurs(name[:at], False):
                return True
            at = name.find("/", at + 1)
        return False

    def _occurs(self, name: str, open_end: bool) -> bool:
        """`name` not inside a longer word; a hash or an open end may go on."""
        text, goes_on = self._text, open_end or re.fullmatch(r"[0-9a-f]{7,64}", name) is not None
        at = text.find(name)
        while at != -1:
            before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 2]
            starts = not before or not (_is_name(before) or before == ".") or not _is_name(name[0])
            starts = starts and not (name[0] == "/" and before and _is_name(before))
            ends = not after or not (_is_name(after[0]) or (after[0] == "." and _is_name(after[1:] or " ")))
            if starts and (ends or goes_on):
                return True
            at = text.find(name, at + 1)
        return False


def _all_text(message: Message) -> Iterable[str]:
    yield searchable(message)
    if not isinstance(message.content, str):
        yield from (p.raw for p in message.content if isinstance(p, OtherPart))
        yield from (p.url for p in message.content if isinstance(p, ImagePart) and not p.url.startswith("data:"))


def material(span: Sequence[Message], earlier: Summary | None = None, known: Sequence[str] = ()) -> Material:
    """All that a summary of `span` may name: the span, the `earlier` summary, and `known` strings."""
    texts = [t for m in span for t in _all_text(m)]
    if earlier is not None:
        texts.extend(f"{i.key}\n{i.text}" for s in earlier.sections for i in s.items)
    texts.extend(known)
    return Material(texts)
