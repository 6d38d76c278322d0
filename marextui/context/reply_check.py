"""Whether a model's reply may be used as a summary (M16, L22; cases 37, 39, 50)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marextui.context.marks import SUMMARY_MARK
from marextui.context.quoting import without_mark
from marextui.context.reply_forms import NoNotes, is_echo, is_guide, is_page, is_talk, notes_in, without_loops
from marextui.context.sanitise import sanitise
from marextui.context.section_titles import canonical_title, plain
from marextui.context.sections import KINDS, SECTIONS

MIN_CHARS = 40
"""A reply with fewer characters of real text is a failure (M16)."""
LOOKED_AT = 1_000_000
"""Characters of a reply that are looked at; summaries have a few thousand."""


class SummaryRejected(ValueError):
    """The reply is not a usable summary (M16); the text is a sentence for people."""


class ToolCalled(SummaryRejected):
    """The model called a tool instead, as data (L22): it will do so again."""


_THINK_TAGS = "think|thinking|thought|thoughts|analysis|reasoning|reflection|scratchpad|seed:think"
_THINKING = re.compile(rf"<({_THINK_TAGS})\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_TAIL = re.compile(rf"\A.*</(?:{_THINK_TAGS})\s*>", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(
    r"<\|channel\|>analysis.*?(?=<\|channel\|>final|\Z)"
    r"|<\|(?:start|end|message|channel|return|im_start|im_end|eot_id|endoftext)\|>(?:final|assistant)?",
    re.DOTALL,
)
_WRAPPER = re.compile(
    r"^[ \t]*</?(?:summary|conversation_summary|context_summary|notes|output|answer|result)>[ \t]*$"
    r"|\A\s*<(?:summary|answer)>|</(?:summary|answer)>\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
_MARK = re.compile(r"^[ \t]*" + re.escape(SUMMARY_MARK) + r"[ \t]*$", re.MULTILINE)
_OUTER_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[\w+-]*[ \t]*\n(.*?)\n?[ \t]*(?:\1[ \t]*)?\Z", re.DOTALL)
_CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)", re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`\n]*`")

_TOOL_TEXT = re.compile(
    r"<(?:\|?tool_calls?\|?|tool_use|function_calls?|antml:invoke|invoke\s+name=|function=[\w.-]+|tool_code)[\s>|]?"
    r"|\[TOOL_CALLS\]|<\|python_tag\|>|<｜tool▁calls?▁begin｜>|<\|tool_calls_section_begin\|>"
    r"|^\s*(?:Action|Tool):\s*\w+\s*\n\s*(?:Action Input|Input|Arguments):",
    re.IGNORECASE | re.MULTILINE,
)
_TOOL_JSON = re.compile(
    r'\A\s*(?:```\w*\s*)?\[?\s*\{\s*"(?:name|function|tool|tool_name|type)"\s*:.*"(?:arguments|parameters|args|input|function)"\s*:',
    re.DOTALL,
)
_DIFF_LINE = re.compile(r"^(?:diff --git .*|index [0-9a-f]+\.\..*|(?:---|\+\+\+) \S.*|@@ .*)$", re.MULTILINE)
_HUNK = re.compile(r"^@@ .*\n(?:[ +\-\\].*(?:\n|\Z)|\n)*", re.MULTILINE)
_NOTHING_WORDS = """
    none|n a|na|nothing|nothing yet|no files|no files modified|no decisions|empty|unknown|aucun|aucune|neant|rien
    |aucun fichier modifie|aucune decision|keine|keiner|nichts|ninguno|ninguna|nada|nenhum|nenhuma|nessuno|nessuna
