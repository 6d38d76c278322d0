"""Secrets stay in the running conversation: nothing on disk, at a second model or in what people export holds them.

Cases 135, 137; I10. Every secret is made up; strings are put together here so that no scanner takes them for real ones.
"""

from __future__ import annotations

import json
import logging
import random
import string
import sys
import zlib
from pathlib import Path

import pytest

from marextui.cli import CleanFormatter
from marextui.context.budget import Window
from marextui.context.redaction import redact
from marextui.engine.archive import LATEST
from marextui.engine.events import CompactionFinished
from marextui.models.types import Accepted, Finished, TextChunk, ToolCallChunk
from marextui.tools.recall import Recall
from marextui.tools.types import ToolContext, ToolResult
from marextui.tui.history import PromptHistory
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

_DICE = random.Random(20)
LETTERS = string.ascii_letters + string.digits
B64 = LETTERS + "+/"
HEX = "0123456789abcdef"
PW = "hunter2Secret!9"


def made(n: int, letters: str = LETTERS, start: str = "") -> str:
    """A made-up secret: never two alike, always a digit and a letter."""
    return start + "a1" + "".join(_DICE.choice(letters) for _ in range(n - 2))


def pem(kind: str = "RSA ") -> tuple[str, str]:
    """(a private key, one line of its body)."""
    body = [made(64, B64) for _ in range(9)]
    return "\n".join([f"-----BEGIN {kind}PRIVATE KEY-----", *body, f"-----END {kind}PRIVATE KEY-----"]), body[4]


def _pem_shapes() -> list[tuple[str, str, str]]:
    shapes = []
    for name, line in (
        ("as it is", "{}"),
        ("indented in YAML", "    {}"),
        ("as Read numbers lines", "    7→{}"),
        ("as grep names files", "keys/id_rsa-12-{}"),
        ("as a diff", "+{}"),
        ("quoted in a mail", "> {}"),
        ("glued in code", '    "{}\\n" +'),
        ("with CRLF", "{}\r"),
    ):
        key, inside = pem()
        shapes.append((f"private key {name}", "\n".join(line.format(x) for x in key.split("\n")), inside))
    key, inside = pem("OPENSSH ")
    shapes.append(("private key in JSON", json.dumps({"private_key": key}), inside))
    key, inside = pem("EC ")
    shapes.append(("private key without its end", "\n".join(key.split("\n")[:7]), inside))
    key, inside = pem("")
    shapes.append(("private key without its beginning", "\n".join(key.split("\n")[4:]), inside))
    for name, line in (("", "{}"), (" as Read numbers lines", "    7→{}"), (" with CRLF", "{}\r")):
        for start in ("MIIEpAIBAAKCAQEA", "MIIEvQIBADANBgkqhkiG", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "MHcCAQEE"):
            body = [made(64 - len(start), B64, start=start), *(made(64, B64) for _ in range(4)), made(22, B64) + "=="]
            shapes.append((f"body of a key {start}{name}", "\n".join(map(line.format, body)), body[2]))
    one = "MIIEvQIBADANBgkqhkiG" + made(400, B64)
    shapes.append(("body of a key in one line", f"key_material: {one}", one[60:90]))
    for name, around in (
        ("below its command", "$ sed -n 5,9p ~/.ssh/id_rsa\n{}"),
        ("below its name", "==> tls/server.key <==\n\n{}"),
        ("below words", "Here is a part of my private key:\n\n{}\nwhy"),
        ("in the middle of grep", "{}"),
    ):
        lead = "keys/id_ed25519-12-" if "grep" in name else ""
        body = [made(70, B64) for _ in range(4)]
        shapes.append((f"piece of a key {name}", around.format("\n".join(lead + x for x in body)), body[1]))
    return shapes


def _shown(template: str, secret: str) -> tuple[str, str]:
    return template.replace("@@", secret), secret


