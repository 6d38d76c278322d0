"""Pickers work with no row, one or many, and with any key (cases 27, 35)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.screen import Screen
from textual.widgets import Input, OptionList

from marextui.engine.api import ConversationInfo, ModelOption
from marextui.tui.screens.confirm import Confirm
from marextui.tui.screens.conversations import LIMIT, ConversationPicker
from marextui.tui.screens.models import ModelPicker
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

NOW = 1_700_000_000.0
KEYS = ["up", "down", "pageup", "pagedown", "home", "end", "delete", "backspace", "left", "right", "tab", "shift+tab"]
KEYS += ["a", "slash", "[", "f1", "f2", "f5", "ctrl+n", "ctrl+d", "ctrl+x", "space"]

MODELS = (
    ModelOption("m1", "qwen2.5-coder:1.5b", "Ollama at http://127.0.0.1:11434", "endpoint", True),
    ModelOption("m2", "qwen.gguf", "1.1 GiB, in the LM Studio folder", "gguf", True, True),
    ModelOption("m3", "big-one", "https://api.example.org", "endpoint", False),
)


def conversation(i: int) -> ConversationInfo:
    return ConversationInfo(f"c{i}", f"talk {i}", "proj", NOW - 9999 * i, NOW - 9000 * i, 10 * i, i)


async def nothing(query: str) -> list[ConversationInfo]:
    return []


def pickers(count: int) -> list[Screen[Any]]:
    return [
        ModelPicker(MODELS[:count]),
        ConversationPicker([conversation(i) for i in range(count)], nothing),
        Confirm("Sure?", "really"),
    ]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("which", range(3))
async def test_every_key_with_no_row_and_with_one(count: int, which: int) -> None:
    screen = pickers(count)[which]
    app = MiniApp(screen=screen)
    async with app.run_test(size=(60, 16)) as pilot:
        for key in KEYS:
            await pilot.press(key)
            assert app.screen is screen, key
        await pilot.pause()
        assert frame(app).strip()


@pytest.mark.parametrize("which", range(2))
async def test_enter_without_rows_stays_and_escape_closes(which: int) -> None:
    app = MiniApp(screen=pickers(0)[which])
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("enter")
        assert app.answers == []
        text = frame(app)
        assert "No model was found" in text or "No conversation here yet" in text
        await pilot.press("escape")
        await pilot.pause()
    assert app.answers == [None]


async def test_the_model_in_use_is_highlighted_and_said() -> None:
    app = MiniApp(screen=ModelPicker(MODELS))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert app.screen.query_one(OptionList).highlighted == 1
        assert "qwen.gguf  local  in use" in frame(app)
        assert "big-one  remote" in frame(app)
        await pilot.press("up", "enter")
        await pilot.pause()
    assert app.answers == ["m1"]


async def test_models_are_filtered_as_typed() -> None:
    app = MiniApp(screen=ModelPicker(MODELS))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press(*"EXAMPLE big")
        await pilot.pause()
        assert "qwen" not in frame(app)
        await pilot.press("z")
        await pilot.pause()
        assert "Nothing matches." in frame(app)
        await pilot.press("enter")
        assert app.answers == []
        await pilot.press("backspace", "enter")
        await pilot.pause()
    assert app.answers == ["m3"]


async def test_the_same_id_twice_is_one_row() -> None:
    app = MiniApp(screen=ModelPicker([MODELS[0], replace(MODELS[0], label="again")]))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert app.screen.query_one(OptionList).option_count == 1
        assert "again" not in frame(app)


async def test_a_mouse_click_chooses() -> None:
    app = MiniApp(screen=ModelPicker(MODELS))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        await pilot.click(OptionList, offset=(3, 4))
        await pilot.pause()
    assert app.answers == ["m3"]


async def test_conversations_are_searched_by_the_engine() -> None:
    asked: list[str] = []

    async def search(query: str) -> list[ConversationInfo]:
        asked.append(query)
        return [conversation(7)] if query == "ab" else []

    app = MiniApp(screen=ConversationPicker([conversation(0), conversation(1)], search))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("a", "b")
        await pilot.pause()
        assert asked[-1] == "ab"
        assert "talk 7" in frame(app)
        assert "today\u00a004:43 · 7 turns · 70 messages · proj · c7" in frame(app)
        await pilot.press("backspace")
        await pilot.pause()
        assert "Nothing matches" in frame(app)
        await pilot.press("backspace")
        await pilot.pause()
        assert "talk 1" in frame(app)
        await pilot.press("down", "enter")
        await pilot.pause()
    assert app.answers == ["c1"]


async def test_very_many_conversations_are_cut_with_a_note() -> None:
    app = MiniApp(screen=ConversationPicker([conversation(i) for i in range(LIMIT + 5)], nothing))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.press("a", "backspace")
        await pilot.pause()
        assert app.screen.query_one(OptionList).option_count == LIMIT
        assert "5 more: type to narrow down" in frame(app)
        assert isinstance(app.focused, Input)


async def test_an_untitled_conversation_has_a_name() -> None:
    app = MiniApp(screen=ConversationPicker([replace(conversation(1), title="  ", turns=1, messages=1)], nothing))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert "untitled" in frame(app)
        assert "1 turn · 1 message" in frame(app)


@pytest.mark.parametrize(("keys", "answer"), [(["enter"], False), (["escape"], False), (["down", "enter"], True)])
async def test_confirm_does_nothing_by_default(keys: list[str], answer: bool) -> None:
    app = MiniApp(screen=Confirm("Empty MEMORY.md?", yes="Empty it", no="Keep it"))
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert "Keep it" in frame(app)
        await pilot.press(*keys)
        await pilot.pause()
    assert app.answers == [answer]
