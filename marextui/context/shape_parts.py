"""What the provider shapes share: ids and names they take, call arguments as data, images and other parts (I1)."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marextui.context.messages import ImagePart, Message, OtherPart, Part, TextPart, ToolCall

MAX_DEPTH = 64
"""Deepest nesting of call arguments sent as data; protocol buffers stop at 100."""

OPENAI_ID = re.compile(r"[!-~]{1,40}")
ANTHROPIC_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DATA_URL = re.compile(r"data:([a-z]+/[\w.+-]+)(?:;[\w=.+-]+)*;base64,([A-Za-z0-9+/]+={0,2})", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)
_STILL = frozenset({"image/png", "image/jpeg", "image/webp"})
USUAL_IMAGES = _STILL | {"image/gif"}
GEMINI_IMAGES = _STILL | {"image/heic", "image/heif"}
SUFFIXES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp"}
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(slots=True)
class CallIds:
    """Call ids as the provider wants them, each given once."""

    wanted: re.Pattern[str]
    prefix: str = "call_"
    used: set[str] = field(default_factory=set)
    times: dict[str, int] = field(default_factory=dict)

    def give(self, raw: str) -> str:
        """An id for the next call whose id in the log is `raw`; depends on the calls before it only."""
        count = self.times[raw] = self.times.get(raw, 0) + 1
        chosen = raw
        while not self.wanted.fullmatch(chosen) or chosen in self.used:
            chosen = self.prefix + _digest(f"{raw}\0{count}")
            count += 1
        self.used.add(chosen)
        return chosen


def _digest(text: str) -> str:
    """Nine letters and digits."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def tool_name(name: str) -> str:
    """`name` within the letters all providers take: up to 64 of A–Z, a–z, 0–9, _ and -, a digit or - never first."""
    bare = re.sub(r"[^A-Za-z0-9_-]", "_", name) or "unknown"
    return (bare if bare[0].isalpha() or bare[0] == "_" else f"_{bare}")[:64]


def without_surrogates(text: str) -> str:
    """`text` without the halves of broken surrogate pairs, which no UTF-8 body can carry."""
    return _SURROGATES.sub("\ufffd", text)


def _sound(value: Any, depth: int = 0) -> Any:
    """`value` as JSON can carry it. Raises ValueError when it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, Mapping):
        return {without_surrogates(k): _sound(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_sound(v, depth + 1) for v in value]
    if isinstance(value, str):
        return without_surrogates(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def call_input(call: ToolCall) -> dict[str, Any]:
    """Arguments of a repaired call as data."""
    try:
        sound: dict[str, Any] = _sound(json.loads(call.arguments))
    except (ValueError, RecursionError):
        return {"malformed": without_surrogates(call.arguments)}
    return sound


def parts_of(message: Message) -> Sequence[Part]:
    """The parts of the content; a plain string is one text part."""
    return (TextPart(message.content),) if isinstance(message.content, str) else message.content


@dataclass(frozen=True, slots=True)
class Picture:
    """An image: its bytes in base64 with their type, or the address it is at."""

    media_type: str
    data: str
    url: str


def _whole(data_url: re.Match[str]) -> bool:
    """Whether the data can be decoded: base64 comes in fours."""
    return len(data_url.group(2)) % 4 == 0


def picture_of(part: ImagePart, allowed: frozenset[str]) -> Picture | None:
    """The image when the provider takes it."""
    held = _DATA_URL.fullmatch(part.url)
    if held is not None:
        kind = held.group(1).lower().replace("image/jpg", "image/jpeg")
        return Picture(kind, held.group(2), "") if kind in allowed and _whole(held) else None
    return Picture("", "", part.url) if _WEB_URL.fullmatch(part.url) else None


def instead(part: ImagePart | OtherPart | str) -> str:
    """A text as it is; of another part, what is said when the provider does not take it."""
    if isinstance(part, str):
        return part
    if isinstance(part, OtherPart):
        return f"[attachment left out: {kind_of(part) or 'unknown kind'}]"
    held = re.match(r"data:([\w.+/-]{1,60})", part.url)
    return f"[image left out: {held.group(1) if held else without_surrogates(part.url[:200]) or 'no address'}]"


def raw_part(part: OtherPart) -> Mapping[str, Any]:
    """The part as data; empty when it is no JSON object."""
    try:
        loaded = _sound(json.loads(part.raw))
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, Mapping) else {}


def kind_of(part: OtherPart) -> str:
    """Its `type`, in letters that may be shown; "" when it has none."""
    kind = raw_part(part).get("type")
    return re.sub(r"[^\w-]", "", kind)[:40] if isinstance(kind, str) else ""


def is_thinking(part: Part) -> bool:
    """Whether it is reasoning, in any provider's block."""
    return isinstance(part, OtherPart) and kind_of(part) in {"thinking", "redacted_thinking", "reasoning"}


def said(message: Message) -> Iterator[ImagePart | OtherPart | str]:
    """What a message says, part by part: texts that are not blank, images, attachments; no reasoning."""
    for part in parts_of(message):
        if isinstance(part, TextPart):
            if part.text.strip():
                yield without_surrogates(part.text)
        elif not is_thinking(part):
            yield part


def plain_text(message: Message) -> str:
    """All of a message as text."""
    return "\n".join(instead(p) for p in said(message))


def audio_of(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """(media type, base64) of OpenAI's audio part."""
    held = raw.get("input_audio")
    if raw.get("type") != "input_audio" or not isinstance(held, Mapping) or not isinstance(held.get("data"), str):
        return None
    sound = held.get("format", "wav")
    known = sound in ("wav", "mp3")
    data = _DATA_URL.fullmatch(f"data:audio/{sound};base64,{held['data']}") if known else None
    return (f"audio/{sound}", held["data"]) if data is not None and _whole(data) else None


def is_signed(raw: Mapping[str, Any]) -> bool:
    """Whether Anthropic would know this thinking block for its own."""
    if raw.get("type") == "redacted_thinking":
        return isinstance(raw.get("data"), str) and bool(raw["data"])
    return isinstance(raw.get("thinking"), str) and isinstance(raw.get("signature"), str) and bool(raw["signature"])
