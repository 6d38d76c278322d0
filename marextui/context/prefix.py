"""What broke the prompt's prefix: the first thing of a request that the one before had otherwise, in words (I7). Pure.

A server that keeps what it worked on computes a prompt only from the first token on that differs. So the first
difference is what made it compute, whatever else differs behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marextui.context.continuation import PREFIX_FIELDS
from marextui.context.marks import NOTES_HEAD, OMITTED_OPEN, PROJECT_CLOSE, PROJECT_OPEN, RULES_HEAD

Wire = Mapping[str, Any]

RENDERING = ("chat_template_kwargs", *PREFIX_FIELDS)
"""Fields of a request's body that may change how its messages are rendered."""

SERVER_FORGOT = "the server forgot"
"""The request went on exactly with the one before, and the server computed it all the same."""

OTHER_CONVERSATION = "another conversation was asked in between"

FORGOT_BELOW = 0.5
"""Share of the earlier prompt that has to come from the cache again: templates may render its end anew, never half."""

_SUMMARY = "summary-"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a server renders into one prompt. `messages` in wire form, the system message first; `ids` of the others."""

    model: str
    conversation: str
    messages: tuple[Wire, ...]
    ids: tuple[str, ...]
    tools: tuple[Wire, ...] = ()
    rendering: Wire = field(default_factory=dict)
    """The fields of `RENDERING` that the body has."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a server was given before: `tokens` as it counted them (None: it did not), and what happened `since` that
    may have taken its place, as part of a sentence ("": nothing that we know of)."""

    prompt: Prompt
    tokens: int | None = None
    since: str = ""


TurnOf = Callable[[str], int]
"""The turn of a message by its id, 0 for none."""


def why_computed(before: Given, after: Prompt, cached: int | None, turn_of: TurnOf, *, total: int | None = None) -> str:
    """Why the server had to compute anew what it had computed for `before`, as part of a sentence; "" when it had not.

    `cached` tokens of `total` came from the cache; None when the server does not say: then only what we sent otherwise
    can be named. Another conversation in between is none where its own prompt was kept or brought back; nor is a
    difference that something else has paid for (a prewarm has computed it, while a person read).
    """
    words = first_break(before.prompt, after, turn_of)
    if cached is not None and before.tokens and cached >= before.tokens:
        return ""
    if words == OTHER_CONVERSATION and cached is not None and total and cached >= FORGOT_BELOW * total:
        return ""
    if words or cached is None or before.tokens is None or cached >= FORGOT_BELOW * before.tokens:
        return words
    return before.since or SERVER_FORGOT


def first_break(before: Prompt, after: Prompt, turn_of: TurnOf) -> str:
    """The first difference between two prompts, in the order in which they are rendered; "" when one of them is the
    beginning of the other, a text at the very end that goes on included."""
    if before.model != after.model:
        return "another model"
    for name in RENDERING:
        if before.rendering.get(name) != after.rendering.get(name):
            return f"{name} changed"
    if before.tools != after.tools:
        return f"tool list changed{_tools(before.tools, after.tools)}"
    if before.messages[:1] != after.messages[:1]:
        section = _section(_content(before.messages[:1]), _content(after.messages[:1]))
        cycle = max(map(_cycle, after.ids), default=0)
        if section == "memory" and cycle > max(map(_cycle, before.ids), default=0):
            return f"compaction {cycle}, which added to memory"
        return f"system text changed ({section})"
    sent = zip(before.ids, before.messages[1:], after.ids, after.messages[1:], strict=False)
    for place, (old_id, old, new_id, new) in enumerate(sent):
        if old != new:
            if place == len(before.ids) - 1 and _goes_on(old, new):
                return ""  # nothing was sent behind it, and its own beginning still stands
            if before.conversation != after.conversation:
                return OTHER_CONVERSATION
            if old_id != new_id:
                return _other(before, after, old_id, new_id, turn_of)
            return _changed(old, new, place, turn_of(old_id))
    return ""


def _goes_on(old: Wire, new: Wire) -> bool:
    """A message that got no answer, joined by the next one (see `validate.repair`): its text goes on."""
    was, now = old.get("content"), new.get("content")
    if not isinstance(was, str) or not isinstance(now, str) or not now.startswith(was):
        return False
    return {**old, "content": now} == new


def _tools(old: Sequence[Wire], new: Sequence[Wire]) -> str:
    had, has = [_name(t) for t in old], [_name(t) for t in new]
    came, went = [n for n in has if n not in had], [n for n in had if n not in has]
    said = [f"{', '.join(names)} {what}" for names, what in ((came, "came"), (went, "went")) if names]
    return f" ({'; '.join(said)})" if said else ""


def _name(tool: Wire) -> str:
    function = tool.get("function")
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _content(messages: Sequence[Wire]) -> str:
    return _text(messages[0]) if messages else ""


def _section(old: str, new: str) -> str:
    """The part of the system message in which the first difference lies."""
    was, now = _sections(old), _sections(new)
    return next((name for name in was if was[name] != now[name]), "base prompt")


def _sections(text: str) -> dict[str, str]:
    """The system message by its parts, in their order; a part that is missing is "" """
    rest, notes_at, notes = text.partition(f"\n\n{NOTES_HEAD}")
    base, rules_at, rules = rest.partition(f"\n\n{RULES_HEAD}")
    return {"base prompt": base, "project rules": rules_at + rules, "memory": notes_at + notes}


def _other(before: Prompt, after: Prompt, old_id: str, new_id: str, turn_of: TurnOf) -> str:
    """Another message stands where `old_id` stood."""
    was, now = _cycle(old_id), _cycle(new_id)
    if now > was:
        return f"compaction {now}"
    if was > now:
        return f"undo of compaction {was}"
    if old_id not in after.ids:
        return f"a message of {_turn(turn_of(old_id))} left the view"
    if new_id not in before.ids:
        return f"a message came into {_turn(turn_of(new_id) or turn_of(old_id))}"
    return f"the order of messages in {_turn(turn_of(old_id))}"


def _cycle(message_id: str) -> int:
    """The cycle of the summary that a message is part of, 0 for none."""
    number = message_id.removeprefix(_SUMMARY).split("-")[0]
    return int(number) if message_id.startswith(_SUMMARY) and number.isdigit() else 0


def _turn(number: int) -> str:
    return f"turn {number}" if number else "an earlier turn"


def _changed(old: Wire, new: Wire, place: int, number: int) -> str:
    """The same message, sent otherwise."""
    turn, text = _turn(number), _text(new)
    if new["role"] == "user" and place == 0 and _block(_text(old)) != _block(text):
        return "the project context changed"
    if new["role"] == "tool" and text.startswith(OMITTED_OPEN):
        return f"omission of {turn}"
    if _pictures(new) < _pictures(old):
        return f"a picture of {turn} was put aside"
    if _text(old) != text:
        what = {"tool": "an output", "assistant": "an answer"}.get(new["role"], "a message")
        return f"{what} of {turn} was {'shortened' if OMITTED_OPEN in text else 'changed'}"
    if old.get("tool_calls") != new.get("tool_calls"):
        return f"inputs of calls in {turn} were put aside"
    return f"reasoning of {turn} left the view"


def _block(text: str) -> str:
    """The project block at the head of a message; "" without one."""
    return text.partition(PROJECT_CLOSE)[0] if text.startswith(PROJECT_OPEN) else ""


def _text(message: Wire) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] for p in _parts(message) if isinstance(p.get("text"), str))


def _pictures(message: Wire) -> int:
    return sum(p.get("type") == "image_url" for p in _parts(message))


def _parts(message: Wire) -> list[Wire]:
    content = message.get("content")
    return [p for p in content if isinstance(p, Mapping)] if isinstance(content, list) else []