AWS = made(40, B64)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + made(43)
LOGIN = "dXNlcjpwYXNzd29yZDEyMw=="
SHAPES: dict[str, tuple[str, str]] = {
    "AWS id": _shown("AWS_ACCESS_KEY_ID=@@", "AKIA" + "ABCD2345" * 2),
    "AWS secret in env": _shown("AWS_SECRET_ACCESS_KEY=@@", AWS),
    "AWS secret in ini": _shown("aws_secret_access_key = @@", AWS),
    "AWS secret in JSON": _shown('{"SecretAccessKey": "@@"}', AWS),
    "AWS secret in its CSV": _shown("Access key ID,Secret access key\nAKIA" + "ABCD2345" * 2 + ",@@", AWS),
    "AWS request signature": _shown("AWS4-HMAC-SHA256 Credential=x/y, SignedHeaders=host, Signature=@@", made(64, HEX)),
    "GitHub token in a remote": _shown("https://x-access-token:@@@github.com/a/b", made(36, start="ghp_")),
    "GitHub token alone": _shown("https://@@@github.com/a/b.git", made(36, start="gho_")),
    "GitHub fine-grained": _shown("@@", made(60, start="github_pat_")),
    "Slack token": _shown("SLACK=@@", made(24, start="xoxb-123456789012-123456789012-")),
    "Slack webhook": _shown("https://hooks.slack.com/services/@@", "T01ABCD/B02ABCD/" + made(24)),
    "JWT": _shown("got @@ back", JWT),
    "Postgres address": _shown("postgres://app:@@@db.internal:5432/app", PW),
    "Redis without user": _shown("redis://:@@@cache:6379/0", PW),
    "Mongo cluster": _shown("mongodb+srv://u:@@@c0.example.net/x?retryWrites=true", PW),
    "password with a slash": _shown("postgres://app:@@@db/app", "ab/cd9+ef"),
    "password with an at": _shown("postgres://app:@@@db/app", "p@ssw0rd99"),
    "Terraform": _shown('variable "db_login" {\n  default   = "@@"\n  sensitive = true\n}', "swordfish"),
    "Terraform, the other way": _shown('variable "x" {\n  sensitive=true\n  type = string\n  default="@@"\n}', PW),
    "Terraform, by its name": _shown('variable "db_password" {\n  default = "@@"\n}', PW),
    "Terraform output": _shown('output "kube" {\n  value     = "@@"\n  sensitive = true\n}', PW),
    "Terraform in JSON": _shown(json.dumps('variable "api_token" {\n default = "##"\n}').replace("##", "@@"), PW),
    "Twilio key": _shown("TWILIO_SID: @@", "SK" + made(32, HEX)),
    "SQL Server": _shown("Server=tcp:x;Database=d;User ID=u;Password=@@;Encrypt=true", PW),
    "SQL Server, short words": _shown("Server=x;Uid=u;Pwd=@@;", PW),
    "JDBC": _shown("jdbc:mysql://h/db?user=u&password=@@&useSSL=true", PW),
    "libpq": _shown("host=db user=app password=@@ dbname=x", PW),
    "Azure storage": _shown("AccountName=a;AccountKey=@@;EndpointSuffix=x", made(86, B64) + "=="),
    "Azure bus": _shown("SharedAccessKeyName=Root;SharedAccessKey=@@", made(43, B64) + "="),
    "env line": _shown("DB_PASSWORD=@@", PW),
    "env line, quoted": _shown('export DB_PASSWORD="@@"', PW),
    "env line, words": _shown("DB_PASS=@@", "correct-horse-battery-staple-42"),
    "env line, client": _shown("PGPASSWORD=@@ psql -h db", "s3cr3tPazz"),
    "env line, old client": _shown("MYSQL_PWD=@@ mysql", "s3cr3tPazz"),
    "Django": _shown("SECRET_KEY = 'django-insecure-@@'", made(50, LETTERS + "!@#%^*(-_=+)")),
    "Laravel": _shown("APP_KEY=base64:@@", made(43, B64) + "="),
    "WordPress": _shown("define( 'DB_PASSWORD', '@@' );", "s3cr3tPazz9"),
    "Kubernetes env": _shown("- name: DB_PASSWORD\n  value: @@", "s3cr3tPazz9"),
    "task definition": _shown('{"name":"API_TOKEN","value":"@@"}', made(32)),
    "XML element": _shown("<server><password>@@</password></server>", "s3cr3tPazz9"),
    "XML attribute": _shown('<add key="ApiSecret" value="@@"/>', "s3cr3tPazz9xyz"),
    "mysql flag": _shown("mysql -u root -p@@ app", "s3cr3tPazz9"),
    "curl user": _shown("curl -sS --user 'admin:@@' https://api/x", "s3cr3tPazz9"),
    "sshpass": _shown("sshpass -p '@@' ssh x", "s3cr3tPazz9"),
    "docker login": _shown("docker login -u me -p @@ reg", "s3cr3tPazz9"),
    "redis-cli": _shown("redis-cli -h c -a @@ ping", "s3cr3tPazz9"),
    "openssl": _shown("openssl rsa -passin pass:@@ -in k", "s3cr3tPazz9"),
    "flag": _shown("tool --password @@ x", "s3cr3tPazz9"),
    "flag with equals": _shown("tool --api-key=@@", made(32)),
    "bearer header": _shown("Authorization: Bearer @@", made(40)),
    "basic header": _shown("authorization: basic @@", LOGIN),
    "header of another scheme": _shown("Authorization: GenieKey @@", made(36)),
    "header without scheme": _shown("Authorization: @@", made(40)),
    "header in JSON": _shown('{"headers":{"Authorization":"Bearer @@"}}', made(40)),
    "key header": _shown("-H 'x-api-key: @@'", made(32, HEX)),
    "token header": _shown("PRIVATE-TOKEN: @@", made(20)),
    "cookie header": _shown("Cookie: theme=dark; sessionid=@@; lang=en", made(32)),
    "cookie set": _shown("Set-Cookie: PHPSESSID=@@; HttpOnly; Path=/", made(26)),
    "cookie, signed": _shown("cookie: connect.sid=s%3A@@.x", made(32)),
    "cookie of curl": _shown("curl -b 'session=@@' https://x", made(32)),
    "cookie jar": _shown(".x.com\tTRUE\t/\tTRUE\t1790000000\tsid\t@@", made(32)),
    "netrc": _shown("machine api.x.com\n  login me\n  password @@", "s3cr3tPazz9"),
    "npmrc": _shown("//registry.example/:_authToken=@@", made(36, start="npm_")),
    "npmrc, old": _shown("_auth=@@", LOGIN),
    "docker config": _shown('"auths": {"reg": {"auth": "@@"}}', LOGIN),
    "pgpass": _shown("db.internal:5432:app:appuser:@@", "s3cr3tPazz9"),
    "htpasswd": _shown("admin:$apr1$tAMq94F8$@@", made(22)),
    "shadow": _shown("root:$6$yla4szJx$@@:19000:0:99999:7:::", made(86)),
    "Google key": _shown("key=@@", made(35, start="AIza")),
    "OpenAI key": _shown("@@", made(60, start="sk-proj-")),
    "Anthropic key": _shown("@@", made(90, start="sk-ant-api03-")),
    "Stripe key": _shown("@@", made(24, start="sk_" + "live_")),
    "vault token": _shown("@@", made(90, start="hvs.")),
    "Discord token": _shown("DISCORD_TOKEN=@@", "MTA" + made(21) + "." + made(6) + "." + made(38)),
    "token with dots": _shown("client_secret: @@", made(12) + "." + made(21)),
    "WireGuard": _shown("PrivateKey = @@", made(43, B64) + "="),
    "PuTTY": _shown("Private-Lines: 1\n@@\nPrivate-MAC: 0", made(60, B64)),
    "address with a token": _shown("https://api/v1?access_token=@@&x=1", made(40)),
    "signed address": _shown("https://b/k?X-Amz-Signature=@@", made(64, HEX)),
    "Sentry address": _shown("https://@@@o1.ingest.example/2", made(32, HEX)),
    "behind a colour": _shown("\x1b[32m@@\x1b[0m", made(36, start="ghp_")),
    "in a file name": _shown("cat /home/me/keys/@@.txt", made(36, start="ghp_")),
    "escaped JSON": _shown('{\\"password\\":\\"@@\\"}', "s3cr3tPazz9"),
    "said in English": _shown("the password is @@, use it", "s3cr3tPazz9"),
    "said in French": _shown("le mot de passe est @@", "s3cr3tPazz9"),
    "said in German": _shown("das Passwort lautet @@", "s3cr3tPazz9"),
    "said in Chinese": _shown("密码是 @@", "s3cr3tPazz9"),
    "said with spaces": _shown("here is my api key: @@", made(32)),
    "recovery phrase": _shown(
        "mnemonic: @@", "abandon ability able about above absent absorb abstract absurd abuse access accident"
    ),
    **{name: (text, inside) for name, text, inside in _pem_shapes()},
}