"""
_NOTHING = frozenset(word.strip() for word in _NOTHING_WORDS.split("|"))
_BULLET = re.compile(r"^\s*(?:[-*+•–—‣◦▪●]|\d{1,3}[.)])\s+")


def says_nothing(line: str) -> bool:
    """True for an item that only says there is none, in the languages we know, or that holds no word at all."""
    return not (bare := plain(line)) or bare in _NOTHING


def unfenced(text: str) -> str:
    """`text` without the code fence that wraps all of it."""
    match = _OUTER_FENCE.fullmatch(text)
    if match is None or match.group(1) in match.group(2):
        return text
    return match.group(2)


def without_reasoning(text: str) -> str:
    """`text` without thinking written into it: tagged blocks, unclosed ones, and what precedes a lone closing tag."""
    text = _THINKING.sub("", text)
    text = _THINKING_TAIL.sub("", text)
    return _CHANNEL.sub("", text)


def without_wrapping(text: str) -> str:
    """`text` without thinking, the summary mark and wrapper tags."""
    return _MARK.sub("", _WRAPPER.sub("", without_reasoning(text))).strip()


def writes_call(text: str) -> bool:
    """Whether `text` holds a tool call written out, in one of the ways of common templates (L22)."""
    return bool(_TOOL_JSON.match(text) or _TOOL_TEXT.search(_CODE_SPAN.sub("", _CODE.sub("", text))))


def _is_heading(line: str) -> bool:
    bare = line.strip()
    if re.match(r"#{1,6}\s", bare):
        return True
    return len(bare) < 60 and canonical_title(bare) in KINDS


def _real_text(text: str) -> str:
    lines = (_BULLET.sub("", line) for line in text.splitlines() if not _is_heading(line))
    return " ".join(" ".join(dict.fromkeys(line for line in lines if not says_nothing(line))).split())


def check_reply(
    text: str,
    finish_reason: str,
    has_tool_calls: bool,
    reasoning: str,
    *,
    sections: Sequence[str] = SECTIONS,
    most_chars: int | None = None,
) -> str:
    """The cleaned text of a summary reply: no thinking, marker, wrapper tags, outer fence, escape sequence or loop.

    Notes written as JSON are read as the `sections` they name. Raises `SummaryRejected` when a tool was called
    (`ToolCalled`), also as text, when the reply is a page, an error, an echo or talk about the task, or when fewer than
    `MIN_CHARS` characters of real text remain: headings, "none" and quoted code alone are no summary. A reply cut by
    its cap is accepted if it has text (`finish_reason` "length"), and one that goes on beyond `most_chars` (a server
    that knows no cap) is cut there. `reasoning` is the provider's separate thinking, used to say what went wrong.
    """
    if has_tool_calls or finish_reason in {"tool_calls", "function_call"}:
        raise ToolCalled("The model called a tool instead of writing the summary.")
    if finish_reason == "content_filter":
        raise SummaryRejected("The provider's content filter stopped the summary.")
    had_text = bool(text.strip())
    cleaned = without_wrapping(text[:LOOKED_AT])
    if most_chars is not None and len(cleaned) > most_chars:
        cleaned = cleaned[:most_chars].rpartition("\n")[0] or cleaned[:most_chars]
    cleaned = without_mark(sanitise(cleaned, max_line=len(cleaned) + 1))
    if is_page(cleaned):
        raise SummaryRejected("The server answered with a web page instead of the summary.")
    if writes_call(cleaned):
        raise SummaryRejected("The model wrote a tool call as text instead of the summary.")
    try:
        cleaned = notes_in(unfenced(cleaned), {*map(canonical_title, sections), *KINDS}).strip()
    except NoNotes as problem:
        raise SummaryRejected(str(problem)) from problem
    if is_echo(cleaned):
        raise SummaryRejected("The model repeated what it was given instead of summarising it.")
    whole = cleaned
    cleaned = without_loops("\n".join(n for n in cleaned.splitlines() if not is_guide(_BULLET.sub("", n)))).strip()
    if len(_real_text(cleaned)) < MIN_CHARS <= len(_real_text(whole)):
        raise SummaryRejected("The model only repeated itself or its instructions.")
    headed = any(map(_is_heading, cleaned.splitlines()))
    if not headed and len(cleaned) >= MIN_CHARS and is_talk(cleaned, MIN_CHARS):
        raise SummaryRejected("The model talked about the task instead of writing the summary.")
    if len(_real_text(cleaned)) < MIN_CHARS:
        if (had_text and not cleaned) or (not had_text and reasoning.strip()):
            cut = ", cut by the output limit" if finish_reason == "length" else ""
            raise SummaryRejected(f"The model only wrote its thinking{cut}, no summary.")
        if not cleaned:
            raise SummaryRejected("The model's summary came back empty.")
        raise SummaryRejected(f"The model's summary is too short to be one (fewer than {MIN_CHARS} characters).")
    prose = _DIFF_LINE.sub("", _HUNK.sub("", _CODE.sub("", cleaned)))
    if len(_real_text(prose)) < MIN_CHARS:
        raise SummaryRejected("The model answered with code instead of the summary.")
    return cleaned


__all__ = [
    "MIN_CHARS",
    "SummaryRejected",
    "ToolCalled",
    "check_reply",
    "says_nothing",
    "unfenced",
    "without_wrapping",
    "writes_call",
]
