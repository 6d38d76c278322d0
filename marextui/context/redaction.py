"""Secrets are replaced before text reaches a disk or a second model (cases 135, 137; I10).

Three kinds of evidence: the published form of a key, its place (a bearer header, the password of an address, the body
of a private key), and a value assigned to a name that says what it holds. The last one asks the value for a sign of
being a secret, because code assigns to such names all day long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from marextui.context.private_keys import key_spans
from marextui.context.secret_forms import FORMS
from marextui.context.secret_places import cookie_spans
from marextui.context.secret_values import holds_secrets, is_secret_value

_SHORT, _LONG = 16, 64
"""Characters: below, and above which the placeholder tells the length class of what it stands for."""


def placeholder(kind: str, secret: str) -> str:
    """What stands for `secret`: its kind, a fingerprint by which equal secrets are recognised, its length class.

    A fingerprint of a short secret is two digits only: with more, a guess at a password could be confirmed.
    """
    digest = sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    if len(secret) < _SHORT:
        return f"[redacted: {kind} #{digest[:2]}, short]"
    return f"[redacted: {kind} #{digest[:4]}{', long' if len(secret) > _LONG else ''}]"


def redact(text: str) -> str:
    """`text` with secrets replaced by `[redacted: kind #3f2a]`; idempotent, everything else unchanged; linear in time.

    Placeholders, variables, type annotations and code expressions are left alone.
    """
    text = _replaced(text, "private key", key_spans(text))
    for form in FORMS:
        spans = [m.span("secret") for m in form.found_in(text) if "[redacted:" not in m.group("secret")]
        if spans:
            text = _replaced(text, form.kind, spans)
    text = _replaced(text, "cookie", cookie_spans(text))
    return _assignments(text)


def redact_value(name: str, value: str) -> str:
    """`value` as it stands under the key `name` of a JSON object: redacted as `name: "value"` would be in text."""
    clean = redact(value)
    if clean != value or "[redacted:" in value:
        return clean
    found = _NAME.search(_lower(name))
    if found and found.end() == len(name) and is_secret_value(name, found.group("word"), value, quoted=True):
        return placeholder(_kind(found.group("word")), value)
    return value


def _replaced(text: str, kind: str, spans: Iterable[tuple[int, int]]) -> str:
    out: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            out += [text[at:start], placeholder(kind, text[start:end])]
            at = end
    return "".join((*out, text[at:]))


_WORD = (
    r"(?P<word>pass(?:word|wd|phrase|wort|(?![a-z]|-[a-z]))|pwd|mot[ _-]de[ _-]passe|contrase[nñ]a|kennwort|wachtwoord"
    r"|senha|пароль|密码|密碼|パスワード|비밀번호|psk(?![a-z])|secret|credential|token|key)"
)
_NEEDLES = (
    *("pass", "pwd", "mot", "contrase", "kennwort", "wachtwoord", "senha", "пароль", "密码", "密碼", "パスワード"),
    *("비밀번호", "psk", "secret", "credential", "token", "key"),
)
"""How the words begin: text is searched for these first, which is a great deal faster."""
_SUFFIX = r"(?P<suffix>(?:(?![是为は])[\w-]){0,40}+)"
_NAME = re.compile(_WORD + _SUFFIX)
_IS = r"[ \t]{1,3}(?:is|was|est|ist|lautet|es|é|è)[ \t]{0,2}:?[ \t]{1,3}|[ \t]{0,2}[是为は][ \t]{0,2}"
_SIGN = r"\\{0,3}[\"'`*]{0,3}[)\]]?[ \t]{0,8}(?:=>|:=|==?|[:：])[ \t]{0,8}"
_ARGUMENT = r"[\"'][ \t]{0,4},[ \t]{0,4}(?=[\"'])"
_ASSIGNED = re.compile(
    _WORD + _SUFFIX + rf"(?P<op>{_SIGN}|{_ARGUMENT}|{_IS}|[ \t]{{1,4}})" + r"(?P<quote>\\{0,3}[\"'`])?"
)
_BARE = re.compile(r"[^\s\"'`,;&|(){}\[\]<>]{4,4096}+")
_QUOTED_MAX = 4096
_LEFT = 48
_LEFT_NAME = re.compile(
    r"(?:(?i:api|access|auth|secret|private|license|signing|encryption|account|master|service|shared) )?[\w.-]*\Z"
)
_OWN_PASS = re.compile(r"(?:db|user|smtp|mail|ftp|mysql|pg|root|admin)\Z", re.IGNORECASE)


def _lower(text: str) -> str:
    """Lower case with every character in its place (a capital dotted I would become two)."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _kind(word: str) -> str:
    return "secret" if word.startswith(("secret", "credential", "token", "key")) else "password"


_FULL_OF_NAMES = 200
"""Characters above which a value that was no secret is passed over whole: what hides in it costs linear time then."""


def _assignments(text: str) -> str:
    """Values assigned to names such as `password` or `API_KEY`, in code, settings, JSON, flags and plain words."""
    lowered = _lower(text)
    out: list[str] = []
    at = passed = 0
    known: dict[tuple[str, str, bool, bool], bool] = {}
    for found in _named(lowered):
        word = found.group("word")
        if found.start() < passed or not holds_secrets(word, found.group("suffix")):
            continue
        left = _LEFT_NAME.search(text, max(0, found.start() - _LEFT), found.start())
        before = left.group() if left else ""
        if word in ("pass", "psk") and before[-1:].isalpha() and not _OWN_PASS.search(before):
            continue  # compass, bypass
        name = before + text[found.start() : found.start("op")]
        op, start = found.group("op"), found.end()
        flag = not op.strip()
        if flag and not name.startswith("--"):
            continue
        if "," in op and not _is_quoted_name(text, found.start() - len(before), name):
            continue
        quoted = found.group("quote") is not None
        value = _value(text, start, found.group("quote") or "")
        setting = flag or (op == "=" and not quoted)
        question = (name, value, quoted, setting)
        if question not in known:
            known[question] = bool(value) and is_secret_value(name, word, value, quoted=quoted, setting=setting)
        if known[question]:
            out += [text[at:start], placeholder(_kind(word), value)]
            at = passed = start + len(value)
        elif len(value) > _FULL_OF_NAMES:
            passed = start + len(value)
    return "".join((*out, text[at:]))


def _named(lowered: str) -> Iterator[re.Match[str]]:
    """What may be an assignment to a telling name, in order."""
    places = sorted({m for needle in _NEEDLES for m in _places(lowered, needle)})
    end = 0
    for at in places:
        found = _ASSIGNED.match(lowered, at) if at >= end else None
        if found is not None:
            end = found.end()
            yield found


def _places(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _is_quoted_name(text: str, start: int, name: str) -> bool:
    """Whether `name` stands in quotes alone, as in `setdefault("DB_PASSWORD", "…")`, and is written like a setting."""
    return start > 0 and text[start - 1] in "\"'" and ("_" in name or name.isupper() or name.lower().endswith("word"))


def _value(text: str, start: int, quote: str) -> str:
    """What is assigned at `start`: up to the closing quote, else as far as a bare word goes; "" for none, or code."""
    if quote:
        end = text.find(quote, start, start + _QUOTED_MAX)
        value = text[start:end] if end > start else ""
        return "" if "\n" in value or "[redacted:" in value else value
    bare = _BARE.match(text, start)
    if bare is None or text[bare.end() : bare.end() + 1] in ("(", "["):
        return ""  # a call or a subscription
    return bare.group().rstrip(".:")
