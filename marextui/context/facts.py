"""Small pure extractors of what code can know for certain: paths, errors, commands, test counts, user constraints.

They never raise on untrusted text. What tool calls touched is in `context.calls`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from marextui.context.calls import TouchKind, call_command, fenced_commands, touched_files
from marextui.context.messages import Message

_EXTENSIONS = """
    py pyi ipynb js jsx mjs cjs ts tsx vue svelte json jsonl json5 toml yaml yml ini cfg conf env lock md mdx rst txt
    csv tsv html htm css scss sass less xml svg rs go java kt kts scala c h cc cpp cxx hpp hh cs fs swift m mm rb php
    pl pm lua r jl ex exs erl hs ml mli clj sh bash zsh fish ps1 bat sql db sqlite proto graphql tf nix gradle cmake
    mk diff patch log png jpg jpeg gif webp pdf ico woff2 pony zig dart sol vim el tex bib gz zip tar tgz whl pem crt
    key service
"""
_EXT = "(?:" + "|".join(sorted(_EXTENSIONS.split(), key=len, reverse=True)) + ")"
_BARE = r"(?:Dockerfile|Makefile|Gemfile|Rakefile|Procfile|Jenkinsfile)"
_PATH = re.compile(
    r"(?<![\w:/@.~-])(?:"
    r"(?:~|\.{1,2})?/?(?:[\w@+.\[\]-]+/)+[\w@+.\[\]-]*[\w\]]"  # with a directory
    r"|[A-Za-z]:\\(?:[\w.-]+\\)*[\w.-]+"  # Windows
    r"|/[\w@+-][\w@+.-]*"  # /etc
    r"|(?:~|\.{1,2})/[\w@+.-]+"  # ~/notes.md
    rf"|[\w@+-][\w@+.-]*\.{_EXT}(?!\w|\.\w)"  # name.ext
    r"|\.[a-z][\w-]*(?:ignore|rc|env|config|attributes)\b|\.env\b"  # .gitignore
    rf"|{_BARE}\b"
    r")"
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"'`)\]]+", re.IGNORECASE)
_ROOTS = frozenset(
    ("src", "lib", "tests", "test", "docs", "doc", "app", "bin", "pkg", "cmd", "config", "scripts", "internal")
)


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _is_path(found: str) -> bool:
    if "/" not in found or found.startswith(("./", "../", "~/")):
        return len(found) > 2
    parts = found.strip("/").split("/")
    if found.startswith("/"):
        return len(parts) > 1 or found in {"/etc", "/tmp", "/usr", "/var", "/opt", "/home", "/root", "/workspace"}
    # "3/4", "2024/05/01", "and/or", "read/write": numbers or words with slashes are no paths
    if all(re.fullmatch(r"[\d.]+", p) for p in parts):
        return False
    return len(parts) > 2 or "." in parts[-1] or any(c in found for c in "_-.") or parts[0] in _ROOTS


def paths(text: str) -> tuple[str, ...]:
    """File paths in `text`, in order of first occurrence, without duplicates; URLs are not paths (P17, I12)."""
    found = (m.group().rstrip(".") for m in _PATH.finditer(_URL.sub(" ", text)))
    return _unique(p for p in found if _is_path(p))


_ERROR = re.compile(
    r"\s*(?:"
    r"[\w.]*(?:Error|Exception|Failure|Panic|Exit|Interrupt)(?:\s*[:(]|\s*$)"
    r"|(?:fatal|panic|erreur|fehler)\b[^:!]{0,40}[:!]"
    r"|(?:[^\s:]*:[ \t]*){0,6}(?:error|ERROR|Error)\b(?:\[\w+\]|\s+\w+\d+)?\s*:"
    r"|E\s{2,}\S|FAILED\b|FAIL\b|ERROR\b|--- FAIL:|error\[\w+\]|npm ERR!|\S+\(\d+,\d+\): error "
    r"|\S+ - \w*(?:Error|Exception)\b"
    r"|.*(?:command not found|No such file or directory|Permission denied|Segmentation fault|segmentation fault)"
    r"|.*(?:undefined reference|\bcannot find\b|panicked at)"
    r"|\[Your proposed edit has introduced new syntax error"
    r")"
)
_NOT_ERROR = re.compile(r"\b(?:0|no) (?:errors?|failed|failures)\b", re.IGNORECASE)


def error_lines(text: str) -> tuple[str, ...]:
    """Lines that state an error, stripped but otherwise verbatim, in order, without duplicates (P17)."""
    return _unique(
        line.strip()
        for line in text.splitlines()
        if len(line) < 2000 and _ERROR.match(line) and not _NOT_ERROR.search(line)
    )


def commands(message: Message) -> tuple[str, ...]:
    """Shell commands an assistant message runs: its calls, or for agents without tools its fenced shell blocks."""
    if message.role != "assistant":
        return ()
    if message.tool_calls:
        return tuple(c for c in map(call_command, message.tool_calls) if c)
    return fenced_commands(message.text)


_COUNT = re.compile(
    r"\b(\d+)\s+(passed|passing|failed|failing|failures?|errors?|skipped|ignored|pending|xfailed|xpassed)\b",
    re.IGNORECASE,
)
_COUNT_LINE = re.compile(r"={3}|Tests?:|test result:|\bin \d|passing|failing|^\s*\d+ (?:passed|failed)")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_UNITTEST_FAILED = re.compile(r"^FAILED \((.+)\)$", re.MULTILINE)
_GO = re.compile(r"^(ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))", re.MULTILINE)


def test_counts(text: str) -> str:
    """The last test result in `text`, as `3 passed, 1 failed`; "" when there is none.

    Reads the closing lines of pytest, cargo, jest, mocha, unittest and go.
    """
    for line in reversed(text.splitlines()):
        if len(line) > 400 or not _COUNT_LINE.search(line):
            continue
        found = [(n, kind.lower()) for n, kind in _COUNT.findall(line)]
        if any(kind.startswith(("pass", "fail", "error")) for _, kind in found):
            return ", ".join(f"{n} {kind}" for n, kind in found if n != "0" or kind.startswith("fail"))
    ran = _UNITTEST.search(text)
    if ran:
        failed = _UNITTEST_FAILED.search(text)
        return f"{ran.group(1)} run, " + (f"FAILED ({failed.group(1)})" if failed else "OK")
    packages = _GO.findall(text)
    if packages:
        bad = packages.count("FAIL")
        return f"{len(packages) - bad} packages ok, {bad} failed"
    return ""


test_counts.__test__ = False  # type: ignore[attr-defined]  # pytest would collect the name where it is imported

_SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[\w\"'«“*`-])|\n+|(?<=[。！？])")
_LIST_MARK = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)

_ENGLISH = (
    # "I don't have", "I've always": a person speaking of themselves constrains nothing
    r"never|(?<!ve )always|must(?:n['’]t| not)?|(?<!I )(?<!we )do(?:n['’]t| not)",
    r"should(?:n['’]t| not)|have to|needs? to (?:be|stay|keep)",
    r"avoid|prefer|instead of|rather than|only (?:use|touch|change|edit|the|in)|use (?:only )?\S+|stick (?:to|with)",
    r"keep (?:the|it|all|using)|make sure|ensure|required?|forbidden|not allowed",
    r"no (?:new|more|longer|other|external|breaking)|without (?:changing|breaking|using|adding|touching)",
    r"let['’]?s (?:use|go with|keep|stick|call|name|make)|go with|we(?:['’]ll| will) use|from now on|remember",
    r"importantly|important:|is important|at (?:most|least)|stop (?:using|doing)|switch(?:ed)? to|decided?|agreed",
    r"limit(?:ed)? to|approved?|turn (?:on|off)|(?:dis|en)able",
    r"(?:should|must|will|shall) (?:be|say|use|run|listen|have|return)",
    r"you (?:may|must|shall|can) ?not|you can['’]t (?!imagine|believe|see)|hands off",
    r"leave (?:\S+ ){1,3}(?:alone|as is|untouched)|I (?:do not|don['’]t) want (?:any|you|to)",
    r"ask (?:me )?(?:before|first)|keep (?:\w+ ){1,3}(?:under|below|within|short)|be (?:brief|concise|terse|verbose)",
)
_FRENCH = (
    r"jamais|toujours|ne\s+(?:\w+\s+){1,4}(?:pas|plus)|n['’]\w+\s+(?:\w+\s+)?(?:pas|plus)|il faut|doi[ts]|doivent",
    r"devez|évite[zr]?|préf[èé]re[zr]?|préférons|plutôt que|au lieu de|seulement|uniquement|utilise[zr]?|utilisons",
    r"garde[zr]?|gardons|assure[zr]?|obligatoire|interdit|sans (?:changer|casser|ajouter|toucher|modifier)",
    r"désormais|dorénavant|au (?:plus|moins|maximum)|décid(?:é|ons|e)|on (?:garde|prend|utilise|reste)|pas de",
)
_OTHERS = (r"niemals|nie|immer|nicht|muss|darf|verwende|nunca|siempre|debe|usa|evita|sempre|deve",)
_CONSTRAINT = re.compile(
    r"\b(?:" + "|".join(_ENGLISH + _FRENCH + _OTHERS) + r")\b|必须|不要|禁止|务必|しないで|必ず|使って",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(r"^\s*(?:[>$#<]|at \S+\(|File \")|[{};]\s*$|^\s*</?\w+[^>]*>")


def sentences(text: str) -> list[str]:
    """Sentences and lines of prose, list marks stripped; fenced code left out."""
    parts = (_LIST_MARK.sub("", p).strip() for p in _SENTENCE.split(_FENCE.sub("\n", text)))
    return [p for p in parts if p]


def user_constraints(message: Message) -> tuple[str, ...]:
    """Sentences of a user's message that constrain or decide (never, always, use X, il faut…), verbatim (Part 2, 8).

    Only the user's own words count: other roles and synthetic messages give none (cases 126, 127).
    """
    if message.role != "user" or message.synthetic:
        return ()
    return _unique(
        s
        for s in sentences(message.text)
        if (8 if s.isascii() else 4) <= len(s) <= 500
        and not s.endswith("?")
        and not _NOT_PROSE.search(s)
        and _CONSTRAINT.search(s)
    )


__all__ = [
    "TouchKind",
    "commands",
    "error_lines",
    "paths",
    "sentences",
    "test_counts",
    "touched_files",
    "user_constraints",
]
