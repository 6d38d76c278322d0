"""What `marextui doctor` asks a model, and how much that is at most (issue 4, section 6). Pure.

The bound is stated before anything is sent, so it has to hold for every tokenizer: a token is never less than a byte
of text. What people pay for is about a quarter of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marextui.context.messages import canonical_json

REPLY_BYTES = 48
"""Most bytes of a model's reply that are sent back to it."""
CANCEL_TOKENS = 160
"""Length of the answer that is hung up on."""
_MESSAGE, _REQUEST, _TOOLS = 16, 32, 192
"""Tokens a chat template puts around a message, a request, and the description of a tool."""
_LINES = 24

TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city now",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `answer` is the most tokens of its reply, `tries` how often it may be sent (fields refused)."""

    name: str
    messages: tuple[Mapping[str, str], ...]
    answer: int
    tool_choice: str = ""
    """Offers `TOOL` when not ""."""
    stream: bool = False
    tries: int = 1

    @property
    def tokens(self) -> int:
        """No tokenizer makes more tokens of the prompt than this."""
        text = sum(len(m["content"].encode("utf-8", "replace")) + _MESSAGE for m in self.messages)
        return text + _REQUEST + (len(canonical_json(TOOL)) + _TOOLS if self.tool_choice else 0)


@dataclass(frozen=True, slots=True)
class Bound:
    """The most an examination sends: requests, tokens of prompts, tokens of answers; `about` is what is usual."""

    requests: int
    tokens: int
    answers: int

    @property
    def about(self) -> int:
        """Tokens of prompts as most tokenizers count them."""
        return -(-self.tokens // 400) * 100


def bound(asked: Sequence[Asked]) -> Bound:
    """What sending all of `asked` costs at most."""
    return Bound(
        sum(a.tries for a in asked),
        sum(a.tries * a.tokens for a in asked),
        sum(a.tries * a.answer for a in asked),
    )


def clipped(reply: str) -> str:
    """A reply as it is sent back: at most `REPLY_BYTES` bytes, never empty."""
    return reply.encode("utf-8", "ignore")[:REPLY_BYTES].decode("utf-8", "ignore").strip() or "Noted."


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


_SYSTEM = _message("system", "You are being checked. Answer briefly.")


def _log(nonce: str) -> str:
    """A text of some 350 tokens that no cache holds yet: it differs from its first words on."""
    places = ("mill", "quay", "barn", "tower", "pond", "gate")
    lines = (f"{places[i % 6]} {i + 1}: the pump ran well, the valve stayed shut" for i in range(_LINES))
    return f"Log {nonce} of the day.\n" + "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Script:
    """The requests of one examination. `nonce` is a short text that no earlier examination had."""

    nonce: str
    local: bool

    def plan(self) -> tuple[Asked, ...]:
        """All requests, with the longest replies there can be. A hosted model is asked the short ones only."""
        reply = "x" * REPLY_BYTES
        asked: tuple[Asked, ...]
        asked = (self.hello(), self.stream(), self.two_users(), self.tool("auto"), self.tool("none"))
        if self.local:
            asked += (self.opening(), self.continuation(reply), self.separate(), self.back(reply, reply))
            asked += (self.prewarm(), self.prewarmed(), self.count(), self.after())
        return asked

    def hello(self) -> Asked:
        """Does it answer at all? It may load its model first; some providers want another name for max_tokens."""
        return Asked("hello", (_SYSTEM, _message("user", "Say hello.")), 4, tries=2)

    def two_users(self) -> Asked:
        """Two user messages in a row: strict templates refuse them."""
        return Asked("two_users", (_SYSTEM, _message("user", "Say hello."), _message("user", "Now say yes.")), 1)

    def tool(self, choice: str) -> Asked:
        """A question for the tool, with `choice` "auto" or "none"."""
        question = "What is the weather in Paris now? Use the tool."
        tries = 2 if choice == "auto" else 1
        return Asked(f"tool_{choice}", (_SYSTEM, _message("user", question)), 48, tool_choice=choice, tries=tries)

    def stream(self) -> Asked:
        """A streamed reply, with fields that not every server takes."""
        return Asked("stream", (_SYSTEM, _message("user", "Say yes.")), 8, stream=True, tries=2)

    def opening(self) -> Asked:
        """The first request of a conversation: its prompt has to be computed in full."""
        return Asked("opening", self._opening("a"), 8, stream=True)

    def continuation(self, reply: str) -> Asked:
        """A summary asked for by going on with the conversation."""
        return Asked("continuation", self._continuation(reply), 8, stream=True)

    def separate(self) -> Asked:
        """The same summary asked for by a request of its own."""
        system = _message("system", f"{self.nonce}s Sum up the material in five words.")
        return Asked("separate", (system, _message("user", f"[user] {_log(self.nonce)}")), 8, stream=True)

    def back(self, reply: str, summary: str) -> Asked:
        """The conversation goes on after the separate request."""
        messages = (*self._continuation(reply), _message("assistant", clipped(summary)), _message("user", "Thank you."))
        return Asked("back", messages, 4, stream=True)

    def prewarm(self) -> Asked:
        """A rewritten conversation sent ahead, with a full stop where the user's message will be (L32)."""
        return Asked("prewarm", (*self._rewritten(), _message("user", ".")), 1)

    def prewarmed(self) -> Asked:
        """The real turn after that."""
        return Asked("prewarmed", (*self._rewritten(), _message("user", "Was any valve open?")), 4, stream=True)

    def count(self) -> Asked:
        """A long answer, to hang up on."""
        message = _message("user", "Count from 1 to 200 in words, one number a line, without stopping.")
        return Asked("count", (_SYSTEM, message), CANCEL_TOKENS, stream=True)

    def after(self) -> Asked:
        """Is the server free again?"""
        return Asked("after", (_SYSTEM, _message("user", "Say no.")), 1, stream=True)

    def _opening(self, part: str) -> tuple[Mapping[str, str], ...]:
        system = _message("system", f"{self.nonce}{part} You keep the log of a farm. Answer briefly.")
        return (system, _message("user", f"{_log(self.nonce)}\nSay yes when you have read it."))

    def _continuation(self, reply: str) -> tuple[Mapping[str, str], ...]:
        asked = _message("user", "Sum up everything above in five words.")
        return (*self._opening("a"), _message("assistant", clipped(reply)), asked)

    def _rewritten(self) -> tuple[Mapping[str, str], ...]:
        return (*self._opening("b"), _message("assistant", "Yes, I have read it."))


def request_body(
    asked: Asked, model: str, *, max_field: str = "max_tokens", dropped: Collection[str] = (), extra: Mapping[str, Any]
) -> dict[str, Any]:
    """`asked` in OpenAI wire form; `extra` are further fields, `dropped` those the server refused."""
    body: dict[str, Any] = {"model": model, "messages": list(asked.messages)}
    if asked.tool_choice:
        body |= {"tools": [TOOL], "tool_choice": asked.tool_choice}
    body |= {max_field: asked.answer, "stream": asked.stream}
    if asked.stream:
        body["stream_options"] = {"include_usage": True}
    body |= extra
    return {key: value for key, value in body.items() if key not in dropped}
