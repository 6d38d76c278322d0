"""The dock asks without stealing typing: a pause first, a guard after, and nothing preselected (issue: permission)."""

from __future__ import annotations

import pytest
from textual import events
from textual.widgets import Input, OptionList

from marextui.engine.events import PermissionAsked
from marextui.tui.screens.lines import LineView
from marextui.tui.screens.permission import GUARD, TYPING_PAUSE, PermissionDock
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp

DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1,3 +1,3 @@\n one\n-two\n+deux\n" + "\n".join(f" line {i}" for i in range(30))
EDIT = PermissionAsked("r1", "c1", "Edit", "edit", "Edit src/app.py", "", "edits of src/app.py", DIFF)
BASH = PermissionAsked("r2", "c2", "Bash", "bash", "Bash make", "make -j2 all", "commands starting with make", "")
WATCH = [PermissionDock.Answered, PermissionDock.Released]


class DeskApp(MiniApp):
    """Hands every key to the dock first, as the router of the product does; each arrives by itself."""

    dock: PermissionDock

    async def on_event(self, event: events.Event) -> None:
        new_key = isinstance(event, events.Key) and not event.is_forwarded
        if new_key and self.dock._holds_focus() and not self.dock.admit(event, quiet=True):  # type: ignore[arg-type]
            return
        await super().on_event(event)


class Desk:
    """The dock above a composer, with a clock that stands still."""

    def __init__(self) -> None:
        self.dock = PermissionDock(write=self.write)
        self.composer = Input(id="composer")
        self.app = DeskApp(self.dock, self.composer, watch=WATCH)
        self.app.dock = self.dock
        self.clock = self.app.fakes.clock

    def write(self, text: str) -> None:
        self.app.screen.set_focus(self.composer)
        self.composer.insert_text_at_cursor(text)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.dock.tick()

    def make_ready(self) -> None:
        self.pass_time(TYPING_PAUSE)
        self.pass_time(GUARD)

    @property
    def answers(self) -> list[tuple[str, str, str]]:
        return [(m.request_id, m.answer, m.reason) for m in self.app.messages if isinstance(m, PermissionDock.Answered)]

    @property
    def typed(self) -> str:
        return self.composer.value

    @property
    def released(self) -> int:
        return sum(isinstance(m, PermissionDock.Released) for m in self.app.messages)

    @property
    def highlighted(self) -> int | None:
        return self.dock.query_one(OptionList).highlighted


async def test_it_is_not_there_until_something_is_asked() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)):
        assert not desk.dock.display
        assert desk.dock.state == "idle"
        desk.dock.settle("unknown")
        desk.dock.note_typing()
        assert desk.dock.state == "idle"


async def test_it_waits_for_a_pause_of_one_second_in_typing() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.composer.focus()
        desk.dock.note_typing()
        desk.dock.ask(EDIT)
        await pilot.pause()
        assert desk.dock.state == "waiting"
        assert "Waits until you pause typing" in frame(desk.app)
        assert "Allow once" not in frame(desk.app)
        desk.pass_time(TYPING_PAUSE - 0.1)
        desk.dock.note_typing()
        desk.pass_time(TYPING_PAUSE - 0.1)
        assert desk.dock.state == "waiting"
        desk.pass_time(0.1)
        assert desk.dock.state == "appearing"
        await pilot.pause()
        assert "Allow once" in frame(desk.app)
        assert desk.app.focused is desk.composer


async def test_it_takes_the_focus_half_a_second_after_it_appeared() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.composer.focus()
        desk.dock.ask(EDIT)
        await pilot.pause()
        assert desk.dock.state == "appearing"
        await pilot.press("h", "i")
        assert desk.composer.value == "hi"
        desk.dock.note_typing()
        assert desk.dock.state == "waiting"
        desk.pass_time(TYPING_PAUSE)
        desk.pass_time(GUARD - 0.01)
        assert desk.dock.state == "appearing"
        desk.pass_time(0.01)
        await pilot.pause()
        assert desk.dock.state == "ready"
        assert desk.app.focused is desk.dock.query_one(OptionList)


async def test_no_key_answers_during_the_guard_even_with_the_focus() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        await pilot.pause()
        desk.dock.query_one(OptionList).focus()
        await pilot.press("1", "enter", "down", "enter", "y", "space")
        await pilot.pause()
        assert desk.answers == []
        assert desk.highlighted is None
        assert desk.typed == "1y "


