"""How an order of a user is recognised, what it is about, and whether two orders are about the same (Part 2, 8)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marextui.context.search_words import STOP_WORDS, flat, stem


def _any(*alternatives: str, ends: str = r"\b") -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(alternatives) + ")" + ends, re.IGNORECASE)


_FORBIDS = re.compile(
    r"\b(?:never|do(?:n['’]?t| not)|must(?:n['’]t| not)|should(?:n['’]t| not)|can(?:['’]t|not)|no longer|no more"
    r"|not|stop"
    r"|quit|leave|exit|avoid|without|disable|off|forbidden|refrain|drop|instead of|rather than"
    r"|jamais|n['’]?\w{0,20} .{0,40}\b(?:pas|plus|jamais)|ne .{0,40}\b(?:pas|plus|jamais)|arr[êe]te[zr]?|cesse[zr]?"
    r"|[ée]vite[zr]?|d[ée]sactive[zr]?|sans|interdit|plus de|pas de|niemals|nie|nicht|nunca)\b|不要|禁止|しないで",
    re.IGNORECASE,
)
_LIFTS = _any(
    r"you (?:may|can|are allowed to|['’]re allowed to)(?!['’]t|not\b| ?(?:not|never|only)\b)|feel free to",
    r"it['’]?s (?:ok|okay|fine|alright) (?:now )?to",
    r"(?:is|are) (?:allowed|permitted|ok|okay|fine|alright) (?:again|now|from now on)",
    r"no need to|you don['’]?t (?:have|need) to",
    r"(?:forget|ignore|cancel|drop|scratch) (?:what i said|that rule|the rule|my (?:rule|request|instruction)|about)",
    r"(?:tu peux|vous pouvez)(?! (?:pas|plus)\b)|libre de",
    r"(?:pas|plus) (?:besoin|la peine) de|oublie[zr]?|est (?:permis|autoris[ée])",
)
_TAKES_BACK = re.compile(
    r"\b(?:forget|ignore|cancel|drop|scratch) (?:what i said|(?:that|the|my) (?:rule|request|instruction|order))"
    r" (?:about|on|regarding) ",
    re.IGNORECASE,
)
"""What follows names the order that is taken back."""
_AGAIN = _any(
    r"again|now|from now on|any ?more|any longer|instead|actually|after all|change of plan|no longer|switch|back to",
    r"[àa] nouveau|de nouveau|maintenant|d[ée]sormais|finalement|plut[ôo]t|en fait|dor[ée]navant|plus",
)
_CLAUSE = r"(?:^|[,;:.!] |\b(?:please|now|and|then|also|so|ok|okay|actually|s['’]il te pla[îi]t|merci de) )"
_TOGGLE = re.compile(
    _CLAUSE
    + r"(?:(?:you can |you may )?turn (?:it |that |the \w+ |\w+ (?:\w+ )?)?(?:back )?(?:on|off)|switch \w* ?(?:on|off)"
    r"|(?:re-?)?(?:en|dis)able|(?:stop|quit|start|keep) \w+ing|(?:r[ée]|d[ée]s)?active[zr]?\b"
    r"|arr[êe]te[zr]? (?:de |d['’])|cesse[zr]? (?:de |d['’]))"
    r"|(?:leave|exit|enter) \w+ mode|\b\w+ mode (?:on|off)\b"
    r"|\bno longer\b|\bmode \w+ (?:on|off|activ[ée]|d[ée]sactiv[ée])\b",
    re.IGNORECASE,
)
_PERMITS = _any(
    r"(?:do(?:n['’]?t| not)|no need to|never|stop|without|skip) ask(?:ing)? (?:me|for (?:permission|confirmation"
    r"|approval))",
    r"(?:do(?:n['’]?t| not)|no need to|never|stop|without) ask(?:ing)?(?=\W*$)",
    r"without (?:asking|(?:my |any )?(?:confirmation|approval|permission))",
    r"skip (?:the )?(?:confirmation|permission|approval)s?|auto-?(?:approve|accept)|(?:always|just) (?:allow"
    r"|approve|accept)",
    r"approved|i approve|permission granted|you(?: have|['’]ve got) (?:my )?(?:permission|approval)|i (?:allow"
    r"|authori[sz]e)",
    r"go ahead|looks good,? (?:go|do|merge|ship)|sans (?:me |jamais )?demander|sans (?:confirmation|permission"
    r"|autorisation)",
    r"ne (?:me )?demande[zr]? (?:pas|plus)|(?:j['’]|je t['’]|je vous )autorise|j['’]approuve|approuv[ée]e?s?",
    r"vas[- ]y|allez[- ]y|c['’]est (?:bon|ok),? (?:vas|fais|tu peux)",
)
_ALLOWANCE = r"(?:permission|approval|consent|authori[sz]ation)s?"
_CLAIMS = _any(
    r"(?:plan|everything|all|it|this|edits?|changes?|commands?|deletions?|deploy\w*|push(?:es|ing)?)(?: \w+)?"
    r" (?:(?:has|have|was|were|is|are) )?(?:already )?(?:been )?(?:pre-?)?approved",
    r"(?:pre-?)?approved (?:everything|all|every|any|it|this|these|those|(?:the )?(?:plan|edits?|changes?|commands?))",
    _ALLOWANCE + r" (?:(?:has|have|was|were|is|are) )?(?:been )?(?:granted|given)",
    r"(?:gave|given|grants?|granted|has|have|had) (?:\w+ ){0,2}" + _ALLOWANCE + " (?:to|for)",
    r"no (?:further |more |other )?(?:confirmation|permission|approval|consent)s? (?:(?:is|are|was) )?"
    r"(?:needed|required|necessary)",
    r"(?:is|are|was|were|been) (?:now |already )?(?:allowed|permitted|authori[sz]ed) to",
    r"without (?:asking|(?:any |further )?(?:confirmation|approval|permission))|auto-?approv\w*|said yes to",
    r"sans (?:demander|confirmation|permission|autorisation)",
    r"(?:plan|tout|modifications?) (?:\w+ ){0,3}(?:approuv|valid)ée?s?|a (?:tout )?autorisé",
    r"(?:est|sont) (?:désormais )?autorisée?s? à|(?:permission|autorisation)s? (?:accordée|donnée)s?",
    r"aucune (?:permission|autorisation) (?:n['’]est )?(?:nécessaire|requise)",
)
"""What a summary may say of permissions; a user's own sentences are read by `_PERMITS`."""
_YES = re.compile(
    r"\W*(?:yes|yep|yeah|ok(?:ay)?|sure|go ahead|go for it|do it|please do|proceed|approved?|lgtm|ship it|sounds good"
    r"|agreed|confirm(?:ed)?|oui|d['’]accord|vas[- ]y|allez[- ]y|fais[- ]le|c['’]est bon|valid[ée]|continue[zr]?)\b",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"\b(?:never|always|must|do(?:n['’]?t| not)|(?:may|shall) not|not allowed|only|from now on|stop|forbidden|required?"
    r"|every time|jamais|toujours"
    r"|ne .{0,40}pas|interdit|obligatoire|d[ée]sormais|dor[ée]navant|uniquement|seulement|il faut|arr[êe]te[zr]?)\b"
    r"|必须|不要|禁止",
    re.IGNORECASE,
)
_DESCRIBES = re.compile(
    r"(?:it(?:['’]d| would| is| was|['’]s)?|this (?:would|is|was)|there (?:is|are|was)|we['’]re|i(?:['’]m|['’]ve"
    r"| have| am| think)"
    r"|environment has|you may assume|it (?:seems|looks)|c['’](?:est|était)|ce serait|il y a|je (?:suis|pense))\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:can|could|would|will) you (?:please )?|(?:peux|pouvez|pourrais|pourriez)[- ](?:tu|vous) ", re.IGNORECASE
)
_SCOPE = re.compile(
    r"\b((?:just |only )?for (?:this|that|now|today|the moment)"
    r"(?: (?:time|once|task|change|file|branch|session|PR|commit|one))?|(?:just |only )?(?:this|that) (?:time|once)"
    r"|until [\w ]{2,40}|(?:just|only) once|in (?:this|that) (?:task|change|file|branch|session|PR|commit)"
    r"|pour (?:cette fois|l['’]instant|le moment|cette t[âa]che|ce fichier|cette branche)|cette fois(?:-ci)?"
    r"|jusqu['’][àa][\w ]{2,40})",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|no longer|au lieu (?:de |d['’])|plut[ôo]t que (?:de "
    r"|d['’])?)\s*((?:[^\s,;.!?]{1,60}\s?){1,4})",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"(?:please |and |also |ok(?:ay)?,? )*(?:no (?!need|problem|worries|idea|thanks|one\b)[\w-]+|limit \w+|cap \w+"
    r"|(?:answer|reply|respond|write|speak)(?: \w+){0,3} in \w+|call (?:me|it)"
    r"|(?:change[zr]?|set|bump|raise|lower|increase|decrease|update|switch|move|passe[zr]?|mets|mettez)\b.{0,60}"
    r"\b(?:to|from|à|de)\b.{0,40}\d|(?:maximum|minimum|max|min)\b.{0,40}\d|pas de |r[ée]ponds?|[ée]cris)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[\w./:@+-]{0,80}\w)?")
_FRAME_WORDS = """
    change set bump raise lower increase decrease update move passe mettez changez
    use using make sure keep do add be please always never only must should need want have let avoid stop start ensure
    prefer turn on off enable disable switch again now instead actually anymore longer mode remember important allow
    may can go back from rather ever even still really just also any all every each time one thing way new without
    no not dont don doesn isn won shouldn mustn cannot cant try put set stay stick requirement required forbidden quit
    toujours jamais faut doit dois utilise utiliser utilisez fais faire garde garder arrete arreter evite eviter plus
    peux pouvez nouveau desormais maintenant plutot seulement uniquement active desactive reactive activer desactiver
    dorenavant sans mode merci yet leave exit enter svp mettre mets ajoute sois soit encore fait jusqu word words
"""
_FRAME = frozenset(stem(flat(word)) for word in _FRAME_WORDS.split())
"""Words an order is framed in: they say nothing of what it is about."""
_LANGUAGES = (
    "english|french|german|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese|korean|arabic|anglais|francais"
    "|allemand|espagnol|italien|portugais|englisch|franzosisch|deutsch|ingles|frances|aleman|espanol"
)
_SPOKEN = re.compile(
    r"\b(?:answers?|reply|replies|respond|write|speak|talk|reponds|repondez|ecris|parle[zr]?|antworte|schreib|responde)\b"
    rf"(?: \w+){{0,4}} (?:in|en|auf) (?:\w+ )?(?:{_LANGUAGES})\b"
)
_OPPOSITES = tuple(
    frozenset(stem(word) for word in group.split())
    for group in ("tabs spaces", "metric imperial", "brief concise terse short verbose detailed long", "light dark")
)
"""Words of which a person wants one at a time."""
_NUMBER = re.compile(r"[\d.,:%$€£-]+\w{0,3}")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a sentence is about (stems of its content words), whether it forbids or lifts, and if it says "now".

    `given_up` is what it says to do something else instead of; `slot` names what can only have one value at a time.
    """

    subject: frozenset[str]
    forbids: bool
    lifts: bool
    changes: bool
    values: frozenset[str]
    given_up: frozenset[str]
    slot: str = ""
    takes_back: bool = False


def meaning(sentence: str) -> Meaning:
    """The meaning of a sentence whose quoted parts are kept: they name what it is about."""
    back = _TAKES_BACK.search(sentence[:600])
    subject, values = _content(sentence[back.end() if back else 0 : 600])
    found = _INSTEAD.search(sentence[:600])
    given_up = _content(found.group(1))[0] if found else frozenset()
    lifts = is_lift(sentence)
    forbids = bool(_FORBIDS.search(sentence)) and not lifts
    slot = "language" if _SPOKEN.search(flat(sentence[:600])) else ""
    takes_back = lifts and back is not None
    return Meaning(subject, forbids, lifts, bool(_AGAIN.search(sentence)), values, given_up, slot, takes_back)


def _content(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Stems of the words of `text` that say what it is about, and its numbers."""
    words = [flat(m.group()) for m in _WORD.finditer(text)]
    values = frozenset(w for w in words if _NUMBER.fullmatch(w))
    stems = {w if re.search(r"[\d./_@:]", w) else _stem(w) for w in words if w not in values}
    return frozenset(s for s in stems if s not in STOP_WORDS and s not in _FRAME and len(s) > 1), values


def _stem(word: str) -> str:
    """As `stem`; a French infinitive is its verb ("toucher", "touche")."""
    return stem(word[:-1]) if len(word) >= 7 and word.endswith("er") else stem(word)


def replaces(new: Meaning, old: Meaning) -> bool:
    """True when `new` is about what `old` is about, so that the later one wins (case 61).

    Turned round (forbidden, allowed), most of what the old one was about must be named; said to be a change, most of
    the shorter one; else nearly all of both. In doubt both stay: to lose an order is worse than to see two.
    """
    if new.slot and new.slot == old.slot:
        return True
    if not new.forbids and not old.forbids and any(_other_of(new, old, group) for group in _OPPOSITES):
        return True
    shared = len(new.subject & old.subject)
    if not shared:
        return False
    if new.takes_back and new.subject <= old.subject:
        return True
    if new.given_up and new.given_up <= old.subject and not old.forbids:
        return True
    of_old, of_new = shared / len(old.subject), shared / len(new.subject)
    if new.forbids != old.forbids or new.lifts != old.lifts:
        return of_old > 0.6 or (of_new > 0.6 and shared > 1)
    if new.changes and (new.values or not old.values):
        return max(of_old, of_new) > 0.6 and min(of_old, of_new) >= 0.5
    return shared / len(new.subject | old.subject) >= 0.75


def exclusive(told: Meaning) -> tuple[str, ...]:
    """What it sets of things that have one value at a time: the language of answers, the groups of `_OPPOSITES`."""
    groups = tuple(str(n) for n, group in enumerate(_OPPOSITES) if told.subject & group)
    return (told.slot, *groups) if told.slot else groups


def _other_of(new: Meaning, old: Meaning, group: frozenset[str]) -> bool:
    """Whether both want a thing of `group`, not the same, and are about the same otherwise."""
    wanted, had = new.subject & group, old.subject & group
    return bool(wanted and had) and wanted != had and new.subject - group == old.subject - group


def is_toggle(sentence: str) -> bool:
    """It turns something on or off, or ends or resumes doing something."""
    return bool(_TOGGLE.search(sentence))


def is_lift(sentence: str) -> bool:
    """It allows again what was forbidden, or takes an order back."""
    rest = _LIFTS.sub(" ", sentence)
    return rest != sentence and not is_strong(rest)


def is_permission(sentence: str) -> bool:
    """It allows an action or asks not to be asked: never an order (I13).

    "Never push without my approval" forbids: what is said beside the allowing words decides.
    """
    rest = _PERMITS.sub(" ", sentence)
    return rest != sentence and not is_strong(rest)


def claims_permission(item: str) -> bool:
    """A note that something was allowed: permissions are the program's alone, and none is passed on by text (I13)."""
    rest = _CLAIMS.sub(" ", item)
    return rest != item and not is_strong(rest)


def says_yes(text: str) -> bool:
    """A short agreement to what was proposed."""
    return len(text) <= 200 and bool(_YES.match(text))


def is_strong(sentence: str) -> bool:
    """It holds for more than the task at hand: never, always, only, from now on."""
    return bool(_STRONG.search(sentence))


def polite(sentence: str) -> bool:
    """An order put as a question."""
    return bool(_POLITE.match(sentence))


def scope_of(sentence: str) -> str:
    """The words that limit an order to a time or a thing, verbatim; "" when there are none."""
    found = _SCOPE.search(sentence)
    return "" if found is None else found.group().strip()


def describes(sentence: str) -> bool:
    """It tells how things are rather than what to do."""
    return bool(_DESCRIBES.match(sentence)) and not is_strong(sentence)


def is_rule(sentence: str) -> bool:
    """A short rule of form: "no emojis", "limit lines to 100", "answer in French"."""
    return len(sentence) <= 200 and bool(_RULE.match(sentence))
