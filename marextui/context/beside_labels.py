"""The few words of our own in the block beside the summary, in the user's language (I11)."""

from __future__ import annotations

from collections.abc import Mapping

_ENGLISH: dict[str, str] = {
    "read": "read",
    "created": "created",
    "modified": "edited",
    "deleted": "deleted",
    "failed": "failed",
    "denied": "denied by the user, not done",
    "interrupted": "interrupted, maybe done in part",
    "not run": "not run",
    "unanswered": "no result recorded",
    "change failed": "change failed",
    "failed command": "in a command that failed",
    "last": "last {id}",
    "lines": "{n} lines",
    "in": "in {where}",
    "exit": "exit {code}",
    "ok": "ok",
    "tests": "Last test run",
    "failing": "failing",
    "fetched": "fetched {url}",
    "earlier files": "- … and {n} earlier files: Recall finds them",
    "earlier commands": "- … and {n} earlier commands: Recall finds them",
    "earlier reads": "- … and {n} more files read: Recall finds them",
    "earlier lookups": "- … and {n} look-ups (list, search): Recall finds them",
    "earlier urls": "- … and {n} more URLs: Recall finds them",
    "more facts": "- … and {n} more facts: Recall finds them",
    "more orders": "- … and {n} earlier ones: Recall finds them",
    "more requests": "- … and {n} earlier requests: Recall finds them",
    "more steps": "- … and {n} more steps: Recall finds them",
    "plan": "{id}: {done} of {all} steps done; made for",
    "step doing": "in work",
    "step open": "to do",
    "was": "was {value} until {id}",
    "user": "user",
    "assistant": "assistant",
    "permissions": "Permissions are asked by the program, not remembered here.",
    "open": "Asked last (what came of it stands after this)",
    "open request": "Open request",
    "lifted": "{text} no longer holds since {id}",
    "answered": "answered",
    "joined": "answered together with the next one",
    "no answer": "stopped without an answer",
    "path": "path",
    "symbol": "symbol",
    "error": "error",
    "number": "value",
    "hash": "hash",
    "url": "URL",
    "setting": "setting",
    "constraint": "said",
    "id": "id",
    "version": "version",
    "port": "port",
    "date": "date",
}
_FRENCH: dict[str, str] = {
    **_ENGLISH,
    "read": "lu",
    "created": "créé",
    "modified": "modifié",
    "deleted": "supprimé",
    "failed": "échec",
    "denied": "refusé par l'utilisateur, pas fait",
    "interrupted": "interrompu, peut-être fait en partie",
    "not run": "non exécuté",
    "unanswered": "aucun résultat enregistré",
    "change failed": "modification échouée",
    "failed command": "dans une commande qui a échoué",
    "last": "dernière {id}",
    "lines": "{n} lignes",
    "in": "dans {where}",
    "tests": "Dernier passage des tests",
    "failing": "en échec",
    "fetched": "consulté {url}",
    "earlier files": "- … et {n} fichiers antérieurs : Recall les retrouve",
    "earlier commands": "- … et {n} commandes antérieures : Recall les retrouve",
    "earlier reads": "- … et {n} autres fichiers lus : Recall les retrouve",
    "earlier lookups": "- … et {n} consultations (liste, recherche) : Recall les retrouve",
    "earlier urls": "- … et {n} autres URL : Recall les retrouve",
    "more facts": "- … et {n} autres faits : Recall les retrouve",
    "more orders": "- … et {n} antérieures : Recall les retrouve",
    "more requests": "- … et {n} demandes antérieures : Recall les retrouve",
    "more steps": "- … et {n} autres étapes : Recall les retrouve",
    "plan": "{id} : {done} étapes sur {all} faites ; fait pour",
    "step doing": "en cours",
    "step open": "à faire",
    "was": "était {value} jusqu'à {id}",
    "user": "utilisateur",
    "permissions": "Les permissions sont demandées par le programme, pas retenues ici.",
    "open": "Demandé en dernier (la suite est après ceci)",
    "open request": "Demande en cours",
    "lifted": "{text} ne vaut plus depuis {id}",
    "answered": "répondu",
    "joined": "répondu avec la suivante",
    "no answer": "arrêté sans réponse",
    "path": "chemin",
    "symbol": "symbole",
    "error": "erreur",
    "number": "valeur",
    "setting": "réglage",
    "constraint": "dit",
}


OPEN_LEADS = tuple(f"{words[key]}: " for words in (_ENGLISH, _FRENCH) for key in ("open", "open request"))
"""How an item begins that code wrote for a request that was still open."""


def every(key: str) -> tuple[str, ...]:
    """The word for `key` in each language."""
    return tuple(dict.fromkeys(words[key] for words in (_ENGLISH, _FRENCH)))


def labels(language: str) -> Mapping[str, str]:
    """The words for `language` (an English name as `detect_language` gives it); English where we have none."""
    return _FRENCH if language == "French" else _ENGLISH
