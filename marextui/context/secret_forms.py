"""The published forms of keys and tokens, and the places where a secret stands by syntax (cases 135, 137; I10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from marextui.context.secret_values import is_header_value, is_url_password, looks_random


@dataclass(frozen=True, slots=True)
class Form:
    """One form. The group `secret` of `pattern` is what is replaced; `accept` has the last word on it.

    The pattern is tried where one of `needles` stands, with `lead` characters before it. Its repetitions are bounded
    or possessive, so that a search is linear in the text.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] | None = None
    lead: int = 0

    def found_in(self, text: str) -> Iterator[re.Match[str]]:
        """All places of the form in `text`, in no order; with several needles a place may be found twice."""
        for needle in self.needles:
            at = text.find(needle)
            while at >= 0:
                match = self.pattern.match(text, max(0, at - self.lead))
                if match and (self.accept is None or self.accept(match.group("secret"))):
                    yield match
                at = text.find(needle, max(at + len(needle), match.end() if match else 0))


_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\x1b\[\dm)|(?<=\x1b\[\d\dm))"
"""Where a key may begin: not inside a word, but behind an escaped line end, an escaped byte or a colour."""


def _form(kind: str, needles: str, pattern: str, accept: Callable[[str], bool] | None = None, *, lead: int = 0) -> Form:
    if "(?P<secret>" not in pattern:
        pattern = rf"{_START}(?P<secret>{pattern})"
    return Form(kind, tuple(needles.split()), re.compile(pattern, re.ASCII), accept, lead)


FORMS: tuple[Form, ...] = (
    _form("anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _form(
        "api key",
        "sk-",
        r"sk-(?:(?:proj-|or-v1-|svcacct-|admin-|live-|test-|lf-)?+(?=[A-Za-z_-]{0,80}+\d)[A-Za-z0-9_-]{20,}+"
        r"|[A-Za-z0-9]{20,}+(?![A-Za-z0-9_-]))",
    ),
    _form("stripe key", "k_live_ k_test_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,}+", lead=1),
    _form("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}+"),
    _form(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+)",
    ),
    _form(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glagent- glsoat- glimt-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|agent|soat|imt)-[A-Za-z0-9_.-]{16,}+",
    ),
    _form("aws key", "AKIA ASIA AGPA AROA ABIA ACCA", r"(?:AKIA|ASIA|AGPA|AROA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _form("google key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _form("google secret", "GOCSPX- ya29.", r"(?:GOCSPX-[A-Za-z0-9_-]{20,}+|ya29\.[A-Za-z0-9_-]{20,}+)"),
    _form("slack token", "xox xapp-", r"(?:xox[abceoprs]-[A-Za-z0-9-]{10,}+|xapp-\d-[A-Za-z0-9-]{10,}+)"),
    _form(
        "webhook address",
        "hooks.slack.com/ /api/webhooks/",
        r"(?:hooks\.slack\.com/services/|/api/webhooks/)(?P<secret>[A-Za-z0-9_/-]{20,}+)",
    ),
    _form("hugging face token", "hf_", r"hf_[A-Za-z0-9]{20,}+(?![A-Za-z0-9_])"),
    _form(
        "package registry token",
        "npm_ pypi- rubygems_ oy2 dckr_",
        r"(?:npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{40,}+|rubygems_[a-f0-9]{40,}+|oy2[a-z0-9]{43}"
        r"|dckr_[a-z]{3}_[A-Za-z0-9_-]{20,}+)",
    ),
    _form("telegram token", ":AA", r":(?P<secret>AA[A-Za-z0-9_-]{32,}+)"),
    _form("sendgrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,40}+\.[A-Za-z0-9_-]{16,80}+"),
    _form("cloud token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{40,}+"),
    _form("vault token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,}+"),
    _form(
        "shop token",
        "shpat_ shpca_ shppa_ shpss_ sq0",
        r"(?:shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+)",
    ),
    _form(
        "api key",
        "gsk_ xai- pplx- r8_ nvapi- tvly- fw_ lin_api_ ntn_ figd_ glsa_ sntrys_ PMAK- NRAK- dapi sbp_ key- ATATT3 AGE-",
        r"(?:gsk_[A-Za-z0-9]{30,}+|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{30,}+|r8_[A-Za-z0-9]{30,}+"
        r"|nvapi-[A-Za-z0-9_-]{40,}+|tvly-[A-Za-z0-9-]{20,}+|fw_[A-Za-z0-9]{20,}+|lin_api_[A-Za-z0-9]{30,}+"
        r"|ntn_[A-Za-z0-9]{30,}+|figd_[A-Za-z0-9_-]{30,}+|glsa_[A-Za-z0-9_]{30,}+|sntrys_[A-Za-z0-9_+/=-]{40,}+"
        r"|PMAK-[a-f0-9-]{40,}+|NRAK-[A-Z0-9]{20,}+|dapi[a-f0-9]{32}|sbp_[a-f0-9]{40}|key-[a-f0-9]{32}"
        r"|ATATT3[A-Za-z0-9_=-]{40,}+|AGE-SECRET-KEY-1[A-Z0-9]{50,}+)(?![A-Za-z0-9])",
        looks_random,
    ),
    _form("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _form(
        "signed address",
        "?sig= &sig= &X-Amz-Signature= &Signature=",
        r"[?&](?:sig|X-Amz-Signature|Signature)=(?P<secret>[A-Za-z0-9%/+=_-]{40,}+)",
    ),
    _form(
        "token",
        "uthorization UTHORIZATION",
        r"(?i:authorization)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?(?i:bearer|basic|token|apikey|digest)"
        r"[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)",
        is_header_value,
        lead=1,
    ),
    _form("token", "earer EARER", r"(?i:\bbearer)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{12,}+)", looks_random, lead=1),
    _form(
        "password",
        "://",
        r"://[^\s/:@\"'`<>]{0,200}+:(?P<secret>[^\s/@\"'`<>]{3,200}+)@",
        is_url_password,
    ),
    _form(
        "password",
        "login",
        r"login[ \t]{1,4}\S{1,80}+[ \t]{1,4}password[ \t]{1,4}(?P<secret>\S{4,200}+)",
        is_url_password,
    ),
)
"""In this order: the more special before the more general."""
