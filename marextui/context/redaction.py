"""Secrets are replaced before text reaches a disk or a second model (cases 135, 137; I10).

Patterns are those of well-known key formats plus assignments to names that say what they hold. The kind stays, so that
a reader knows something was there.
"""

from __future__ import annotations

import re

_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<what>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END (?P=what)-----|\Z)", re.DOTALL
)

_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
        ("api key", r"\bsk-(?:proj-|or-v1-|svcacct-|live-|test-)?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,}"),
        ("stripe key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
        ("github token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("gitlab token", r"\bglpat-[A-Za-z0-9_-]{16,}"),
        ("aws key", r"\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b"),
        ("google key", r"\bAIza[A-Za-z0-9_-]{35}"),
        ("slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("hugging face token", r"\bhf_[A-Za-z0-9]{20,}"),
        ("package registry token", r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,})"),
        ("telegram token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    )
)

_BEARER = re.compile(
    r"(?i)\b(authorization\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+|\bbearer\s+)([A-Za-z0-9._~+/=-]{12,})"
)
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']{0,200}:)([^\s/@\"'$<{]{3,200})(@)", re.IGNORECASE)

_NAME = (
    r"[A-Za-z0-9_.-]{0,40}(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|auth[_-]?token|access[_-]?token|refresh[_-]?token|client[_-]?secret|mot[ _]de[ _]passe)[A-Za-z0-9_-]{0,40}"
    r"|[A-Z0-9_]{0,40}TOKEN|token"
)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![\w.-])(?:{_NAME}))(?P<op>[\"']?\s*(?::=|=>|[:=])\s*)"
    r"(?:(?P<q>[\"'])(?P<quoted>[^\"'\n]{4,}?)(?P=q)|(?P<bare>[^\s\"',;&|)}\]<>]{6,}))",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"\[redacted|\$|\{|<|%|os\.|env|process\.|getenv|config|self\.|settings|none$|null$|true$|false$|undefined$"
    r"|your[_-]|changeme|example|placeholder|x{4,}$|\*+$|\.{3}|str\b|string\b|int\b|bool\b|optional|\w+\(|[a-z_]+\.[a-z_]+",
    re.IGNORECASE,
)


def _assigned(m: re.Match[str]) -> str:
    value = m.group("quoted") or m.group("bare")
    if _NO_SECRET.match(value):
        return m.group()
    # a bare word after a bare name may be prose or code ("token: string", "secret = value"): ask for a sign of a secret
    name = m.group("name").lower()
    strong = any(w in name for w in ("pass", "pwd", "secret"))
    if m.group("bare") and not strong and not (re.search(r"\d", value) and len(value) >= 12):
        return m.group()
    kind = "password" if "pass" in name or "pwd" in name else "secret"
    q = m.group("q") or ""
    return f"{m.group('name')}{m.group('op')}{q}[redacted: {kind}]{q}"


def redact(text: str) -> str:
    """`text` with secrets replaced by `[redacted: kind]`; idempotent, everything else unchanged.

    Private keys, tokens of known formats, bearer headers, passwords in URLs, and values assigned to names such as
    `password` or `API_KEY`. Placeholders, variables and code expressions are left alone.
    """
    text = _PRIVATE_KEY.sub("[redacted: private key]", text)
    for kind, pattern in _FORMATS:
        text = pattern.sub(f"[redacted: {kind}]", text)
    text = _BEARER.sub(r"\1[redacted: token]", text)
    text = _URL_PASSWORD.sub(r"\1[redacted: password]\3", text)
    return _ASSIGNED.sub(_assigned, text)
