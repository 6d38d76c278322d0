"""Says in one sentence why a request cannot fit, naming the biggest contributor (case 2)."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.messages import Message
from marextui.context.tokens import TokenLedger
from marextui.engine.meter import Reading


def refusal(history: Sequence[Message], reading: Reading, ledger: TokenLedger) -> str:
    """`history` is the view without the system message; figures in tokens."""
    parts: list[tuple[int, str]] = [
        (reading.system, "the system prompt and rules"),
        (reading.tools, "the tool descriptions"),
        (reading.memory, "the memory excerpt"),
    ]
    for position, message in enumerate(history, start=1):
        parts.append((ledger.message(message), _name(message, position)))
    size, biggest = max(parts, key=lambda p: p[0])
    window = reading.window.tokens
    return (
        f"does not fit: {reading.used} tokens of history, {max(0, reading.budget or 0)} available "
        f"({window} window − {reading.reserve} for the answer − {reading.system_part} system part); "
        f"the biggest contributor is {biggest} with {size} tokens"
    )


def _name(message: Message, position: int) -> str:
    if message.role == "tool":
        return f"the output of {message.name or 'a tool'} (message {position})"
    if message.role == "user" and not message.synthetic:
        return f"your message (message {position})"
    if message.origin == "summary":
        return "the summary of the earlier conversation"
    if message.tool_calls:
        return f"the call of {message.tool_calls[0].name} (message {position})"
    return f"the assistant's message (message {position})"
