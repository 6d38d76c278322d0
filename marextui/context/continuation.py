"""A summary asked for by going on with the conversation: the turn's request as it left, plus one user message (L3–L20).

The server has computed that request already, so only the reply and the demand are new to it. Everything here is about
the *sent view* (messages in wire form, exactly as they left); what is stored is computed on the model view as always.
Lengths are characters, sizes tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from marextui.context.marks import CONTEXT_UPDATE_CLOSE, CONTEXT_UPDATE_OPEN, PROJECT_CLOSE, PROJECT_OPEN, SUMMARY_MARK
from marextui.context.sections import SECTIONS
from marextui.context.summary_rules import SUMMARY_RULES, outline

DEMAND_MARK = "[Notes for the record, asked by the application]"
"""First line of the demand; no stored message starts with it (L6)."""
TEMPERATURE = 0.2
"""Sampling temperature of a continuation (L12, B5)."""
FULL_SHARE = 85
"""Percent of the window above which a summary is asked in a clean context instead (B15)."""
SPARE_SHARE = 5
"""Percent of the window that stays free beside the request and its answer (L20)."""
BEGINNING, LONG_BEGINNING, ARGUMENTS = 80, 200, 120
"""Characters by which a message is designated: its beginning, a longer one, the arguments of a call (L8)."""
MISALIGNED = -1

PREFIX_FIELDS = ("parallel_tool_calls", "reasoning_effort", "reasoning_format", "cache_prompt", "id_slot")
"""Fields of a turn that decide how its prompt is rendered or where it is cached; sampling and streaming are not among
them (L3, L12, L14)."""
_BLOCKS = ((PROJECT_OPEN, PROJECT_CLOSE), (CONTEXT_UPDATE_OPEN, CONTEXT_UPDATE_CLOSE))
_BLOCK = re.compile("|".join(rf"{re.escape(a)}.*?(?:{re.escape(b)}|\Z)" for a, b in _BLOCKS), re.DOTALL)

Wire = Mapping[str, Any]


def without_trailing_users(sent: Sequence[Wire]) -> tuple[Wire, ...]:
    """`sent` up to the last message that is not a user's: what follows is not cached, and two users in a row are
    refused by strict templates (L15)."""
    end = len(sent)
    while end and sent[end - 1].get("role") == "user":
        end -= 1
    return tuple(sent[:end])


def _shape(wire: Wire) -> tuple[object, object, int]:
    return wire.get("role"), wire.get("tool_call_id") or "", len(wire.get("tool_calls") or ())


def realign(sent: Sequence[Wire], model: Sequence[Wire], boundary: int) -> int:
    """Where in `sent` the message number `boundary` of the `model` view stands; `MISALIGNED` when they differ (L7).

    `model` is the view as it would be sent now, behind the system part: texts in it may have become markers since. The
    messages of `sent` that are no system messages must be those of `model` one for one: same role, same call answered,
    same number of calls. `boundary` may be the end (everything is summarised): then the end of `sent`.
    """
    at = [i for i, m in enumerate(sent) if m.get("role") != "system"]
    if len(at) != len(model) or not 0 <= boundary <= len(model):
        return MISALIGNED
    if any(_shape(sent[i]) != _shape(message) for i, message in zip(at, model, strict=True)):
        return MISALIGNED
    return at[boundary] if boundary < len(at) else len(sent)


def _text(wire: Wire) -> str:
    """The text of a message on one line, without what the application put at its head."""
    content = wire.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping))
    return " ".join(_BLOCK.sub("", content).split())


_WHOSE = {"user": "the user's message", "assistant": "your own message", "tool": "the tool result"}


def designation(sent: Sequence[Wire], at: int) -> str:
    """Words by which the message `sent[at]` can be told from those before it (L8)."""
    wire, text = sent[at], _text(sent[at])
    whose = _WHOSE.get(str(wire.get("role")), "the message")
    if text:
        begins = text[:BEGINNING]
        if any(begins in _text(earlier) for earlier in sent[:at]):
            begins = text[:LONG_BEGINNING]
        return f"{whose} that begins “{begins}{'…' if len(begins) < len(text) else ''}”"
    calls = wire.get("tool_calls") or ()
    if calls:
        function = calls[0].get("function") or {}
        arguments = " ".join(str(function.get("arguments") or "").split())
        more = "…" if len(arguments) > ARGUMENTS else ""
        return f"{whose} that calls {function.get('name') or 'a tool'} with {arguments[:ARGUMENTS]}{more}"
    return f"{whose} without text"


def demand(
    sent: Sequence[Wire],
    boundary: int,
    *,
    earlier: bool,
    rewrite: bool = False,
    sections: Sequence[str] = SECTIONS,
    language: str = "",
) -> str:
    """The user message that asks for the notes of everything in `sent` before `boundary` (L8–L10).

    `earlier`: a summary pair stands at the head; it stays and only the span after it is asked for (B14), or with
    `rewrite` it is to be taken over (P4). `language` is an English name, "" to leave it to the rules.
    """
    kept = sum(m.get("role") != "system" for m in sent[boundary:])
    if kept:
        many = f"the last {kept} messages before this one, which stay" if kept > 1 else "the message just before this"
        first = designation(sent, boundary)
        place = (
            f"The material is everything above except {many}. The first message that is kept ({kept} from the end) is "
            f"{first}: it and all that follows it are not part of the material. Write the state of the work as it was "
            "just before that message, not later."
        )
    else:
        place = "The material is everything above. Write the state of the work as it is now."
    notes = ""
    if earlier and rewrite:
        notes = (
            f"\nThe notes under {SUMMARY_MARK} at the beginning tell of what came before. Yours replace them: take "
            "over, with its cycle tag, everything in them that still holds, and correct what came later changes."
        )
    elif earlier:
        notes = (
            f"\nThe notes under {SUMMARY_MARK} at the beginning stay as they are and are not part of the material: do "
            "not repeat them, write only what came after them adds or changes."
        )
    spoken = f" Write in {language}, the language of the user." if language else ""
    return f"""{DEMAND_MARK}
