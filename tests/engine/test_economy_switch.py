"""The offer to save a local engine work, and the switch behind it (issue 4, section 5; L1, L30, L70)."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.engine.economy_switch import OFFER
from marextui.engine.events import GaugeChanged, Notice, PrewarmChanged
from marextui.engine.policy import Policy
from marextui.models.slots import SlotFacts
from marextui.models.types import ModelError
from tests.stubs.engine_rig import Rig
from tests.stubs.one_slot import OneSlotChat
from tests.stubs.scripted_model import CHOICE, Hold, ScriptedChat, say

KEYS = ("compact_continuation", "prewarm", "proj_snapshot")


async def rig(folder: Path, **more: Any) -> Rig:
    more.setdefault("chat", OneSlotChat())
    more.setdefault("policy", Policy(offer_economy=True))
    local = more.pop("local", True)
    made = Rig(folder, window=Window(16_384, "discovery"), **more)
    made.hub.connection.choice = replace(CHOICE, local=local)
    made.hub.connection.facts = SlotFacts(total=1, busy=False)
    return await made.start()


def offers(r: Rig) -> int:
    return len([n for n in r.of(Notice) if n.text == OFFER])


def switched(r: Rig) -> tuple[bool, str, bool]:
    policy = r.engine.state.policy
    return policy.compact_continuation, policy.prewarm, policy.proj_snapshot


def states(lines: Any) -> dict[str, str]:
    return {line.key: line.state for line in lines}


async def throw(r: Rig, on: bool) -> Notice:
    mark = len(r.events)
    r.engine.switch_economy(on)
    told = await r.until(lambda e: isinstance(e, Notice), after=mark)
    await r.idle()
    assert isinstance(told, Notice)
    return told


async def test_it_is_offered_once_after_the_first_answer(tmp_path: Path) -> None:
    """A first message is not disturbed; one sentence for each key, and the command for either answer."""
    r = await rig(tmp_path)
    assert offers(r) == 0
    await r.ask("Hello?")
    assert offers(r) == 1
    await r.ask("And now?")
    assert offers(r) == 1
    offer = next(n for n in r.of(Notice) if n.text == OFFER)
    assert [key for key in KEYS if f". {key}: " in offer.text] == list(KEYS)
    assert len(offer.text) < 240, "the first answer stays in sight"
    assert "/economy on" in offer.hint
    assert "/economy off" in offer.hint
    await r.engine.close()


@pytest.mark.parametrize(
    "more", [{"policy": Policy()}, {"local": False}, {"chat": ScriptedChat([[ModelError("network", "gone")]])}]
)
async def test_it_is_not_offered_to_who_has_chosen_nor_without_a_local_engine_that_answers(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """L1, L30, L70, B25: never for an external model."""
    r = await rig(tmp_path, **more)
    await r.ask("Hello?")
    assert offers(r) == 0
    await r.engine.close()


async def test_switched_on_it_works_at_once_and_is_saved(tmp_path: Path) -> None:
    """The prompt of the next turn is computed right away; the settings file holds the answer."""
    r = await rig(tmp_path)
    await r.ask("Hello?")
    assert states((await r.engine.status()).economy) == dict.fromkeys(KEYS, "off")
    told = await throw(r, True)
    assert told.level == "info"
    await r.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "ready")
    assert switched(r) == (True, "on", True)
    assert r.hub.connection.slots.stamping
    assert set(states((await r.engine.status()).economy).values()) == {"on"}
    saved = tomllib.loads((tmp_path / "config.toml").read_text())
    assert saved == {"compact_continuation": True, "prewarm": "on", "proj_snapshot": True}
    await r.engine.close()


async def test_what_is_held_and_how_full_it_is_stay_true_when_it_is_switched(tmp_path: Path) -> None:
    """L16, M39: the books begin now; the tools and lines that come with a key are no part of what was counted."""
    r = await rig(tmp_path, policy=Policy())
    await r.ask("Where is the port? " * 40)
    (tmp_path / "project" / "AGENTS.md").write_text("Run the tests first. " * 60)
    before = r.of(GaugeChanged)[-1].gauge
    await throw(r, True)
    lines = {line.key: line.why for line in (await r.engine.status()).economy}
    assert "no step was sent since it was switched on" in lines["compact_continuation"]
    after = r.of(GaugeChanged)[-1].gauge
    assert after.system_part > before.system_part
    assert (after.used, after.estimated) == (before.used, False)
    await r.engine.close()


async def test_switched_off_nothing_is_left_on(tmp_path: Path) -> None:
    """`full` is kept when it was on already; off is off, and is an answer too."""
    r = await rig(tmp_path, policy=Policy(prewarm="full", proj_snapshot=True))
    await r.ask("Hello?")
    await throw(r, True)
    assert switched(r) == (True, "full", True)
    await throw(r, False)
    assert switched(r) == (False, "off", False)
    assert not r.hub.connection.slots.stamping
    asked = len(r.chat.requests)
    await r.ask("And now?")
    assert len(r.chat.requests) == asked + 1, "nothing is computed ahead"
    saved = tomllib.loads((tmp_path / "config.toml").read_text())
    assert saved == {"compact_continuation": False, "prewarm": "off", "proj_snapshot": False}
    await r.engine.close()


async def test_with_a_hosted_model_it_says_that_nothing_changes_yet(tmp_path: Path) -> None:
    """L1, L30, L70, B25: never for an external model, whatever the switch says."""
    r = await rig(tmp_path, local=False)
    await r.ask("Hello?")
    told = await throw(r, True)
    assert "not a local engine, so nothing changes yet" in told.text
    asked = len(r.chat.requests)
    await r.ask("And now?")
    assert len(r.chat.requests) == asked + 1
    assert set(states((await r.engine.status()).economy).values()) <= {"off", "suspended"}
    await r.engine.close()


async def test_while_a_turn_runs_it_waits(tmp_path: Path) -> None:
    """A turn is finished as it was begun: its prompt must not change in the middle (I7)."""
    hold = Hold()
    reply = say("ok")
    r = await rig(tmp_path, chat=OneSlotChat([[reply[0], hold, *reply[1:]]]))
    r.engine.submit("Hello?")
    await hold.reached.wait()
    r.engine.switch_economy(True)
    assert switched(r) == (False, "off", False)
    hold.go.set()
    await r.until(lambda e: isinstance(e, Notice) and "Saved" in e.hint)
    await r.idle()
    assert switched(r) == (True, "on", True)
    assert offers(r) == 0, "answered before it was asked"
    await r.engine.close()


async def test_a_disk_that_refuses_is_told_and_the_switch_holds_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marextui.engine.setup.write_setting", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    r = await rig(tmp_path)
    told = await throw(r, True)
    assert told.level == "warning"
    assert "Only until you leave" in told.text
    assert switched(r) == (True, "on", True)
    await r.engine.close()


async def test_several_slots_are_told_of_once(tmp_path: Path) -> None:
    """L38, D2: nothing is computed ahead there; people may not know that they have them."""
    r = await rig(tmp_path, policy=Policy(prewarm="on"))
    r.hub.connection.facts = SlotFacts(total=4, busy=False)
    for n in range(2):
        mark = len(r.events)
        await r.ask(f"Question {n}?")
        await r.until(lambda e: isinstance(e, PrewarmChanged) and e.state == "refused", after=mark)
    told = [n for n in r.of(Notice) if "4 slots" in n.text]
    assert [(n.level, "-np 1" in n.hint) for n in told] == [("info", True)]
    line = next(x for x in (await r.engine.status()).economy if x.key == "prewarm")
    assert (line.state, "4 slots" in line.why) == ("suspended", True)
    await r.engine.close()


async def test_the_gauge_says_that_a_model_loads_until_it_knows_the_window(tmp_path: Path) -> None:
    """M3, M4: a window that is to come is not unknown; one that does not come is."""
    r = Rig(tmp_path, window=Window(16_384, "discovery"))
    r.hub.hold = Hold()
    await r.start()
    await r.hub.hold.reached.wait()
    assert r.of(GaugeChanged)[-1].gauge.loading
    r.hub.hold.go.set()
    await r.until(lambda e: isinstance(e, GaugeChanged) and e.gauge.window == 16_384)
    assert not r.of(GaugeChanged)[-1].gauge.loading
    await r.engine.close()


@pytest.mark.parametrize("nothing", [True, False])
async def test_a_model_that_does_not_come_has_no_window(tmp_path: Path, nothing: bool) -> None:
    r = Rig(tmp_path)
    r.hub.nothing = nothing
    r.hub.failures = [ModelError("network", "gone")]
    await r.start()
    await r.until(lambda e: isinstance(e, GaugeChanged) and not e.gauge.loading)
    assert r.of(GaugeChanged)[-1].gauge.window is None
    await r.engine.close()
