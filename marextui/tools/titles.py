"""What a call is about, in one line: for tool cards, the omissions list and the work log. Raw text, never sanitised."""

from __future__ import annotations

from typing import Any

from marextui.tools.arguments import ALIASES, ArgumentError, load_object

TITLE_CHARS = 200

_SUBJECTS: dict[str, tuple[str, ...]] = {
    "read": ("file_path",),
    "ls": ("path",),
    "glob": ("pattern",),
    "grep": ("pattern",),
    "edit": ("file_path",),
    "write": ("file_path",),
    "bash": ("command",),
    "readomittedcontent": ("content_id",),
    "memorypage": ("name",),
    "tracker": ("name",),
}
_ANY = ("file_path", "path", "command", "pattern", "query", "content_id", "url", "name")


def subject(name: str, arguments: str) -> str:
    """The path, command, pattern or id of a call, one line; "" when the arguments do not say (or are no JSON yet)."""
    given = _given(arguments)
    for key in _SUBJECTS.get(name.lower(), _ANY):
        for spelling in (key, *ALIASES.get(key, ())):
            value = given.get(spelling)
            if isinstance(value, str) and value.strip():
                return _one_line(value)
    return "." if name.lower() == "ls" else ""


def title(name: str, arguments: str) -> str:
    """One line for a tool card: `Read src/app.py`, `Bash ls -la`, `Grep TODO in src`."""
    about = subject(name, arguments)
    given = _given(arguments)
    if name.lower() in {"glob", "grep"}:
        where = next((v for k in ("path", *ALIASES["path"]) if isinstance(v := given.get(k), str) and v.strip()), "")
        if about and where.strip() not in {"", ".", "./"}:
            about += f" in {_one_line(where)}"
    if name.lower() in {"memorypage", "tracker"} and isinstance(given.get("action"), str):
        about = f"{given['action']} {about}"
    if name.lower() == "read" and about and isinstance(given.get("offset"), int):
        about += f" from line {given['offset']}"
    return _one_line(f"{name} {about}")


def _given(arguments: str) -> dict[str, Any]:
    try:
        return load_object(arguments)
    except ArgumentError:  # still streaming, or malformed: the name alone has to do
        return {}


def _one_line(text: str) -> str:
    line = " ".join(text[: TITLE_CHARS * 8].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
