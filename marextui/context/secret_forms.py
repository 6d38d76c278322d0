"""The published forms of keys and tokens (cases 135, 137; I10); `secret_places` has those told by their place."""

from __future__ import annotations

from marextui.context.secret_form import Form, form
from marextui.context.secret_places import PLACES
from marextui.context.secret_values import is_published, looks_random

_PUBLISHED: tuple[Form, ...] = (
    form(
        "aws secret",
        "AKIA ASIA",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[\"']?[\t ,;:|=\n]{1,4}[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        is_published,
    ),
    form("anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    form(
        "api key",
        "sk-",
        r"sk-(?:(?:proj-|or-v1-|svcacct-|admin-|live-|test-|lf-)?+(?=[A-Za-z_-]{0,80}+\d)[A-Za-z0-9_-]{20,}+"
        r"|[A-Za-z0-9]{20,}+(?![A-Za-z0-9_-]))",
    ),
    form("stripe key", "k_live_ k_test_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{10,}+", lead=1),
    form("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}+"),
    form(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+)",
    ),
    form(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glagent- glsoat- glimt-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|agent|soat|imt)-[A-Za-z0-9_.-]{16,}+",
    ),
    form(
        "aws key",
        "AKIA ASIA AGPA AROA ABIA ACCA",
        r"(?:AKIA|ASIA|AGPA|AROA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        is_published,
    ),
    form("google key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    form("google secret", "GOCSPX- ya29.", r"(?:GOCSPX-[A-Za-z0-9_-]{20,}+|ya29\.[A-Za-z0-9_-]{20,}+)"),
    form("slack token", "xox xapp-", r"(?:xox[abceoprs]-[A-Za-z0-9-]{10,}+|xapp-\d-[A-Za-z0-9-]{10,}+)"),
    form(
        "webhook address",
        "hooks.slack.com/ /api/webhooks/",
        r"(?:hooks\.slack\.com/services/|/api/webhooks/)(?P<secret>[A-Za-z0-9_/-]{20,}+)",
    ),
    form("hugging face token", "hf_", r"hf_[A-Za-z0-9]{20,}+(?![A-Za-z0-9_])"),
    form(
        "package registry token",
        "npm_ pypi- rubygems_ oy2 dckr_",
        r"(?:npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{40,}+|rubygems_[a-f0-9]{40,}+|oy2[a-z0-9]{43}"
        r"|dckr_[a-z]{3}_[A-Za-z0-9_-]{20,}+)",
    ),
    form("telegram token", ":AA", r":(?P<secret>AA[A-Za-z0-9_-]{32,}+)"),
    form("sendgrid key", "SG.", r"SG\.[A-Za-z0-9_-]{16,40}+\.[A-Za-z0-9_-]{16,80}+"),
    form("twilio key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])", looks_random),
    form("cloud token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{40,}+"),
    form("vault token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_-]{20,}+"),
    form(
        "shop token",
        "shpat_ shpca_ shppa_ shpss_ sq0",
        r"(?:shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+)",
    ),
    form(
        "api key",
        "gsk_ xai- pplx- r8_ nvapi- tvly- fw_ lin_api_ ntn_ figd_ glsa_ sntrys_ PMAK- NRAK- dapi sbp_ key- ATATT3 AGE-",
        r"(?:gsk_[A-Za-z0-9]{30,}+|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{30,}+|r8_[A-Za-z0-9]{30,}+"
        r"|nvapi-[A-Za-z0-9_-]{40,}+|tvly-[A-Za-z0-9-]{20,}+|fw_[A-Za-z0-9]{20,}+|lin_api_[A-Za-z0-9]{30,}+"
        r"|ntn_[A-Za-z0-9]{30,}+|figd_[A-Za-z0-9_-]{30,}+|glsa_[A-Za-z0-9_]{30,}+|sntrys_[A-Za-z0-9_+/=-]{40,}+"
        r"|PMAK-[a-f0-9-]{40,}+|NRAK-[A-Z0-9]{20,}+|dapi[a-f0-9]{32}|sbp_[a-f0-9]{40}|key-[a-f0-9]{32}"
        r"|ATATT3[A-Za-z0-9_=-]{40,}+|AGE-SECRET-KEY-1[A-Z0-9]{50,}+)(?![A-Za-z0-9])",
        looks_random,
    ),
    form("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
)
FORMS = (*_PUBLISHED, *PLACES)
"""In this order: the more special before the more general."""
