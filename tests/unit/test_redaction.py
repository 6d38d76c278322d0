"""Secrets are replaced, everything else is untouched (cases 135, 137; I10). All secrets here are made up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import marextui
from marextui.context import redaction
from marextui.context.redaction import placeholder, redact, redact_value

R = "x7Kq" * 12
SECRETS = [
    ("key is sk-" + R, "api key"),
    ("sk-proj-" + R, "api key"),
    ("sk-abcdefghijklmnopqrstuvwx", "api key"),
    ("sk-ant-api03-" + R, "anthropic key"),
    ("ghp_" + "a1" * 18, "github token"),
    ("\x1b[32mghp_" + "a1" * 18, "github token"),
    ('{"out": "ok\\nghp_' + "a1" * 18 + '"}', "github token"),
    ("github_pat_" + "a1" * 20, "github token"),
    ("glpat-" + "a1" * 10, "gitlab token"),
    ("AKIA" + "ABCD2345" * 2, "aws key"),
    ("AIza" + "b" * 35, "google key"),
    ("xoxb-" + "123456789-abc", "slack token"),
    ("https://hooks.slack.com/services/" + "T01/B02/a1a1a1a1a1a1a1a1", "webhook address"),
    ("sk_" + "live_" + "a1" * 12, "stripe key"),
    ("whsec_" + "a1" * 12, "webhook secret"),
    ("hf_" + "Ab" * 17, "hugging face token"),
    ("npm_" + "aB3" * 12, "package registry token"),
    ("SG." + "a1" * 11 + "." + "a1" * 21, "sendgrid key"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "jwt"),
    ("Authorization: Bearer " + R, "token"),
    ("curl -H 'authorization: bearer " + R + "'", "token"),
    ("Authorization: Basic YWRtaW46aHVudGVyMjI=", "token"),
    ("postgres://admin:hunter22@db:5432/x", "password"),
    ("machine db login admin password hunter22", "password"),
    ("PASSWORD=hunter22", "password"),
    ("export DB_PASSWORD=swordfish", "password"),
    ('"db_password": "hunter22 and more"', "password"),
    ('{\\"password\\": \\"hunter22\\"}', "password"),
    ("mysql --password hunter22 -u root", "password"),
    ("my password is hunter22.", "password"),
    ("password = 'p@ss!wörd#'", "password"),
    ("passphrase: 'correct-horse-battery-staple'", "password"),
    ("export API_KEY=" + R, "secret"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "secret"),
    ("AccountKey=a1a1a1a1b2b2b2b2==;EndpointSuffix=x", "secret"),
    ("client_secret: 'abc123def456'", "secret"),
    ("//registry.npmjs.org/:_authToken=a1a1a1a1a1a1", "secret"),
    ("https://x.org/cb?access_token=a1a1a1a1a1a1&state=1", "secret"),
    ("mot de passe: hunter22", "password"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----", "private key"),
    ("-----BEGIN PRIVATE KEY-----\ncut in the middle", "private key"),
    ('"-----BEGIN OPENSSH PRIVATE KEY-----\\nMIIEabcdefghijklmnop\\n-----END OPENSSH PRIVATE KEY-----"', "private key"),
]
PIECES = re.compile(
    r"(?:x7Kq){4}|hunter22|(?:a1){3}|MIIE|cut in the middle|abc123def456|c2lnbmF0dXJl|YWRtaW46|swordfish|wörd"
    r"|battery|K7MDENG|abcdefghijklmnop"
)


@pytest.mark.parametrize(("text", "kind"), SECRETS)
def test_secrets_are_replaced_by_their_kind(text: str, kind: str) -> None:
    """Cases 135, 137: nothing of the secret stays, and doing it twice changes nothing."""
    clean = redact(f"before {text} after")
    assert f"[redacted: {kind} #" in clean
    assert not PIECES.search(clean)
    assert clean.startswith("before ")
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "The password field is required.",
        "password: str = Field(...)",
        "password = get_password()",
        "password = hash_password2(value)",
        "password=password",
        "connect(user=user, password=user_password)",
        "secret = secrets.token_urlsafe(32)",
        'PASSWORD_KEY = "password"',
        '"password": "Enter your password"',
        'password: "Mot de passe oublié"',
        "token = os.environ['TOKEN']",
        "token: str",
        "api_key=settings.api_key",
        "PASSWORD=${DB_PASSWORD}",
        "password=<your password>",
        "PWD=/home/me/project2",
        "max_tokens: 1200, prompt_tokens=345",
        "tokens=12345678901234",
        'token_type: "bearer12345678"',
        'eos_token = "<|endoftext|>"',
        "public key: abc123def456ghi789",
        "for key, value in items: key=value1234567890",
        "commit 49edabe0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6",
        "https://example.org:8443/path?x=1",
        "postgres://user:password@localhost/db",
        "postgres://user:${PW}@localhost/db",
        "the sk-learn style, sk-chasing-dot-before-animation-name",
        "task-0123456789012345678901234",
        "tokens = text.split()",
        "token: string",
        "ssh git@example.org:org/repo.git",
        "Bearer authentication is used here",
        "Authorization: Bearer YOUR_API_KEY",
        'if line.startswith("-----BEGIN PRIVATE KEY-----"):',
        'A = "-----BEGIN RSA PRIVATE KEY-----"\nB = "-----END RSA PRIVATE KEY-----"',
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "secretKeyRef: {name: db2, key: pw}",
    ],
)
def test_code_and_prose_are_left_alone(text: str) -> None:
    """A redaction that eats code would hurt the work it protects."""
    assert redact(text) == text


def test_equal_secrets_are_recognised_and_short_ones_not_guessed() -> None:
    """A fingerprint tells equal from different; of a short secret it is too coarse to confirm a guess."""
    one, other = "ghp_" + "a1" * 18, "ghp_" + "b2" * 18
    first, second, third = redact(f"{one} {other} {one}").split("] ")
    assert first + "]" == third
    assert first != second
    assert re.fullmatch(r"\[redacted: password #[0-9a-f]{2}, short\]", placeholder("password", "hunter22"))
    assert placeholder("jwt", "e" * 65).endswith(", long]")


def test_a_value_is_judged_by_its_key() -> None:
    """A JSON object separates the telling name from the value."""
    assert redact_value("db_password", "hunter22").startswith("[redacted: password #")
    assert redact_value("description", "hunter22") == "hunter22"
    assert redact_value("api_key", R).startswith("[redacted: secret #")
    assert redact_value("token_type", R) == R


HOSTILE = {
    "names": "token=",
    "quotes": 'token="a',
    "passwords": 'password="',
    "keys": "-----BEGIN PRIVATE KEY-----",
    "broken keys": "-----BEGIN PRIVATE KEY----- a\n",
    "addresses": "://a:",
    "schemes": "://",
    "prefixes": "sk-",
    "long prefixes": "sk-" + "a-" * 30,
    "jwts": "eyJ" + "a" * 50 + ".",
    "words": "mot de ",
    "dotted": "password=a.b.",
    "logins": "login a password ",
    "identifiers": "password=" + "a" * 4000 + "!1",
    "blanks": "password" + " " * 50,
    "commands": "curl login mysql -p zip ",
    "cookies": "Cookie: a=",
    "fields": "name: token ",
    "doors": "://a:b@",
    "ends of keys": "-----END PRIVATE KEY-----\n",
    "bodies of keys": "a" * 64 + "\n",
    "phrases": "phrase: able ",
    "hashes": "$1$a$",
    "variables": 'variable "a" {',
    "sensitive variables": 'variable "a" { sensitive = true default = "',
    "starts of keys": "MIIEpAIBAAKC" + "aB3/" * 13 + "\n",
    "starts in a row": " MIIEpAIBAAKC",
    "pieces of keys": "id_rsa" + "aB3d" * 16 + "\n",
}


class _Counted:
    """Counts the values looked at: speed is asserted by work, never by time."""

    def __init__(self) -> None:
        self.chars = 0

    def __call__(self, name: str, word: str, value: str, *, quoted: bool, setting: bool = False) -> bool:
        self.chars += len(value)
        return False


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_linear(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """I10: a text made to backtrack ends, unchanged by a second pass, and no character is judged without end."""
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    clean = redact(text)
    assert redact(clean) == clean
    counted = _Counted()
    monkeypatch.setattr(redaction, "is_secret_value", counted)
    redact(text)
    assert counted.chars <= 2 * len(text)


def test_our_own_code_is_left_alone() -> None:
    """The rate of false alarms on real code: none in this package."""
    files = sorted(Path(marextui.__file__).parent.rglob("*.py"))
    assert len(files) > 50
    assert [f.name for f in files if redact(text := f.read_text(encoding="utf-8")) != text] == []


def test_json_stays_json() -> None:
    """A placeholder needs no escape."""
    raw = json.dumps({"password": "hunter22", "n": 1, "url": "redis://:hunter22@h"})
    assert set(json.loads(redact(raw))) == {"password", "n", "url"}
