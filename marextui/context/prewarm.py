"""When a prewarm may be sent, and which request may follow it (L30–L50). Pure: values in, values out.

A prewarm is the next turn's request with the user's message replaced by a sentinel: the server computes everything
before that message while the person still reads, and the real turn then computes its own message only. It is a user
message because that is where llama.cpp puts a checkpoint for models whose cache cannot be rolled back (D5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.continuation import PREFIX_FIELDS
from marextui.context.messages import canonical_json

SENTINEL = "."
"""Text of the user message that stands for the next one (L32)."""
DAY_MARGIN = 600.0
"""Seconds before midnight from which nothing is prewarmed where the prompt is dated (L42)."""
SWITCH_PAUSE = 3.0
"""Seconds without another change of conversation before the new one is prewarmed (L47)."""
ADVICE_FROM = 4_096
"""Tokens of a prompt from which losing half of it is worth an advice (L50)."""

Mode = Literal["off", "on", "full"]


@dataclass(frozen=True, slots=True)
class Rest:
    """What holds while nothing is asked of the engine: the facts that need no question to the server.

    `model` is the label of the connected one, "" for none, `local` whether it may be saved work at all. `at_rest`:
    nothing runs, waits in the queue or is in flight. `failed`: the last turn may be tried again, so it is not known
    what comes next. `said`: the conversation has a message of its user. `known`: a turn of it ended with this model
    since the application was started (L48). `day_left` are seconds to midnight, None where the prompt has no date.
    """

    model: str
    local: bool
    at_rest: bool
    failed: bool
    said: bool
    known: bool
    day_left: float | None


def why_not_now(rest: Rest) -> str:
    """Why nothing may be prewarmed, as part of a sentence; "" when the server may be asked (L32, L39, L42, L46–L48)."""
    if not rest.model:
        return "no model is connected"
    if not rest.local:
        return f"{rest.model} is not a local engine"
    if not rest.at_rest:
        return "there is other work to do"
    if not rest.said:
        return "nothing was said yet"
    if rest.failed:
        return "the last turn failed and may be tried again"
    if not rest.known:
        return "no turn of this conversation has ended with this model since the start"
    if rest.day_left is not None and rest.day_left < DAY_MARGIN:
        return "the date in the prompt changes in less than 10 minutes"
    return ""


def why_not_there(*, total: int | None, sleeping: bool, busy: bool | None) -> str:
    """Why not on this server, as part of a sentence; "" when it may be sent. Figures as the server tells them (L38).

    With several slots nobody knows in which one the next turn lands, and how many there are is not ours to assume.
    """
    if total is None:
        return "the server does not say how many slots it has"
    if total != 1:
        return f"the server has {total} slots, and the next turn may land in another one"
    if sleeping:
        return "the server sleeps, and is not woken for this"
    if busy:
        return "another program is using the server"
    return ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a server renders a prompt from, serialised: the messages without the closing bracket, tools, template."""

    messages: str
    tools: str
    template: str


def prompt_of(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], extra: Mapping[str, Any]
) -> Prompt:
    """The prompt of a request; of its other fields only those that a template sees. Sampling is not among them."""
    template = {k: extra[k] for k in ("chat_template_kwargs", *PREFIX_FIELDS) if k in extra}
    return Prompt(canonical_json(list(messages))[:-1], canonical_json(list(tools)), canonical_json(template))


def goes_on(turn: Prompt, warmed: Prompt) -> bool:
    """Whether `turn` extends `warmed`, a prewarm without its sentinel, by at least one message (L37).

    A turn in another role (other rules, other tools) does not, and neither does one whose history was rewritten (L49).
    """
    alike = (turn.tools, turn.template) == (warmed.tools, warmed.template)
    return alike and turn.messages.startswith(f"{warmed.messages},")


def lost_in_between(*, earlier: int | None, cached: int | None) -> bool:
    """Whether the server gave up the prompt of `earlier` tokens while it worked on something else: of what it was sent
    again it had less than half in its cache (L50). None: not told, which says nothing."""
    return earlier is not None and cached is not None and earlier >= ADVICE_FROM and 2 * cached < earlier
