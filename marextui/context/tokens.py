"""Token estimates: each message counted once, corrected by what providers report (M39, cases 85–97). Unit: tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marextui.context.fold import Conversation
from marextui.context.messages import Message

CountText = Callable[[str], int]
IMAGE_TOKENS = 1000


class TokenLedger:
    """Estimates of tokens, remembered. `counted` is how many distinct values were really counted."""

    def __init__(self, count: CountText, factor: float = 1.0, *, echo_reasoning: bool = False) -> None:
        self.factor = factor
        self.counted = 0
        self.echo_reasoning = echo_reasoning

    def text(self, text: str) -> int:
        """Tokens of a bare text."""
        raise NotImplementedError

    def message(self, message: Message) -> int:
        """Tokens of a message: 4 + content + calls (+ reasoning when it is echoed); images flat."""
        raise NotImplementedError

    def messages(self, messages: Iterable[Message]) -> int:
        """Sum of `message` over them."""
        raise NotImplementedError

    def tools(self, specs: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of the tool schemas in wire form (B2)."""
        raise NotImplementedError

    def learn(self, measured: int, estimated: int) -> None:
        """Correct `factor`: the provider counted `measured` where this ledger, as it is now, said `estimated`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Segments:
    """H by kind: the summary pair, the conversation proper, tool outputs."""

    summary: int
    conversation: int
    outputs: int


def segments(history: Sequence[Message], ledger: TokenLedger, used: int | None = None) -> Segments:
    """Estimates by kind, scaled so that they sum to `used` exactly (None: unscaled); the residual is conversation."""
    raise NotImplementedError


def history_tokens(conversation: Conversation, ledger: TokenLedger, system_tokens: int) -> tuple[int, bool]:
    """(H, whether any of it is estimated)."""
    raise NotImplementedError
