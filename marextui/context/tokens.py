"""Token estimates: each message counted once, corrected by what providers report (M39, cases 85–97). Unit: tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marextui.context.bulk import images, split_encoded
from marextui.context.calibration import clamped, moved
from marextui.context.fold import Conversation
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, canonical_json
from marextui.context.running import Figures, Running

CountText = Callable[[str], int]
"""Exact tokens of a text in some vocabulary (o200k); given from outside, since loading ranks is I/O."""

IMAGE_TOKENS = 1000
"""Flat cost of an image, and of any other binary payload (the requirements' definitions)."""
MESSAGE_TOKENS = 4
"""Role, separators and end mark of one message."""

SLICE_CHARS = 8_192
"""A text is counted in slices of this many characters: on a million blanks in one piece the o200k core dies."""
EXACT_CHARS = 12 * SLICE_CHARS
"""Characters up to which a text is counted whole (no capped tool output is longer, M30); longer ones are sampled."""
SAMPLES = 12

SANE_SHARE = 0.5
"""A measured history below this share of its own text's estimate is not believed (case 93)."""
SANE_FROM = 500
"""Tokens of estimate from which that check applies."""

_BINARY = re.compile(r"(?:data:[\w.+/-]*[;,].*|[A-Za-z0-9+/_=\r\n-]{256,})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Raw:
    """Uncorrected count of a message: vocabulary tokens, and flat-cost payloads (images)."""

    text: int
    flat: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over a history, in tokens but for `images`, of which it is the number.

    `total` is all of it, `summary` the summary pair, `outputs` the tool results; `flat` guesses at pictures; `plain`
    its words without the factor.
    """

    total: int = 0
    summary: int = 0
    outputs: int = 0
    flat: int = 0
    plain: int = 0
    images: int = 0


class TokenLedger:
    """Estimates of tokens, remembered.

    `count` counts one text in a fixed vocabulary; `factor` corrects it for the model in use (at least 1).
    `counted` is how many distinct values (messages, texts, tool schemas) were really counted: work, for tests.
    `echo_reasoning` says whether past reasoning is sent back, and so counts.
    """

    def __init__(self, count: CountText, factor: float = 1.0, *, echo_reasoning: bool = False) -> None:
        self.factor = clamped(factor)
        self.counted = 0
        self.echo_reasoning = echo_reasoning
        self._count = count
        self._texts: dict[str, int] = {}
        self._messages: dict[Message, _Raw] = {}
        self._running = Running(self._figures)
        self._running_with: tuple[float, bool] = (1.0, False)

    def text(self, text: str) -> int:
        """Tokens of a bare text (a system prompt, a summary)."""
        return self._corrected(self._text(text))

    def message(self, message: Message) -> int:
        """Tokens of a message: 4 + content + names and arguments of calls (+ reasoning when it is echoed).

        An image counts 1 000 whatever its bytes; a part of an unknown kind counts as its JSON, binary payloads
        in it 1 000 each, never 0 (case 87).
        """
        raw = self._message(message)
        words = raw.text + (self._text(message.reasoning) if self.echo_reasoning else 0)
        return self._corrected(words) + raw.flat

    def messages(self, messages: Iterable[Message]) -> int:
        """Sum of `message` over them."""
        return sum(self.message(m) for m in messages)

    def tally(self, history: tuple[Message, ...]) -> Tally:
        """Sums over `history`; of one that grew since the last time, only the new messages are looked at."""
        if self._running_with != (self.factor, self.echo_reasoning):
            self._running_with = (self.factor, self.echo_reasoning)
            self._running.forget()
        return Tally(*self._running.over(history))

    @property
    def visited(self) -> int:
        """Messages looked at for tallies so far: work, for tests."""
        return self._running.visited

    def _figures(self, message: Message) -> Figures:
        size = self.message(message)
        summary = size if message.origin == "summary" else 0
        outputs = size if message.role == "tool" else 0
        return size, summary, outputs, self.flat(message), self.plain(message), len(images(message))

    def flat(self, message: Message) -> int:
        """The part of `message` that is a flat guess (images), not counted text."""
        return self._message(message).flat

    def tools(self, specs: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of the tool schemas in wire form; they belong to the system part (B2)."""
        return sum(self.text(canonical_json(spec)) for spec in specs)

    def learn(self, measured: int, estimated: int) -> None:
        """Correct `factor` for the model: a whole request measured `measured` where this ledger said `estimated`.

        `estimated` is the ledger's figure of the same request (system part included) with the factor it has now.
        The factor moves half the way, stays between 1 and 3, and ignores requests too small to tell (case 91). A
        count far below the estimate (silent truncation, case 93) can thus never lower it under 1.
        """
        self.factor = moved(self.factor, measured, estimated)

    def plain_text(self, text: str) -> int:
        """Tokens of a bare text without the factor."""
        return self._text(text)

    def plain(self, message: Message) -> int:
        """Tokens of the words of `message`, without the factor and without flat payloads."""
        return self._message(message).text + (self._text(message.reasoning) if self.echo_reasoning else 0)

    def _corrected(self, raw: int) -> int:
        return raw if self.factor == 1.0 else math.ceil(raw * self.factor)

    def _text(self, text: str) -> int:
        if not text:
            return 0
        known = self._texts.get(text)
        if known is None:
            self.counted += 1
            known = self._texts[text] = count_bounded(text, self._count)
        return known

    def _message(self, message: Message) -> _Raw:
        known = self._messages.get(message)
        if known is None:
            self.counted += 1
            known = self._messages[message] = self._measure(message)
        return known

    def _measure(self, message: Message) -> _Raw:
        texts: list[str] = []
        flat = 0
        if isinstance(message.content, str):
            texts.append(message.content)
        else:
            for part in message.content:
                if isinstance(part, TextPart):
                    texts.append(part.text)
                elif isinstance(part, ImagePart):
                    flat += IMAGE_TOKENS
                else:
                    words, payloads = _other_part(part)
                    texts.append(words)
                    flat += IMAGE_TOKENS * payloads
        for call in message.tool_calls:
            texts += (call.name, call.arguments)
        return _Raw(MESSAGE_TOKENS + sum(count_bounded(t, self._count) for t in texts if t), flat)


def count_bounded(text: str, count: CountText) -> int:
    """Tokens of `text`, in slices; beyond `EXACT_CHARS` characters extrapolated from evenly spread slices.

    A cut between slices may add a token; sampling a uniform log or table is right within a few percent. Encoded data
    costs a token a character: no vocabulary has words for it.
    """
    if len(text) <= SLICE_CHARS:
        return _count_slice(text, count)
    if len(text) <= EXACT_CHARS:
        return sum(_count_slice(text[i : i + SLICE_CHARS], count) for i in range(0, len(text), SLICE_CHARS))
    step = (len(text) - SLICE_CHARS) // (SAMPLES - 1)
    sampled = sum(_count_slice(text[i * step : i * step + SLICE_CHARS], count) for i in range(SAMPLES))
    return math.ceil(sampled * len(text) / (SAMPLES * SLICE_CHARS))


def _count_slice(text: str, count: CountText) -> int:
    words, encoded = split_encoded(text)
    return count(words) + encoded


def _other_part(part: OtherPart) -> tuple[str, int]:
    """(the JSON of an unknown part without its binary strings, how many there were)."""
    payloads = 0

    def strip(value: Any) -> Any:
        nonlocal payloads
        if isinstance(value, str) and len(value) >= 256 and _BINARY.fullmatch(value):
            payloads += 1
            return ""
        if isinstance(value, Mapping):
            return {k: strip(v) for k, v in value.items()}
        if isinstance(value, list):
            return [strip(v) for v in value]
        return value

    return canonical_json(strip(json.loads(part.raw))), payloads


@dataclass(frozen=True, slots=True)
class Segments:
    """H by kind: the summary pair, the conversation proper, tool outputs."""

    summary: int
    conversation: int
    outputs: int


def segments(history: Sequence[Message], ledger: TokenLedger, used: int | None = None) -> Segments:
    """Estimates of `history` by kind (outputs: role tool), so that they sum to `used` exactly (I8, case 86).

    `used` is H (None: the plain estimates). The estimates are scaled to it; what rounding leaves is conversation.
    """
    tally = ledger.tally(tuple(history))
    total, summary, outputs = tally.total, tally.summary, tally.outputs
    if used is None or used == total:
        return Segments(summary, total - summary - outputs, outputs)
    if total == 0:
        return Segments(0, used, 0)
    summary, outputs = summary * used // total, outputs * used // total
    return Segments(summary, used - summary - outputs, outputs)


def history_tokens(conversation: Conversation, ledger: TokenLedger, system_tokens: int) -> tuple[int, bool]:
    """(H, whether any of it is estimated) (M5, M39, cases 89, 90, 97).

    With a valid measure: prompt + completion of the last request − `system_tokens`, less reasoning that is not sent
    back, plus the estimate of what was logged since. Without one, or when the measure is far below what the text alone
    must cost (a server that truncates silently, cached tokens left out), the full estimate.
    """
    history = conversation.history()
    tally = ledger.tally(history)
    estimate = tally.total
    measured = conversation.measured
    if measured is None:
        return estimate, bool(history)
    seen = measured.prompt_tokens + measured.completion_tokens - system_tokens
    reply = conversation.measured_reply()
    unsent = 0
    if reply is not None and not ledger.echo_reasoning:
        unsent = min(measured.completion_tokens, ledger.text(reply.reasoning))
    unseen = conversation.unmeasured()
    used = max(0, seen - unsent) + ledger.messages(unseen)
    words = estimate - tally.flat
    if words >= SANE_FROM and used < SANE_SHARE * words:
        return estimate, True
    return used, bool(unseen or unsent)
