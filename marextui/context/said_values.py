"""Values that a sentence names: "the timeout is 30 s for login and 90 s for upload" (Part 2, 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from marextui.context.attributes import is_state
from marextui.context.fact_keys import AMOUNT, FILE_ENDING, ISO_DATE, NUMBER, UNIT, FactKind, Found, key_words
from marextui.context.fact_phrases import (
    HAS_CHANGED,
    holder_after,
    holder_before,
    is_identifier,
    moved,
    split_key,
    subject,
)
from marextui.context.search_words import STOP_WORDS, flat, stem

_PORT = re.compile(
    r"\b((?:[a-z]{2,20}[ _])?port)s?[\"']?(?: number)?\s{0,2}(?:is|to|was|at|on|est|=|:|:=)?\s{0,2}(?:now )?[\"']?"
    r"(\d{2,5})\b",
    re.IGNORECASE,
)
_HOST_PORT = re.compile(r"\b(localhost|0\.0\.0\.0|127\.0\.0\.1):(\d{2,5})\b")
_FROM_TO = re.compile(
    r"\b((?:[^\W\d](?:[\w'’-]|\.(?=\w)){0,40} ){1,4})(?:from|de) [\"'`]?[\w$€£%.:/-]{1,60}?"
    rf"{UNIT}[\"'`]? (?:to|à) [\"'`]?({AMOUNT}|[\w.:/-]{{0,60}}\d[\w.:/-]{{0,60}})"
)
_SAID = re.compile(
    r"(?<![\w-])((?:[^\W\d](?:[\w'’-]|\.(?=\w)){0,40} ){0,3}[^\W\d](?:[\w'’-]|\.(?=\w)){0,40})"
    rf"{HAS_CHANGED}(?: (?:is|are|was|to|of|at|be|by|est|sont|à|de|vaut|equals?|becomes?|passe|devient|ist|sind|wird"
    r"|auf|es|son|pasa a|cambia a)(?: (?:now|at most|at least|about|exactly|set to|of|maintenant|désormais|jetzt"
    r"|ahora)){0,2}|(?P<sign>[ ]?=[ ]?)|[ ]?:(?= ))[ ]?"
    rf"[`*\"]{{0,3}}(?P<amount>{AMOUNT})(?![\w/-])"
)
_SAID_NAME = re.compile(
    r"(?<![\w-])((?:[^\W\d][\w'’-]{0,40} ){1,4})(?P<verb>is|are|called|named|to|est|sont|s['’]appelle|becomes|devient"
    r"|ist|wird|auf|es|sur|à|a)(?P<now>(?: (?:now|called|named|maintenant|jetzt|ahora)){0,2}) (?:the )?"
    r"(?:(?P<q>[`\"'])(?P<quoted>[^`\"'\n]{1,80})(?P=q)|(?P<bare>[A-Za-z][\w./:@-]{2,80}))"
)
_NAME_LIKE = re.compile(r".*[\d_@]|.*\w[./]\w")
_ALSO = re.compile(rf"\s?(?:,|/|&|\b(?:and|or|et|ou|und|oder|y|o|e)\b)\s?(?:(?:and|et|und|y)\s)?({AMOUNT})(?![\w/-])")
_SEVERAL = 8
"""Most values read after one name."""


def _held_by(text: str, end: int, fact: Found) -> Iterator[Found]:
    """`fact`, whose value ends at `end`, and those that follow ("8080 for staging and 9090 for prod"), with holders.

    Nothing when two values stand there and nobody can say which of them is whose.
    """
    found: list[Found] = []
    value = fact.value
    for _ in range(_SEVERAL):
        holder, end = holder_after(text, end)
        holder = holder or fact.holder
        found.append(replace(fact, key=f"{holder} {fact.name}" if holder else fact.key, value=value, holder=holder))
        also = _ALSO.match(text, end)
        if also is None or (_unit(value) and _unit(also.group(1)) not in {_unit(value), ""}):
            break
        following = holder_after(text, also.end())[0]
        if not following and (_unit(also.group(1)) != _unit(value) or not _ENDS.match(text, also.end())):
            break
        value, end = also.group(1).strip(), also.end()
    if len({f.key for f in found}) == len(found):
        yield from found


_ENDS = re.compile(r"\s*(?:[.,;:!?)\n]|$)")


def _unit(value: str) -> str:
    return re.sub(r"[\d.,_\s-]", "", value).lower()


def ports_in(text: str, *, spoken: bool) -> Iterator[Found]:
    """Ports in `text`; `spoken`: a person's sentences, in which they have holders."""
    for m in _PORT.finditer(text):
        key = key_words(m.group(1)) or "port"
        if key == "port port":
            key = "port"
        fact = Found("port", key, m.group(2), named=True)
        if not spoken:
            yield fact
            continue
        start = m.end(1) - len("port") if key == "port" else m.start()
        holder = holder_before(text, start)
        name = f"{holder} {key}" if holder else key
        yield from _held_by(text, m.end(), replace(fact, key=name, holder=holder, moved=moved(text, start)))
    for m in _HOST_PORT.finditer(text):
        yield Found("port", m.group(1), m.group(2), named=True)


def _port_or(kind: FactKind, key: str) -> FactKind:
    return "port" if "port" in (key.split()[0], key.split()[-1]) else kind


def said_in(text: str) -> Iterator[Found]:
    """Values that phrases of `text` name."""
    for m in _FROM_TO.finditer(text):
        name, holder = split_key(subject(m.group(1))[0])
        key, value = key_words(name), m.group(2).rstrip(".,:")
        if key:
            whole = f"{holder} {key}" if holder else key
            yield from _held_by(text, m.end(), Found(_port_or("number", key), whole, value, named=True, holder=holder))
    for m in _SAID.finditer(text):
        sign = m.group("sign")
        last = m.group(1).split()[-1]
        if sign and (not sign.startswith(" ") or is_identifier(last)):
            continue  # an assignment: the word before the sign is the whole name
        name, holder = split_key(subject(m.group(1))[0])
        key = key_words(name)
        if not key or key.isdigit() or FILE_ENDING.search(m.group(1)):
            continue
        if key.split()[-1] == "port" and not holder:
            continue  # found as a port
        holder = holder or holder_before(text, m.start())
        value = m.group("amount").strip()
        kind = _port_or("number", key)
        yield from _held_by(
            text, m.end("amount"), Found(kind, f"{holder} {key}" if holder else key, value, named=True, holder=holder)
        )
    for m in _SAID_NAME.finditer(text):
        name, changed = subject(m.group(1))
        name, holder = split_key(name)
        key, value = key_words(name), m.group("quoted") or m.group("bare").rstrip(".:/")
        if not key or NUMBER.match(value) or ISO_DATE.match(value):
            continue
        if m.group("verb") in _TO_ONLY and not changed:
            continue
        known_only = not m.group("quoted") and not _NAME_LIKE.match(value)
        changed = changed or m.group("verb") in _BECOMES or bool(m.group("now"))
        if known_only and (not changed or stem(flat(value)) in STOP_WORDS or is_state(value)):
            continue
        holder = holder or holder_after(text, m.end())[0]
        yield Found(
            "setting", f"{holder} {key}" if holder else key, value, named=True, holder=holder, known_only=known_only
        )


_TO_ONLY = frozenset(("auf", "sur", "à", "a"))
_BECOMES = frozenset(("becomes", "devient", "wird"))
