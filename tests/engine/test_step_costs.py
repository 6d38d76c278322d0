"""What a step costs as a conversation grows: counted in messages looked at, never in seconds."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from marextui.context import running, validate, wire
from marextui.context.messages import Message
from marextui.context.recording import Recording, read_recording
from marextui.context.running import Running
from marextui.engine.replay import ReplayOptions, replay
from tests.engine.test_replay import conversation
from tests.stubs.engine_rig import four


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a message was repaired, checked, summed up and put into the form it is sent in."""
    seen: Counter[str] = Counter()

    def counted(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def wrapped(*args: object, **kw: object) -> object:
            seen[name] += 1
            return real(*args, **kw)

        monkeypatch.setattr(owner, name, wrapped)

    counted(validate.Repair, "feed")
    counted(validate, "_check_calls")
    counted(wire, "to_wire")
    over = running.Running.over

    def summed(self: Running, history: tuple[Message, ...]) -> tuple[int, ...]:
        before = self.visited
        sums = over(self, history)
        seen["summed"] += self.visited - before
        return sums

    monkeypatch.setattr(running.Running, "over", summed)
    return seen


def recording(turns: int, size: int) -> Recording:
    return read_recording(json.dumps(conversation(turns, size)).encode(), name="x")


async def test_a_step_looks_at_its_new_messages_only(looked_at: Counter[str]) -> None:
    """Nothing is rewritten: each message is repaired, checked and summed once, whatever the number of steps."""
    said = recording(60, size=20)
    outcome = await replay(said, ReplayOptions(window=1_000_000), count=four)
    assert outcome.report["totals"]["steps"] == 120
    n = len(said.messages)
    assert looked_at["feed"] <= n
    assert looked_at["_check_calls"] <= n
    assert looked_at["summed"] <= 2 * n, "once for tokens, once for bytes"
    assert outcome.report["totals"]["tokens_counted"] <= n + 8


async def test_a_request_is_written_once_for_each_step(looked_at: Counter[str]) -> None:
    """The one pass over the whole view that a step cannot do without: its request has to be sent."""
    outcome = await replay(recording(40, size=20), ReplayOptions(window=1_000_000), count=four)
    sent = sum(s["view_messages"] for s in outcome.report["steps"])
    assert looked_at["to_wire"] <= sent + 2 * len(outcome.report["steps"]) + 200


async def test_what_is_rewritten_is_gone_over_once_for_the_rewrite(looked_at: Counter[str]) -> None:
    """With omissions at every turn and compactions, a view is gone over anew a few times for each turn, not a step."""
    outcome = await replay(recording(60, size=300), ReplayOptions(window=6_000), count=four)
    totals = outcome.report["totals"]
    assert totals["compactions"]
    longest = max(s["view_messages"] for s in outcome.report["steps"])
    assert looked_at["feed"] <= 2 * totals["turns"] * longest
    assert looked_at["summed"] <= 4 * totals["turns"] * longest
