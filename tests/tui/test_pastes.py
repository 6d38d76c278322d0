"""Pasted text: harmless, quick however long, and never lost (cases 8, 36)."""

from __future__ import annotations

import pytest

from marextui.tui.pastes import KEEP, MOST_CHARS, Pastes
from tests.tui.test_composer import ComposerApp, burst, paste, running

N = "\u00a0"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n".join(f"row {i}" for i in range(685)), "[Pasted #1: 685 lines]"),
        ("x\n" * 12_480, f"[Pasted #1: 12{N}481 lines]"),
        ("x" * 1_000_000, f"[Pasted #1: 1.0M{N}chars]"),
        ("x" * 1_234, f"[Pasted #1: 1{N}234{N}chars]"),
        ("a\r\nb\r\nc\r\nd\r\ne\r\nf", "[Pasted #1: 6 lines]"),
    ],
)
async def test_a_huge_paste_is_a_placeholder_that_expands_when_sent(text: str, shown: str) -> None:
    """Case 8: the draft holds a line, so that a megabyte costs the text area nothing, not even at the next key."""
    app = ComposerApp()
    async with running(app) as pilot:
        await pilot.press(*"see ")
        await paste(app, pilot, text)
        assert app.composer.text == f"see {shown}"
        assert app.composer.draft.document.line_count == 1
        await pilot.press("enter")
        sent = "see " + text.replace("\r\n", "\n").rstrip()
        assert app.sent == [sent]


@pytest.mark.parametrize(
    ("pasted", "kept"),
    [
        ("\tone\x1b[31m\r\ntwo\x07", "\tone\ntwo"),
        ("a\x00b\x7f\x9bc", "ab"),
        ("\x1b]0;title\x07text\x1b[2J", "text"),
        ("a\rb", "a\nb"),
        ("'/home/me/my file.txt'", "'/home/me/my file.txt'"),
        ("/home/me/my\\ file.txt ", "/home/me/my\\ file.txt "),
        ("שלום \u200fabc", "שלום \u200fabc"),
    ],
)
def test_a_paste_loses_only_what_is_meant_for_a_terminal(pasted: str, kept: str) -> None:
    """Line ends, tabs, escape sequences, NUL. A file dragged into the terminal is its path as the terminal wrote it."""
    assert Pastes().shown(pasted) == kept
    long = pasted + "\nx" * 10
    pastes = Pastes()
    assert pastes.expanded(pastes.shown(long)) == kept + "\nx" * 10


async def test_two_pastes_keep_their_own_text() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "a\n" * 10)
        await paste(app, pilot, "b\n" * 20)
        assert app.composer.text == "[Pasted #1: 11 lines][Pasted #2: 21 lines]"
        await pilot.press("enter")
        assert app.sent == [("a\n" * 10 + "b\n" * 20).rstrip()]


async def test_a_sent_paste_that_undo_brings_back_is_whole() -> None:
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "a\n" * 10)
        await pilot.press("enter")
        await paste(app, pilot, "b\n" * 20)
        assert app.composer.text == "[Pasted #2: 21 lines]"
        await pilot.press("ctrl+z", "ctrl+z", "enter")
        assert app.sent[-1] == ("a\n" * 10).rstrip()


def test_only_what_was_pasted_here_expands() -> None:
    pastes = Pastes()
    mine = pastes.shown("secret\n" * 10)
    assert pastes.expanded(f"{mine} and [Pasted #1: 3 lines]") == "secret\n" * 10 + " and [Pasted #1: 3 lines]"
    assert pastes.expanded(mine[:-1]) == mine[:-1]


def test_old_pastes_go_one_by_one() -> None:
    pastes = Pastes()
    shown = [pastes.shown(f"{n}\n" * 10) for n in range(KEEP + 1)]
    assert pastes.expanded(shown[0]) == shown[0]
    assert pastes.expanded(shown[1]) == "1\n" * 10


async def test_a_huge_earlier_prompt_or_editor_text_is_a_placeholder_too() -> None:
    """The text area is never given more than it can lay out at once."""
    app = ComposerApp()
    async with running(app) as pilot:
        await paste(app, pilot, "x" * 1_000_000)
        await pilot.press("enter")
        await app.composer.history.add(app.sent[0])
        await burst(app, pilot, "up")
        assert app.composer.text == f"[Pasted #2: 1.0M{N}chars]"
        await pilot.press("enter")
        assert app.sent[1] == app.sent[0]
        app.composer.put_before("y" * (MOST_CHARS + 1))
        assert len(app.composer.text) < 50
        app.composer.set_text("y" * MOST_CHARS)
        assert len(app.composer.text) == MOST_CHARS
