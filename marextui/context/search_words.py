"""What search knows of words: stems, stop-words, words that stand for each other, what a question expects."""

from __future__ import annotations

import re
import unicodedata


def flat(text: str) -> str:
    """Lower case, accents dropped."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


def stem(word: str) -> str:
    """A light English and French stem: plural, -ing, -ed; words with digits or signs stay whole."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, minimum in (("ies", 5), ("sses", 6), ("ing", 6), ("ied", 5), ("ed", 5), ("ment", 8), ("ly", 6)):
        if word.endswith(ending) and len(word) >= minimum:
            base = word[: -len(ending)]
            if ending in {"ies", "ied"}:
                return base + "y"
            if ending == "sses":
                return base + "ss"
            if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "sl":
                base = base[:-1]
            return base.removesuffix("e") if len(base) > 3 else base
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


_STOP = """
    a an and are as at be been being but by can could did do does doing for from had has have having he her him his how
    i if in into is it its itself just let like may me might more most must my no nor not of off on once only or other
    our out over own please s same shall she should so some such t than that the their them then there these they this
    those through to too under until up us very was we were what when where which while who whom why will with would you
    your about after again all also am any before below between both during each few further here now one exactly
    finally currently ever ask asked tell told say said mention mentioned happen happened answer question
    au aux avec ce ces cet cette dans de des du elle elles en est et eu il ils je la le les leur lui ma mais mes moi mon
    ne nos notre nous on ont ou par pas pour qu que quel quelle quelles quels qui sa se ses son sont sur ta te tes toi
    ton tu un une vos votre vous c d j l m n y ete etait avons avez avait quoi comment pourquoi quand combien donc
"""
STOP_WORDS = frozenset(stem(word) for word in _STOP.split())
"""Terms left out of a query."""

_GROUPS = """
    decide decision choose chose chosen agree agreed settle pick select switch final choisi retenu décidé
    error exception failure fail failed traceback bug issue problem erreur échec
    remove delete drop supprimer
    create add new write ajouter créer
    change modify edit update rename modifier
    directory folder dossier répertoire
    file path fichier chemin
    function method func fonction
    test pytest spec unittest
    command cmd run execute commande lancer
    database db postgres sqlite mysql base
    config setting configuration configure option parameter
    fix resolve repair correct corriger
    limit maximum max cap plafond
    minimum min
    dependency package library module dépendance
    listen bind écoute écouter
    timeout deadline delay délai
    user customer client utilisateur
    name title nom
    id identifier identifiant
    price cost amount fee total prix montant coût
    date day jour
    email mail
    flight reservation booking vol réservation
    cause reason because raison
    url link endpoint lien
    forbid never not interdit jamais
    color colour couleur
"""


def _related() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in _GROUPS.strip().splitlines():
        group = [stem(flat(word)) for word in line.split()]
        for term in group:
            table.setdefault(term, {}).update((other, None) for other in group if other != term)
    return {term: tuple(others) for term, others in table.items()}


RELATED = _related()
"""Terms that may stand for a term of the query, at a lower weight."""

EXPECTED: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(asked), re.compile(answer))
    for asked, answer in (
        (
            r"\bhow (?:many|much|long|often|big|large|old)\b|\bport\b|\bnumber\b|\bversion\b|\btimeout\b|\blimit\b"
            r"|\bline\b|\bcombien\b|\bnumero\b|\bdelai\b|\bmaximum\b|\bminimum\b|\bsize\b|\bcount\b|\bprice\b|\bcost\b|\bamount\b",
            r"\d",
        ),
        (
            r"\bwhen\b|\bdate\b|\bdeadline\b|\bquand\b|\bwhat day\b",
            r"\d|monday|tuesday|wednesday|thursday|friday|lundi",
        ),
        (
            r"\b(?:which|what|where|in what) (?:\w+ )?(?:file|path|director|folder|module)|\bquel fichier\b|\bchemin\b",
            r"[\w-]+/[\w./-]+|\w\.\w{1,5}\b",
        ),
        (r"\berror\b|\bexception\b|\bfail|\bcrash|\berreur\b|\bmessage\b", r"error|exception|fail|erreur|fatal|panic"),
        (r"\bcommand\b|\bhow (?:do|did|to|can) (?:we|i|you) run\b|\bcommande\b", r"`[^`]+`|\$ \w|\"command\"|--\w"),
        (r"\burl\b|\blink\b|\bendpoint\b|\blien\b", r"https?://|/\w+"),
        (r"\bbranch\b|\bcommit\b|\bhash\b|\bsha\b", r"\b[0-9a-f]{7,40}\b|\bbranch\b|\bmain\b|/"),
        (
            r"\b(?:decide|decided|choose|chose|agree|agreed|settle|settled|switch)",
            r"\b(?:decid|let['’]?s|we['’]?ll|we will|agreed?|chos|go with|use|switch|instead|final)",
        ),
    )
)
"""(what a question asks for, what its answer looks like): both over lower-case text."""
