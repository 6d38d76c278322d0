"""The reference tables of the README, generated from the registry of actions and the schema of settings.

`python -m marextui.tui.reference README.md` rewrites the parts between the `<!-- name:begin -->` / `<!-- name:end -->`
marks; a test holds the file to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from marextui.settings import settings_table
from marextui.tui.actions import ACTIONS

SCOPES = {
    "app": "Everywhere",
    "composer": "Composer",
    "conversation": "Conversation",
    "gauge": "Context gauge",
    "omissions": "Omissions",
    "memory": "Memory",
    "notes": "Pages and trackers",
    "form": "Forms",
    "viewer": "Text viewer",
    "permission": "Permission question",
    "picker": "Lists to pick from",
    "setup": "First-run screen",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def keys_table() -> str:
    """Markdown: one table per scope; the id is what `[keys]` in the settings rebinds."""
    parts: list[str] = []
    for scope, title in SCOPES.items():
        rows = [a for a in ACTIONS if a.scope == scope and a.keys]
        if not rows:
            continue
        parts += [f"**{title}**", "", "| key | action | id |", "|---|---|---|"]
        for action in rows:
            keys = ", ".join(f"`{k}`" for k in action.keys.split(","))
            parts.append(f"| {keys} | {_cell(action.help)} | `{action.id}` |")
        parts.append("")
    return "\n".join(parts).rstrip()


def commands_table() -> str:
    """Markdown: the slash commands."""
    rows = ["| command | what it does |", "|---|---|"]
    for action in ACTIONS:
        if action.slash:
            rows.append(f"| `/{' '.join(w for w in (action.slash, action.args) if w)}` | {_cell(action.help)} |")
    return "\n".join(rows)


def settings_reference() -> str:
    """Markdown: every setting with its type, default and meaning."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, kind, default, unit, text in settings_table():
        shown = f"`{default}`" if default else "–"
        rows.append(f"| `{key}` | {kind}{f' ({unit})' if unit else ''} | {shown} | {_cell(text)} |")
    return "\n".join(rows)


def filled(text: str) -> str:
    """`text` with the generated parts brought up to date. Raises ValueError when a mark is missing."""
    for name, body in (("keys", keys_table()), ("commands", commands_table()), ("settings", settings_reference())):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin not in text or end not in text:
            raise ValueError(f"the text has no {begin} … {end}")
        head, rest = text.split(begin, 1)
        tail = rest.split(end, 1)[1]
        text = f"{head}{begin}\n{body}\n{end}{tail}"
    return text


def main() -> None:
    """Rewrite the file named on the command line."""
    file = Path(sys.argv[1])
    file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
