"""Places where a secret stands by syntax: headers, addresses, command lines, settings (cases 135, 137; I10)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from marextui.context.secret_form import Form, form
from marextui.context.secret_values import (
    is_header_value,
    is_login_pair,
    is_typed_password,
    is_url_password,
    looks_random,
)

_TELLING = r"(?:pass(?:word|wd|phrase)?+|secret|token|api_?key|apikey|access_?key|private_?key|connection_?string)"
_ONLY_TELLS = r"(?!s?[_-]?(?i:counts?|types?|names?|ids?|ur[il]|expir|ttl|limit|len|path|file|format|field)|s\b)"
_SPOKEN = r"[\"']?"
_GAP = r"[ \t]{1,4}"

PLACES: tuple[Form, ...] = (
    form(
        "signed address",
        "?sig= &sig= &X-Amz-Signature= &Signature=",
        r"[?&](?:sig|X-Amz-Signature|Signature)=(?P<secret>[A-Za-z0-9%/+=_-]{40,}+)",
    ),
    form("secret", "?key= &key=", r"[?&]key=(?P<secret>[A-Za-z0-9_-]{20,}+)", looks_random),
    form(
        "token",
        "uthorization UTHORIZATION",
        r"(?i:authorization)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}f?[\"']?(?:[A-Za-z][A-Za-z0-9_-]{1,30}"
        r"[ \t]{1,4})(?P<secret>[A-Za-z0-9._~+/=:-]{8,}+)",
        is_header_value,
        lead=1,
    ),
    form(
        "token",
        "uthorization UTHORIZATION",
        r"(?i:authorization)\\{0,3}[\"']?[ \t]{0,4}:[ \t]{0,4}\\{0,3}[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)",
        looks_random,
        lead=1,
    ),
    form("token", "Signature=", r"Signature=(?P<secret>[0-9a-f]{64})(?![0-9a-f])"),
    form("token", "earer EARER", r"(?i:\bbearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{12,}+)", looks_random, lead=1),
    form(
        "password",
        "://",
        r"://[^\s/:@\[\"'`<>]{0,200}+:(?!\d{1,5}(?:/|\Z))(?P<secret>[^\s\"'`<>]{3,200})"
        r"@(?=[\w.\[-]{1,200}(?:[:/?#,;\s\"'`<>)]|\Z))",
        is_url_password,
    ),
    form("token", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,200}+)@", looks_random),
    form(
        "password",
        "login",
        r"login\s{1,8}\S{1,80}+\s{1,8}password\s{1,8}(?P<secret>\S{4,200}+)",
        is_url_password,
    ),
    form("password", "_auth", r"_auth[ \t]{0,4}=[ \t]{0,4}\"?(?P<secret>[A-Za-z0-9+/]{8,}={0,2})", is_login_pair),
    form("password", '"auth"', r"\"auth\"\s{0,8}:\s{0,8}\"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})\"", is_login_pair),
    form(
        "password",
        ":543 :6432:",
        r":(?:543\d|6432):[^\s:]{1,80}:[^\s:]{1,80}:(?P<secret>[^\s:]{4,200}+)",
        is_typed_password,
    ),
    form("password hash", "$2a$ $2b$ $2y$", r"\$2[aby]\$\d\d\$(?P<secret>[./A-Za-z0-9]{53})(?![./A-Za-z0-9])"),
    form(
        "password hash",
        "$apr1$ $1$ $5$ $6$ $y$",
        r"\$(?:apr1|[156y])\$(?:rounds=\d{1,9}\$)?(?P<secret>[./A-Za-z0-9]{1,24}\$[./A-Za-z0-9]{20,}+)",
    ),
    # settings that name the secret in one field and hold it in the next
    form(
        "secret",
        "name Name key Key",
        r"(?:name|key)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?[\w.:-]{0,60}(?i:"
        + _TELLING
        + rf"){_ONLY_TELLS}"
        + r"[\w.-]{0,20}\\{0,3}[\"']?\s{0,3},?\s{0,24}\\{0,3}[\"']?value\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}"
        r"[\"']?(?P<secret>[^\s\"'`\\,}{<>]{4,4096}+)",
        is_typed_password,
    ),
    form(
        "secret",
        "assword> asswd> ecret> oken> piKey> ccessKey> assphrase> ASSWORD> OKEN> ECRET>",
        r"[A-Za-z]{1,10}>(?P<secret>[^\s<>]{4,4096}+)</[\w:.-]{0,40}(?i:word|passwd|secret|token|key|phrase)>",
        is_typed_password,
    ),
    form(
        "secret",
        "variable output",
        rf"(?:variable|output){_GAP}\\{{0,3}}\"[^\"\\\n]{{1,80}}\\{{0,3}}\"[ \t]{{0,4}}\{{"
        r"(?=[^{}]{0,2000}?\bsensitive\s{0,12}=\s{0,4}true)[^{}]{0,2000}?\b(?:default|value)[ \t]{0,12}=[ \t]{0,4}"
        r"\\{0,3}\"(?P<secret>[^\"\\\n]{3,4096}+)",
        is_url_password,
    ),
    form(
        "secret",
        "variable",
        rf"variable{_GAP}\\{{0,3}}\"[\w-]{{0,60}}(?i:{_TELLING}){_ONLY_TELLS}[\w-]{{0,20}}\\{{0,3}}\"[ \t]{{0,4}}\{{"
        r"[^{}]{0,2000}?\bdefault[ \t]{0,12}=[ \t]{0,4}\\{0,3}\"(?P<secret>[^\"\\\n]{4,4096}+)",
        is_typed_password,
    ),
    # command lines
    form(
        "password",
        "curl wget http",
        r"(?:curl\b|wget\b|https?[ \t])[^\n]{0,400}?[ \t](?:-u|--user|-U|--proxy-user|-a|--auth)[ =]?[\"']?"
        r"[\w.@+-]{1,80}:(?P<secret>[^\s\"'`]{4,200}+)",
        is_url_password,
    ),
    form(
        "password",
        "mysql mariadb mongo",
        r"(?:mysql|mariadb|mongo)\w{0,12}+\b[^\n|;&]{0,300}?[ \t]-p(?!ort\b)(?P<secret>[^\s\"'`=-][^\s\"'`]{2,200}+)",
        is_url_password,
    ),
    form(
        "password",
        "mongo",
        rf"mongo\w{{0,12}}+\b[^\n|;&]{{0,300}}?[ \t]-p{_GAP}(?P<secret>\S{{4,200}}+)",
        is_typed_password,
    ),
    form(
        "password", "sshpass", rf"sshpass{_GAP}-p[ \t]{{0,4}}{_SPOKEN}(?P<secret>[^\s\"'`]{{3,200}}+)", is_url_password
    ),
    form(
        "password",
        "login",
        rf"login\b[^\n|;&]{{0,200}}?[ \t](?:-p|--password)[ =]{{1,4}}{_SPOKEN}(?P<secret>[^\s\"'`]{{4,200}}+)",
        is_url_password,
    ),
    form(
        "password",
        "redis-cli",
        rf"redis-cli\b[^\n|;&]{{0,200}}?[ \t]-a{_GAP}{_SPOKEN}(?P<secret>[^\s\"'`]{{3,200}}+)",
        is_url_password,
    ),
    form("password", "-pass", rf"-pass(?:in|out)?{_GAP}pass:(?P<secret>[^\s\"'`]{{3,200}}+)", is_url_password),
    form(
        "password",
        "ldap",
        rf"ldap\w{{0,12}}+\b[^\n|;&]{{0,300}}?[ \t]-w{_GAP}{_SPOKEN}(?P<secret>[^\s\"'`]{{4,200}}+)",
        is_url_password,
    ),
    form(
        "password",
        "smbclient",
        rf"smbclient\b[^\n|;&]{{0,300}}?[ \t]-U[ \t]{{0,4}}{_SPOKEN}[^\s%]{{1,80}}%(?P<secret>[^\s\"'`]{{3,200}}+)",
        is_url_password,
    ),
    form(
        "password",
        "zip",
        rf"zip\b[^\n|;&]{{0,300}}?[ \t]-P[ \t]{{0,4}}{_SPOKEN}(?P<secret>[^\s\"'`]{{3,200}}+)",
        is_url_password,
    ),
    form(
        "private key",
        "Private-Lines:",
        r"Private-Lines:[ \t]{0,4}\d{1,4}\r?\n(?P<secret>(?:[A-Za-z0-9+/=]{1,120}(?:\r?\n|\Z)){1,200})",
    ),
    form(
        "recovery phrase",
        "nemonic phrase",
        r"(?:nemonic|phrase)[\"']?(?:[ \t]{0,4}[:=]| is:?)[ \t]{0,4}[\"']?"
        r"(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    ),
    form(
        "cookie",
        "TRUE FALSE",
        r"\t(?:TRUE|FALSE)\t/[^\t\n]{0,200}\t(?:TRUE|FALSE)\t\d{1,20}\t[^\t\n]{1,200}\t(?P<secret>\S{8,4096}+)",
        lead=1,
    ),
)
"""In this order: the more special before the more general."""

_JAR = re.compile(
    r"(?i:(?<![\w-])(?:set-)?cookies?)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?P<jar>[^\n\"'<>]{1,8192}+)"
    r"|curl\b[^\n]{0,400}?[ \t](?:-b|--cookie)[ =]?[\"']?(?P<given>[^\n\"'<>]{1,8192}+)"
)
_PAIR = re.compile(r"[^=;,\s]{1,80}=(?P<secret>[^;,\s\\]{12,4096}+)")


def cookie_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the values in `Cookie` and `Set-Cookie` headers that look like sessions, not like choices."""
    if "ookie" not in text and "OOKIE" not in text and "curl" not in text:
        return
    for jar in _JAR.finditer(text):
        start, end = jar.span("jar" if jar.group("jar") is not None else "given")
        for pair in _PAIR.finditer(text, start, end):
            if looks_random(pair.group("secret")) and "[redacted:" not in pair.group("secret"):
                yield pair.span("secret")
