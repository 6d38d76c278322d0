"""Encoded data, images and bytes (cases 101–103, 105)."""

from __future__ import annotations

import base64
import struct

import pytest

from marextui.context.bulk import Scales, encoded_runs, image_label, images, split_encoded
from marextui.context.messages import ImagePart, Message, TextPart, canonical_json, to_wire

NOISE = base64.b64encode(bytes((i * 167 + i // 3) % 256 for i in range(600))).decode()


def png(width: int, height: int, size: int = 3000) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return "data:image/png;base64," + base64.b64encode(head.ljust(size, b"\x01")).decode()


def jpeg(width: int, height: int) -> str:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF".ljust(14, b"\0")
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\0" * 10
    return "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8" + app + frame).decode()


@pytest.mark.parametrize(
    ("url", "label"),
    [
        (png(640, 480), "image, PNG 640×480, 3 kB"),
        (jpeg(1024, 77), "image, JPEG 1024×77, 1 kB"),
        ("data:image/gif;base64," + base64.b64encode(b"GIF89a" + struct.pack("<HH", 9, 7) + b"\0\0").decode(), None),
        ("data:image/png;base64,not base64 at all!", "image, PNG, 1 kB"),
        ("data:image/svg+xml,%3Csvg/%3E", "image, SVG"),
        ("https://example.org/cat.png", "image, linked"),
        ("data:,", "image"),
    ],
)
def test_an_image_is_named_by_what_its_data_tell(url: str, label: str | None) -> None:
    assert image_label(url) == (label or "image, GIF 9×7, 1 kB")


def test_encoded_runs_are_found_and_words_are_not() -> None:
    text = f"key: {NOISE} and {'word ' * 200}"
    [(start, end)] = encoded_runs(text)
    assert text[start:end] == NOISE
    words, size = split_encoded(text)
    assert size == len(NOISE)
    assert NOISE not in words
    assert split_encoded("plain") == ("plain", 0)
    for ordinary in ("a" * 900, "path/to/" * 90, "CamelCaseName" * 40, "deadbeef01" * 60, "-" * 500):
        assert list(encoded_runs(ordinary)) == []


def test_bytes_are_those_of_the_wire_and_weighed_once() -> None:
    message = Message("m", "user", (TextPart("é"), ImagePart(png(2, 2))))
    scales = Scales()
    assert scales.message(message) == len(canonical_json(to_wire(message)).encode()) + 1
    assert scales.messages((message, message)) == 2 * scales.message(message)
    assert images(message) == [1]
    assert images(Message("m", "user", "text")) == []
    lone = Message("m", "user", "\ud800")
    assert scales.message(lone) > 3
