"""What a turn sends, as one pure function of the view: for the turn, for a dry look, for what goes on with it.

Whatever has to be a byte-exact extension or repetition of a turn's request (a continuation, a prewarm) is made from
here, so that it cannot drift from what the turn itself sends (L34, L35).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.messages import Message
from marextui.context.project_block import headed
from marextui.context.wire import wire_messages
from marextui.engine.prompt import SystemPart
from marextui.models.types import ChatRequest


@dataclass(frozen=True, slots=True)
class Limits:
    """Fixed figures of a turn: `tool_rounds` most steps with tools; `max_tokens` of an answer (None: provider's)."""

    tool_rounds: int
    max_tokens: int | None
    temperature: float | None
    local: bool
    tools: bool
    on_refused: Literal["stop", "play_on"] = "stop"
    offline_summaries: bool = False

    def may_call(self, step: int) -> bool:
        """Whether the step (from 1) may call tools."""
        return step <= self.tool_rounds or not self.tools


def wire_view(part: SystemPart, history: Sequence[Message], *, echo_reasoning: bool) -> tuple[dict[str, Any], ...]:
    """The messages of a request, as sent: the system part, then the view with the project block at its head (L51)."""
    sent = wire_messages(headed(history, part.project), echo_reasoning=echo_reasoning)
    return (part.wire(), *(wire for _, wire in sent))


def turn_request(
    part: SystemPart,
    history: Sequence[Message],
    limits: Limits,
    *,
    echo_reasoning: bool,
    may_call: bool = True,
    conversation: str = "",
) -> ChatRequest:
    """The request of a step that is sent `history`. Touches nothing: asking for it again gives the same (L34)."""
    sent = tuple(wire_messages(headed(history, part.project), echo_reasoning=echo_reasoning))
    return ChatRequest(
        messages=(part.wire(), *(wire for _, wire in sent)),
        tools=part.tools,
        max_tokens=limits.max_tokens,
        temperature=limits.temperature,
        stream=True,
        extra=turn_extra(limits, may_call=may_call),
        kind="main",
        conversation=conversation,
        message_ids=tuple(message_id for message_id, _ in sent),
    )


def turn_extra(limits: Limits, *, may_call: bool) -> dict[str, Any]:
    """Body fields of a turn beside the usual ones. After the last tool round the tools stay in the prompt (the cached
    prefix must not change) but may not be called."""
    extra: dict[str, Any] = {}
    if limits.local:
        extra["return_progress"] = True
    if not may_call:
        extra["tool_choice"] = "none"
    return extra


def summary_extra(local: bool) -> dict[str, Any]:
    """Body fields of a summary request: thinking off where the engine is local and understands it (M12)."""
    return {"chat_template_kwargs": {"enable_thinking": False}} if local else {}
