"""What an exact fact looks like in a text: values with the names they go by (Part 2, 2).

Every expression is bounded and runs over `speech.tame` text, so that no input makes it slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from marextui.context.fact_keys import FILE_ENDING, ISO_DATE, NUMBER, FactKind, Found, key_words
from marextui.context.fact_phrases import is_identifier, stated, subject
from marextui.context.facts import paths
from marextui.context.outcomes import errors_in
from marextui.context.said_values import ports_in, said_in
from marextui.context.search_words import flat

_A_LISTING = 5
_PER_KIND = 200
"""Most facts of one kind taken from one text: the first ones."""

_DIGIT = re.compile(r"\d")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`)\]}\\,|]{1,280}", re.IGNORECASE)
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_HASH = re.compile(r"(?<![\w-])(?=[0-9a-f]{0,63}\d)(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}(?![\w-])")
_HASH_LENGTHS = frozenset({*range(7, 13), 32, 40, 64})
_TICKET = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,9}-\d{1,7}(?:-\d{1,7})?(?![\w-])")
_CODE_ID = re.compile(r"(?<![\w-])(?=[A-Z0-9]{0,11}\d)(?=[A-Z0-9]{0,11}[A-Z])[A-Z0-9]{5,12}(?![\w-])")
_NO_ID = re.compile(
    r"(?:SHA|UTF|BASE|ISO|AES|RSA|U?INT|FLOAT|MD|HTTP|TLS|SSL|RFC|PEP|FP|GPT|X|ARM|AMD|WIN|MP|UTC|GMT|IPV|ED|H|P)-?\d+"
)
_NUMBERED = re.compile(
    r"\b((?:issue|pr|pull request|merge request|ticket|bug|order|invoice|case|commande|facture|incident)s?)"
    r"(?: (?:number|no\.?|id|n[°º]))?\s?(?:is )?#?\s?(#?[A-Z]{0,3}\d{2,12})\b",
    re.IGNORECASE,
)
_NAMED_ID = re.compile(
    r"(?:(?<![a-zA-Z])id|ID|(?<=[a-z])Id|(?<![a-zA-Z])(?:[Nn]umber|num[ée]ro))[\"']?(\s?(?:is|est|:|=)?\s?)[\"'#*`]{0,3}"
    r"([A-Za-z0-9#][\w-]{3,63})(?![\w-])"
)
_ID_OWNER = re.compile(r"(?<![\w.])(?:[A-Za-z]{2,20}[_ -]?){0,2}$")
_OPERATED_VERSION = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.-]{1,40})(?:\[[\w,]{1,40}\])?\s?(?:===?|>=|~=|<=|@\^?|@~)\s?v?(\d{1,6}(?:\.\d{1,6}){0,3}(?:[\w.+-]{0,12}\w)?)"
)
_PLAIN_VERSION = re.compile(
    r"(?<![\w.-])([A-Za-z][\w.]{1,40}(?:-[a-z]\w{0,30}){0,3})(?: version|/|\"?: \"[\^~]?)?[ -]?v?"
    r"(\d{1,4}\.\d{1,4}\.\d{1,6}(?:[-.]?(?:rc|alpha|beta|dev|post|a|b)\.?\d{0,4})?)(?![\w.]*\.?\d)"
)
_SHORT_VERSION = re.compile(
    r"\b(python|node(?:js)?|go|golang|rust|java|ruby|php|postgres(?:ql)?|mysql|redis|django|react|vue|angular|typescript"
    r"|kubernetes|terraform|version)(?: is| est)? v?(\d{1,3}(?:\.\d{1,4}){1,2}|\d{1,3})(?![\w.]*\d)\b",
    re.IGNORECASE,
)
_MONTHS = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}|janvier|f[ée]vrier|mars|avril|mai|juin|juillet|ao[ûu]t"
    r"|septembre|octobre|novembre|d[ée]cembre"
)
_WORD_DATE = re.compile(
    rf"\b(?:(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}(?:er|st|nd|rd|th)? (?:{_MONTHS})(?: \d{{4}})?)\b",
    re.IGNORECASE,
)
_DATE_NAME = re.compile(
    r"((?:[^\W\d][\w'’-]{0,30} ){1,4})(?:is|was|are|on|by|to|until|est|au|:)(?: (?:now|on|le))?[ ]?$"
)
_SETTING = re.compile(
    r"(?<![\w.$/@-])(?P<q>[\"']?)(?P<key>[A-Za-z_][\w.-]{1,60})(?P=q)"
    r"(?P<op>[ \t]{0,2}(?::=|=>|=(?![=>])|:(?![:/]))[ \t]{0,3})"
    r"(?P<value>\"[^\"\n]{1,120}\"|'[^'\n]{1,120}'|[^\s,;(){}\[\]<>\"'`=|]{1,120})(?=[\s,;)}\]]|$)"
)
_WORDS_BEFORE = re.compile(r"(?:(?<![\w-])[^\W\d][\w'’-]{0,30} ){1,2}$")
_PLAIN_VALUE = re.compile(r"(?:true|false|null|none|yes|no|on|off)$|.*[\d/]|.*\w[.-]\w", re.IGNORECASE)
_BACKTICKED = re.compile(r"(?<!`)`([A-Za-z_][\w.]{2,80})(\(\))?`(?!`)")
_LINE_NUMBER = re.compile(r"^[ \t]{0,8}\d{1,7}[ \t]?(?:→|\t|\||:)", re.MULTILINE)
_SED = re.compile(r"[\d,$]{0,12}[sy]/")
_DAY = re.compile(r"\d{1,4}/\d{1,2}(?:/\d{1,4})?")
_SAID_SYMBOL = re.compile(
    r"(?<![\w/.-])(?:[a-z]\w{0,40}_\w{1,60}|[a-z]{1,30}[A-Z]\w{1,60}|[A-Z][a-z]\w{0,30}[A-Z]\w{1,60})(?![\w/-])"
)
_ERROR_NAME = re.compile(r"(?:Error|Exception)$")
_DEFINED = re.compile(
    r"^[\s\d→|:]{0,16}(?:export |public |private |static |async |pub |abstract ){0,3}"
    r"(?:def|class|func|fn|function|struct|interface|enum|trait|type)\s(?:\([^)\n]{0,80}\)\s)?([A-Za-z_]\w{2,60})",
    re.MULTILINE,
)
_DULL = frozenset({"file", "directory", "note", "file name", "path", "dir", "output", "file path", "name", "type"})
"""Keys of tool output that say nothing by themselves."""


def _bare(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value.rstrip(".:!?")


def _settings(text: str, *, prose: bool, loose: bool) -> Iterator[Found]:
    for m in _SETTING.finditer(text):
        raw, op = m.group("value"), m.group("op")
        value, key = _bare(raw), key_words(m.group("key"))
        if (
            len(value.strip()) < (1 if value.isdigit() else 2)
            or len(key) < 2
            or key.endswith((" id", "line number"))
            or key in {"id", "line"}
        ):
            continue
        if FILE_ENDING.search(m.group("key")) or (op == ":" and not m.group("q")):
            continue
        if (not loose and not m.group("key").isupper()) or (not prose and key in _DULL):
            continue
        if prose and " " in op.partition("=")[0] and not m.group("q") and not is_identifier(m.group("key")):
            if NUMBER.match(value):
                continue  # `said_in` reads the words before it and the unit behind it
            before = _WORDS_BEFORE.search(text[max(0, m.start() - 70) : m.start()].rpartition("\n")[2])
            key = key_words(subject((before.group() if before else "") + m.group("key"))[0]) or key
        plain = bool(_PLAIN_VALUE.match(value))
        literal = raw[0] in "\"'" or plain
        assigned = "=" in op and (op == "=" or m.group("key").isupper())
        if not literal and not assigned:
            if prose or ":" not in op or m.group("q"):
                continue
            line_start = text.rfind("\n", 0, m.start()) + 1
            end = text.find("\n", m.end())
            if text[line_start : m.start()].strip(" -") or text[m.end() : end if end != -1 else len(text)].strip():
                continue  # only a whole `key: value` line
        if NUMBER.match(value):
            kind: FactKind = "port" if key.split()[-1] == "port" else "number"
        else:
            kind = "setting"
        if not (kind == "setting" and (ISO_DATE.fullmatch(value) or _URL.match(value))):
            yield Found(kind, key, value, named=True)
        elif ISO_DATE.fullmatch(value):
            yield Found("date", key, value, named=True)


def _dates(text: str) -> Iterator[Found]:
    for pattern in (ISO_DATE, _WORD_DATE):
        for m in pattern.finditer(text):
            before = _DATE_NAME.search(text[max(0, m.start() - 140) : m.start()].rpartition("\n")[2])
            key = key_words(before.group(1)) if before else ""
            yield Found("date", key or m.group(), m.group(), named=bool(key))


def _versions(text: str) -> Iterator[Found]:
    for pattern in (_OPERATED_VERSION, _PLAIN_VERSION, _SHORT_VERSION):
        for m in pattern.finditer(text):
            key = flat(m.group(1)).removesuffix("-").removesuffix(" version")
            if key not in {"in", "at", "to", "from", "line", "took"}:
                yield Found("version", key, m.group(2), named=True)


def _ids(text: str, *, prose: bool) -> Iterator[Found]:
    for m in _NUMBERED.finditer(text):
        yield Found("id", flat(m.group(1)), m.group(2))
    for m in _NAMED_ID.finditer(text):
        value, stated = m.group(2), m.group(1).strip()
        if not any(c.isdigit() for c in value) or _NO_ID.fullmatch(value) or not (stated or not value.isdigit()):
            continue
        owner = _ID_OWNER.search(text[max(0, m.start() - 42) : m.start()].rpartition("\n")[2])
        name = (owner.group() if owner else "") + re.match(r"[A-Za-zé]*", m.group()).group()  # type: ignore[union-attr]
        if not name.lower().startswith("line"):
            yield Found("id", key_words(name) or flat(name), value, named=prose and bool(stated))
    for pattern in (_UUID, _TICKET, _CODE_ID):
        for m in pattern.finditer(text):
            if not _NO_ID.fullmatch(m.group()):
                yield Found("id", m.group(), m.group())
    for m in _HASH.finditer(text):
        if len(m.group()) in _HASH_LENGTHS:
            yield Found("hash", m.group(), m.group())


def _symbols(text: str, *, prose: bool) -> Iterator[Found]:
    if not prose:
        yield from (Found("symbol", m.group(1), m.group(1)) for m in _DEFINED.finditer(text))
        return
    for m in _BACKTICKED.finditer(text):
        name = m.group(1)
        if (
            not FILE_ENDING.search(name)
            and not _ERROR_NAME.search(name)
            and (m.group(2) or re.search(r"[._A-Z\d]", name))
        ):
            yield Found("symbol", name, name)
    for m in _SAID_SYMBOL.finditer(text):
        if not _ERROR_NAME.search(m.group()):
            yield Found("symbol", m.group(), m.group())


def _paths(text: str) -> Iterator[Found]:
    for path in paths(text):
        if "[" in path or "]" in path:
            path = path.strip("[]") if path.count("[") != path.count("]") else path
        if path and not _SED.match(path) and not _DAY.fullmatch(path):
            yield Found("path", path, path)


def _errors(text: str) -> Iterator[Found]:
    lines = [e for e in errors_in(text, limit=20) if len(e) <= 300]
    for line in lines:
        if not any(line != other and line.endswith(other) for other in lines):
            yield Found("error", line, line)


def _capped(found: Iterable[Found]) -> Iterator[Found]:
    counts: dict[str, int] = {}
    for fact in found:
        counts[fact.kind] = counts.get(fact.kind, 0) + 1
        if counts[fact.kind] <= _PER_KIND:
            yield fact


@lru_cache(maxsize=1024)
def facts_in(
    text: str, *, prose: bool, source: bool = False, config: bool = False, spoken: bool = False
) -> tuple[Found, ...]:
    """Facts of a `tame` text, each once, by kind.

    `prose`: a person or a model wrote it, so phrases name values too. `source`: source code, as is any listing with
    line numbers that is no `config` file; there only constants in capitals count as settings. `spoken`: no prose, but
    a person's sentences may stand in it. Remembered: everything
    since the beginning of the log is looked through at every compaction.
    """
    return tuple(dict.fromkeys(_capped(_all(text, prose=prose, loose=not source, config=config, spoken=spoken))))


def _all(text: str, *, prose: bool, loose: bool, config: bool, spoken: bool) -> Iterator[Found]:
    if not prose:
        text, numbered = _LINE_NUMBER.subn("", text)
        loose = loose and (config or numbered < _A_LISTING)
    for m in _URL.finditer(text) if "://" in text else ():
        url = m.group().rstrip(".,;:!?")
        yield Found("url", url, url)
    bare = _URL.sub(" ", text) if "://" in text else text
    told, denied = stated(bare) if prose or spoken else (bare, "")
    files = {found.value: found for found in _paths(bare)}
    yield from files.values()
    yield from _errors(bare)
    ids: dict[str, Found] = {}
    for found in _ids(_with_digits(bare), prose=prose):
        ids.setdefault(found.value, found)
    yield from ids.values()
    for found in _named(told, prose=prose, loose=loose, spoken=prose or spoken):
        if found.value not in ids and found.value not in files:
            yield found
    if prose and denied.strip():
        yield from (replace(f, denied=True) for f in _named(denied, prose=True, loose=loose, spoken=True) if f.named)
    yield from (found for found in _symbols(bare, prose=prose) if found.value not in ids)


def _with_digits(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if _DIGIT.search(line))


def _named(text: str, *, prose: bool, loose: bool, spoken: bool) -> Iterator[Found]:
    """Values with the names they go by."""
    digits = _with_digits(text)
    yield from _versions(digits)
    yield from ports_in(digits, spoken=spoken)
    yield from _settings(text, prose=prose, loose=loose)
    if prose:
        yield from said_in(text)
        yield from _dates(digits)
