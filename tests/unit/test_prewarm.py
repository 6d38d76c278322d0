"""When a prewarm may be sent, which turn goes on from it, and when midnight is (L36–L50)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from marextui.context.prewarm import DAY_MARGIN, Rest, goes_on, lost_in_between, prompt_of, why_not_now, why_not_there
from marextui.engine.prewarm import seconds_to_midnight
from tests.stubs.engine_rig import ManualClock

FREE = Rest(model="m", local=True, at_rest=True, failed=False, said=True, known=True, day_left=43_200.0)


def test_nothing_is_in_the_way() -> None:
    assert why_not_now(FREE) == ""
    assert why_not_now(replace(FREE, day_left=None)) == ""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"model": ""}, "no model is connected"),
        ({"local": False}, "m is not a local engine"),
        ({"at_rest": False}, "there is other work to do"),
        ({"said": False}, "nothing was said yet"),
        ({"failed": True}, "the last turn failed and may be tried again"),
        ({"known": False}, "no turn of this conversation has ended with this model since the start"),
        ({"day_left": 599.0}, "the date in the prompt changes in less than 10 minutes"),
    ],
)
def test_each_fact_alone_is_in_the_way(changed: dict[str, Any], why: str) -> None:
    """L30 (never external), L32 (empty), L39, L42, L46, L48."""
    assert why_not_now(replace(FREE, **changed)) == why


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ((1, False, False), ""),
        ((1, False, None), ""),
        ((2, False, False), "the server has 2 slots, and the next turn may land in another one"),
        ((None, False, None), "the server does not say how many slots it has"),
        ((1, True, False), "the server sleeps, and is not woken for this"),
        ((1, False, True), "another program is using the server"),
    ],
)
def test_only_on_a_server_with_one_idle_slot(facts: tuple[int | None, bool, bool | None], why: str) -> None:
    """L38: as the server tells it."""
    total, sleeping, busy = facts
    assert why_not_there(total=total, sleeping=sleeping, busy=busy) == why


SYSTEM = {"role": "system", "content": "Be exact."}
ASKED = {"role": "user", "content": "Why, « exactly »?"}
ANSWERED = {"role": "assistant", "content": "Because."}
NEXT = {"role": "user", "content": "And then?"}
TOOLS = [{"type": "function", "function": {"name": "Read"}}]
WARMED = (SYSTEM, ASKED, ANSWERED)


@pytest.mark.parametrize(
    ("messages", "tools", "extra", "kept"),
    [
        ((*WARMED, NEXT), TOOLS, {}, True),
        ((*WARMED, NEXT), TOOLS, {"top_p": 0.9, "return_progress": True}, True),
        ((*WARMED, NEXT, ANSWERED, NEXT), TOOLS, {}, True),
        (WARMED, TOOLS, {}, False),
        ((*WARMED, NEXT), [], {}, False),
        ((*WARMED, NEXT), [*TOOLS, *TOOLS], {}, False),
        ((*WARMED, NEXT), TOOLS, {"chat_template_kwargs": {"enable_thinking": False}}, False),
        ((*WARMED, NEXT), TOOLS, {"reasoning_effort": "high"}, False),
        ((SYSTEM, ASKED, {"role": "assistant", "content": "Because!"}, NEXT), TOOLS, {}, False),
        (({"role": "system", "content": "Plan only."}, *WARMED[1:], NEXT), TOOLS, {}, False),
        ((SYSTEM, ASKED), TOOLS, {}, False),
        ((), TOOLS, {}, False),
    ],
)
def test_a_turn_goes_on_only_from_the_same_prompt(
    messages: tuple[dict[str, str], ...], tools: list[dict[str, Any]], extra: dict[str, Any], kept: bool
) -> None:
    """L37: a strict extension; sampling is not compared. L49: a turn in another role is none."""
    assert goes_on(prompt_of(messages, tools, extra), prompt_of(WARMED, TOOLS, {"temperature": 0.3})) is kept


def test_the_last_warmed_message_must_end_where_the_turns_does() -> None:
    """L37: a message that only begins like the warmed one is another one."""
    longer = {"role": "assistant", "content": "Because. And so on."}
    assert not goes_on(prompt_of((SYSTEM, ASKED, longer, NEXT), TOOLS, {}), prompt_of(WARMED, TOOLS, {}))


@pytest.mark.parametrize(
    ("earlier", "cached", "lost"),
    [
        (20_000, 3_000, True),
        (20_000, 9_999, True),
        (20_000, 10_000, False),
        (4_096, 0, True),
        (4_095, 0, False),
        (20_000, None, False),
        (None, 0, False),
    ],
)
def test_a_prompt_was_lost_in_between(earlier: int | None, cached: int | None, lost: bool) -> None:
    """L50: before 20 000, cached 3 000 → advice; cached unknown → none."""
    assert lost_in_between(earlier=earlier, cached=cached) is lost


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ZoneInfo]]:
    def use(name: str) -> ZoneInfo:
        monkeypatch.setenv("TZ", name)
        time.tzset()
        return ZoneInfo(name)

    yield use
    monkeypatch.undo()
    time.tzset()


MIDNIGHTS = [
    ("UTC", (2026, 10, 2, 23, 50, 0), 600.0),
    ("UTC", (2026, 10, 2, 23, 50, 1), 599.0),
    ("Europe/Paris", (2026, 12, 31, 23, 50, 0), 600.0),
    ("Europe/Paris", (2026, 3, 29, 0, 0, 0), 23 * 3600.0),  # an hour is left out in the night
    ("Europe/Paris", (2026, 10, 25, 0, 0, 0), 25 * 3600.0),  # and one is had twice
    ("America/Sao_Paulo", (2018, 11, 3, 23, 50, 0), 600.0),  # the next day begins at 1:00
    ("America/Havana", (2026, 11, 1, 0, 30, 0), 24.5 * 3600.0),  # 0:30 comes twice; this is the first
]


@pytest.mark.parametrize(("name", "moment", "left"), MIDNIGHTS)
def test_midnight_is_the_persons_own(
    name: str, moment: tuple[int, ...], left: float, zone: Callable[[str], ZoneInfo]
) -> None:
    """L42: 23:50:00 is allowed, 23:50:01 refused; local time, also when the clocks change."""
    year, month, day, hour, minute, second = moment
    at = datetime(year, month, day, hour, minute, second, tzinfo=zone(name))
    assert seconds_to_midnight(ManualClock(at.timestamp())) == left
    allowed = why_not_now(replace(FREE, day_left=left)) == ""
    assert allowed is (left >= DAY_MARGIN)
