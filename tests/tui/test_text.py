"""The one seam: what leaves it holds no markup and no control byte (cases 26, 27)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marextui.tui.text import copyable, line, plain, reveal
from tests.stubs.frames import control_bytes

WILD = st.text(
    alphabet=st.one_of(st.sampled_from("\x1b[]\\;mP\x07\x9d\r\n\t\u202e$=/ab"), st.characters()), max_size=80
)


@given(WILD)
def test_nothing_dangerous_leaves(text: str) -> None:
    assert control_bytes(plain(text).plain) == []
    assert control_bytes(copyable(text).replace("\t", "")) == []
    one = line(text, 40)
    assert control_bytes(one.plain) == []
    assert "\n" not in one.plain
    assert one.cell_length <= 40


def test_markup_is_only_text() -> None:
    for text in ("[/]", "x [/foo] z", "[bold]b[/bold]", "[@click=app.quit]x[/]", "[a=b]", "[", "]"):
        assert plain(text).plain == text
        assert plain(text).spans == []
        assert line(text).plain == text


def test_copy_keeps_tabs_and_long_lines_and_drops_escapes() -> None:
    assert copyable("a\tb\x1b[31mc\x1b[0m\r\n" + "x" * 5000) == "a\tbc\n" + "x" * 5000


def test_what_is_to_be_approved_hides_nothing() -> None:
    """An OSC body ends with its line: unrevealed, the second half of this command would not be shown."""
    command = "ls \x1b]0; ; rm -rf ~ # \x07"
    assert "rm -rf" not in plain(command).plain
    assert "rm -rf ~" in plain(reveal(command)).plain
    assert control_bytes(plain(reveal(command + "\x9d; rm x")).plain) == []
