"""Nothing that arrives on the terminal's input ends the reader, and nothing after it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Key, Paste

from marextui.tui.driver import InputReader


def read(*chunks: bytes) -> str:
    """Keys and pastes as text."""
    reader, out = InputReader(), ""
    for chunk in chunks:
        for message in reader.feed(chunk):
            if isinstance(message, Key):
                out += message.character or f"<{message.key}>"
            elif isinstance(message, Paste):
                out += f"[{message.text}]"
    return out


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ((b"caf\xe9 au lait",), "caf\ufffd au lait"),
        ((b"\x1b[200~caf\xe9\nnext line\x1b[201~ok",), "[caf\ufffd\nnext line]ok"),
        ((b"\xe2\x82", b"\xac 5"), "\u20ac 5"),
        ((b"\x9b31m", b"\xff\xfe", b"!"), "\ufffd31m\ufffd\ufffd!"),
        ((b"\x1b[99999999999;1;99999999999uafter",), "after"),
        ((b"one\x1b[1;1;1114112u\x1b[200~two\x1b[201~three",), "one[two]three"),
        ((b"a\x1b[97;1;55296ub",), "ab"),
    ],
)
def test_bytes_that_are_no_text_are_replaced_and_all_others_read(chunks: tuple[bytes, ...], text: str) -> None:
    assert read(*chunks) == text


piece = st.one_of(
    st.binary(max_size=12),
    st.from_regex(rb"\x1b\[[0-9:;<?]{0,24}[A-Za-z~$]", fullmatch=True),
    st.sampled_from([b"\x1b", b"\x1b[", b"\x1b[200~", b"\x1b[201~", b"\x1b[M\xff\xff\xff", b"\x1b[48;1;1;1;1t"]),
)


@given(st.lists(piece, max_size=8))
def test_no_input_ends_the_reader(chunks: list[bytes]) -> None:
    reader = InputReader()
    for chunk in chunks:
        list(reader.feed(chunk))
        list(reader.tick())
    list(reader.feed(b"\x1b[201~"))
    assert [m.character for m in reader.feed(b"\x1b[201~ z") if isinstance(m, Key)][-1:] == ["z"]
