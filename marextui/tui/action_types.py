"""What a user action is. Bindings, footer, palette, slash commands and help derive from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding

Scope = Literal[
    "app",
    "composer",
    "conversation",
    "gauge",
    "omissions",
    "memory",
    "notes",
    "form",
    "viewer",
    "permission",
    "picker",
    "setup",
]


@dataclass(frozen=True, slots=True)
class Action:
    """One user action, declared once.

    `id` ("omissions.open") is what people rebind in the settings; `keys` the default keys, comma-separated, "" for
    none; `method` the Textual action on the widget of `scope` ("open" runs `action_open`); `slash` the slash command
    without its slash, "" for none; `args` its argument hint ("[title]"); `footer` whether the footer shows it.
    """

    id: str
    title: str
    help: str
    scope: Scope
    method: str
    keys: str = ""
    slash: str = ""
    args: str = ""
    footer: bool = False
    priority: bool = False
    """The key works whatever has the focus (Textual priority binding)."""


def bindings_for(actions: Iterable[Action], scope: Scope) -> list[Binding]:
    """Textual bindings of the actions of `scope`; ids are kept so that `App.set_keymap` can rebind them."""
    return [
        Binding(a.keys, a.method, a.title, show=a.footer, priority=a.priority, id=a.id, tooltip=a.help)
        for a in actions
        if a.scope == scope and a.keys
    ]
