"""What Recall looks through, and what it must say beside a result: that a value was changed later (Part 2, 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from marextui.context.ask import searchable
from marextui.context.factindex import Fact, index_facts
from marextui.context.messages import Message
from marextui.context.redaction import redact
from marextui.context.search_words import flat

RECALL_TOOLS = frozenset({"Recall", "ReadOmittedContent"})
"""Tools whose results repeat what is stored elsewhere: finding them again would hide the place they came from."""

_NOTED = 3
"""Most changes told beside one result."""

IN_PIECES, AROUND = 50_000, 2_000
"""Of a longer text only the passages the index found are looked at, with so many characters around each."""

GAP = "\n[…]\n"
"""Between two such pieces."""


def recall_text(message: Message, output: str | None = None) -> str:
    """The searchable text of `message`, "" when it is not looked through.

    `output` is the stored whole of a tool output of which the message shows a part.
    """
    if message.role == "system" or message.synthetic or (message.role == "tool" and message.name in RECALL_TOOLS):
        return ""
    calls = tuple(c for c in message.tool_calls if c.name not in RECALL_TOOLS)
    seen = message if calls == message.tool_calls else replace(message, tool_calls=calls)
    return searchable(seen if output is None else replace(seen, content=output))


def pieces(text: str, starts: Sequence[int]) -> str:
    """What of a long `text` stands around `starts`, in its order; a short one whole."""
    if len(text) <= IN_PIECES or not starts:
        return text
    found: list[tuple[int, int]] = []
    for start in sorted(starts):
        begin, end = max(0, start - AROUND), start + 2 * AROUND
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return GAP.join(text[begin:end] for begin, end in found)


def changes(shown: str, message_id: str, facts: Iterable[Fact], places: Mapping[str, int] | None = None) -> str:
    """A sentence on the values in `shown`, text of the message `message_id`, that were later given another value.

    `facts` are those of the messages around it, corrections included; with `places` (message id -> position) a message
    that repeats a value before it was changed counts too. "" when all of them still hold.
    """
    known = list(facts)
    said: list[str] = []
    gone = [
        f
        for f in known
        if f.superseded_by
        and f.value in shown
        and (f.message_id == message_id or _repeats(shown, message_id, f, places or {}))
    ]
    values = [f for f in gone if f.kind != "constraint"]  # the order that holds the value says it a second time
    for fact in values or gone:
        now = next((f for f in known if f.message_id == fact.superseded_by and f.key == fact.key), None)
        value = f" to {redact(now.value)[:80]}" if now is not None and now.value != fact.value else ""
        name = "" if fact.key == fact.value else f"{fact.key[:60]} "
        said.append(f"{name}{redact(fact.value)[:80]} was later changed{value} (message {fact.superseded_by})")
    return "; ".join(dict.fromkeys(said[:_NOTED]))


def _repeats(shown: str, message_id: str, fact: Fact, places: Mapping[str, int]) -> bool:
    """Whether the message says `fact` again, name and value, while it held."""
    if fact.kind == "constraint" or not {fact.message_id, message_id, fact.superseded_by} <= places.keys():
        return False
    if not places[fact.message_id] < places[message_id] < places[fact.superseded_by]:
        return False
    whole = rf"(?<![\w.]){re.escape(fact.value)}(?!\w|\.\d)"
    return {*flat(fact.key).split()} <= {*re.findall(r"\w+", flat(shown))} and bool(re.search(whole, shown))


def facts_around(messages: Sequence[Message]) -> tuple[Fact, ...]:
    """The facts of `messages`, in log order, for `changes`."""
    return index_facts(messages)
