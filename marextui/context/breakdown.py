"""What a request is made of, in tokens, by category; the rows sum to the whole exactly (I8, P18; cases 48, 86, 87)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, canonical_json
from marextui.context.tokens import IMAGE_TOKENS, MESSAGE_TOKENS, TokenLedger

Category = Literal[
    "system",
    "rules",
    "memory",
    "project",
    "tools",
    "summary",
    "user",
    "assistant",
    "calls",
    "outputs",
    "images",
    "reasoning",
    "other",
]
SYSTEM_CATEGORIES: tuple[Category, ...] = ("system", "rules", "memory", "project", "tools")
HISTORY_CATEGORIES: tuple[Category, ...] = (
    "summary",
    "user",
    "assistant",
    "calls",
    "outputs",
    "images",
    "reasoning",
    "other",
)


@dataclass(frozen=True, slots=True)
class Share:
    """Tokens of one category; `label` says which tool or kind of part, "" for the categories that have no parts."""

    category: Category
    label: str
    tokens: int
    count: int
    """Messages, tool schemas, calls or parts that make it up."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """`system_part` (S) is the sum of its shares; `used` (H) that of the history's shares and `residual`."""

    shares: tuple[Share, ...]
    system_part: int
    used: int

    @property
    def total(self) -> int:
        """Tokens of the whole request."""
        return self.system_part + self.used

    @property
    def residual(self) -> int:
        """What the provider measured beyond the estimates of the history; 0 when nothing was measured."""
        return self.used - sum(s.tokens for s in self.shares if s.category in HISTORY_CATEGORIES)

    def of(self, category: Category) -> tuple[Share, ...]:
        """The shares of a category, the largest first."""
        return tuple(sorted((s for s in self.shares if s.category == category), key=lambda s: (-s.tokens, s.label)))

    def tokens(self, *categories: Category) -> int:
        """Their tokens in all."""
        return sum(s.tokens for s in self.shares if s.category in categories)


class _Tally:
    def __init__(self) -> None:
        self.rows: dict[tuple[Category, str], tuple[int, int]] = {}

    def add(self, category: Category, tokens: int, *, label: str = "", count: int = 1) -> None:
        if tokens or count:
            had = self.rows.get((category, label), (0, 0))
            self.rows[(category, label)] = had[0] + tokens, had[1] + count

    def shares(self) -> tuple[Share, ...]:
        return tuple(Share(category, label, *figures) for (category, label), figures in self.rows.items())


def breakdown(
    *,
    base: str,
    rules: str,
    memory: str,
    tools: Sequence[Mapping[str, Any]],
    history: Sequence[Message],
    ledger: TokenLedger,
    used: int,
    project: str = "",
) -> Breakdown:
    """Break down the request of a system part (its texts as sent, its tool schemas in wire form) and a `history`.

    `project` is the block at the head of the first user message; `history` comes without it.

    `used` is H as the gauge shows it, measured where it could be; each message and schema is counted once (case 86).
    """
    tally = _Tally()
    both = MESSAGE_TOKENS + ledger.text("\n\n".join(p for p in (base, rules) if p))
    alone = MESSAGE_TOKENS + ledger.text(base) if rules else both
    tally.add("system", alone)
    if rules:
        tally.add("rules", both - alone)
    if memory:
        tally.add("memory", ledger.text("\n\n" + memory))
    if project:
        tally.add("project", ledger.text(project))
    for spec in tools:
        tally.add("tools", ledger.text(canonical_json(spec)), label=_tool_name(spec))
    system_part = sum(tokens for tokens, _ in tally.rows.values())
    for message in history:
        _count(message, ledger, tally)
    return Breakdown(tally.shares(), system_part, used)


def _tool_name(spec: Mapping[str, Any]) -> str:
    function = spec.get("function")
    name = function.get("name") if isinstance(function, Mapping) else spec.get("name")
    return name if isinstance(name, str) else "?"


def _count(message: Message, ledger: TokenLedger, tally: _Tally) -> None:
    category, label = _kind(message)
    total = ledger.message(message)
    echoed = ledger.echo_reasoning and bool(message.reasoning)
    if isinstance(message.content, str) and not message.tool_calls and not echoed:
        tally.add(category, total, label=label)
        return
    flat = ledger.flat(message)
    images, others = _parts(message)
    texts = [message.content] if isinstance(message.content, str) else _texts(message)
    words = sum(map(ledger.plain_text, texts))
    calls = sum(ledger.plain_text(c.name) + ledger.plain_text(c.arguments) for c in message.tool_calls)
    reasoning = ledger.plain_text(message.reasoning) if echoed else 0
    own = MESSAGE_TOKENS + words
    unknown = max(0, ledger.plain(message) - own - calls - reasoning)
    if message.tool_calls and not words:
        own, calls = 0, calls + own
    rows: tuple[tuple[Category, str, int], ...] = (
        (category, label, 1 if own else 0),
        ("calls", "", len(message.tool_calls)),
        ("reasoning", "", int(echoed)),
        ("other", _part_kind(others), len(others)),
    )
    weights = _apportioned(total - flat, (own, calls, reasoning, unknown))
    for weight, (kind, name, count) in zip(weights, rows, strict=True):
        tally.add(kind, weight, label=name, count=count)
    shown = min(flat, IMAGE_TOKENS * images)
    tally.add("images", shown, count=images)
    tally.add("other", flat - shown, label=_part_kind(others), count=0)


def _kind(message: Message) -> tuple[Category, str]:
    if message.origin == "summary":
        return "summary", ""
    if message.origin == "repair":
        return "other", "added so that the exchange is valid"
    if message.role == "tool":
        return "outputs", message.name or "unknown tool"
    if message.role == "user":
        return "user", ""
    return ("assistant", "") if message.role == "assistant" else ("other", f"{message.role} message")


def _texts(message: Message) -> list[str]:
    return [p.text for p in message.content if isinstance(p, TextPart)]


def _parts(message: Message) -> tuple[int, list[OtherPart]]:
    if isinstance(message.content, str):
        return 0, []
    images = sum(isinstance(p, ImagePart) for p in message.content)
    return images, [p for p in message.content if isinstance(p, OtherPart)]


def _part_kind(parts: Sequence[OtherPart]) -> str:
    """What the unknown parts call themselves."""
    kinds: set[str] = set()
    for part in parts:
        raw = json.loads(part.raw)
        kind = raw.get("type") if isinstance(raw, dict) else None
        kinds.add(f"{kind} part" if isinstance(kind, str) else "unknown part")
    return ", ".join(sorted(kinds)) or "unknown part"


def _apportioned(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole tokens by `weights`, summing to it exactly."""
    whole = sum(weights)
    if not whole:
        return [total, *(0 for _ in weights[1:])]
    shares: list[int] = []
    seen = given = 0
    for weight in weights:
        seen += weight
        share = total * seen // whole - given
        given += share
        shares.append(share)
    return shares
