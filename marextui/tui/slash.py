"""Slash commands at the start of a message: what is a command, what is text.

The rule, in full: a message is a command when it is one line and its first word is a slash followed by letters and
dashes only ("/model"). Anything else is text: a path ("/usr/bin is full"), a word with a dot or digit ("/etc.d"),
more than one line. A command nobody knows, or with words it does not take, is neither run nor sent; it is named, and
stays in the composer. A blank before the slash always makes it text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from marextui.tui.action_types import Action
from marextui.tui.completion import fuzzy

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z-]*)(?:[ \t]+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A known command and the text after it."""

    action: Action
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Looks like a command, is none; `near` are names that may have been meant.

    `excess` is what followed the name of a command that takes nothing after it: running it would lose that text.
    """

    name: str
    near: tuple[str, ...] = ()
    excess: str = ""


def parse(text: str, commands: Mapping[str, Action]) -> Command | Unknown | None:
    """The command `text` is, what was wrong with it, or None: text to send."""
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None or "\n" in text.strip():
        return None
    name, rest = match[1].lower(), (match[2] or "").strip()
    first, _, others = rest.partition(" ")
    two = f"{name} {first.lower()}"
    if two in commands:
        name, rest = two, others.strip()
    if name not in commands:
        return Unknown(name, tuple(fuzzy(name, list(commands))[:3]))
    if rest and not commands[name].args:
        return Unknown(name, tuple(n for n in commands if n.startswith(f"{name} ")), rest)
    return Command(commands[name], rest)


def completions(text: str, commands: Mapping[str, Action]) -> list[Action]:
    """Commands that the line typed so far may become; [] when it is no command line."""
    if not text.startswith("/") or "\n" in text or "/" in text[1:]:
        return []
    typed = text[1:].lower()
    if not re.fullmatch(r"[a-z -]*", typed):
        return []
    names = [n for n in commands if n.startswith(typed)]
    if not names and " " not in typed:
        names = fuzzy(typed, list(commands))
    return [commands[n] for n in names]
