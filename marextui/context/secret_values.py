"""Is this value a secret, or is it code, a variable, a label, an example? (cases 135, 137; I10)"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from itertools import pairwise

_STAND_IN = re.compile(
    r"\[redacted|\$|\{|<|%[\w({]|@\w+@?$|your[_ -]|change[_ -]?me|replace[_ -]|example$|placeholder|todo\b"
    r"|x{3,}|\*{2,}|\.{3}|…|-{3,}|_{3,}|enter |insert |none\b|null\b|nil\b|true\b|false\b|undefined\b|os\.|env[.(\[:]"
    r"|process\.|getenv|config|self\.|this\.|settings|secrets?\.|args\.|options\.|str\b|string\b|int\b|bool\b|bytes\b"
    r"|any\b|optional\b|https?://|file:|vault:|arn:|op://|/[\w.-]+/|~/|\./|[A-Za-z]:\\",
    re.IGNORECASE,
)
_NOT_HELD = re.compile(
    r"s?[_-]?(?:types?|names?|fields?|counts?|len(?:gth)?|ids?|ur[il]s?|endpoints?|paths?|files?|dir|labels?|hints?|prompts?"
    r"|polic(?:y|ies)|expir\w*|ttl|limits?|usage|budget|min|max\w*|env|var\w*|regex|pattern|re|format|index|pos\w*"
    r"|kind|class|mode|size|rotation|timeout|lifetime|scopes?|source|provider|managers?|store|ref|arn|input|required"
    r"|placeholder|s|izer\w*|ize\w*|ization|_?at|version|vault|header|prefix|suffix|param\w*)$",
    re.IGNORECASE,
)
"""Endings of a name that make it tell about the secret instead of holding it: `token_type`, `secretName`, `tokens`."""

_KEY_OF = re.compile(
    r"(?:api|access|account|auth|private|secret|signing|encryption|master|service|shared|app|application|session|license"
    r"|webhook|deploy|storage|hmac|jwt|csrf|admin)[_. -]?\Z",
    re.IGNORECASE,
)
"""What makes the word key one that opens something."""

_SPEAKING = re.compile(
    r"pass(?:word|wd|phrase)?|secret|token|key|credential|user|login|auth|field|input|label|value|name|email|account",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(?=[A-Za-z_]{0,77}?(?:[a-z]{3}|[A-Z_]{3}))[A-Za-z_]{3,80}\d?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+\(?\)?;?")
_VERSION = re.compile(r"[v^~=]*\d+(?:[.:-]\d+){1,5}[\w.+-]{0,16}")
_PLAIN_WORDS = re.compile(r"[A-Za-zÀ-ÿ' ,.!?:;()-]+")


def entropy(text: str) -> float:
    """Bits per character by the frequencies in `text` itself; 0 for one character repeated."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) if total else 0.0


def looks_random(value: str) -> bool:
    """True when `value` has digits among its letters, or a mixture of cases no word has, and is not a stand-in."""
    core = value.strip("=")
    if _STAND_IN.match(value) or entropy(core) < 0.9:
        return False
    digits = sum(c.isdigit() for c in core)
    if digits and digits < len(core):
        return True
    switches = sum(a.islower() and b.isupper() for a, b in pairwise(core))
    return digits == 0 and switches >= 3 and switches * 8 >= len(core) and " " not in core


def is_header_value(value: str) -> bool:
    """True for what follows `Authorization: Bearer`, unless it is a variable or a word."""
    return not _STAND_IN.match(value) and not _IDENTIFIER.fullmatch(value) and not _is_expression(value)


def _is_expression(value: str) -> bool:
    """`config.token`, `user.name()`: names joined by dots; a random token may have dots too, and long random parts."""
    if not _DOTTED.fullmatch(value):
        return False
    return not any(len(part) >= 12 and looks_random(part) for part in value.split("."))


def is_published(value: str) -> bool:
    """False for the keys that manuals show (they end in EXAMPLE)."""
    return "EXAMPLE" not in value


def is_login_pair(value: str) -> bool:
    """True for base64 of `user:password`."""
    try:
        pair = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return False
    user, colon, password = pair.partition(":")
    return bool(user and colon and password) and pair.isprintable() and not _STAND_IN.match(password)


def is_typed_password(value: str) -> bool:
    """True for a value in the place of a password, when it is neither a stand-in nor a plain word or name."""
    if _STAND_IN.match(value) or _IDENTIFIER.fullmatch(value) or _is_expression(value) or _VERSION.fullmatch(value):
        return False
    return any(c.isdigit() for c in value) or bool(re.search(r"[^\w\s./:,-]", value))


def is_url_password(value: str) -> bool:
    """True for the password part of an address, unless it is a variable or the word itself."""
    return not _STAND_IN.match(value) and not re.fullmatch(
        r"(?:pass(?:word|wd)?|pwd|pw|secret|token|user(?:name)?|\*+|\.+)\d?", value, re.IGNORECASE
    )


def holds_secrets(word: str, suffix: str) -> bool:
    """False when what follows the telling `word` of a name says that it only tells about a secret: `token_type`."""
    return not suffix or not _NOT_HELD.fullmatch(suffix)


def is_secret_value(name: str, word: str, value: str, *, quoted: bool, setting: bool = False) -> bool:
    """Whether `value`, assigned to `name` (which holds the telling `word`, lower case), is a secret.

    `quoted`: it stood in quotes, so it is a text and no expression. `setting`: written as in a settings file or a
    command line (`NAME=value`, `--name value`), where a value needs no quotes.
    """
    strong = not word.startswith(("token", "key"))
    if len(value) < ((4 if quoted else 6) if strong else 12) or name in {"PWD", "OLDPWD"}:
        return False
    if _STAND_IN.match(value) or not holds_secrets(word, name[name.lower().rfind(word) + len(word) :]):
        return False
    before = name[: name.lower().rfind(word)]
    if word == name.lower() == "pass" and not quoted and not setting:
        return False  # `PASS: tests/test_1.py`
    if word == "key" and not _KEY_OF.search(before):
        return False
    letters, digits = any(c.isalpha() for c in value), any(c.isdigit() for c in value)
    if _is_expression(value) or (_VERSION.fullmatch(value) and not letters):
        return False
    if not strong:
        return " " not in value and not _IDENTIFIER.fullmatch(value) and looks_random(value)
    if _IDENTIFIER.fullmatch(value) and (_SPEAKING.search(value) or not (quoted or setting)):
        return _is_variant(value) and (quoted or setting)
    if digits:
        return letters or len(value) >= 8 or quoted or setting
    if setting and not quoted:
        return name == name.upper() and not _SPEAKING.search(value)
    if " " in value or _SPEAKING.search(value):
        return False
    if re.search(r"[^\w\s./:,-]", value):
        return len(value) >= 8
    return not _PLAIN_WORDS.fullmatch(value) or looks_random(value) or len(value) >= 20


def _is_variant(value: str) -> bool:
    """`Password1`: a telling word made into a password by a capital and a digit."""
    return value[:1].isupper() and value[-1:].isdigit()
