"""Files as text: what they are, how they are encoded, and the way back to the very same bytes."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

SNIFFED_BYTES = 8_192
EDITABLE_BYTES = 16 * 1024 * 1024
"""Largest file that Edit and Write take into memory."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"BM", "BMP image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\1\0", "icon image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or a document or wheel made of one)"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\0", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"\xca\xfe\xba\xbe", "Java class or macOS program"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"GGUF", "GGUF model"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"\0asm", "WebAssembly module"),
)
_TEXTUAL_MAGIC = frozenset({"BMP image", "Windows program", "MP3 audio", "bzip2 archive", "GGUF model", "Ogg media"})
"""Kinds whose magic is plain letters: believed only when a NUL byte is near as well."""

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


class NotText(ValueError):
    """The file is not text; the message says what it is ("PNG image", "binary data")."""

    @property
    def image(self) -> bool:
        return "image" in str(self)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How text was stored. `lossy`: some bytes are not of the encoding (they survive a round trip all the same)."""

    codec: str
    bom: bytes = b""
    lossy: bool = False

    @property
    def label(self) -> str:
        names = {"utf-8": "UTF-8", "utf-16-le": "UTF-16 LE", "utf-16-be": "UTF-16 BE"}
        return names[self.codec] + (" with BOM" if self.bom else "")


UTF8 = Encoding("utf-8")


def sniff(head: bytes) -> str:
    """What a file beginning with `head` is when it is not text, else "". UTF-16 counts as text only with its BOM."""
    has_nul = b"\0" in head
    for magic, what in _MAGIC:
        if head.startswith(magic) and (what not in _TEXTUAL_MAGIC or has_nul):
            return what
    if head[:4] == b"RIFF" and has_nul:
        return "WebP image" if head[8:12] == b"WEBP" else "RIFF media"
    if head[4:8] == b"ftyp" and has_nul:
        return "AVIF or HEIC image" if head[8:12] in {b"avif", b"heic", b"heix", b"mif1"} else "MP4 media"
    if head.startswith(_UTF32):
        return "UTF-32 text, which is not supported"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ""
    return "binary data" if has_nul else ""


def decode(data: bytes) -> tuple[str, Encoding]:
    """Text of a whole file and how it was stored. `encode(decode(data)) == data` for all data that is text.

    Bytes that are not UTF-8 become surrogate escapes. Raises `NotText` for binary content.
    """
    what = sniff(data[:SNIFFED_BYTES])
    if what or (b"\0" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
        raise NotText(what or "binary data")
    for bom, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(bom):
            try:
                return data[2:].decode(codec, "surrogatepass"), Encoding(codec, bom)
            except UnicodeDecodeError:
                raise NotText("damaged UTF-16 text") from None
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(bom) :]
    try:
        return body.decode("utf-8"), Encoding("utf-8", bom)
    except UnicodeDecodeError:
        return body.decode("utf-8", "surrogateescape"), Encoding("utf-8", bom, lossy=True)


def encode(text: str, encoding: Encoding) -> bytes:
    """Inverse of `decode`. Raises UnicodeEncodeError for text that the encoding cannot hold (lone surrogates)."""
    errors = "surrogatepass" if encoding.codec != "utf-8" else "surrogateescape" if encoding.lossy else "strict"
    return encoding.bom + text.encode(encoding.codec, errors)


def shown(text: str) -> str:
    """Decoded text for the model: bytes that are not of the encoding as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def only_crlf(text: str) -> bool:
    """Whether the text has line ends and all of them are CRLF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def to_crlf(text: str) -> str:
    """`text` with lone line feeds made CRLF."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def load(path: Path, limit: int = EDITABLE_BYTES) -> tuple[bytes, os.stat_result]:
    """A file's bytes and its status at that moment. Raises OSError, and `NotText` above `limit` bytes."""
    # O_NONBLOCK: a file swapped for a pipe must not hold the thread for ever
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > limit:
            raise NotText(f"too large to edit ({status.st_size} bytes; the limit is {limit})")
        data = file.read(limit + 1)
        if len(data) > limit:
            raise NotText(f"too large to edit (the limit is {limit} bytes)")
        return data, status
