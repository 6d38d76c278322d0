"""Which files a conversation has read outlives a restart and a switch, and only that conversation (case 67)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from marextui.engine.events import ToolFinished
from marextui.engine.permissions import Decision
from marextui.engine.ports import CountingIds
from marextui.tools.box import default_toolbox
from marextui.tools.read_state import ReadState
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, call, say

Start = Callable[..., Coroutine[Any, Any, Rig]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """A rig with the real tools on `tmp_path / "project"`; closed one after the other, as a restart does."""
    running: list[Rig] = []
    ids = CountingIds()

    async def begin(*calls: tuple[str, dict[str, Any]], wanted: str = "") -> Rig:
        await end()
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        seen = ReadState()
        rig = Rig(
            tmp_path,
            chat=ScriptedChat(scripted(*calls)),
            tools=default_toolbox(root, bash_timeout=5, read_state=seen),
            seen=seen,
            ids=ids,
            wanted=wanted,
            unattended={"edit": Decision("once"), "write": Decision("once")},
        )
        running.append(rig)
        return await rig.start()

    async def end() -> None:
        while running:
            await running.pop().engine.close()

    yield begin
    await end()


def scripted(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """A model that makes each call in a turn of its own."""
    replies: list[Any] = []
    for n, (name, arguments) in enumerate(calls):
        replies += [call((name, json.dumps(arguments)), ids=[f"{name}-{n}"]), say("done")]
    return replies


READ = ("Read", {"file_path": "f"})
EDIT = ("Edit", {"file_path": "f", "old_string": "one", "new_string": "two"})


def file(tmp_path: Path, text: str = "one\n") -> Path:
    (tmp_path / "project").mkdir(exist_ok=True)
    path = tmp_path / "project" / "f"
    path.write_text(text)
    return path


async def edited(rig: Rig) -> bool:
    """Whether the Edit of the next turn was made."""
    await rig.ask("change it")
    return not rig.of(ToolFinished)[-1].is_error


async def test_a_file_read_before_a_restart_can_be_edited_after_it(start: Start, tmp_path: Path) -> None:
    path = file(tmp_path)
    rig = await start(READ)
    await rig.ask("read it")
    rig = await start(EDIT, wanted="latest")
    assert await edited(rig)
    assert path.read_text() == "two\n"


async def test_what_changed_meanwhile_is_still_refused(start: Start, tmp_path: Path) -> None:
    path = file(tmp_path)
    rig = await start(READ)
    await rig.ask("read it")
    path.write_text("one more\n")
    rig = await start(EDIT, wanted="latest")
    assert not await edited(rig)
    assert "changed on disk" in rig.history()[-2].text
    assert path.read_text() == "one more\n"


async def test_a_file_the_model_wrote_counts_after_a_restart(start: Start, tmp_path: Path) -> None:
    rig = await start(("Write", {"file_path": "f", "content": "one\n"}), EDIT)
    await rig.ask("write it")
    assert await edited(rig)
    rig = await start(("Edit", {"file_path": "f", "old_string": "two", "new_string": "three"}), wanted="latest")
    assert await edited(rig)


async def test_another_conversation_has_not_read_it_and_the_first_still_has(start: Start, tmp_path: Path) -> None:
    file(tmp_path)
    rig = await start(READ, EDIT, EDIT)
    await rig.ask("read it")
    first = rig.engine.session.id
    await rig.engine.open_conversation(None)
    assert not await edited(rig)
    assert "has not been read" in rig.history()[-2].text
    await rig.engine.open_conversation(first)
    assert await edited(rig)


@pytest.mark.parametrize("then", [(), (EDIT,)])
async def test_a_file_whose_secrets_the_log_does_not_hold_has_to_be_read_again(
    start: Start, tmp_path: Path, then: tuple[Any, ...]
) -> None:
    """A resumed conversation sees placeholders: writing them back would lose the secret. Also after an edit."""
    path = file(tmp_path, "one\nAPI_KEY = 'sk-proj-Zm9vYmFyYmF6cXV4Zm9vYmFy0123456789'\n")
    rig = await start(READ, *then)
    await rig.ask("read it")
    for _ in then:
        assert await edited(rig)
    rig = await start(("Write", {"file_path": "f", "content": "API_KEY = '[redacted]'\n"}), wanted="latest")
    assert not await edited(rig)
    assert "Read it first" in rig.history()[-2].text
    assert "sk-proj" in path.read_text()
