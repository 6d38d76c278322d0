"""Says in a few words why a request cannot fit, naming what takes the room (cases 2, 4; Part 2, 4)."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.bulk import MEGABYTE, Scales
from marextui.context.messages import Message
from marextui.context.tokens import TokenLedger
from marextui.engine.meter import Reading

Floor = tuple[tuple[str, int], ...]
"""What no reduction can take away: (what, tokens), the largest first."""


def thousands(tokens: int) -> str:
    """`tokens` as people say them: 950, 1.3k, 15k."""
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.1f}".removesuffix(".0") + "k" if tokens < 9_950 else f"{round(tokens / 1_000)}k"


def floor(reading: Reading, newest_turn: int) -> Floor:
    """The parts of a request that are always sent, and the newest turn; in tokens, the largest first."""
    parts = [
        ("tools", reading.tools),
        ("rules", reading.rules),
        ("the system prompt", reading.system - reading.rules),
        ("the memory excerpt", reading.memory),
        ("room for the answer", reading.reserve),
        ("the newest turn", newest_turn),
    ]
    return tuple(sorted(((what, size) for what, size in parts if size > 0), key=lambda p: -p[1]))


def leaves(reading: Reading) -> str:
    """What the fixed parts leave of the window: "tools 15k + rules 20k leave 1k of 32k"."""
    fixed = [(what, size) for what, size in floor(reading, 0) if size * 20 >= reading.system_part + reading.reserve]
    told = " + ".join(f"{what} {thousands(size)}" for what, size in fixed)
    left = thousands(max(0, reading.budget or 0))
    return f"{told} leave {left} of {thousands(reading.window.tokens or 0)}"


def no_progress(reading: Reading, newest_turn: int, goal: float) -> str:
    """Why no compaction would help: the floor does not go below `goal` tokens (I3)."""
    return (
        f"no usable cut: {leaves(reading)}; the newest turn holds {thousands(newest_turn)} "
        f"and a compaction must end at {thousands(int(goal))} or less"
    )


def refusal(history: Sequence[Message], reading: Reading, ledger: TokenLedger, newest_turn: int = 0) -> str:
    """`history` is the view without the system message; figures in tokens."""
    parts: list[tuple[int, str]] = [
        (reading.system - reading.rules, "the system prompt"),
        (reading.rules, "the rules (MAREX.md)"),
        (reading.tools, "the tool descriptions"),
        (reading.memory, "the memory excerpt"),
    ]
    if 2 * reading.reserve > (reading.window.tokens or 0):  # not by our rule (M1): somebody has set it so
        parts.append((reading.reserve, "the room kept for the answer"))
    for position, message in enumerate(history, start=1):
        parts.append((ledger.message(message), _name(message, position)))
    size, biggest = max(parts, key=lambda p: p[0])
    turn = f"; the newest turn holds {thousands(newest_turn)}" if newest_turn else ""
    return (
        f"the request does not fit: {reading.used} tokens of history, {max(0, reading.budget or 0)} available "
        f"({leaves(reading)}{turn}); the biggest contributor is {biggest} with {size} tokens"
    )


def too_heavy(history: Sequence[Message], scales: Scales, weight: int, limit: int) -> str:
    """Why a request of `weight` bytes cannot be sent where `limit` bytes are taken (case 102)."""
    size, position = max(((scales.message(m), n) for n, m in enumerate(history, start=1)), default=(0, 0))
    biggest = _name(history[position - 1], position) if position else "the system part"
    return (
        f"the request does not fit: it has {weight / MEGABYTE:.1f} MB and {limit / MEGABYTE:g} MB can be sent; "
        f"the biggest contributor is {biggest} with {size / MEGABYTE:.1f} MB"
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
