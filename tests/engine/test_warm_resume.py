"""Leaving and resuming on a scripted server: when a state is saved, when not, and who waits (issue 4, section 7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from marextui.context.warm import KeptState
from marextui.engine.warm import WarmResume
from marextui.models.slots import SlotFacts
from marextui.models.types import ChatRequest, Connection
from marextui.store.warm import WarmStates
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Hold, say

FREE = SlotFacts(total=1, busy=False)


@dataclass
class Disk:
    """`SlotStates` of a server that does as it is told; `hold` delays what it is asked."""

    folder: Path | None
    name: str = "engine"
    tokens: int = 3_000
    hold: Hold | None = None
    full: bool = False
    """The disk has room for half of it."""
    asked: list[str] = field(default_factory=list)

    async def engine(self) -> str:
        return self.name

    async def save(self, file: str) -> tuple[int, int] | None:
        await self._asked("save")
        assert self.folder is not None
        (self.folder / file).write_bytes(b"state"[: 2 if self.full else 5])
        if self.full:
            return None
        return self.tokens, 5

    async def restore(self, file: str) -> int | None:
        await self._asked("restore")
        return self.tokens

    async def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.hold is not None:
            self.hold.reached.set()
            await self.hold.go.wait()


@dataclass
class Left:
    rig: Rig
    disk: Disk
    warm: WarmResume

    async def kept(self) -> tuple[KeptState, ...]:
        assert self.disk.folder is not None
        return await WarmStates(self.disk.folder).all()

    def view(self) -> Callable[[Connection], ChatRequest]:
        return self.rig.engine.state.dry_request

    async def leave(self) -> str:
        await self.warm.leave(self.rig.engine.session.id, self.view())
        return self.warm.last

    async def enter(self) -> str:
        self.warm.enter(self.rig.engine.session.id, self.view())
        if self.warm._restoring is not None:
            await asyncio.wait({self.warm._restoring})
        return self.warm.last


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[Left]:
    """After one turn of a conversation on a server with one slot."""
    rig = Rig(tmp_path)
    rig.chat.replies += [say("Because."), say("As I said."), say("Yes.")]
    connection = rig.hub.connection
    connection.facts = FREE
    disk = Disk(tmp_path / "slots")
    connection.states = disk
    await rig.start()
    state = rig.engine.state
    state.warm = WarmResume("on", 1000, WarmStates(tmp_path / "slots"), state.control, rig.clock)
    await rig.ask("Why is the parser slow?")
    yield Left(rig, disk, state.warm)
    await rig.engine.close()


async def test_it_is_saved_once_and_brought_back_where_the_slot_holds_something_else(left: Left) -> None:
    assert "3000 computed tokens were saved" in await left.leave()
    [state] = await left.kept()
    assert state.conversation == left.rig.engine.session.id
    await left.enter()
    assert left.disk.asked == ["save"], "the slot still holds it"
    await left.rig.engine.open_conversation(None)
    await left.rig.ask("Something else.")
    await left.rig.engine.open_conversation(state.conversation)
    assert "brought back" in await left.enter()
    assert left.disk.asked.count("restore") == 1


async def test_a_request_waits_for_what_is_being_brought_back(left: Left) -> None:
    first = left.rig.engine.session.id
    await left.leave()
    await left.rig.engine.open_conversation(None)
    await left.rig.ask("Something else.")
    hold = left.disk.hold = Hold()
    hold.go.set()
    await left.rig.engine.open_conversation(None)
    hold.go.clear()
    hold.reached.clear()
    await left.rig.engine.open_conversation(first)
    await hold.reached.wait()
    sent = len(left.rig.chat.requests)
    asking = asyncio.ensure_future(left.rig.ask("And?"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(left.rig.chat.requests) == sent
    hold.go.set()
    assert (await asking).end == "done"
    assert "brought back" in left.warm.last


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (SlotFacts(total=4), "several slots"),
        (SlotFacts(), "several slots, or does not tell"),
        (SlotFacts(total=1, busy=True), "busy with something else"),
    ],
)
async def test_only_one_free_slot_is_known_to_be_ours(left: Left, facts: SlotFacts, why: str) -> None:
    left.rig.hub.connection.facts = facts
    assert why in await left.leave()
    assert left.disk.asked == []


async def test_a_server_that_notices_late_that_we_hung_up_is_asked_once_more(left: Left) -> None:
    connection = left.rig.hub.connection
    connection.facts = SlotFacts(total=1, busy=True)
    sleep = left.rig.clock.sleep

    async def then_free(seconds: float) -> None:
        connection.facts = FREE
        await sleep(seconds)

    left.rig.clock.sleep = then_free  # type: ignore[method-assign]
    assert "were saved" in await left.leave()


async def test_what_the_slot_does_not_hold_is_not_saved(left: Left) -> None:
    """A summary request, a check of the server or another conversation has taken the slot since."""
    slots = left.rig.hub.connection.slots
    for make_way in slots.before_departure:
        await make_way(ChatRequest(messages=(), kind="compact", conversation=left.rig.engine.session.id))
    assert "holds no step of this conversation" in await left.leave()
    assert left.disk.asked == []


async def test_a_short_prompt_leaves_no_file(left: Left) -> None:
    left.disk.tokens = 500
    assert "computed again sooner" in await left.leave()
    assert await left.kept() == ()
    assert left.disk.folder is not None
    assert list(left.disk.folder.iterdir()) == []


async def test_a_server_that_does_not_tell_what_it_is_keeps_nothing(left: Left) -> None:
    left.disk.name = ""
    assert "does not tell" in await left.leave()
    assert left.disk.asked == []


async def test_a_state_the_server_reads_otherwise_is_dropped(left: Left) -> None:
    first = left.rig.engine.session.id
    await left.leave()
    await left.rig.engine.open_conversation(None)
    await left.rig.ask("Something else.")
    left.disk.tokens = 2_999
    await left.rig.engine.open_conversation(first)
    assert "did not take" in await left.enter() or "Nothing was saved of" in left.warm.last
    assert first not in {k.conversation for k in await left.kept()}
    assert (await left.rig.ask("And?")).end == "done"


async def test_a_full_disk_costs_nothing_but_the_state(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kw: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("marextui.store.warm.write_private", full)
    assert await left.leave() == "Nothing was saved: No space left on device."
    assert await left.kept() == ()


async def test_half_a_state_does_not_go_on_filling_a_full_disk(left: Left) -> None:
    await left.leave()
    left.disk.full = True
    assert "no room" in await left.leave()
    assert left.disk.folder is not None
    assert list(left.disk.folder.iterdir()) == []


async def test_switched_off_nothing_is_asked(left: Left) -> None:
    left.warm.mode = "off"
    assert "Not switched on" in await left.leave()
    assert "Not switched on" in await left.enter()
    assert (left.disk.asked, left.rig.hub.connection.looked) == ([], 0)
