"""What is said of a thing ("X is Y"), and whether it leaves room for something else that is said of it (P10, 131, 133).

Most of what is said of a thing goes together: an API is slow, documented and written in Go. Two statements exclude each
other only when both give a value of one attribute: two states of one kind, two numbers of one unit, two names for what
has one at a time. In doubt both stand. English, French, German, Spanish; Italian and Portuguese in part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.search_words import flat

_STATE_TABLE = """
    slow sluggish lent langsam lento | fast quick rapid rapide schnell rapido veloz
    closed shut ferme geschlossen cerrado | open opened ouvert offen abierto
    disabled off inactive desactive eteint deaktiviert ausgeschaltet aus apagado desactivado inactif inaktiv inactivo |
        enabled on active activated actif aktiv aktiviert eingeschaltet an encendido activado activo allume
    broken failing red casse rouge kaputt defekt rot roto rojo | fixed working passing green repare corrige vert
        repariert behoben grun arreglado verde
    pending unfinished incomplete todo open-ended inacheve incomplet unfertig unvollstandig pendiente incompleto |
        done finished complete completed termine fini acheve fertig abgeschlossen erledigt terminado hecho completo
    running laufend corriendo | stopped halted arrete gestoppt angehalten detenido parado
    down offline unreachable horsligne unerreichbar caido | up online reachable enligne erreichbar
    private prive privat privado | public offentlich publico
    unstable instable instabil inestable | stable stabil estable
    optional facultatif optionnel facultativo opcional | required mandatory obligatory obligatoire requis
        erforderlich verpflichtend notwendig obligatorio requerido
    synchronous sync synchrone synchron sincrono | asynchronous async asynchrone asynchron asincrono
    empty vide leer vacio | full plein voll lleno
    invalid invalide ungultig invalido | valid valide gultig valido
    supported unterstutzt soportado | unsupported
    forbidden interdit verboten prohibido | allowed permitted autorise erlaubt permitido
    locked verrouille gesperrt bloqueado | unlocked deverrouille entsperrt desbloqueado
    safe sur sicher seguro | unsafe dangerous dangereux gefahrlich unsicher peligroso inseguro
    dark sombre fonce dunkel oscuro | light clair hell claro
    small petit klein pequeno | big large huge grand gross grosse grande
    short court kurz corto | long lang largo
    low faible niedrig bajo | high eleve hoch alto | medium moyen mittel medio
    cheap barato billig | expensive cher teuer caro
    easy simple facile einfach facil sencillo | hard difficult complicated difficile complique schwierig dificil
    mutable veranderlich | immutable unveranderlich inmutable
    wrong incorrect faux falsch incorrecto falso | right correct juste richtig correcto
    manual manuel manuell | automatic automatique automatisch automatico
    readonly read-only | writable read-write
    debug | info | warning warn | error | critical fatal | trace
    monday lundi montag lunes | tuesday mardi dienstag martes | wednesday mercredi mittwoch miercoles |
        thursday jeudi donnerstag jueves | friday vendredi freitag viernes | saturday samedi samstag sabado |
        sunday dimanche sonntag domingo
    yes oui ja si | no non nein
    true vrai wahr | false
"""
_RIVAL_TABLE = """
    sqlite postgres postgresql mysql mariadb mongodb mongo duckdb oracle
    redis memcached valkey
    npm yarn pnpm bun
    pip poetry uv pdm pipenv conda
    react svelte vue angular solid preact htmx
    flask django fastapi starlette
    pytest unittest nose
    jest vitest mocha
    black ruff-format yapf
    tabs spaces
    rest graphql grpc
    docker podman
    merge rebase
    sync async
    ltr rtl
    dark light
    english french german spanish italian chinese
    yaml toml json
    webpack vite rollup esbuild parcel
    rabbitmq kafka nats
    aws azure gcp
"""
RIVALS = tuple(frozenset(line.split()) for line in _RIVAL_TABLE.strip().splitlines())
"""Names of which a project uses one at a time."""

_SLOT_WORDS = """
    branch owner licence license deadline region timezone language framework database backend frontend default theme
    style format manager runner shell editor platform target host hostname domain endpoint queue broker currency locale
    encoding strategy reviewer maintainer repository registry level mode name author port version
    branche proprietaire echeance langue fuseau hote domaine depot nom auteur niveau base cadre devise
    datenbank zweig besitzer lizenz frist sprache zeitzone wahrung stufe modus autor verantwortlicher
    rama propietario licencia plazo idioma basededatos zona anfitrion dominio repositorio nombre nivel modo moneda
