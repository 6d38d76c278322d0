"""Values and the names they go by: what a fact found in a text is, and how its key is made (Part 2, 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from marextui.context.search_words import STOP_WORDS, flat, stem

FactKind = Literal[
    "path", "symbol", "error", "number", "hash", "url", "setting", "constraint", "id", "version", "port", "date"
]


@dataclass(frozen=True, slots=True)
class Found:
    """A value in a text. `named`: the key names one place that holds one value, so a later value corrects it.

    `holder`: whose value it is ("for staging"), part of the key; `moved`: what may be one, if it is known as such.
    `denied`: the text says this is not so. `known_only`: it says something only of a name that has a value.
    """

    kind: FactKind
    key: str
    value: str
    named: bool = False
    holder: str = ""
    moved: str = ""
    denied: bool = False
    known_only: bool = False

    @property
    def name(self) -> str:
        """The key without the holder."""
        return self.key.removeprefix(f"{self.holder} ") if self.holder else self.key


UNIT = (
    r"(?:\s?(?:%|ms|µs|secs?|seconds?|secondes?|s|mins?|minutes?|hours?|heures?|h|days?|jours?|weeks?|months?|years?"
    r"|[kKMGT]i?B|[kKM]|bytes?|octets?|tokens?|lines?|lignes?|chars?|characters?|requests?|retries|attempts|users?|items?"
    r"|rows?|workers?|threads?|px|USD|EUR|dollars?|euros?|€|\$)(?![\w]))?"
)
AMOUNT = rf"(?:[$€£]\s?)?-?\d{{1,12}}(?:[.,_]\d{{1,12}}){{0,4}}{UNIT}"
NUMBER = re.compile(AMOUNT + r"$")
ISO_DATE = re.compile(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?Z?)?(?![\w-])")
FILE_ENDING = re.compile(r"\.(?:py|js|ts|tsx|go|rs|md|json|toml|yaml|yml|txt|css|html|java|c|h|cpp|rb|sh)$")
_KEY_FRAME = frozenset(
    stem(flat(w))
    for w in [
        "set",
        "change",
        "make",
        "keep",
        "use",
        "increase",
        "decrease",
        "raise",
        "lower",
        "put",
        "update",
        "please",
        "let",
        "lets",
        "bump",
        "reduce",
        "limit",
        "instead",
        "actually",
        "sorry",
        "correction",
        "wrong",
        "right",
        "new",
        "old",
        "current",
        "value",
        "now",
        "still",
        "mets",
        "mettre",
        "passe",
        "passer",
        "change",
        "changer",
        "remember",
        "garde",
        "remets",
    ]
)


@lru_cache(maxsize=8192)
def key_words(text: str) -> str:
    """A key for comparison: words of a name or a phrase in lower case, framing words left out; "" for none left."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    words = [w.lower() for w in re.split(r"[\s_.\-'’]+", spaced) if w]
    kept = [w for w in words if stem(flat(w)) not in STOP_WORDS and stem(flat(w)) not in _KEY_FRAME]
    return " ".join((kept or words if "_" in text else kept)[-4:])