The oldest part of this conversation is about to leave your memory; the notes you write now are all that will remain \
of it, so be exact.
{place}{notes}
Leave out system instructions, project rules, and what stands in {PROJECT_OPEN} and {CONTEXT_UPDATE_OPEN} blocks.

{outline(sections)}

Rules:
{SUMMARY_RULES}
- Do not call tools, continue the work, answer the user or think aloud. Begin with the first heading.{spoken}"""


def continuation_extra(turn: Mapping[str, Any], *, tools: bool) -> dict[str, Any]:
    """Body fields of the continuation from those of the `turn`: what the cached prefix depends on, as it was, and
    thinking off beside the template's other arguments (L12–L14)."""
    extra = {k: turn[k] for k in PREFIX_FIELDS if k in turn}
    given = turn.get("chat_template_kwargs")
    extra["chat_template_kwargs"] = {**(given if isinstance(given, Mapping) else {}), "enable_thinking": False}
    if tools:
        extra["tool_choice"] = "none"
    return extra


def no_room(*, counted: int, unseen: int, demand: int, cap: int, window: int) -> str:
    """Why the continuation would not fit or should not be sent, as part of a sentence; "" when it may (L20, B15).

    `counted` is what the server counted for the last step and its answer, `unseen` what came since, `cap` the most
    tokens of the summary; all in tokens.
    """
    filled = counted + unseen
    if filled * 100 > FULL_SHARE * window:
        return f"the context is more than {FULL_SHARE} % full, so a clean one is better"
    needed = filled + demand + cap + window * SPARE_SHARE // 100
    if needed > window:
        return f"it would need {needed} of {window} tokens"
    return ""
