"""How a sentence says a value: what it forbids, whose value it is, and the verbs that only say it changed (Part 2, 2).

In doubt a sentence names no value: an entry that is missing can be recalled, a wrong one is believed.
"""

from __future__ import annotations

import re

from marextui.context.search_words import STOP_WORDS, flat, stem

_SENTENCE = re.compile(r"[^\n.!?;…。！？]*(?:[.!?…](?![\s\"')]|$)[^\n.!?;…。！？]*)*[.!?;…。！？\n]?")
_HOLDS = r"(?:change|touch|modif\w+|alter|forget|exceed|oublie[zr]?|d[ée]passe[zr]?|vergiss|[äa]nder\w*)\b"
_TURN = re.compile(
    r"(?<=[,:–—])\s(?=(?:but|use|prefer|take|sondern|mais|utilise[zr]?|prends|nimm|verwende|sino|usa)\b)"
    r"|\s(?=but\s|sondern\s)"
    rf"|,\s(?=(?:and\s|so\s)?(?:do(?:n['’]?t| not)|never|please don['’]?t|ne)\s{_HOLDS})",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:,\s?(?:and\s|et\s|und\s|y\s)?(?:not|no longer|nicht(?: mehr)?|pas|plus|no|non|never|jamais|nie)"
    r"|\s(?:instead of|rather than|au lieu d[e'’]|plut[ôo]t que|anstatt|statt|en vez de|en lugar de))"
    r"(?:\s[^\s,;]{1,40}){1,4}(?=[,;.!?]|\s*$)",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:never(?: again)?|(?:do|does|must|should|may|can|is|are|was|will|would)(?:n['’]?t| not)|cannot|dont|no longer"
    r"|not|neither|nor|avoid(?:ing)?|forbidden|prohibited|refrain from|stop(?= (?:using|listening|setting))"
    r"|quit(?= using)|jamais|n['’](?=\w)|ne(?=\s)|pas|[ée]vite[zr]?|interdit(?:e|s|es)?|arr[êe]te[zr]?(?= d)"
    r"|cesse[zr]?(?= d)"
    r"|niemals|nie|nicht|kein(?:e[nmrs]?)?|vermeide[nt]?|verboten"
    r"|nunca|jam[áa]s|no(?= (?:us|utili|pong|emple|debe|puede|es )\w*)|evita[r]?|prohibid[oa]|n[ãa]o|nem|vietato)\b"
    r"|不要|禁止|しないで|不是|别用",
    re.IGNORECASE,
)
_HOLD = re.compile(rf"\b{_HOLDS}", re.IGNORECASE)
"""What is not to be done with a value that holds."""


def stated(text: str) -> tuple[str, str]:
    """(what `text` says, what it denies or forbids); of equal length, the rest blank.

    "Use 9090, not 8080": the tail is denied. "Never use port 8081": all of it.
    """
    if not _NOT.search(text) and not _TAIL.search(text):
        return text, ""
    told: list[str] = []
    denied: list[str] = []
    for sentence in _SENTENCE.finditer(text):
        start = 0
        whole = sentence.group()
        for cut in (*(m.start() for m in _TURN.finditer(whole)), len(whole)):
            piece, start = whole[start:cut], cut
            rest = _TAIL.sub(lambda m: " " * len(m.group()), piece)
            if _NOT.search(rest):
                told.append(_blank(piece))
                denied.append(_blank(piece) if _HOLD.search(rest) else _NOT.sub("", rest))
            else:
                told.append(rest)
    return "".join(told), re.sub(r"[ \t]{2,}", " ", "".join(denied))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


_BE = r"(?:has|have|had|is|are|was|were|will|shall|should|be|been|gets?|got|a|est|sera|wird|wurde|ist|se|sich|ha|es)"
_CHANGE = (
    r"(?:mov(?:es?|ed|ing)|chang(?:es?|ed|ing)|switch(?:es|ed)?|go(?:es|ne)?|went|becomes?|became|set|updated?|rais(?:es?|ed)"
    r"|lower(?:s|ed)?|bump(?:s|ed)?|increas(?:es?|ed)|reduc(?:es?|ed)|passe(?:nt)?|pass[ée]e?|devien(?:t|nent)|d[ée]m[ée]nage"
    r"|migr\w{1,5}|wechselt|[äa]ndert|ge[äa]ndert|umgezogen|zieht|pasa|cambia|muda|pas[óo]|cambi[óo])"
)
_CHANGED = re.compile(
    rf"(?:\s{_BE})*(?:\s(?:now|jetzt|nun|maintenant|d[ée]sormais|ahora))*(?:\s{_CHANGE})(?:\s(?:now|sich|over))*\s*$",
    re.I,
)
_NOW = re.compile(rf"\s(?:{_BE}\s)?(?:now|jetzt|nun|maintenant|d[ée]sormais|ahora)\s*$", re.I)
_BEING = re.compile(rf"(?:\s{_BE})+\s*$", re.IGNORECASE)
HAS_CHANGED = rf"(?:(?: {_BE}){{0,2}} {_CHANGE})?"
"""Between a name and "to": "has been changed"."""
_ORDER = re.compile(
    r"^(?:(?:please|now|then|also|so|and|remember|note|that|ok)\s)*"
    r"(?:move|migrate|switch|remember|note|retiens|merke?|recuerda|d[ée]place|mueve|cambia|pon)\s(?:that\s|que\s)?",
    re.I,
)


_ARTICLE = re.compile(r"^(?:der|die|das|den|el|los|las|la|il|lo|o)\s", re.IGNORECASE)


def subject(words: str) -> tuple[str, bool]:
    """`words` before a value without the verbs that only say it changed, and whether there were such verbs."""
    bare = re.sub(r"['’]s\b", "", words.strip())
    short = _CHANGED.sub("", " " + bare).strip()
    changed = short != bare
    short = _BEING.sub("", _NOW.sub("", " " + short)).strip()
    order = _ORDER.sub("", short)
    return _ARTICLE.sub("", order or short), changed or order != short


_FOR = r"(?:for|in|f[üu]r|im|pour|dans|en|para)"
_THE = r"(?:(?:the|our|my|le|la|les|l['’]|der|die|das|den|dem|el|los|las)\s?(?<=[\s'’]))?"
_WORD = r"[^\W\d][\w-]{1,30}"
_AFTER = re.compile(
    rf"(?:\sper\s\w{{1,20}}|/\w{{1,20}})?\s(?:is\s)?{_FOR}\s{_THE}({_WORD})(?:\s({_WORD}))?", re.IGNORECASE
)
_OWNER = re.compile(rf"({_WORD})['’]s?\s$")
_LEADING = re.compile(rf"(?:^|[.,;:\n]\s?|\s(?:and|et|und|y)\s){_FOR}\s{_THE}({_WORD}),?\s{_THE}$", re.IGNORECASE)
_MOVED = re.compile(
    rf"\b(?:move|switch|put|change|set|bind|d[ée]place|passe|mets|mueve|cambia)\s{_THE}({_WORD})\s(?:over\s)?"
    r"(?:to|on|onto|at|sur|au|auf|a|al)\s(?:the\s)?$",
    re.IGNORECASE,
)
_KEY_FOR = re.compile(rf"(.{{2,80}}?)\s{_FOR}\s{_THE}({_WORD}(?:\s{_WORD})?)$", re.IGNORECASE)
_FOR_KEY = re.compile(rf"{_FOR}\s{_THE}({_WORD})\s{_THE}(.{{2,80}})$", re.IGNORECASE)
_NOBODY_WORDS = """
    now total all each every this that these those it me us you them him her a an one moment time example instance case
    order place use fact general today tomorrow what which good sure least most testing addition short practice both
    instant cas total tout moment exemple general ce cette jetzt moment fall gesamt ahora total caso ejemplo
"""
_NOBODY = frozenset(_NOBODY_WORDS.split())
_JOIN_WORDS = "and or but et ou mais und oder aber y o pero e with at to is are if when so because then now"
_JOINS = frozenset(_JOIN_WORDS.split())


def _holder(*words: str | None) -> str:
    kept: list[str] = []
    for word in words:
        low = (word or "").lower()
        if not low or low in _JOINS or low in _NOBODY or stem(flat(low)) in STOP_WORDS:
            break
        kept.append(low)
    return " ".join(kept)


def holder_after(text: str, end: int) -> tuple[str, int]:
    """(whose value stands before `end`: "… for staging", where that phrase ends); ("", `end`) when nobody is named."""
    found = _AFTER.match(text, end)
    if found is None:
        return "", end
    last = found.end(2) if found.group(2) else found.end(1)
    if re.match(r"[\w-]*[./@]\w", text[last:]):
        return "", end  # "in config.toml": where it stands, not whose it is
    first = _holder(found.group(1))
    both = _holder(found.group(1), found.group(2)) if first else ""
    return both, end if not both else found.end(2) if " " in both else found.end(1)


def holder_before(text: str, start: int) -> str:
    """Whose value the name at `start` is: "prod's …", "in prod the …"."""
    before = text[max(0, start - 80) : start]
    found = _OWNER.search(before) or _LEADING.search(before)
    return _holder(found.group(1)) if found else ""


def moved(text: str, start: int) -> str:
    """What is moved to the value named at `start`: "move prod to …"; it may be a holder or the thing itself."""
    found = _MOVED.search(text[max(0, start - 80) : start])
    return _holder(found.group(1)) if found else ""


def split_key(words: str) -> tuple[str, str]:
    """(name, holder) of "timeout for login", "for login the timeout"; the holder is "" when none is named."""
    found = _KEY_FOR.match(words)
    if found and (holder := _holder(*found.group(2).split())):
        return found.group(1), holder
    found = _FOR_KEY.match(words)
    if found and (holder := _holder(found.group(1))):
        return found.group(2), holder
    return words, ""


def is_identifier(word: str) -> bool:
    """Whether `word` is a name by itself, so that the words before it are not part of it."""
    return bool(re.search(r"[\d_.]|[a-z][A-Z]", word)) or word.isupper()
