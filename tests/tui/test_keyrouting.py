"""Every key goes where the person means it, however fast it comes (cases 34, 35): keys of one burst stay together."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import OptionList

from marextui.engine import events as ev
from marextui.tui.app import MarexApp
from tests.stubs.fake_engine import FakeEngine
from tests.stubs.ports import FakePorts
from tests.tui.scenes import make_app

ASKED = ev.PermissionAsked("p1", "c", "Bash", "bash", "Bash make all", "make all", "make all", "")


class Early(MarexApp):
    """Keys are there before anything else is."""

    def on_load(self) -> None:
        for letter in "hello":
            self.post_message(events.Key(letter, letter))
        self.post_message(events.Paste(" there"))


async def settled(pilot: Pilot[None], times: int = 4) -> None:
    for _ in range(times):
        await pilot.pause()


async def burst(pilot: Pilot[None], ports: FakePorts, *keys: tuple[str, str | None]) -> None:
    """Keys of one read: all in the queue before the first is looked at."""
    ports.clock.arrived += 5
    gap, ports.clock.gap = ports.clock.gap, 0.0
    for key, character in keys:
        pilot.app.post_message(events.Key(key, character))
    await settled(pilot)
    ports.clock.gap = gap


def letters(text: str) -> list[tuple[str, str | None]]:
    return [("space" if c == " " else c, c) for c in text]


async def asked(pilot: Pilot[None], engine: FakeEngine, ports: FakePorts) -> None:
    """The question has the focus."""
    engine.emit(ASKED)
    await settled(pilot)
    for _ in range(2):
        ports.clock.advance(2)
        pilot.app.main.dock.tick()  # type: ignore[attr-defined]
    await settled(pilot)
    assert isinstance(pilot.app.focused, OptionList)


def answers(engine: FakeEngine) -> list[object]:
    return [c for c in engine.commands if c[0] == "answer_permission"]


async def test_what_was_typed_before_there_was_a_draft_is_in_it() -> None:
    made = make_app()
    made.__class__ = Early
    async with made.run_test() as pilot:
        await settled(pilot)
        assert made.main.composer.text == "hello there"


@pytest.mark.parametrize(
    ("keys", "sent", "draft"),
    [
        ([*letters("hello 2"), ("enter", "\r")], ["hello 2"], ""),
        ([*letters("y1"), ("enter", "\r")], ["y1"], ""),
        (letters("2nd"), [], "2nd"),
        (letters("12"), [], "12"),
        ([*letters("2"), ("enter", "\r")], [], ""),
        ([("down", None), ("enter", "\r")], [], ""),
    ],
)
async def test_no_burst_answers_a_question_and_no_letter_of_it_vanishes(
    keys: list[tuple[str, str | None]], sent: list[str], draft: str
) -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, engine, ports)
        await burst(pilot, ports, *keys)
        assert answers(engine) == []
        assert [c[1] for c in engine.commands if c[0] == "submit"] == sent
        assert app.main.composer.text == draft


async def test_answer_keys_pressed_one_by_one_answer() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, engine, ports)
        await pilot.press("2", "enter")
        await settled(pilot)
        assert len(answers(engine)) == 1


async def test_a_paste_at_the_question_goes_to_the_draft() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, engine, ports)
        app.post_message(events.Paste("two lines\nof 2"))
        await settled(pilot)
        assert app.main.composer.text == "two lines\nof 2"
        assert answers(engine) == []


async def test_text_typed_in_a_pane_goes_to_the_draft() -> None:
    """A slash command typed in the memory pane opens no editor."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        for pane in ("f2", "f4"):
            app.main.composer.set_text("")
            await pilot.press(pane)
            await settled(pilot)
            await pilot.press(*["slash", *"memory"])
            assert app.main.composer.text == "/memory"
        assert ports.editor.opened == []


async def test_the_letters_of_a_pane_the_mouse_went_to_are_text_until_a_key_chose_it() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.click("#memory")
        await pilot.press("e")
        assert app.main.composer.text == "e"
        await pilot.press("f4")
        await settled(pilot)
        await pilot.press("e")
        await settled(pilot)
        assert app.main.composer.text == "e", "chosen by its key, its letters act"
        assert len(ports.editor.opened) == 1


@pytest.mark.parametrize("pane", ["f2", "f3", "f4"])
async def test_a_text_typed_fast_in_a_pane_is_whole_in_the_draft(pane: str) -> None:
    """Its first letter does nothing in the pane, also where it is one of its keys: every letter is tried first."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        engine.commands.clear()
        for first in "abcdefghijklmnopqrstuvwxyz/?":
            app.main.composer.set_text("")
            await pilot.press(pane)
            await settled(pilot, 2)
            key = {"/": "slash", "?": "question_mark"}.get(first, first)
            await burst(pilot, ports, (key, first), *letters("_ok"))
            assert app.main.composer.text == f"{first}_ok"
            assert app.screen is app.main
        assert ports.editor.opened == []
        assert ports.clipboard.copied == []
        assert engine.commands == []


async def test_a_letter_alone_acts_when_no_other_came_soon_enough() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("f4")
        await settled(pilot)
        ports.clock.hold = True
        await pilot.press("e")
        await settled(pilot)
        assert ports.editor.opened == [], "it waits"
        ports.clock.due.pop()()
        await settled(pilot)
        assert len(ports.editor.opened) == 1
        await pilot.press("e")
        await pilot.press("down")
        await settled(pilot)
        assert len(ports.editor.opened) == 2, "a key that is no text lets it act first"
        ports.clock.due.pop()()
        await settled(pilot)
        assert len(ports.editor.opened) == 2, "once"
        assert app.main.composer.text == ""


@pytest.mark.parametrize(("gap", "opened", "draft"), [(0.1, 0, "ex"), (0.5, 1, "")])
async def test_the_times_of_the_keys_count_and_not_when_they_are_looked_at(gap: float, opened: int, draft: str) -> None:
    """A busy app meets two keys at once: a text if they were typed so, else each acts, however late."""
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("f4")
        await settled(pilot)
        ports.clock.hold, ports.clock.gap = True, gap
        ports.clock.arrived += 5
        for key in "ex":
            app.post_message(events.Key(key, key))
        await settled(pilot)
        assert (len(ports.editor.opened), app.main.composer.text) == (opened, draft)


async def test_a_letter_that_waited_while_the_focus_moved_is_text() -> None:
    engine, ports = FakeEngine(), FakePorts()
    app = make_app(engine, ports)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("f4")
        await settled(pilot)
        ports.clock.hold = True
        await pilot.press("e")
        app.main.go_to("omissions")
        ports.clock.due.pop()()
        await settled(pilot)
        assert ports.editor.opened == []
        assert app.main.composer.text == "e"
