"""The request that is still open, and what became of the ones before it (Part 2, 9; cases 51, 55, 58)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from marextui.context.beside_labels import labels
from marextui.context.calls import fenced_commands
from marextui.context.facts import sentences
from marextui.context.messages import Message
from marextui.context.outcomes import errors_in, status_of
from marextui.context.quoting import fitting, quoted
from marextui.context.speech import is_echo, is_request, tame

_QUOTE_CHARS, _SHORT_QUOTE = 160, 40


@dataclass(frozen=True, slots=True)
class Done:
    """A request that is no longer open and how it ended; `outcome` is one line quoted from the final answer.

    `joined`: the next message of the user came before anything was done, and was answered with it.
    """

    message_id: str
    request: str
    ended: Literal["answered", "interrupted", "failed", "joined"]
    outcome: str = ""
    answer_id: str = ""


def _final(message: Message) -> bool:
    return (
        message.role == "assistant" and not message.synthetic and not message.tool_calls and bool(message.text.strip())
    )


def request_spans(messages: Sequence[Message]) -> list[tuple[Message, list[Message]]]:
    """Each request with what followed it up to the next one."""
    spans: list[tuple[Message, list[Message]]] = []
    for message in messages:
        if message.synthetic or message.role == "system":
            continue
        if is_request(message):
            spans.append((message, []))
        elif spans:
            spans[-1][1].append(message)
    return spans


def closing_answer(told: Sequence[Message]) -> Message | None:
    """The final answer that ends `told` (what followed a request), None while it is open; what programs put in after it
    does not reopen the request."""
    for n in range(len(told) - 1, -1, -1):
        message = told[n]
        if message.role == "assistant":
            runs = message.tool_calls or (fenced_commands(message.text) and n + 1 < len(told) and is_echo(told[n + 1]))
            return message if _final(message) and not runs else None
        if message.role == "tool" or is_echo(message):
            return None
    return None


def open_request(messages: Sequence[Message]) -> Message | None:
    """The last request of the user that no final answer has closed, None when there is none (case 51)."""
    spans = request_spans(messages)
    return spans[-1][0] if spans and closing_answer(spans[-1][1]) is None else None


_SAYS_LITTLE = 30
_NUMBER_LAST = re.compile(r"(?:^|\s)\d{1,2}[.)]$")
"""The number of a list's next item, taken for the end of a sentence."""


def lead_of(text: str) -> str:
    """The first sentence; after a short one ("Done.") the next too, with " … " where something lies between.

    Verbatim but for line ends.
    """
    told = tame(text[:4000])
    line = " ".join(told.split())
    lead = ""
    for sentence in sentences(told):
        sentence = " ".join(sentence.split())
        last = lead.rpartition(" … ")[2]
        lead += sentence if not lead else f" {sentence}" if f"{last} {sentence}" in line else f" … {sentence}"
        if len(lead) >= _SAYS_LITTLE and not _NUMBER_LAST.search(lead):
            break
    return lead or text[:400]


def _done(request: Message, told: Sequence[Message]) -> Done:
    answer = closing_answer(told)
    if answer is not None:
        return Done(request.id, request.text, "answered", lead_of(answer.text), answer.id)
    if not any(m.role in {"assistant", "tool"} for m in told):
        return Done(request.id, request.text, "joined")
    last = next((m for m in reversed(told) if m.role == "tool"), None)
    status = status_of(last) if last is not None else "interrupted"
    if last is not None and status == "failed":
        error = next(iter(reversed(errors_in(tame(last.text), limit=1))), "")
        return Done(request.id, request.text, "failed", error, last.id)
    return Done(request.id, request.text, "interrupted", "", last.id if last is not None else "")


def done_list(messages: Sequence[Message]) -> tuple[Done, ...]:
    """The requests before the open one, oldest first, with how each ended (cases 51, 58)."""
    spans = request_spans(messages)
    if spans and closing_answer(spans[-1][1]) is None:
        spans.pop()
    return tuple(_done(request, told) for request, told in spans)


def render_requests(
    done: Sequence[Done], request: Message | None = None, *, max_chars: int, language: str = "English"
) -> str:
    """The open `request`, then the earlier ones newest first, at most `max_chars` characters; "" for none.

    The open one is shortened to half the room: verbatim it stands in the view by itself. What came of it may stand
    after the block, so it is not called open (51).
    """
    words = labels(language)
    lines = _lines(done, request, words, _QUOTE_CHARS, max_chars)
    if len("\n".join(lines)) > max_chars:
        lines = _lines(done, request, words, max(_SHORT_QUOTE, min(_QUOTE_CHARS, max_chars // 5)), max_chars)
    return fitting(lines, max_chars, words["more requests"])


def _lines(
    done: Sequence[Done], request: Message | None, words: Mapping[str, str], limit: int, max_chars: int
) -> list[str]:
    lines = []
    if request is not None:
        text = request.text if request.text.strip() else "(image)"
        lines.append(f"- {words['open']}: {quoted(text, max(limit, min(600, max_chars // 2)))} ({request.id})")
    for item in reversed(done):
        line = f"- {quoted(item.request, limit)} ({item.message_id}) → "
        if item.ended == "answered":
            line += f"{words['answered']}: {quoted(item.outcome, limit)}"
        elif item.ended == "joined":
            line += words["joined"]
        else:
            line += words["no answer"] if item.ended == "interrupted" else words["failed"]
            line += f": {quoted(item.outcome, limit)}" if item.outcome else ""
        lines.append(line)
    return lines
