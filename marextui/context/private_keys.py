"""Where private keys stand in a text: whole, cut off at either end, or a piece of one that is surely one (135; I10)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARK = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"[\sA-Za-z0-9+/=:,.→|>\\-]{1,20000}")
"""What can follow the first line of a key whose end was cut off: base64, headers, line numbers, escaped line ends."""

_LEAD, _TRAIL = r"[^\n]{0,80}?(?<![A-Za-z0-9+/=])", r"={0,2}[\"'\\nr +,]{0,8}"
_LINE = re.compile(rf"{_LEAD}(?P<body>[A-Za-z0-9+/]{{40,}}){_TRAIL}")
_LAST_LINE = re.compile(rf"{_LEAD}(?P<body>[A-Za-z0-9+/]{{1,76}}){_TRAIL}")
_LINES = 200
"""Most lines of a key looked at."""

_START = re.compile(
    r"(?<![A-Za-z0-9+/=])(?:MII[A-Za-z0-9+/]{3}IBA(?:AKC|DAN)|b3BlbnNzaC1rZXktdjE|MHcCAQEE|MHQCAQEE|MIGHAgEAMBMG"
    r"|MIGkAgEBBD|MIGTAgEAMBMG|MIG2AgEAMBAG|MC4CAQAwBQYDK2V)"
)
_START_NEEDLES = (
    *("IBAAKC", "IBADAN", "b3BlbnNzaC1rZXktdjE", "MHcCAQEE", "MHQCAQEE", "MIGHAgEAMBMG", "MIGkAgEBBD"),
    *("MIGTAgEAMBMG", "MIG2AgEAMBAG", "MC4CAQAwBQYDK2V"),
)
"""How the body of a private key begins, and nothing else does: version 0 or 1 of its structure, or the name of SSH's
format. Certificates and public keys have other fields there. The needles are looked for first: that is faster."""

_WIDTHS = frozenset((64, 70, 76))
"""Characters of base64 in a line of a key."""
_WIDE_LINE = re.compile(rf"[A-Za-z0-9+/]{{{min(_WIDTHS)}}}")
_PIECE = 3
"""Lines of one width that are a piece of a key where a name says so."""
_NAMED = re.compile(
    r"\bid_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?!\w|\.pub)|ssh_host_\w{2,12}_key(?!\w|\.pub)|\bpriv(?:ate)?[ _.-]?key"
    r"|secret[ _-]key|key\.pem|\.key(?!\w|[ \t]*[=(])|\.ppk\b",
    re.IGNORECASE,
)
"""What files of private keys are called, and how people name them."""
_ABOVE = 3
"""Lines above a piece in which its name may stand."""


def key_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of private keys, in no order; linear in time."""
    if "PRIVATE KEY" in text:
        yield from _marked(text)
        yield from _tails(text)
    if any(needle in text for needle in _START_NEEDLES):
        at = 0
        for found in _START.finditer(text):
            for span in _from_line(text, found.start()) if found.start() >= at else ():
                at = span[1]
                yield span
    yield from _pieces(text)


def _marked(text: str) -> Iterator[tuple[int, int]]:
    """Keys with everything between their two lines; one cut in the middle goes as far as its body does."""
    marks = list(_MARK.finditer(text))
    at = 0
    for n, mark in enumerate(marks):
        if mark.group(1) != "BEGIN" or mark.start() < at:
            continue
        following = marks[n + 1] if n + 1 < len(marks) else None
        if following is not None and following.group(1) == "END" and following.start() - mark.end() < 40_000:
            end, body = following.end(), text[mark.end() : following.start()]
        else:
            found = _BODY.match(text, mark.end(), following.start() if following else len(text))
            body = found.group() if found else ""
            end = mark.end() + len(body.rstrip())
        if sum(c.isalnum() for c in body) < 6 or "[redacted:" in body or _is_code(body):
            continue  # a mention of the first line, in code or prose
        yield mark.start(), end
        at = end


def _is_code(body: str) -> bool:
    return ('"' in body or "'" in body) and not re.search(r"[A-Za-z0-9+/=]{16}", body)


def _tails(text: str) -> Iterator[tuple[int, int]]:
    """The end of a key whose beginning was cut off: whole lines of base64 above its last line."""
    for mark in _MARK.finditer(text):
        if mark.group(1) != "END":
            continue
        first = end = text.rfind("\n", 0, mark.start())
        for n in range(_LINES):
            above = text.rfind("\n", 0, first) if first > 0 else -1
            line = text[above + 1 : first].rstrip("\r")
            # the last line of a key is as long as is left over
            if first < 0 or not (_LINE.fullmatch(line) or (n == 0 and _LAST_LINE.fullmatch(line))):
                break
            first = above
        if first < end and _LINE.search(text[first + 1 : end]):
            yield first + 1, end


def _from_line(text: str, start: int) -> Iterator[tuple[int, int]]:
    """A body from its first line on, without the line that says what it is."""
    end = start
    for n in range(_LINES):
        stop = text.find("\n", end + bool(n))
        stop = len(text) if stop < 0 else stop
        line = text[(end + 1 if n else start) : stop].rstrip("\r")
        if not (_LINE.fullmatch(line) or (n and _LAST_LINE.fullmatch(line) and _mixed(line))):
            break
        end = stop
        if stop == len(text):
            break
    if end > start:
        yield start, end
    elif one := re.compile(r"[A-Za-z0-9+/=\\n]{40,}").match(text, start):  # in one line, as in JSON
        yield start, one.end()


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Lines from the middle of a key, where its name stands beside or just above them."""
    if not _WIDE_LINE.search(text) or not _NAMED.search(text):
        return
    at = 0
    run: list[tuple[int, int]] = []
    above: list[str] = []
    width, named = 0, False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        found = _LINE.fullmatch(bare) if len(bare) < 300 else None
        body = found.group("body") if found else ""
        if found and len(body) in _WIDTHS and (not run or len(body) == width) and _mixed(body):
            if not run:
                width = len(body)
                named = any(_NAMED.search(a) for a in above)
            named = named or bool(_NAMED.search(bare[: found.start("body")]))
            run.append((at, at + len(bare)))
        else:
            if len(run) >= _PIECE and named:
                last = _LAST_LINE.fullmatch(bare)
                yield run[0][0], at + len(bare) if last and _mixed(last.group("body")) else run[-1][1]
            run = []
            above = [*above[1 - _ABOVE :], bare[:300]]
        at += len(line)
    if len(run) >= _PIECE and named:
        yield run[0][0], run[-1][1]


def _mixed(body: str) -> bool:
    """Base64 of random bytes has all kinds of characters, and few slashes; hashes, words and paths have not."""
    kinds = any(c.isupper() for c in body), any(c.islower() for c in body), any(c.isdigit() for c in body)
    return all(kinds) and body.count("/") <= len(body) // 10
