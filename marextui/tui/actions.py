"""Every action of the screen, declared once: keys, palette, slash commands, footer, help and the README derive from it.

People rebind by id in the settings (`keys`); `keymap` turns that into what `App.set_keymap` takes, and `key_label` says
which key an action has now, so that footer and help never show a key that no longer works (case 39).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from marextui.tui.action_types import Action, Scope
from marextui.tui.pane_actions import PANE_ACTIONS

OWN_ACTIONS: tuple[Action, ...] = (
    # --- everywhere ------------------------------------------------------------------------------------------------
    Action("app.help", "Help", "Keys and commands of the focused pane", "app", "help", "f1", slash="help", footer=True),
    Action("app.palette", "Palette", "Find and run any action by name", "app", "palette", "ctrl+p", footer=True),
    Action("app.jump", "Jump", "Label the panes and go to one with a letter", "app", "jump", "ctrl+o", footer=True),
    Action("app.search", "Search", "Search the conversation", "app", "search", "ctrl+f", footer=True),
    Action(
        "search.next", "Next match", "Go to the next match of the search", "app", "search_next", "f6", priority=True
    ),
    Action(
        "search.previous",
        "Previous match",
        "Go to the match before",
        "app",
        "search_previous",
        "shift+f6",
        priority=True,
    ),
    Action(
        "app.escape",
        "Stop",
        "Close the popup, else drop the selection, else stop the running turn; idle: go to the composer",
        "app",
        "escape",
        "escape",
    ),
    Action(
        "app.copy_or_quit",
        "Copy, clear or quit",
        "Copy the selection; else clear the draft (undo brings it back); else ask once more and quit",
        "app",
        "copy_or_quit",
        "ctrl+c,super+c",
        priority=True,
    ),
    Action("app.focus_conversation", "Conversation", "Go to the conversation", "app", "pane('conversation')", "f2"),
    Action("app.focus_omissions", "Omissions", "Go to the stored tool outputs", "app", "pane('omissions')", "f3"),
    Action("app.focus_memory", "Memory", "Go to the memory pane", "app", "pane('memory')", "f4", slash="memory"),
    Action("app.focus_gauge", "Gauge", "Go to the context gauge", "app", "pane('gauge')", "f5"),
    Action(
        "app.focus_composer",
        "Composer",
        "Go to the composer; text typed in a pane goes there by itself",
        "app",
        "compose",
        "f10",
    ),
    Action("app.context", "Context", "What fills the next request, by category", "app", "context", slash="context"),
    Action("app.retry", "Retry", "Try again what failed last", "app", "retry", "f9"),
    Action(
        "app.scroll_page_up",
        "Page up",
        "Scroll the conversation up a page",
        "app",
        "scroll('page_up')",
        "pageup",
        priority=True,
    ),
    Action(
        "app.scroll_page_down",
        "Page down",
        "Scroll the conversation down a page",
        "app",
        "scroll('page_down')",
        "pagedown",
        priority=True,
    ),
    Action(
        "app.scroll_up",
        "Scroll up",
        "Scroll the conversation up a line",
        "app",
        "scroll('up')",
        "shift+up",
        priority=True,
    ),
    Action(
        "app.scroll_down",
        "Scroll down",
        "Scroll the conversation down",
        "app",
        "scroll('down')",
        "shift+down",
        priority=True,
    ),
    Action(
        "app.follow",
        "Newest",
        "Go to the newest line, also from the end of a line of the draft",
        "app",
        "follow",
        "end",
        priority=True,
    ),
    Action("app.status", "Status", "Model, context and usage in full", "app", "status", slash="status"),
    Action("app.compact", "Compact now", "Summarise the conversation so far", "app", "compact", slash="compact"),
    Action(
        "app.context_check",
        "Context check",
        "Five computed lines: trigger, sections, merge, facts kept, reads again",
        "app",
        "context_check",
        slash="context check",
    ),
    Action(
        "app.probe",
        "Probe",
        "Ask the model what it still knows of what was cut away, outside the conversation",
        "app",
        "probe",
        slash="probe",
    ),
    Action(
        "app.doctor",
        "Examine the server",
        "What the model's server is and can do, what its cache saves; yes: also a hosted one",
        "app",
        "doctor",
        slash="doctor",
        args="[yes]",
    ),
    Action(
        "app.compact_preview",
        "Preview compaction",
        "What would be kept, condensed and omitted, before it is",
        "app",
        "compact_preview",
        slash="compact preview",
    ),
    Action(
        "app.compact_offline",
        "Compact offline",
        "Summarise without asking a model",
        "app",
        "compact_offline",
        slash="compact offline",
    ),
    Action(
        "app.phase",
        "Begin a phase",
        "The phase before it has ended: compact it when that is worth it",
        "app",
        "phase",
        slash="phase",
        args="[name]",
    ),
    Action(
        "app.compact_undo",
        "Undo compaction",
        "Send again what was sent before the latest compaction; force: even if it no longer fits",
        "app",
        "compact_undo",
        slash="compact undo",
        args="[force]",
    ),
    Action(
        "app.memory_clear", "Clear memory", "Empty MEMORY.md, after asking", "app", "memory_clear", slash="memory clear"
    ),
    Action(
        "app.page",
        "Pages and trackers",
        "Pages and trackers of this project; with a name, that page in your editor",
        "app",
        "page",
        slash="page",
        args="[name]",
    ),
    Action(
        "app.tracker",
        "Set a tracker",
        "Set a tracker, as in /tracker weight 73 kg; without more, the list",
        "app",
        "tracker",
        slash="tracker",
        args="[name value unit]",
    ),
    Action(
        "app.economy",
        "Economy",
        "Save a local engine work, from now on: on or off; without a word, how things stand",
        "app",
        "economy",
        slash="economy",
        args="[on|off]",
    ),
    Action("app.model", "Model", "Pick another model", "app", "model", slash="model"),
    Action("app.new", "New conversation", "Start an empty conversation", "app", "new", slash="new"),
    Action("app.resume", "Resume", "Open an earlier conversation", "app", "resume", slash="resume", args="[id]"),
    Action("app.rename", "Rename", "Give this conversation a title", "app", "rename", slash="rename", args="[title]"),
    Action("app.copy_last", "Copy answer", "Copy the last answer as Markdown", "app", "copy_last", slash="copy"),
    Action(
        "app.export",
        "Export",
        "Write the whole conversation to a file (.md or .json)",
        "app",
        "export",
        slash="export",
        args="[path] [--replace]",
    ),
    Action("app.theme", "Theme", "Change the colours", "app", "theme", slash="theme", args="[name]"),
    Action("app.quit", "Quit", "Leave; nothing is lost", "app", "leave", slash="quit"),
    # --- composer --------------------------------------------------------------------------------------------------
    Action("composer.submit", "Send", "Send the message", "composer", "submit", "enter", footer=True, priority=True),
    Action(
        "composer.newline",
        "New line",
        "Start a new line (shift+enter only where the terminal sends it)",
        "composer",
        "newline",
        "ctrl+j,shift+enter",
        footer=True,
        priority=True,
    ),
    Action("composer.up", "Up", "Line up; on the first line the prompt before", "composer", "up", "up", priority=True),
    Action(
        "composer.down",
        "Down",
        "Line down; on the last line the prompt after",
        "composer",
        "down",
        "down",
        priority=True,
    ),
    Action("composer.tab", "Complete", "Take the completion, else next pane", "composer", "tab", "tab", priority=True),
    Action("composer.editor", "Editor", "Edit the draft in $EDITOR", "composer", "editor", "ctrl+g", priority=True),
    Action(
        "composer.history",
        "History",
        "Search earlier prompts, newest first; again for the one before",
        "composer",
        "history",
        "ctrl+r",
        priority=True,
    ),
    Action("composer.undo", "Undo", "Undo the last edit, also a cleared draft", "composer", "undo", "ctrl+z,super+z"),
    Action("queue.edit", "Edit queued", "Edit the newest queued message", "app", "queue_edit", "f7", priority=True),
    Action(
        "queue.drop",
        "Drop queued",
        "Take the newest queued message back into the draft",
        "app",
        "queue_drop",
        "f8",
        priority=True,
    ),
    # --- conversation ----------------------------------------------------------------------------------------------
    Action(
        "conversation.open",
        "Open",
        "Expand the block; when part of it is hidden, open it in full",
        "conversation",
        "open",
        "enter",
        footer=True,
    ),
    Action("conversation.toggle", "Expand", "Expand or fold the block", "conversation", "fold", "space", footer=True),
    Action("conversation.up", "Up", "Scroll a line up", "conversation", "move('up')", "up"),
    Action("conversation.down", "Down", "Scroll a line down", "conversation", "move('down')", "down"),
    Action("conversation.previous", "Previous", "Previous block", "conversation", "previous", "k,ctrl+up"),
    Action("conversation.next", "Next", "Next block", "conversation", "next", "j,ctrl+down"),
    Action("conversation.copy", "Copy", "Copy the block as it was written", "conversation", "copy", "y", footer=True),
    Action("conversation.editor", "Editor", "Open the block in $EDITOR", "conversation", "editor", "e"),
    Action("conversation.pager", "Pager", "Open the block in $PAGER", "conversation", "pager", "o"),
    Action("conversation.view", "View", "Open the block in the viewer", "conversation", "view", "v"),
    Action(
        "conversation.top",
        "Top",
        "Go to the oldest loaded block; at the top load older ones",
        "conversation",
        "top",
        "home,g",
    ),
    Action("conversation.end", "End", "Go to the newest line and follow", "conversation", "end", "end,G", footer=True),
)

ACTIONS: tuple[Action, ...] = OWN_ACTIONS + tuple(PANE_ACTIONS)


def by_id(actions: Iterable[Action] = ACTIONS) -> dict[str, Action]:
    """Actions by their id."""
    return {a.id: a for a in actions}


def slash_commands(actions: Iterable[Action] = ACTIONS) -> dict[str, Action]:
    """Slash name (without the slash, "memory clear" included) to its action."""
    return {a.slash: a for a in actions if a.slash}


def keymap(keys: Mapping[str, str], actions: Iterable[Action] = ACTIONS) -> tuple[dict[str, str], list[str]]:
    """(map for `App.set_keymap`, problems): unknown ids, nonsense keys and keys that writing needs are named."""
    known = {a.id: a for a in actions}
    good: dict[str, str] = {}
    problems: list[str] = []
    for action_id, spec in keys.items():
        action = known.get(action_id)
        if action is None:
            problems.append(f"keys: there is no action {action_id!r}; /help lists the ids")
        elif not action.keys:
            problems.append(f"keys: {action_id!r} has no key to change; run it as /{action.slash} or from the palette")
        elif problem := _key_problem(action, spec):
            problems.append(f"keys: {action_id} = {spec!r}: {problem}; {action.keys} stays")
        else:
            good[action_id] = spec
    return good, problems


_MODIFIERS = frozenset(("ctrl", "shift", "alt", "super", "meta", "hyper"))
_NAMED = frozenset((*(k.value for k in Keys), *KEY_NAME_REPLACEMENTS.values()))
_NEEDED = frozenset(("escape", "enter", "backspace", "delete", "space", "left", "right", "up", "down"))


def _key_problem(action: Action, spec: str) -> str:
    """Why `spec` cannot be the keys of `action`; "" when it can."""
    keys = [k.strip() for k in spec.split(",") if k.strip()]
    if not keys and action.id == "composer.submit":
        return "without a key nothing could be sent"
    for key in keys:
        *modifiers, name = key.split("+")
        if not (_MODIFIERS.issuperset(modifiers) and _is_key(key, name)):
            return f"{key!r} is no key"
        writes = len(name) == 1 or name in _NEEDED or _is_sign(name)
        if action.scope in ("app", "composer") and not modifiers and writes and key not in action.keys.split(","):
            return f"{key!r} is needed to write and to stop"
    return ""


def _is_key(key: str, name: str) -> bool:
    return len(name) == 1 or name in _NAMED or key in _NAMED or _is_sign(name)


def _is_sign(name: str) -> bool:
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return name in KEY_NAME_REPLACEMENTS.values()
    return True


_NAMES = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "question_mark": "?",
    "slash": "/",
    "comma": ",",
    "full_stop": ".",
    "up": "↑",
    "down": "↓",
}


def key_label(action: Action, keys: Mapping[str, str], *, ascii_only: bool = False) -> str:
    """The first key of `action` as people write it ("ctrl+j", "F1"), after their remapping; "" without a key."""
    spec = keys.get(action.id, action.keys).split(",")[0].strip()
    parts = spec.split("+")
    last = parts[-1]
    if last.startswith("f") and last[1:].isdigit():
        last = last.upper()
    elif not (ascii_only and last in {"up", "down"}):
        last = _NAMES.get(last, last)
    return "+".join([*parts[:-1], last])


def all_key_labels(action: Action, keys: Mapping[str, str]) -> str:
    """All keys of `action`, comma-separated, for help and README."""
    specs = [s.strip() for s in keys.get(action.id, action.keys).split(",") if s.strip()]
    return ", ".join(key_label(action, {action.id: s}) for s in specs)


def help_rows(scope: Scope, keys: Mapping[str, str], actions: Iterable[Action] = ACTIONS) -> list[tuple[str, str, str]]:
    """(keys or slash command, title, help) for `HelpScreen`: the pane of `scope` first, then the whole app."""
    actions = tuple(actions)
    headings: dict[str, str] = (
        {"app": "Everywhere", scope: scope.capitalize()} if scope != "app" else {"app": "Everywhere"}
    )
    rows: list[tuple[str, str, str]] = []
    for wanted in reversed(headings):
        rows.append(("", headings[wanted], ""))
        for a in actions:
            if a.scope == wanted:
                ways = [w for w in (all_key_labels(a, keys), f"/{a.slash} {a.args}".strip() if a.slash else "") if w]
                rows.append(("  ".join(ways) or "palette", a.title, f"{a.help} ({a.id})"))
    return rows
