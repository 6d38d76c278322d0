"""What tool calls did, read from their arguments in any program's vocabulary: shell commands and touched files.

Nothing here raises on untrusted text: arguments may be malformed JSON, commands may be no shell at all.
"""

from __future__ import annotations

import json
import re
import shlex
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from marextui.context.messages import Message, ToolCall

TouchKind = Literal["read", "created", "modified", "deleted"]

_COMMAND_KEYS = ("command", "cmd", "script", "bash_command", "shell_command", "code", "input")
_SHELL_TOOL = re.compile(r"bash|shell|exec|terminal|(?:^|_)run|command|console", re.IGNORECASE)
_JSON_STRING = re.compile(r'"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"?')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def arguments(call: ToolCall) -> Mapping[str, Any]:
    """The call's arguments as a mapping; from malformed JSON, the string values that can still be read."""
    try:
        loaded = json.loads(call.arguments) if call.arguments.strip() else {}
    except (ValueError, RecursionError):
        return {
            m.group(1): re.sub(r"\\(.)", lambda e: _ESCAPES.get(e.group(1), e.group(1)), m.group(2), flags=re.DOTALL)
            for m in _JSON_STRING.finditer(call.arguments)
        }
    return loaded if isinstance(loaded, Mapping) else {}


def call_command(call: ToolCall) -> str:
    """The shell (or interpreter) command `call` runs; "" when it runs none."""
    if not _SHELL_TOOL.search(call.name):
        return ""
    args = arguments(call)
    for key in _COMMAND_KEYS:
        value = args.get(key)
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return value[-1] if value[:1] and value[0] in {"bash", "sh", "zsh"} else shlex.join(value)
        if isinstance(value, str) and value.strip():
            if key == "input":  # prose around one command in backticks
                quoted = re.search(r"`{3,}\w*\n(.+?)`{3,}|`([^`]+)`", value, re.DOTALL)
                value = (quoted.group(1) or quoted.group(2)) if quoted else value
            return value.strip()
    return ""


_FENCED_COMMAND = re.compile(r"^```\w*(?:bash|sh|shell|console|zsh)\w*[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def fenced_commands(text: str) -> tuple[str, ...]:
    """Commands in fenced shell blocks: how agents without tool calls run them."""
    return tuple(c for m in _FENCED_COMMAND.finditer(text) if (c := m.group(1).strip()))


_FILE_LIKE = re.compile(r"[\w@+~./\\\[\]-]*\w[\w@+~./\\\[\]-]*")
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)(\w+)\1")
_SEPARATORS = frozenset({";", "&&", "||", "|", "|&", "&", "\n", "(", ")", ";;"})
_READERS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat", "tac", "od", "xxd", "file"})
_PREFIXES = frozenset({"sudo", "env", "time", "nohup", "command", "exec", "then", "do", "else", "if", "!", "{"})


def _is_file(word: str) -> bool:
    return (
        bool(_FILE_LIKE.fullmatch(word))
        and not word.startswith(("/dev/", "-"))
        and not word.isdigit()
        and ("." in word or "/" in word or word[:1].isupper())
        and word not in {".", "..", "/", "./"}
        and not re.fullmatch(r"[sy]/.*/.*/\w*", word)  # a script of sed
    )


