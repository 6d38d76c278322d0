"""`/context` on the screen (P18; cases 27, 48, 86)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marextui.context.breakdown import Breakdown, Share
from marextui.engine.event_values import Gauge
from marextui.tui.screens.context import ContextScreen, context_text
from tests.stubs.fake_engine import CONTEXT, FakeEngine
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp
from tests.tui.scenes import make_app
from tests.tui.test_app import WIDE
from tests.tui.test_compaction_screens import HOSTILE, plain, settled


def figures(text: str, indent: str) -> list[int]:
    """The figures of the rows indented by exactly `indent`."""
    rows = [r for r in plain(text).splitlines() if r.startswith(indent) and not r.startswith(indent + " ")]
    return [int(r[32:42].strip().lstrip("~").replace(" ", "")) for r in rows]


def test_the_rows_shown_sum_to_the_rows_above_them() -> None:
    """I8, as a person would add it up: the residual is one of the rows."""
    text = context_text(CONTEXT)
    assert sum(figures(text, "  ")) == CONTEXT.breakdown.total
    assert sum(figures(text, "    ")) == CONTEXT.breakdown.total
    tools = [s.tokens for s in CONTEXT.breakdown.of("tools")]
    assert sum(figures(text, "      ")) == sum(tools) + CONTEXT.breakdown.tokens("outputs")
    assert "      2 more" in text
    assert "not explained" in text


def test_an_unknown_window_and_nothing_measured_are_said() -> None:
    report = replace(CONTEXT, gauge=Gauge(system=10, conversation=5), measured=None)
    text = context_text(report)
    assert "unknown: nothing is cut" in text
    assert "All figures are estimates" in text
    assert "nothing was measured yet" in text
    assert "Free for history" not in text


def test_it_fits_80_columns() -> None:
    assert max(map(len, context_text(CONTEXT).splitlines())) <= 74


def test_names_of_tools_are_harmless() -> None:
    """Case 27: a tool server chooses its names."""
    shares = (Share("tools", HOSTILE, 5, 1), Share("outputs", HOSTILE, 5, 1), Share("other", HOSTILE, 5, 1))
    gauge = replace(CONTEXT.gauge, window_source=HOSTILE)
    text = context_text(replace(CONTEXT, breakdown=Breakdown(shares, 5, 10), gauge=gauge))
    assert control_bytes(text) == []
    assert not any(row.startswith("second") for row in text.splitlines())


async def test_the_command_opens_it_and_the_key_still_goes_to_the_gauge() -> None:
    engine = FakeEngine()
    app = make_app(engine)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"/context", "enter")
        await settled(pilot)
        assert isinstance(app.screen, ContextScreen)
        assert "tool descriptions" in frame(app)
        await pilot.press("escape", "f5")
        await settled(pilot)
        assert app.screen is app.main
        assert app.focused is app.main.gauge
        assert engine.said("submit") == []
        assert not app.model.items


def test_picture_of_the_breakdown(snap_compare: Any) -> None:
    assert snap_compare(MiniApp(screen=ContextScreen(CONTEXT)), terminal_size=(80, 34))