"""
SLOTS = frozenset(_SLOT_WORDS.split())
"""What has one value at a time: "the main branch is …"."""

_COPULA = re.compile(
    r"\s+(?:(?:should|must|will|shall) (?:not )?be|(?:has|have) been|is|isn['’]t|are|aren['’]t|was|wasn['’]t|were"
    r"|weren['’]t|stays?|remains?|becomes?|became"
    r"|(?:doit|doivent) (?:pas |plus )?être|(?:n['’])?est|(?:n['’])?étai(?:t|ent)|(?:ne )?(?:sont|sera|seront|reste)"
    r"|restent|devient"
    r"|ist|sind|war|waren|wird|werden|bleibt|bleiben|soll|sollte|sollen|muss|müssen"
    r"|(?:debe|deben) ser|es|está|son|están|era|eran|estaba|será|queda|sigue|no es|no está|no son|no están"
    r"|è|sono|é|são|estão)\s+",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"\s*(?P<sign>=|→|:)\s*")
_PLACE = re.compile(r"\W*(.{2,60}?)(?=\s*[=→:]|\s)")
_WORD = re.compile(r"[`\"“]?[\w./:@#+-]*\w[`\"”]?")
_UNSAID_WORDS = """
    the a an its our their now currently still very quite too already again then always rather really just completely
    le la les l un une des du de d notre maintenant desormais encore tres trop toujours deja plutot
    der die das den dem ein eine einen unser jetzt nun noch sehr zu wieder schon immer sein bleiben werden
    el los las lo una uno nuestro ahora muy ya todavia demasiado siempre ser il gli i o os as um uma set
    not n t pas plus jamais nicht nie niemals kein keine no nunca never longer non
"""
_UNSAID = frozenset(_UNSAID_WORDS.split())
"""Words that say nothing of a value."""
_IN = frozenset(("in", "on", "at", "dans", "sur", "en", "auf", "im"))
"""What leads to a value: "cached in memory"."""
_POINTER_WORDS = "it this that there he she they which what ce cela ca il elle es das dies eso esto ello"
_POINTERS = frozenset(_POINTER_WORDS.split())
"""Subjects of which nobody knows whether they are the same."""
_REMARK_WORDS = """
    note bug todo decision idea warning fixed added rule reason cause problem issue error question result important
    task step next done remarque erreur raison probleme tache hinweis fehler grund aufgabe frage wichtig nota regla
    razon tarea pregunta importante
"""
_REMARKS = frozenset(_REMARK_WORDS.split())
"""Labels in front of a remark: two remarks stand beside each other."""
_DESCRIBES = re.compile(
    r".{2,}(?:ed|ing|able|ible|ful|less|ous|ive|ish|ly|al|ic|ary|ent|ant|ete|ee|es|eux|if|bar|ig|lich|isch|los|ado|ada"
    r"|ido|ida|oso|osa|ivo|iva)|(?:ge|be|ver|ent|er|zer)\w{3,}t"
)
"""How an adjective or a participle looks; the form is flat."""
_NAME = re.compile(r"[`\"“].+|.*(?:\d|[a-z][A-Z]|[./:@#]).*|[A-Z]{2,}\w*")
_CAPITAL = re.compile(r"[A-Z][\w+-]*")
_NUMBER = re.compile(r"[-+~<>=$€£]*\d[\d.,_:]*(?P<unit>[^\W\d]{0,12}|%)")
_UNITS = tuple(
    frozenset(line.split())
    for line in """ms s sec second seconde sekunde segundo m min minute minuto h hour heure stunde hora day jour tag dia
