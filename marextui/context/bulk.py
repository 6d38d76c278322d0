"""What weighs much and says little: encoded data and images, and the bytes of a request (cases 101–103, 105).

A server has two limits: tokens, and the bytes of a request's body. Images hardly count for the first and alone fill
the second, so both have a budget of their own.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise

from marextui.context.messages import ImagePart, Message, canonical_json, to_wire
from marextui.context.running import Running

MEGABYTE = 1_000_000
MAX_REQUEST_MB = 20
"""Most megabytes of a request by default: the least that the large providers take inline."""
KEEP_IMAGES = 4
"""Images that stay in the view, the newest ones; older ones become a description (case 103)."""

BLOB_CHARS = 256
"""Shortest run of letters and digits that may be encoded data: identifiers, paths and hashes are shorter."""
_BLOB = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{256,}={0,2}|(?:[A-Za-z0-9+/]{60,100}\r?\n){4,}[A-Za-z0-9+/]*={0,2})"
)
"""Tried where a run begins, once: at every character of it, a text of long words took the square of their length."""
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[\w=;.+-]*,", re.ASCII)
_HEADER_CHARS = 64 * 1024


def _dense(run: str) -> bool:
    """Whether a run looks encoded: in any 256 characters of base64 stand both cases, digits and most of 64 signs."""
    sample = run[:BLOB_CHARS]
    return (
        len(set(sample)) >= 32
        and any(c.isdigit() for c in sample)
        and any(c.islower() for c in sample)
        and any(c.isupper() for c in sample)
    )


def encoded_runs(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each long run of encoded data in `text`, in order; one pass."""
    if len(text) >= BLOB_CHARS:
        yield from (m.span() for m in _BLOB.finditer(text) if _dense(m.group()))


def split_encoded(text: str) -> tuple[str, int]:
    """(`text` without its encoded runs, their characters in all)."""
    spans = list(encoded_runs(text))
    if not spans:
        return text, 0
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    words = "\n".join(text[a:b] for n, (a, b) in enumerate(pairwise(edges)) if n % 2 == 0)
    return words, sum(end - start for start, end in spans)


class Scales:
    """Bytes of messages as they are sent, each weighed once."""

    def __init__(self, *, echo_reasoning: bool = False) -> None:
        self._echo = echo_reasoning
        self._known: dict[Message, int] = {}
        self._running = Running(lambda message: (self.message(message),))

    def message(self, message: Message) -> int:
        """UTF-8 bytes of the JSON of `message`, with the comma after it."""
        known = self._known.get(message)
        if known is None:
            wire = canonical_json(to_wire(message, echo_reasoning=self._echo))
            known = self._known[message] = len(wire.encode("utf-8", "surrogatepass")) + 1
        return known

    def messages(self, history: tuple[Message, ...]) -> int:
        """Sum over `history`; of one that grew since the last time, only the new messages are looked at."""
        return sum(self._running.over(history))


def images(message: Message) -> list[int]:
    """Positions of the images in the content of `message`."""
    if isinstance(message.content, str):
        return []
    return [i for i, part in enumerate(message.content) if isinstance(part, ImagePart)]


def image_label(url: str) -> str:
    """What a marker calls an image: its format, pixels and bytes as far as the data tell ("image, PNG 640×480")."""
    found = _DATA_URL.match(url)
    if found is None:
        return "image, linked"
    data = url[found.end() :]
    kind = (found.group(1) or "").rpartition("/")[2].split("+")[0].upper()[:12]
    size = f"{max(1, len(data) * 3 // 4 // 1000)} kB" if ";base64" in found.group() else ""
    pixels = _pixels(data[:_HEADER_CHARS])
    dimensions = f" {pixels[0]}×{pixels[1]}" if pixels else ""
    return ", ".join(t for t in ("image", f"{kind}{dimensions}".strip(), size) if t)


def _pixels(data: str) -> tuple[int, int] | None:
    """Width and height from the header of a PNG, GIF or JPEG in base64; None when it is none of them."""
    try:
        raw = base64.b64decode(data[: len(data) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and len(raw) >= 24:
        return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if raw[:4] == b"GIF8" and len(raw) >= 10:
        return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")
    return _jpeg_pixels(raw) if raw[:2] == b"\xff\xd8" else None


def _jpeg_pixels(raw: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        kind = raw[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height = int.from_bytes(raw[at + 5 : at + 7], "big")
            return int.from_bytes(raw[at + 7 : at + 9], "big"), height
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None