async def test_nothing_is_preselected_and_no_letter_answers() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.make_ready()
        await pilot.pause()
        assert desk.highlighted is None
        await pilot.press("enter", *"yYaAnNd")
        await pilot.pause()
        assert desk.answers == []
        assert desk.typed == "yYaAnNd"


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["down", "enter"], "once"),
        (["down", "down", "enter"], "conversation"),
        (["up", "up", "enter"], "deny"),
        (["1", "enter"], "once"),
        (["2", "enter"], "conversation"),
        (["3", "enter"], "deny"),
    ],
)
async def test_an_arrow_or_a_number_then_enter_answers(keys: list[str], answer: str) -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.make_ready()
        await pilot.pause()
        await pilot.press(*keys[:-1])
        assert desk.answers == []
        await pilot.press(keys[-1])
        await pilot.pause()
        assert desk.answers == [("r1", answer, "")]
        assert not desk.dock.display
        assert desk.released == 1


async def test_deny_with_a_reason_and_the_way_back() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(BASH)
        desk.make_ready()
        await pilot.pause()
        await pilot.press("4", "enter")
        await pilot.pause()
        assert desk.dock.state == "reason"
        await pilot.press("escape")
        await pilot.pause()
        assert desk.dock.state == "ready"
        await pilot.press("enter", *"use 2", "enter")
        await pilot.pause()
        assert desk.answers == [("r2", "deny", "use 2")]


async def test_requests_queue_and_each_gets_its_own_guard() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.dock.ask(BASH)
        desk.dock.ask(BASH)
        assert desk.dock.pending == 2
        desk.make_ready()
        await pilot.pause()
        assert "(1 of 2)" in frame(desk.app)
        await pilot.press("1", "enter", "enter", "1", "enter")
        await pilot.pause()
        assert desk.answers == [("r1", "once", "")]
        assert desk.dock.state == "appearing"
        assert desk.released == 0
        desk.pass_time(GUARD)
        await pilot.press("3", "enter")
        await pilot.pause()
        assert desk.answers[1:] == [("r2", "deny", "")]
        assert desk.released == 1


async def test_what_was_asked_before_it_was_mounted_is_shown() -> None:
    desk = Desk()
    desk.dock.ask(EDIT)
    desk.dock.ask(BASH)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert desk.dock.state == "appearing"
        assert "(1 of 2)" in frame(desk.app)


async def test_a_withdrawn_request_closes_and_the_next_one_comes() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.dock.ask(BASH)
        desk.make_ready()
        await pilot.pause()
        desk.dock.settle("r1")
        await pilot.pause()
        assert desk.dock.current == BASH
        assert "make -j2 all" in frame(desk.app)
        desk.dock.settle("r2")
        await pilot.pause()
        assert not desk.dock.display
        assert desk.answers == []
        assert desk.released == 1


async def test_whoever_leaves_the_dock_to_write_is_not_pulled_back() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.make_ready()
        await pilot.pause()
        desk.composer.focus()
        await pilot.press("a")
        desk.dock.note_typing()
        desk.make_ready()
        await pilot.pause()
        assert desk.app.focused is desk.composer
        assert desk.composer.value == "a"


async def test_the_change_scrolls_in_a_bounded_box() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(EDIT)
        desk.make_ready()
        await pilot.pause()
        text = frame(desk.app)
        assert "-two" in text
        assert "+deux" in text
        assert "PgDn: 30 more lines" in text
        assert desk.dock.outer_size.height <= 16
        await pilot.press("pagedown", "pagedown")
        await pilot.pause()
        assert desk.dock.query_one(LineView).scroll_offset.y == 10


async def test_escape_is_left_to_the_app() -> None:
    """The cancel ladder is the app's: Esc must reach it (case 55)."""
    desk = Desk()
    seen: list[str] = []
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.app.bind("escape", "app.note_escape")
        desk.app.action_note_escape = lambda: seen.append("escape")  # type: ignore[attr-defined]
        desk.dock.ask(EDIT)
        desk.make_ready()
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert seen == ["escape"]
        assert desk.answers == []


async def test_a_command_cannot_hide_its_second_half() -> None:
    desk = Desk()
    sly = PermissionAsked("r3", "c3", "Bash", "bash", "Bash ls", "ls \x1b]0; ; rm -rf ~ #\x07\rls", "", "")
    async with desk.app.run_test(size=(80, 24)) as pilot:
        desk.dock.ask(sly)
        desk.make_ready()
        await pilot.pause()
        text = frame(desk.app)
        assert "rm -rf ~" in text
        assert control_bytes(text) == []


async def test_it_works_on_a_small_screen() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(40, 16)) as pilot:
        desk.dock.ask(BASH)
        desk.make_ready()
        await pilot.pause()
        text = frame(desk.app)
        for part in ("make -j2 all", "1  Allow once", "4  Deny with a reason"):
            assert part in text


class LeapingClock:
    """Five seconds pass between any two looks at it."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        self.at += 5.0
        return self.at


async def test_its_timer_brings_it_up_and_then_stops() -> None:
    dock = PermissionDock(LeapingClock())
    app = MiniApp(dock, Input())
    async with app.run_test(size=(80, 24)) as pilot:
        dock.ask(EDIT)
        while dock.state != "ready":
            await pilot.pause()
        assert dock._timer is None
