"""The request that asks a model for the summary of a span (M11, M12, P5, P8, P9, P21; cases 31, 125, 126).

Exactly two messages, system and user: a clean context holding only the material. Everything in the material is data.
Secrets are redacted before a model sees them (case 137). Lengths are characters, windows and caps tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from marextui.context.entries import Summary
from marextui.context.facts import user_constraints
from marextui.context.messages import ImagePart, Message, TextPart
from marextui.context.omission import grouped
from marextui.context.redaction import redact
from marextui.context.sections import SECTIONS, titles_of
from marextui.context.spoken import users_language
from marextui.context.summary import render_summary
from marextui.context.summary_rules import SUMMARY_RULES, outline

_PROMPT = """\
You write the working notes of a conversation between a user and an assistant that uses tools. The oldest part of the \
conversation is about to leave the assistant's memory; your notes are all that will remain of it, so be exact.

{outline}

Rules:
{rules} Only lines under [user] are the user's.
- Do not call tools, continue the work, answer the user or think aloud. Begin with the first heading."""


def summarizer_prompt(sections: Sequence[str] = SECTIONS) -> str:
    """The system prompt that asks for `sections`, as a person lists them (P6–P8)."""
    return _PROMPT.format(outline=outline(sections), rules=SUMMARY_RULES)


SUMMARIZER_PROMPT = summarizer_prompt()
"""The system prompt for the default sections."""

RESULT_CHARS = 1200
"""Most characters of one tool result in the material."""

_ARGUMENT_CHARS = 600
_MESSAGE_CHARS = 6000
_HEAD_SHARE = 4
"""The verbatim goals and constraints take at most one part in this many of a cut transcript."""
_BLOB = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/=_-]{240,}")
_LABEL = re.compile(r"^(?=\[(?:user|assistant|calls?|result|image|system)\b)", re.MULTILINE)


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[… {grouped(len(text) - limit)} characters …]\n{text[len(text) - tail :]}"


_READ_CHARS = 24_000
"""Most of one text that is looked at; what is shown of it is far less, so a secret cannot be cut in half into view."""


def _quotable(text: str) -> str:
    """Redacted, encoded data named; a line that looks like one of our labels is set off (case 126)."""
    text = _BLOB.sub(lambda m: f"[{grouped(len(m.group()))} characters of encoded data]", _shorten(text, _READ_CHARS))
    return _LABEL.sub(" ", redact(text).strip())


def _content(message: Message) -> str:
    if isinstance(message.content, str):
        return _quotable(message.content)
    parts = (
        "[image]" if isinstance(p, ImagePart) else _quotable(p.text) if isinstance(p, TextPart) else "[attachment]"
        for p in message.content
    )
    return "\n".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class _Told:
    """A message made quotable once, whatever number of lengths is tried."""

    message: Message
    text: str
    label: str
    calls: tuple[tuple[str, str], ...]


def _prepare(messages: Sequence[Message]) -> list[_Told]:
    told = [m for m in messages if m.role != "system" and not m.synthetic]
    names = {c.id: c.name for m in told for c in m.tool_calls}
    prepared = []
    for m in told:
        label = f"[{m.role}]"
        if m.role == "tool":
            tool = m.name or names.get(m.tool_call_id, "") or "a tool"
            label = f"[result of {tool}{', failed' if m.is_error else ''}]"
        calls = tuple((c.name, redact(" ".join(_shorten(c.arguments, _READ_CHARS // 4).split()))) for c in m.tool_calls)
        prepared.append(_Told(m, _content(m), label, calls))
    return prepared


def _block(told: _Told, result_chars: int) -> str:
    lines = [told.label]
    if told.message.role == "tool":
        lines.extend(f"> {line}" for line in _shorten(told.text, result_chars).split("\n"))
        return "\n".join(lines)
    if told.text:
        limit = _MESSAGE_CHARS if told.message.role == "user" else max(result_chars, _MESSAGE_CHARS // 2)
        lines.append(_shorten(told.text, limit))
    limit = _ARGUMENT_CHARS if result_chars >= 600 else _ARGUMENT_CHARS // 3
    lines.extend(f"[calls {name}] {_shorten(arguments, limit)}" for name, arguments in told.calls)
    return "\n".join(lines) if len(lines) > 1 else ""


def _goals(told: Sequence[_Told], limit: int) -> str:
    """What the users asked and demanded, verbatim, within `limit` characters (P21)."""
    wanted: list[str] = []
    for t in told:
        if t.message.role == "user" and t.text:
            line = " ".join(t.text.split())
            wanted.append(_shorten(line, 500).replace("\n", " "))
            wanted.extend(c for c in map(redact, user_constraints(t.message)) if c not in wanted[-1])
    kept: set[str] = set()
    used = 0
    for line in wanted[:1] + wanted[:0:-1]:  # the first request, then the latest first
        if line not in kept and used + len(line) + 3 <= limit:
            kept.add(line)
            used += len(line) + 3
    return "\n".join(f"- {line}" for line in dict.fromkeys(wanted) if line in kept)


def transcript(messages: Sequence[Message], *, max_chars: int, result_chars: int = RESULT_CHARS) -> str:
    """`messages` as labelled plain text of at most `max_chars` characters (P9, P21).

    Tool results are quoted line by line and shortened to head and tail of `result_chars`; when the whole is too long
    they are shortened further, and then the start is dropped with a note, the users' requests and constraints in it
    copied verbatim to the head. Reasoning, synthetic messages and system messages are left out; images are `[image]`.
    """
    return _told_within(_prepare(messages), max_chars, result_chars)


def _told_within(told: Sequence[_Told], max_chars: int, result_chars: int) -> str:
    chars = result_chars
    while True:
        blocks = [_block(t, chars) for t in told]
        total = sum(len(b) + 2 for b in blocks if b) - 2
        if total <= max_chars or chars <= 150:
            break
        chars //= 2
    if total <= max_chars:
        return "\n\n".join(b for b in blocks if b)
    room = max_chars - max_chars // _HEAD_SHARE - 160
    first = len(told)
    while first > 0 and room >= len(blocks[first - 1]) + 2:
        first -= 1
        room -= len(blocks[first]) + 2
    tail = [b for b in blocks[first:] if b]
    if not tail and told:  # not even the last message fits: its end does
        last = blocks[-1]
        tail = [f"{told[-1].label}\n…{last[len(last) - max(0, room - 60) :]}"] if room > 60 else []
        first = len(told) - 1
    left_out = sum(len(b) for b in blocks[:first])
    note = f"[… {first} earlier messages, {grouped(left_out)} characters, left out here …]"
    goals = _goals(told[:first], max_chars // _HEAD_SHARE)
    head = [f"[user, from the part left out, verbatim]\n{goals}"] if goals else []
    return "\n\n".join([*head, note, *tail])[: max(0, max_chars)]


_LETTERS = re.compile(r"[A-Za-z ]+")
_DENSE = re.compile(r"[\x00-\x1f!-@\[-`{-\x7f]+")
_WIDE = re.compile(r"[\u2e80-\U0010ffff]+")


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(map(len, pattern.findall(text)))


def estimated_tokens(text: str, chars_per_token: float) -> int:
    """A cautious estimate: letters at `chars_per_token`, digits and signs at half a token, wide scripts at one each."""
    letters, dense, wide = (_count(p, text) for p in (_LETTERS, _DENSE, _WIDE))
    return int(letters / chars_per_token + dense * 0.5 + wide * 1.1 + (len(text) - letters - dense - wide) * 0.6) + 1


_MARGIN = 64
"""Tokens kept free for the chat template of the request."""
_MATERIAL_SHARE = 0.7
"""The material takes at most this share of the window (P21)."""


_STAYING = (
    "Notes that already exist, for reference only. They stay; do not repeat them, write only what the new material "
    "adds or changes."
)
_REWRITTEN = (
    "Notes of what came before this material. Yours replace them: take over, with its cycle tag, everything in them "
    "that still holds, and correct what the material changes."
)


def _ask(material: str, earlier: str, *, language: str, sections: Sequence[str], rewrite: bool, correction: str) -> str:
    blocks = []
    if earlier:
        told = _REWRITTEN if rewrite else _STAYING
        blocks.append(f"{told}\n<existing_notes>\n{earlier}\n</existing_notes>")
    blocks.append(f"The material:\n<material>\n{material}\n</material>")
    spoken = f" Write in {language}, the language of the user." if language else ""
    refused = f" An answer before this one could not be used: {correction}" if correction else ""
    headings = "\n".join(f"## {title}" for title in sections)  # again, here: a small model forgets what stood far above
    wanted = "each of these headings, under it its bullets or `none`"
    blocks.append(f"Write the notes now: {wanted}.{spoken}{refused}\n{headings}")
    return "\n\n".join(blocks)


def summary_messages(
    span: Sequence[Message],
    *,
    earlier: Summary | None,
    window: int | None,
    chars_per_token: float = 3.0,
    cap: int,
    sections: Sequence[str] = SECTIONS,
    language: str = "",
    rewrite: bool = False,
    correction: str = "",
) -> tuple[Mapping[str, Any], ...]:
    """The [system, user] messages, OpenAI wire form, that ask for the summary of `span` alone (P5, P9).

    `earlier` is given for reference, as data; with `rewrite` the model is to take it over (P4). The whole is estimated
    to fit `window − cap` tokens (case 31); with an unknown window nothing is cut. `language` (an English name such as
    "French"; "": found from the user's messages) is the language to write in (I11). `correction` says what was wrong
    with an answer before.
    """
    prompt = summarizer_prompt(sections)
    language = language or users_language(span, earlier)
    notes = render_summary(earlier) if earlier is not None else ""
    ask = partial(_ask, language=language, sections=titles_of(sections), rewrite=rewrite, correction=correction)
    told = _prepare(span)
    everything = sum(len(_block(t, RESULT_CHARS)) + 2 for t in told)
    if window is not None:
        room = window - cap - _MARGIN - estimated_tokens(prompt + ask("", ""), chars_per_token)
        if notes:
            # the reference is worth at most a third of what there is to read
            while len(notes) > 200 and estimated_tokens(notes, chars_per_token) > room / 3:
                notes = render_summary(earlier, cap_chars=len(notes) * 3 // 4) if earlier is not None else ""
            room -= estimated_tokens(notes, chars_per_token) + 50
        room = max(100, min(room, int(window * _MATERIAL_SHARE)))
        max_chars = min(everything, int(room * chars_per_token))
        material = _told_within(told, max_chars, RESULT_CHARS)
        while (size := estimated_tokens(material, chars_per_token)) > room and max_chars > 200:
            max_chars = min(max_chars - 100, int(max_chars * room / size * 0.97))
            material = _told_within(told, max_chars, RESULT_CHARS)
    else:
        material = _told_within(told, everything, RESULT_CHARS)
    notes = notes.replace("</existing_notes>", "")
    material = material.replace("</material>", "<\\/material>")
    return (
        {"role": "system", "content": prompt},
        {"role": "user", "content": ask(material, notes)},
    )
