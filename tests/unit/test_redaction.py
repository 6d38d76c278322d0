"""Secrets are replaced, everything else is untouched (cases 135, 137; I10). All secrets here are made up."""

from __future__ import annotations

import pytest

from marextui.context.redaction import redact

R = "x7Kq" * 12
SECRETS = [
    ("key is sk-" + R, "api key"),
    ("sk-proj-" + R, "api key"),
    ("sk-ant-api03-" + R, "anthropic key"),
    ("ghp_" + "a1" * 18, "github token"),
    ("github_pat_" + "a1" * 20, "github token"),
    ("glpat-" + "a1" * 10, "gitlab token"),
    ("AKIA" + "ABCD2345" * 2, "aws key"),
    ("AIza" + "b" * 35, "google key"),
    ("xoxb-" + "123456789-abc", "slack token"),
    ("hf_" + "Ab" * 17, "hugging face token"),
    ("npm_" + "aB3" * 12, "package registry token"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "jwt"),
    ("Authorization: Bearer " + R, "token"),
    ("curl -H 'authorization: bearer " + R + "'", "token"),
    ("postgres://admin:hunter22@db:5432/x", "password"),
    ("PASSWORD=hunter22", "password"),
    ('"db_password": "hunter22 and more"', "password"),
    ("export API_KEY=" + R, "secret"),
    ("client_secret: 'abc123def456'", "secret"),
    ("mot de passe: hunter22", "password"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----", "private key"),
    ("-----BEGIN PRIVATE KEY-----\ncut in the middle", "private key"),
]


@pytest.mark.parametrize(("text", "kind"), SECRETS)
def test_secrets_are_replaced_by_their_kind(text: str, kind: str) -> None:
    """Cases 135, 137: nothing of the secret stays, and doing it twice changes nothing."""
    clean = redact(f"before {text} after")
    assert f"[redacted: {kind}]" in clean
    for secret in (R, "hunter22", "a1a1a1", "MIIE", "cut in the middle", "abc123def456", "c2lnbmF0dXJl"):
        assert secret not in clean
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "The password field is required.",
        "password: str = Field(...)",
        "token = os.environ['TOKEN']",
        "api_key=settings.api_key",
        "PASSWORD=${DB_PASSWORD}",
        "password=<your password>",
        "max_tokens: 1200, prompt_tokens=345",
        "commit 49edabe0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6",
        "https://example.org:8443/path?x=1",
        "the sk-learn style, sk-chasing-dot-before-animation-name",
        "tokens = text.split()",
        "token: string",
        "ssh git@example.org:org/repo.git",
    ],
)
def test_code_and_prose_are_left_alone(text: str) -> None:
    """A redaction that eats code would hurt the work it protects."""
    assert redact(text) == text
