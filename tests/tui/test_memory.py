"""The memory pane shows what is stored and what of it is sent (M31–M37)."""

from __future__ import annotations

from dataclasses import replace

from marextui.engine.event_values import MemoryEntryInfo, MemoryReport
from marextui.tui.panes.memory import NO_ENTRIES, NO_RULES, SHOWN_ENTRIES, MemoryPane, memory_text
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

NOW = 1_700_000_000.0
N = "\u00a0"
FULL = MemoryReport(
    rules_path="/home/me/proj/MAREX.md",
    rules="use tabs\nbe short\n",
    rules_truncated=False,
    memory_path="/home/me/proj/.marex/MEMORY.md",
    memory_bytes=2_100,
    entries=(
        MemoryEntryInfo("2025-02-01", "c-11", 1, ("older fact",)),
        MemoryEntryInfo("2025-03-01", "c-12", 3, ("the tests run with pytest -q", "vendored code stays")),
    ),
    injected="- the tests run with pytest -q",
    injected_limit=655,
    omissions=12,
    omissions_bytes=40_000,
    oldest_omission_at=NOW - 11.5 * 86_400,
    days_to_purge=3.2,
    retention_days=30,
)
EMPTY = MemoryReport("/p/MAREX.md", "", False, "/p/.marex/MEMORY.md", 0, (), "", 655, 0, 0, None, None, 30)


def test_everything_of_m36_is_there() -> None:
    text = memory_text(FULL, NOW).plain
    for part in (
        "/home/me/proj/MAREX.md",
        f"18{N}chars",
        f"30 of at most 655{N}chars",
        "- the tests run with pytest -q",
        f"/home/me/proj/.marex/MEMORY.md, 2.1{N}KiB",
        "Memory: 2 entries",
        "2025-03-01 from conversation c-12, compaction 3",
        f"12 stored, 39.1{N}KiB, kept 30 days; oldest 11{N}d; next purge: 3{N}days{N}left",
    ):
        assert part in text
    assert text.index("2025-03-01") < text.index("2025-02-01")


def test_a_truncated_rules_file_is_said() -> None:
    assert "only the beginning is sent" in memory_text(replace(FULL, rules_truncated=True), NOW).plain


def test_empty_states_teach() -> None:
    text = memory_text(EMPTY, NOW).plain
    assert NO_RULES in text
    assert NO_ENTRIES in text
    assert "none stored (kept 30 days)" in text
    assert "kept for ever" in memory_text(replace(EMPTY, retention_days=0), NOW).plain


def test_only_the_newest_of_very_many_entries_are_drawn() -> None:
    many = tuple(MemoryEntryInfo("2025-01-01", f"c-{i}", i, (f"fact {i}",)) for i in range(1000))
    text = memory_text(replace(FULL, entries=many), NOW).plain
    assert text.count("from conversation") == SHOWN_ENTRIES
    assert "fact 999" in text
    assert "and 800 older ones" in text


async def test_keys_ask_the_app() -> None:
    pane = MemoryPane()
    app = MiniApp(pane, watch=[MemoryPane.EditRequested, MemoryPane.ClearRequested])
    async with app.run_test(size=(44, 24)) as pilot:
        pane.focus()
        await pilot.press("e", "m", "x")
        assert app.messages == []
        pane.show(FULL)
        await pilot.press("e", "m", "x")
        await pilot.pause()
        first, second, third = app.messages
        assert (first.path, second.path) == (FULL.rules_path, FULL.memory_path)
        assert isinstance(third, MemoryPane.ClearRequested)
        assert "Memory: 2 entries" in frame(app)
