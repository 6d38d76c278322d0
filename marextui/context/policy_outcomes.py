"""Is a fact only the outcome of a permission, a sandbox, a passing fault? Then it must not be remembered (case 130).

"Access was blocked" outlives the policy that blocked it and stops calls that are allowed by then. What a program under
work shall do ("guests get a 403") is no such outcome.
"""

from __future__ import annotations

import re

_TOOLS = (
    r"(?:tools?|tool calls?|commands?|bash|shell|sudo|docker|curl|wget|npm install|pip install|git (?:push|commit)"
    r"|webfetch|websearch|web access|internet|sandbox|assistant|agent)"
)
_WORK = r"(?:edits?|writes?|writing|reads?|reading|network|file ?system|session|environment|workspace)"
"""Words for what tools do and for what programs under work do: only what no program decides counts of them."""
_OUT = r"blocked|denied|refused|disabled|unavailable|unreachable|read-only|not (?:permitted|granted|available|possible)"
_STOPPED = rf"{_OUT}|rejected|forbidden|prohibited|disallowed|restricted|not (?:allowed|reachable|enabled|supported)"
_IS = r"(?: \S+){0,5}? (?:is|are|was|were|has been|have been|be)"
_DO = (
    r"(?:read|write|access|open|run|execute|edit|modify|reach|connect|use|fetch|install|push|delete|create|change"
    r"|see)"
)
_ENGLISH = (
    rf"\b{_TOOLS}\b{_IS} (?:{_STOPPED})\b|\b{_WORK}\b{_IS} (?:{_OUT})\b|^{_TOOLS}\b(?: \S+){{0,3}} (?:{_STOPPED})\b",
    rf"\b(?:access|permission|approval)s?\b{_IS} (?:{_STOPPED})\b|\bapproval{_IS} required\b",
    r"\baccess denied\b|\bpermission denied\b|\boperation not permitted\b|\bEACCES\b|\bEPERM\b|^denied:",
    r"\b(?:sandbox|firewall|proxy|policy|plan mode|environment)\b(?: \S+){0,2}? "
    r"(?:prevents?|blocks?|denies|forbids?|is active)",
    r"\b(?:blocked|denied|refused|rejected|disallowed) by (?:the |a )?"
    r"(?:user|policy|sandbox|firewall|proxy|hook|admin)",
    r"\buser (?:has )?(?:declined|rejected|refused|denied|approved|granted|allowed|did(?: not|n['’]t) "
    r"(?:allow|approve))\b|\buser (?:must|has to|needs to) (?:confirm|approve|allow)\b",
    r"\b(?:requires?|needs?|awaiting|waiting for) (?:the user['’]s |an? )?(?:approval|permission|confirmation)\b",
    r"\b(?:approval|permission|confirmation) (?:was|is) (?:not|never) (?:given|granted)\b",
    r"\bpermissions? (?:has been |was |were )?granted\b|\bplan mode\b",
    r"\bno (?:permission|access) (?:to|for)\b|\bno (?:internet|network) (?:access|connection|here)\b",
    r"\bread-only (?:sandbox|file ?system|mode|session)\b|\boutside the (?:workspace|project)\b.{0,20}\b(?:fail|not)",
    r"\b(?:rate limit|quota)\b.{0,12}\b(?:reached|exceeded|hit)\b(?! error)",
    r"\b(?:credentials?|token)\b.{0,20}\b(?:missing|expired)\b",
    r"\b(?:401|403|407|429)\b.{0,24}\b(?:when|while|from|fetching)\b",
    r"\bserver was (?:unreachable|down|unavailable)\b",
    r"\bunreachable\b|\bcould not be (?:edited|written|read|opened|reached|run)\b",
)
_OTHERS = (
    r"\b(?:accès|permission|commande|outil|réseau|écriture|lecture)s?\b.{0,40}"
    r"\b(?:bloqu|refus|interdit|non autoris|désactiv)|\bl['’]utilisateur a (?:refusé|rejeté|approuvé|autorisé)\b",
    r"\b(?:impossible|incapable|interdit|pas le droit) d(?:e |['’])"
    r"(?:lire|écrire|accéder|ouvrir|lancer|exécuter|modifier)|\bmode plan\b",
    r"\b(?:zugriff|schreiben|lesen|befehl|netzwerk)\b.{0,50}"
    r"\b(?:verweigert|gesperrt|nicht (?:erlaubt|möglich|gestattet)|blockiert)",
    r"\b(?:acceso|permiso|comando|red)\b.{0,40}\b(?:denegad|bloquead|no permitid)",
    r"\bno se puede (?:leer|escribir|acceder|abrir)|\b(?:accesso|permesso)\b.{0,40}\b(?:negat|bloccat)",
    r"\b(?:acesso|permissão)\b.{0,40}\b(?:negad|bloquead)",
    r"访问被(?:拒绝|阻止|禁止)|(?:没有|無|无)权限|无法(?:访问|读取|写入|执行|打开|连接)|权限(?:被拒绝|不足)",
    r"被用户拒绝|需要(?:批准|授权)|アクセス(?:が|は)?拒否|権限が(?:ない|ありません)",
    r"許可され(?:ない|ていない|ません)|접근이? ?거부|권한이 ?없",
)
_OUTCOME = re.compile("|".join(_ENGLISH + _OTHERS), re.IGNORECASE)
_CANNOT = re.compile(
    r"(?P<who>\S+ )?\b(?:cannot|can['’]?t|could not|couldn['’]t|unable to|not able to|no permission to|may not"
    rf"|not (?:allowed|permitted) to)\s+{_DO}\b",
    re.IGNORECASE,
)
_OTHERS_CANNOT = re.compile(
    r"(?:users?|customers?|guests?|clients?|visitors?|admins?|people|members?|they|who|that|nobody|callers?|browsers?)\s",
    re.IGNORECASE,
)
_FILE = re.compile(r"(?:File: )?\S+\.\w{1,8}: ")
_LABEL = re.compile(r"(?:Intent|Decision|Requirement|Earlier|Note): ")


def is_policy_outcome(fact: str) -> bool:
    """Whether `fact` (with its label, or without) says that something was allowed, denied or out of reach just then."""
    text = _FILE.sub("", _LABEL.sub("", fact, count=1), count=1)
    if _OUTCOME.search(text):
        return True
    return any(not _OTHERS_CANNOT.fullmatch(m.group("who") or "") for m in _CANNOT.finditer(text))
