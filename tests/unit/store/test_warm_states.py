"""The folder of saved states: what was not written to its end does not exist (issue 4, section 7)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from marextui.context.warm import KeptState
from marextui.store.warm import WarmStates

STATE = KeptState("marextui-1.bin", "c-1", "engine", ("a", "b"), 700, 5, 1000.0)


@pytest.fixture
async def states(tmp_path: Path) -> WarmStates:
    states = WarmStates(tmp_path / "cache" / "slots")
    await states.make_room(STATE.file)
    (states.folder / STATE.file).write_bytes(b"state")
    await states.record(STATE)
    return states


async def test_there_is_nothing_before_the_first(tmp_path: Path) -> None:
    states = WarmStates(tmp_path / "none")
    assert await states.all() == ()
    await states.sweep(0)
    await states.forget((STATE,))


async def test_a_recorded_state_is_there_for_its_owner_only(states: WarmStates) -> None:
    [state] = await states.all()
    assert replace(state, checksum=0) == STATE
    assert await states.intact(state)
    assert states.folder.stat().st_mode & 0o077 == 0
    assert (states.folder / f"{STATE.file}.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("left", [b"", b"stat", b"state and more"])
async def test_a_state_that_was_cut_short_does_not_exist(states: WarmStates, left: bytes) -> None:
    (states.folder / STATE.file).write_bytes(left)
    assert await states.all() == ()


async def test_a_state_with_a_hole_in_it_is_not_believed(states: WarmStates) -> None:
    """After a loss of power a file may be as long as it should be and hold zeros."""
    (states.folder / STATE.file).write_bytes(b"st\0te")
    [state] = await states.all()
    assert not await states.intact(state)


async def test_while_a_state_is_written_over_there_is_none(states: WarmStates) -> None:
    await states.make_room(STATE.file)
    assert await states.all() == ()


async def test_a_record_under_another_name_leads_nowhere(states: WarmStates) -> None:
    os.rename(states.folder / f"{STATE.file}.json", states.folder / "other.bin.json")
    (states.folder / "x.json").write_bytes(b"\xff\xfe")
    assert await states.all() == ()


async def test_forgotten_and_swept(states: WarmStates) -> None:
    orphan = states.folder / "marextui-2.bin"
    orphan.write_bytes(b"cut")
    os.utime(orphan, (500, 500))
    await states.sweep(before=400)
    assert orphan.exists(), "another process may be writing it"
    await states.sweep(before=600)
    assert not orphan.exists()
    assert len(await states.all()) == 1
    await states.forget((STATE,))
    assert list(states.folder.iterdir()) == []
