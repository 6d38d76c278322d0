"""`/status` (M22): every number, in words, as text that the command line can print too."""

from __future__ import annotations

from dataclasses import replace

from marextui.engine.api import StatusReport
from marextui.engine.economy import CacheState, EconomyLine
from marextui.engine.event_values import Gauge, UsageLine
from marextui.tui.screens.status import SHOWN_TURNS, StatusScreen, status_text
from tests.stubs.frames import control_bytes, frame
from tests.stubs.mini_app import MiniApp
from tests.tui.test_gauge import HALF

N = "\u00a0"
REPORT = StatusReport(
    model="qwen2.5-coder 1.5B",
    server="llama.cpp on this machine",
    conversation_id="c1",
    title="Refactor",
    turns=3,
    messages=20,
    gauge=HALF,
    auto_compress=True,
    last_compaction="cycle 1: 40 to 6 messages",
    last_failure="",
    why_no_compaction="",
    usage=(UsageLine(1, 1234, 56, None, "local", 2, 3.4, "qwen", 12.34),),
    data_path="/home/me/.local/share/marextui",
    triggers=("from 9 turns in view on (now 3), when that makes room; 6 stay", "at the latest at 65% of the budget"),
)


def test_all_of_m22() -> None:
    text = status_text(REPORT)
    for part in (
        f"Window (W)       32{N}768 tokens, from /props of the local server",
        f"Reserve (R)      4{N}096 tokens",
        f"System part (S)  ~2{N}220 tokens",
        f"Budget (B)       26{N}452 tokens (W - R - S)",
        f"Compact at       65{N}% of the budget",
        f"Threshold        17{N}194 tokens",
        f"History (H)      ~11{N}480 tokens, 43{N}% of the budget",
        "Auto-compaction  on",
        "Will compact     yes, from 9 turns in view on (now 3), when that makes room; 6 stay; at the latest at 65%",
        "Last compaction  cycle 1: 40 to 6 messages",
        "Last failure     none",
        "cache ?",
        "2 steps",
    ):
        assert part in text


def test_why_what_saves_a_local_engine_work_is_on_or_off() -> None:
    """Issue 4, section 5: in words; what a server said in it is harmless."""
    assert "Local engine" not in status_text(REPORT)
    assert "Last request     cache not reported" in status_text(REPORT)
    told = status_text(replace(REPORT, cache=CacheState(900, 100, "omission of turn 2", held=False, lost="it slept")))
    assert "90\u00a0% from the cache: 900 cached, 100 computed; Computed anew because of: omission of turn 2" in told
    assert "The server does not hold it: it slept" in told
    line = EconomyLine("compact_continuation", "suspended", "Not with x until the next start: it said \x1b[31mno.")
    text = status_text(replace(REPORT, economy=(line,)))
    assert "Local engine\n  compact_continuation is suspended. Not with x until the next start" in text
    assert "\x1b" not in text


def test_an_unknown_window_is_said() -> None:
    report = replace(REPORT, gauge=Gauge(system=10, conversation=5), why_no_compaction="the window is unknown")
    text = status_text(report)
    assert "Window (W)       unknown" in text
    assert "Will compact     no: the window is unknown" in text
    assert "%" not in text.replace(f"65{N}%", "")


def test_only_the_newest_turns_are_listed() -> None:
    usage = tuple(UsageLine(i, i, i, i, "local", 1, 1.0, "m") for i in range(1, 31))
    text = status_text(replace(REPORT, usage=usage))
    assert text.count("\n  turn ") == SHOWN_TURNS
    assert text.index("turn 30:") < text.index("turn 21:")


def test_hostile_names_are_harmless() -> None:
    report = replace(REPORT, model="m\x1b[2J\nx", title="[/]", last_failure="a\r\nb\x07", server="\u202es")
    text = status_text(report)
    assert control_bytes(text) == []
    assert "[/]" in text
    assert text.count("\n") == status_text(REPORT).count("\n")


async def test_the_screen_shows_it_and_closes() -> None:
    app = MiniApp(screen=StatusScreen(REPORT))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Window (W)" in frame(app)
        await pilot.press("end")
        await pilot.pause()
        assert "cache ?" in frame(app)
        await pilot.press("escape")
        await pilot.pause()
    assert app.answers == [None]
