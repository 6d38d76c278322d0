"""One conversation in two windows: the second is told, and nothing of the first is spoiled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from marextui.engine.api import LATEST
from marextui.engine.events import Notice
from marextui.engine.ports import RandomIds
from marextui.store.open_elsewhere import OpenConversations
from tests.stubs.engine_rig import Rig

Window = Callable[[str], Awaitable[Rig]]


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[Window]:
    """Another program over the same home, with `wanted` to open."""
    made: list[Rig] = []

    async def start(wanted: str = "") -> Rig:
        held = OpenConversations(tmp_path / "open")
        made.append(await Rig(tmp_path, wanted=wanted, opened=held, ids=RandomIds()).start())
        return made[-1]

    yield start
    for one in made:
        await one.engine.close()


def told(r: Rig) -> list[str]:
    return [n.text for n in r.of(Notice) if "open in another window" in n.text]


@pytest.mark.parametrize("by", ["latest", "id"])
async def test_a_conversation_that_is_open_elsewhere_is_said_and_a_new_one_begins(window: Window, by: str) -> None:
    first = await window("")
    await first.ask("hello")
    mine = first.engine.session.id
    second = await window(LATEST if by == "latest" else mine)
    assert len(told(second)) == 1
    assert second.engine.session.id != mine
    await second.ask("something else")
    assert [m.text for m in first.history() if m.role == "user"] == ["hello"]


async def test_what_was_closed_or_left_can_be_opened(window: Window) -> None:
    first = await window("")
    await first.ask("hello")
    mine = first.engine.session.id
    await first.engine.state.archive.open(None)
    second = await window(mine)
    assert told(second) == []
    assert second.engine.session.id == mine


async def test_opening_it_later_is_refused_with_the_reason_and_the_own_one_stays(window: Window) -> None:
    first = await window("")
    await first.ask("hello")
    second = await window("")
    mine = second.engine.session.id
    await second.engine.open_conversation(first.engine.session.id)
    assert len(told(second)) == 1
    assert second.engine.session.id == mine


def test_a_killed_program_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    code = (
        "import sys, pathlib; from marextui.store.open_elsewhere import OpenConversations as O; "
        "o = O(pathlib.Path(sys.argv[1])); print(o.take('c-1'), flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    assert other.stdin is not None
    with other.stdin, other.stdout:
        assert other.stdout.readline() == "True\n"
        assert not OpenConversations(folder).take("c-1")
        other.kill()
        other.wait()
    mine = OpenConversations(folder)
    assert mine.take("c-1")
    mine.release()
    assert list(folder.iterdir()) == []


def test_where_nothing_can_be_locked_everything_can_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert OpenConversations(tmp_path / "file" / "open").take("c-1")