b kb mb gb tb kib mib gib byte octet bytes
token tokens
char character zeichen caractere
%
line ligne zeile linea""".splitlines()
)
"""Units of one dimension, singular."""
_GERMAN = re.compile(r"\s(?:ist|sind|war|waren|wird|werden|bleibt|bleiben|soll|sollte|sollen|muss|müssen)\s", re.I)


def _base(word: str) -> str:
    """`word` without accents, case and the endings of gender and number."""
    word = flat(word.strip('`"“”'))
    return word.rstrip("aeos") if len(word.rstrip("aeos")) >= 3 else word


def is_state(word: str) -> bool:
    """Whether `word` says how a thing is ("down", "cached") rather than which one it is."""
    return _base(word) in _STATES or bool(_DESCRIBES.fullmatch(flat(word)))


def _states() -> dict[str, list[tuple[int, int]]]:
    """(attribute, state) by the base of the word; a word may be a state of several attributes."""
    found: dict[str, list[tuple[int, int]]] = {}
    attributes = re.split(r"\n(?! {8})", _STATE_TABLE.strip("\n"))
    for n, line in enumerate(attributes):
        for k, state in enumerate(line.split("|")):
            for word in state.split():
                found.setdefault(_base(word), []).append((n, k))
    return found


_STATES = _states()


@dataclass(frozen=True, slots=True)
class Claim:
    """That `subject` is `value` (its words, without what says nothing). `given`: an assignment, not a sentence."""

    subject: str
    value: tuple[str, ...]
    given: str = ""
    german: bool = False

    @property
    def slot(self) -> bool:
        """Whether the subject has one value at a time."""
        if self.given:
            return True
        words = re.findall(r"\w+", flat(self.subject))
        return any(w in SLOTS or (self.german and any(len(s) > 4 and w.endswith(s) for s in SLOTS)) for w in words)


def claim(text: str) -> Claim | None:
    """What `text` says of one thing; None when it is no such sentence."""
    text = text.strip(' .!`*"')[:300]
    given = _GIVEN.search(text)
    said = _COPULA.search(text)
    if given is not None and (said is None or given.start() < said.start()) and text[given.end() :]:
        subject, value, sign = text[: given.start()], text[given.end() :], given["sign"]
    elif said is not None:
        subject, value, sign = text[: said.start()], text[said.end() :], ""
    else:
        return None
    subject = _subject(subject)
    words = tuple(w for w in _WORD.findall(value) if _flat(w) not in _UNSAID)
    if len(words) > 1 and _flat(words[0]) in _IN:
        words = words[1:]
    if not 1 <= len(subject.split()) <= 6 or not words or subject in _POINTERS or (sign and subject in _REMARKS):
        return None
    return Claim(subject, words, sign, bool(_GERMAN.search(f" {text} ")))


def _flat(word: str) -> str:
    return flat(word.strip('`"“”'))


def _subject(text: str) -> str:
    words = [w.strip('`*"“”') for w in re.findall(r"[^\s,;()'’]+", flat(text))]
    while words and words[0] in _UNSAID:
        del words[0]
    while words and words[-1] in _UNSAID | {"ne"}:
        del words[-1]
    return " ".join(words)


def other_value(newer: Claim, older: Claim) -> bool:
    """Whether `newer` gives the attribute that `older` is about another value, so that only one can hold."""
    if newer.subject != older.subject:
        return False
    mine, theirs = newer.value, older.value
    if newer.given == older.given and newer.given in {"=", "→"}:
        return [*map(_flat, mine)] != [*map(_flat, theirs)]
    return _other_state(mine, theirs) or _other_number(mine, theirs) or _other_name(newer, older)


def _other_state(newer: Sequence[str], older: Sequence[str]) -> bool:
    """Two states of one attribute, and nothing that limits the newer one to less than the older was about."""
    mine, theirs = dict(_STATES.get(_base(newer[0]), ())), dict(_STATES.get(_base(older[0]), ()))
    if not any(n in theirs and theirs[n] != k for n, k in mine.items()):
        return False
    return {_base(w) for w in newer[1:]} <= {_base(w) for w in older[1:]}


def _other_number(newer: Sequence[str], older: Sequence[str]) -> bool:
    """Two numbers of one unit; without units, numbers of which the same is said."""
    mine, theirs = ([w for w in words if _NUMBER.fullmatch(w)] for words in (newer, older))
    if len(mine) != 1 or len(theirs) != 1 or mine == theirs:
        return False
    units = _unit(mine[0], newer), _unit(theirs[0], older)
    if any(units):
        return units[0] == units[1]
    return {_base(w) for w in newer if w not in mine} == {_base(w) for w in older if w not in theirs}


def _unit(number: str, words: Sequence[str]) -> int:
    """Which dimension a number has, 0 for none: by its own ending or by a word beside it."""
    ending = _NUMBER.fullmatch(number)
    named = {flat(ending["unit"]) if ending else "", *(_flat(w) for w in words)}
    named |= {w.rstrip("s") for w in named if len(w) > 2} | {w.rstrip("n") for w in named if len(w) > 2}
    return next((n for n, units in enumerate(_UNITS, 1) if named & units), 0)


def _other_name(newer: Claim, older: Claim) -> bool:
    one, other = newer.value, older.value
    if len(one) > 2 or len(other) > 2 or {*map(_flat, one)} & {*map(_flat, other)}:
        return False
    if any({*map(_flat, one)} & group and {*map(_flat, other)} & group for group in RIVALS):
        return True
    if not all(_is_name(w, c) for c in (newer, older) for w in c.value):
        return False
    if newer.slot and older.slot:
        return True
    kinds = {_kind(w) for w in (*one, *other)}
    return len(kinds) == 1 and kinds != {""}


def _is_name(word: str, said: Claim) -> bool:
    if _NAME.fullmatch(word):
        return True
    if _CAPITAL.fullmatch(word) and not said.german:
        return True
    return said.slot and _base(word) not in _STATES and not _DESCRIBES.fullmatch(flat(word))


def _kind(word: str) -> str:
    """What a name looks like: a path, a version or number; "" for others."""
    bare = word.strip('`"“”')
    if re.fullmatch(r"v?\d+(?:\.\d+)*", bare):
        return "version"
    return "path" if "/" in bare or re.search(r"\.\w{1,5}$", bare) else ""
