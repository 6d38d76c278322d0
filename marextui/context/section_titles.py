"""Which heading of a reply means which section: comparison form, synonyms and translations (P6, I11)."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_SYNONYMS: dict[str, str] = {
    "session intent": (
        "intent|intention|goal|goals|objective|objectives|session goal|user intent|user goal|intention de la session"
        "|objectif|objectifs|objectif de la session|but de la session|sitzungsziel|ziel|absicht|objetivo"
        "|objetivo de la sesion|intencion de la sesion|obiettivo|obiettivo della sessione"
    ),
    "files modified": (
        "modified files|files changed|changed files|files|files touched|files created or modified|file changes"
        "|fichiers modifies|fichiers|fichiers changes|fichiers touches|fichiers crees ou modifies|geanderte dateien"
        "|archivos modificados|ficheiros modificados|arquivos modificados|file modificati"
    ),
    "decisions made": (
        "decisions|decision|key decisions|decisions taken|design decisions|decisions and constraints|decisions prises"
        "|decisions importantes|entscheidungen|getroffene entscheidungen|decisiones|decisiones tomadas|decisoes"
        "|decisoes tomadas|decisioni|decisioni prese"
    ),
    "current state": (
        "state|status|current status|present state|current situation|etat actuel|etat|situation actuelle|etat courant"
        "|aktueller stand|aktueller zustand|estado actual|estado atual|stato attuale"
    ),
    "next steps": (
        "next|next step|next actions|todo|to do|remaining work|remaining steps|pending tasks|open items"
        "|prochaines etapes|prochaine etape|etapes suivantes|a faire|reste a faire|nachste schritte|proximos pasos"
        "|proximos passos|prossimi passi"
    ),
}
_CANONICAL = {synonym: title for title, synonyms in _SYNONYMS.items() for synonym in synonyms.split("|")}


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """`text` for comparison: no accents, case, punctuation or Markdown; words separated by one blank."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", bare).split())


def canonical_title(title: str) -> str:
    """The comparable form of a section title; numbering is dropped, known synonyms and translations fall together."""
    bare = re.sub(r"^(?:section )?\d+ ", "", plain(title))
    return _CANONICAL.get(bare, bare)


def is_files(title: str) -> bool:
    """True for the section whose items are keyed by path (P10)."""
    return canonical_title(title) == "files modified"