def without_heredocs(command: str) -> str:
    """`command` without its here-documents and what opens them, in one pass: text of a file is no command.

    One that is never closed stays as it is.
    """
    if "<<" not in command:
        return command
    lines = command.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.strip(" \t"), []).append(number)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        line, closed, start = lines[at], at, 0
        around: list[str] = []
        for opener in _HEREDOC.finditer(line):
            places = ends.get(opener.group(2), [])
            after = bisect_right(places, closed)
            if after < len(places):
                closed = places[after]
                around.append(line[start : opener.start()])
                start = opener.end()
        kept.append(" ".join([*around, line[start:]]))
        at = closed + 1
    return "\n".join(kept)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(without_heredocs(command), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote: not a command we can be sure of
        return []


def _simple_command(words: list[str]) -> Iterator[tuple[str, TouchKind]]:
    start = 0
    while start < len(words) and (words[start] in _PREFIXES or re.match(r"\w+=", words[start])):
        start += 1
    words = words[start:]
    if not words:
        return
    name, rest = words[0].rsplit("/", 1)[-1], words[1:]
    options = [w for w in rest if w.startswith("-")]
    operands = [w for w in rest if not w.startswith("-")]
    files = [w for w in operands if _is_file(w)]
    if name == "git" and operands[:1] in (["rm"], ["mv"]):
        name, operands = operands[0], operands[1:]
    if name in {"sed", "gsed"} and any(re.match(r"-[a-zA-Z]*i|--in-place", o) for o in options):
        scripted = any(o in {"-e", "-f", "--expression"} for o in options)
        yield from ((f, "modified") for f in (files if scripted else [w for w in operands[1:] if _is_file(w)]))
    elif name == "sed" and "-n" in options:
        yield from ((f, "read") for f in operands[1:] if _is_file(f))
    elif name == "perl" and any(re.match(r"-\w*i", o) for o in options):
        yield from ((f, "modified") for f in files)
    elif name == "tee":
        yield from ((f, "modified" if "-a" in options or "--append" in options else "created") for f in files)
    elif name == "touch":
        yield from ((f, "created") for f in files)
    elif name in {"rm", "unlink"}:
        yield from ((f, "deleted") for f in files)
    elif name in {"cp", "mv"} and len(operands) >= 2:
        if name == "mv":
            yield from ((f, "deleted") for f in operands[:-1] if _is_file(f))
        if _is_file(operands[-1]):
            yield operands[-1], "created"
    elif name in _READERS:
        yield from ((f, "read") for f in files)


def command_files(command: str) -> Iterator[tuple[str, TouchKind]]:
    """Files a shell command touches as far as its words say: redirections, `sed -i`, tee, touch, rm, mv, cp, cat."""
    words: list[str] = []
    target: TouchKind | None = None
    for token in [*_tokens(command), ";"]:
        if token in _SEPARATORS or token.strip("\n;") == "":
            yield from _simple_command(words)
            words, target = [], None
        elif set(token) <= set("<>&|"):
            # ">&1" and "<" take a word that is no file we write
            target = None if "<" in token or token.endswith(">&") else ("modified" if ">>" in token else "created")
            if words and words[-1].isdigit():
                words.pop()
            if target is None:
                words.append("-<")
        elif target is not None:
            if _is_file(token):
                yield token, target
            target = None
        else:
            words.append(token)


_PATH_KEYS = frozenset(
    {
        "file_path",
        "filepath",
        "path",
        "filename",
        "file_name",
        "file",
        "target_file",
        "targetfile",
        "notebook_path",
        "absolute_path",
        "relative_path",
        "relative_workspace_path",
        "absolutepath",
        "new_path",
        "destination",
        "dest",
    }
)
_OLD_PATH_KEYS = ("old_path", "source", "src", "from")
_LIST_KEYS = ("paths", "files", "edits", "file_paths", "changes")
_VERBS: tuple[tuple[TouchKind, re.Pattern[str]], ...] = (
    ("deleted", re.compile(r"delete|remove|unlink|(?:^|_)rm(?:$|_)")),
    (
        "modified",
        re.compile(r"edit|replace|patch|insert|append|modify|update|undo|apply|rename|move|refactor|substitute"),
    ),
    ("created", re.compile(r"write|create|save|new_?file|add_?file|(?:^|_)touch")),
    ("read", re.compile(r"read|open|view|cat(?:$|_)|get_?file|show|fetch_?file|load|goto|scroll|^search_file$")),
)
_PATCH_FILE = re.compile(
    r"^(?:\*\*\* (Add|Update|Delete) File: (.+)|\+\+\+ (?:b/)?(\S+)|--- (?:a/)?(\S+)\n\+\+\+ /dev/null)", re.MULTILINE
)
_CODE_CALL = re.compile(
    r"\b([A-Za-z_]\w*)\s*\(\s*(?:\w+\s*=\s*)?[rf]?(['\"])([^'\"\n]{1,300})\2(?:\s*,\s*(['\"])([rwax]b?\+?)\4)?"
)


def _verb(name: str) -> TouchKind | None:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return next((kind for kind, pattern in _VERBS if pattern.search(snake)), None)


def patch_files(text: str) -> Iterator[tuple[str, TouchKind]]:
    """Files named by the headers of a unified diff or a `*** Update File:` patch."""
    kinds: dict[str, TouchKind] = {"Add": "created", "Update": "modified", "Delete": "deleted"}
    for m in _PATCH_FILE.finditer(text):
        if m.group(1):
            yield m.group(2).strip(), kinds[m.group(1)]
        elif m.group(4):
            yield m.group(4), "deleted"
        elif m.group(3) != "/dev/null":
            yield m.group(3), "modified"


def _code_files(code: str) -> Iterator[tuple[str, TouchKind]]:
    for m in _CODE_CALL.finditer(code):
        kind = _verb(m.group(1))
        if m.group(1) == "open":
            mode = m.group(5) or "r"
            kind = "created" if mode[0] in "wx" else "modified" if mode[0] == "a" else "read"
        if kind and _is_file(m.group(3)):
            yield m.group(3), kind


def _named_paths(args: Mapping[str, Any]) -> Iterator[str]:
    for key, value in args.items():
        lowered = key.lower()
        if lowered in _PATH_KEYS and isinstance(value, str) and value.strip():
            yield value.strip()
        elif lowered in _LIST_KEYS and isinstance(value, list):
            for item in value:
                if isinstance(item, str):
                    yield item
                elif isinstance(item, Mapping):
                    yield from _named_paths(item)
        elif lowered == "input" and isinstance(value, str):
            quoted = re.match(r"\s*`([^`\n]+)`", value)
            if quoted and _is_file(quoted.group(1)):
                yield quoted.group(1)


def call_files(call: ToolCall) -> Iterator[tuple[str, TouchKind]]:
    """(path, how) of each file `call` touches; duplicates possible."""
    args = arguments(call)
    command = call_command(call)
    if command and not any(k in args for k in ("path", "file_path")):
        yield from command_files(command)
        yield from patch_files(command)
        if "(" in command:
            yield from _code_files(command)
        return
    for key in ("patch", "diff", "input", "content", "patch_text"):
        value = args.get(key)
        if isinstance(value, str) and (_verb(call.name) == "modified" or key in {"patch", "diff"}):
            yield from patch_files(value)
    action = args.get("command")
    kind = (_verb(action) if isinstance(action, str) and " " not in action.strip() else None) or _verb(call.name)
    has_new = any(
        k in args for k in ("new_str", "new_string", "replace", "replacement", "insert_line", "new_content", "diff")
    )
    if kind == "modified" and not isinstance(action, str) and not has_new and "editor" in call.name.lower():
        kind = "created" if "file_text" in args or "content" in args else "read"
    if kind is None:
        return
    for key in _OLD_PATH_KEYS:
        old = args.get(key)
        if (
            isinstance(old, str)
            and kind == "modified"
            and _is_file(old)
            and re.search(r"move|rename", call.name.lower())
        ):
            yield old, "deleted"
    for path in _named_paths(args):
        if kind != "read" or _is_file(path):
            yield path, kind


def touched_files(message: Message) -> list[tuple[str, TouchKind]]:
    """(path, how) for each file the calls of an assistant message touch, in order, each pair once (P17, Part 2, 1).

    Only what the calls say: whether they succeeded stands in their results.
    """
    if message.role != "assistant":
        return []
    found: dict[tuple[str, TouchKind], None] = {}
    for call in message.tool_calls:
        found.update(dict.fromkeys(call_files(call)))
    if not message.tool_calls:
        for command in fenced_commands(message.text):
            found.update(dict.fromkeys(command_files(command)))
    return list(found)