@pytest.mark.parametrize(("text", "secret"), SHAPES.values(), ids=SHAPES.keys())
def test_a_secret_in_any_shape_is_replaced_and_twice_is_once(text: str, secret: str) -> None:
    clean = redact(f"before\n{text}\n(after)")
    assert secret not in clean
    assert clean.startswith("before")
    assert clean.endswith("(after)")
    assert redact(clean) == clean


READABLE = {
    "npm lock": '"integrity": "sha512-' + made(86, B64) + '=="',
    "go sum": "golang.org/x/net v0.1.0 h1:" + made(43, B64) + "=",
    "pip hash": "requests==2.31 --hash=sha256:" + made(64, HEX),
    "cargo lock": 'checksum = "' + made(64, HEX) + '"',
    "commit": "commit " + made(40, HEX),
    "git index": "index 83db48f..bf2a9c1 100644",
    "image digest": "FROM python@sha256:" + made(64, HEX),
    "pinned action": "uses: actions/checkout@" + made(40, HEX),
    "UUID": "request 3f2a1b4c-1111-4222-8333-abcdefabcdef failed",
    "ETag": 'Etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "trace": "trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
    "manual's AWS id": "AKIAIOSFODNN7EXAMPLE",
    "manual's AWS secret": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "variable": "DB_PASSWORD=${DB_PASSWORD}",
    "stand-in": "API_KEY=your-api-key-here",
    "changeme": "DB_PASSWORD=changeme",
    "from the environment": "password = os.environ['DB_PASSWORD']",
    "header in prose": "Authorization: Bearer <token>",
    "header of a variable": 'curl -H "Authorization: Bearer $TOKEN" x',
    "curl with variables": "curl -u $USER:$PASS x",
    "public key": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC me@host",
    "public key block": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "counts": "tokens: 12480, max_tokens=4096, prompt_tokens=345",
    "token type": 'token_type: "bearer12345678"',
    "test results": "PASS: tests/unit/test_1.py\n--- PASS: TestFoo1 (0.00s)\nPASS=12 FAIL=2",
    "words with pass in them": "bypass: route53, compass=n0rth42, npm pass-through: v1.2.3",
    "keys of other kinds": "primary_key=True, cache_key = f'{user}:{page1}', sort_key=lambda x1: x1",
    "ports and paths": "http://localhost:8080/@scope/pkg@1.0 http://[::1]:3000/@vite/client",
    "git remote": "git@github.com:org/repo.git",
    "cdn": "https://cdn.example/npm/vue@3.2.1/dist",
    "container user": "docker run -u 1000:1000 --user node:node img",
    "mysql port": "mysql -port 3306 -h x",
    "preserve flag": "cp -p file1 file2 && ssh -p 2222 host",
    "theme cookie": "Cookie: theme=dark; consent=true",
    "input field": '<input type="password" name="password">',
    "generic type": "const t: Promise<Token> = f1(); Map<String, ApiKey> m1",
    "pairs of names": '("token", "type"), ("password", "hash")',
    "counted field": "name: token_count\nvalue: 1234",
    "prose": "the secret is to keep it simple; password reset link was sent",
    "sizes": "10.0.0.1:5432:open:tcp",
    "Terraform, not sensitive": 'variable "region" {\n  default = "eu-west-1a2"\n}\noutput "x" {\n value = "a1b2"\n}',
    "Terraform, of a variable": 'variable "p" {\n  sensitive = true\n  default = "${var.password}"\n}',
    "Terraform, next to one": 'variable "p" {\n  sensitive = true\n}\nvariable "q" {\n  default = "eu-west-1a2"\n}',
    "Terraform, about one": 'variable "db_password_length" {\n  default = "16x4"\n}',
    "Twilio account": "AC" + made(32, HEX),
    "a word that ends so": "TASK" + made(32, HEX),
    "image in lines": "image/png;base64\n" + "\n".join(made(76, B64) for _ in range(9)),
    "image near a key in code": "const k = row.key(1)\nimg = b64(\n" + "\n".join(made(76, B64) for _ in range(9)),
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n"
    + "\n".join(made(64, B64) for _ in range(9))
    + "\n-----END CERTIFICATE-----",
    "public key of a pair": "id_rsa.pub\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + made(300, B64) + " me@host",
    "hashes beside a key": "\n".join(f"{made(64, HEX)}  id_rsa" for _ in range(4)),
    "hashes below a key": "sums of id_rsa and server.key\n" + "\n".join(made(64, HEX) for _ in range(4)),
    "two lines below a name": "private key:\n" + "\n".join(made(64, B64) for _ in range(2)),
    "a long path": "private key of\n" + "\n".join("srcMain1/" * 7 + "a" for _ in range(4)),
}


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE.keys())
def test_what_only_looks_like_a_secret_stays_readable(text: str) -> None:
    """A redaction that eats hashes, ids and code would hurt the work it protects."""
    assert redact(text) == text


# -- the whole store ---------------------------------------------------------------------------------------------------

TOKEN = made(36, start="ghp_")
SESSION = made(32)
KEY, KEY_LINE = pem()
SPLIT = made(40, start="sk-proj-")
SPOKEN = "s3cr3tPazz9"
HIDDEN = (TOKEN, SESSION, KEY_LINE, SPLIT, SPOKEN, AWS)
SUMMARY = f"""## Session Intent
- make the parser of src/parser.py faster; the password is {SPOKEN}
## Files Modified
- src/parser.py: loop unrolled, uses {TOKEN}
## Decisions Made
- keep the old API and AWS_SECRET_ACCESS_KEY={AWS}
## Current State
- tests pass
## Next Steps
- measure src/parser.py"""


def holding(folder: Path) -> list[tuple[str, str]]:
    """(file, secret) of every secret in any file below `folder`, also inside compressed ones and inside FTS terms."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".z":
                data = zlib.decompress(data)
            found += [(path.name, s) for s in HIDDEN if s.encode() in data or s.lower().encode() in data.lower()]
    return found


@pytest.fixture
async def rig(tmp_path: Path):
    made_rigs: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(16_384, "discovery"))
        made_rigs.append(await Rig(tmp_path, **kw).start())
        return made_rigs[-1]

    yield start
    for one in made_rigs:
        await one.engine.close()


def split_reply() -> list[object]:
    """A reply whose secrets are cut by the stream: in its text, and in the arguments of its call."""
    return [
        Accepted(),
        TextChunk(f"I use {SPLIT[:11]}"),
        TextChunk(f"{SPLIT[11:]} and the cookie"),
        ToolCallChunk(0, "c-split", "Bash", '{"command": "curl -b \'session=' + SESSION[:9]),
        ToolCallChunk(0, "", "", SESSION[9:] + "' https://x\"}"),
        Finished("tool_calls", None),
    ]


async def test_after_a_whole_conversation_no_file_holds_a_secret(rig, tmp_path: Path) -> None:
    """Keys in the request, in split chunks, in arguments, outputs, names of files, summary, memory, usage, exports."""
    outputs = [
        f"$ cat keys/{TOKEN}.txt\nexport GH={TOKEN}\n{KEY}\n" + "line of log\n" * 200,
        f"Set-Cookie: sid={SESSION}; Path=/\nAWS_SECRET_ACCESS_KEY={AWS}\n" + "more\n" * 5_000,
    ]
    chat = ScriptedChat(
        [
            split_reply(),  # type: ignore[list-item]
            call(("Bash", json.dumps({"command": "env", "env": {"DB_PASSWORD": SPOKEN}})), ids=["c2"]),
            say(f"The password is {SPOKEN}; the token {TOKEN}."),
        ],
        summaries=[say(SUMMARY)],
    )
    r = await rig(chat=chat, tools=ScriptedTools({"Bash": outputs}))
    await r.ask(f"Make src/parser.py faster. My password is {SPOKEN} and GH={TOKEN}, keep the old API.")
    live = "\n".join(texts(r.chat.turns[-1]))
    assert TOKEN in live, "the running conversation goes on with what was really said"
    for n in range(6):
        await r.ask(f"Go on with src/parser.py, step {n}: " + "x" * 3_000)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    assert r.chat.summary_requests
    told = "\n".join("\n".join(texts(q)) for q in r.chat.summary_requests)
    assert [s for s in HIDDEN if s in told] == [], "case 137: no second model is told"
    assert "keep the old API" in (tmp_path / "memory" / "MEMORY.md").read_text()
    for fmt in ("markdown", "json"):
        await r.engine.export(f"out.{fmt}", fmt=fmt)
    await r.engine.rename(f"talk about {TOKEN}")
    assert holding(tmp_path) == []
    await r.engine.close()
    assert holding(tmp_path) == []

    again = await rig(wanted=LATEST, chat=ScriptedChat([say("ok")]))
    await again.ask("What was the password again?")
    assert [s for s in HIDDEN if s in "\n".join(texts(again.chat.turns[-1]))] == []
    again.check_log()
    tool = Recall()
    result = await tool.run(
        {"query": "password token cookie"}, ToolContext(recaller=again.engine.state.runner.recaller)
    )
    assert isinstance(result, ToolResult)
    assert [s for s in HIDDEN if s in result.text] == []
    stored = [await again.engine.read_omission(i.id) or "" for i in await again.engine.omissions()]
    assert stored
    assert [s for s in HIDDEN for text in stored if s in text] == []


async def test_opaque_fields_are_not_touched(rig, tmp_path: Path) -> None:
    """I10: what only a provider can read stays to the byte, whatever it looks like; the text beside it does not."""
    from marextui.context.messages import ImagePart, OtherPart, TextPart, canonical_json

    signature = made(120, B64) + "sk-ant-api03-" + made(40)
    picture = "data:image/png;base64," + made(400, B64)
    block = canonical_json({"type": "thinking", "thinking": f"use {TOKEN}", "signature": signature})
    r = await rig()
    r.engine.submit_content((TextPart(f"see {TOKEN}"), ImagePart(picture), OtherPart(block)))
    await r.until(lambda e: type(e).__name__ == "TurnFinished")
    await r.idle()
    await r.engine.close()
    again = await rig(wanted=LATEST)
    content = again.history()[0].content
    assert isinstance(content, tuple)
    assert content[1] == ImagePart(picture)
    assert isinstance(content[2], OtherPart)
    assert json.loads(content[2].raw)["signature"] == signature
    assert TOKEN not in content[2].raw
    assert holding(tmp_path) == []


async def test_earlier_prompts_are_remembered_without_secrets(tmp_path: Path) -> None:
    """The history of the composer is a file as well: up-arrow brings the prompt back, the disk has a placeholder."""
    history = PromptHistory(tmp_path / "prompts.jsonl")
    await history.add(f"use {TOKEN} and {SPOKEN} as password: {SPOKEN}")
    assert TOKEN in (history.older("") or "")
    on_disk = (tmp_path / "prompts.jsonl").read_text()
    assert TOKEN not in on_disk
    again = PromptHistory(tmp_path / "prompts.jsonl")
    await again.load()
    assert "[redacted: github token" in again.entries[0]


def test_a_traceback_in_our_own_log_holds_no_secret() -> None:
    """An exception quotes what it stumbled over."""
    try:
        raise ValueError(f"cannot parse Authorization: Bearer {SESSION} of {TOKEN}")
    except ValueError:
        record = logging.LogRecord("marextui", logging.ERROR, __file__, 1, "failed: %s", (TOKEN,), sys.exc_info())
    line = CleanFormatter("%(message)s").format(record)
    assert "Traceback" in line
    assert TOKEN not in line
    assert SESSION not in line
