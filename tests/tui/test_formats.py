"""Numbers as people read them; unknown is "?" (M38), the gauge's words and zones (M5, cases 43–47)."""

from __future__ import annotations

from datetime import datetime

import pytest

from marextui.engine.event_values import Gauge, UsageLine
from marextui.tui import formats

N = "\u00a0"


@pytest.mark.parametrize(
    ("n", "full", "short"),
    [
        (None, "?", "?"),
        (0, "0", "0"),
        (999, "999", "999"),
        (1_234, f"1{N}234", "1.2k"),
        (12_480, f"12{N}480", "12k"),
        (84_500, f"84{N}500", "85k"),
        (9_949, f"9{N}949", "9.9k"),
        (9_950, f"9{N}950", "10k"),
        (1_234_567, f"1{N}234{N}567", "1.2M"),
    ],
)
def test_tokens(n: int | None, full: str, short: str) -> None:
    assert formats.tokens(n) == full
    assert formats.tokens(n, compact=True) == short


def test_sizes_and_characters() -> None:
    assert formats.size(812) == f"812{N}B"
    assert formats.size(1536) == f"1.5{N}KiB"
    assert formats.size(3 * 1024**2) == f"3.0{N}MiB"
    assert formats.size(5000 * 1024**3) == f"5000.0{N}GiB"
    assert formats.chars(1) == f"1{N}char"
    assert formats.chars(12_345) == f"12k{N}chars"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "now"),
        (0.4, "now"),
        (42, f"42{N}s"),
        (300, f"5{N}min"),
        (3 * 3600 + 59, f"3{N}h"),
        (12.9 * 86400, f"12{N}d"),
    ],
)
def test_age(seconds: float, text: str) -> None:
    assert formats.age(seconds) == text


def test_days_left() -> None:
    assert formats.days(None) == "kept"
    assert formats.days(29.4) == f"29{N}days{N}left"
    assert formats.days(1.9) == f"1{N}day{N}left"
    assert formats.days(0.2) == f"under a day{N}left"
    assert formats.days(-1) == "due now"
    assert formats.days(29.4, compact=True) == f"29{N}d{N}left"


def test_clock_and_duration() -> None:
    assert formats.clock(0) == "1970-01-01 00:00"
    assert formats.clock(1e30) == "?"
    assert [formats.duration(s) for s in (-1, 0.42, 12.3, 125, 3720)] == [
        f"0.0{N}s",
        f"0.4{N}s",
        f"12{N}s",
        f"2{N}min{N}05{N}s",
        f"1{N}h{N}02{N}min",
    ]


def test_unknown_usage_is_a_question_mark_never_zero() -> None:
    usage = UsageLine(1, 1234, 56, None, "local", 1, 2.0, "m", 12.34)
    assert formats.usage_line(usage) == f"inp 1{N}234 / out 56 / cache ? · local · 12.3{N}tok/s"
    silent = UsageLine(1, None, None, None, "n/a", 1, 2.0, "m")
    assert formats.usage_line(silent) == "inp ? / out ? / cache ? · n/a"
    assert "cache 0" in formats.usage_line(UsageLine(1, 1, 1, 0, "local", 1, 2.0, "m"))


def test_percent_never_reads_65_before_65_is_reached() -> None:
    assert formats.percent(17_856, 27_472) == f"64{N}%"
    assert formats.percent(17_857, 27_472) == f"65{N}%"
    assert formats.percent(5, None) == f"?{N}%"
    assert formats.share(0.65) == f"65{N}%"
    assert formats.share(0.675) == f"67.5{N}%"
    assert formats.share(0.9) == f"90{N}%"


def gauge(used: int, **rest: object) -> Gauge:
    base: dict[str, object] = {"budget": 27_472, "threshold": 17_857, "window": 32_768}
    return Gauge(conversation=used, **(base | rest))  # type: ignore[arg-type]


def test_zones_and_words() -> None:
    assert formats.zone(gauge(0)) == "ok"
    assert formats.zone(gauge(15_000)) == "ok"
    assert formats.zone(gauge(15_200)) == "soon"
    assert formats.zone(gauge(10_000, tokens_per_turn=4_000)) == "soon"
    assert formats.zone(gauge(17_856)) == "soon"
    assert formats.zone(gauge(17_857)) == "compacting next"
    assert formats.zone(gauge(17_857, auto=False)) == "not compacting"
    assert formats.zone(gauge(17_857, why_not="no usable cut")) == "not compacting"
    assert formats.zone(gauge(17_856, why_not="three failures")) == "stopped", "no compaction is promised"
    assert formats.zone(gauge(10_000, tokens_per_turn=4_000, auto=False)) == "stopped"
    assert formats.zone(gauge(0, auto=False)) == "ok"
    assert formats.gauge_word(gauge(17_856, auto=False)) == "not compacting"
    assert formats.zone(gauge(27_473)) == "over"
    assert formats.zone(gauge(0, budget=-5, threshold=0)) == "over"
    assert formats.zone(Gauge(conversation=10)) == "unknown"
    assert formats.gauge_word(gauge(17_857)) == "compacting next"
    assert formats.gauge_word(Gauge()) == "window unknown"


def test_key_names() -> None:
    assert formats.keys("slash,N,pagedown") == "/ N PgDn"
    assert formats.keys("ctrl+j, f2,shift+up") == "Ctrl+J F2 Shift+Up"
    assert formats.keys("") == ""


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2026-11-30 14:02:59", "today 14:02"),
        ("2026-11-30 00:00:00", "today 00:00"),
        ("2026-11-30 23:59:00", "today 23:59"),
        ("2026-11-29 23:59:59", "yesterday 23:59"),
        ("2026-11-28 12:00:00", "Sat 28 Nov"),
        ("2026-11-23 08:00:00", "Mon 23 Nov"),
        ("2026-01-01 00:00:00", "Thu 1 Jan"),
        ("2025-12-31 23:59:59", "31 Dec 2025"),
        ("2026-12-01 00:00:00", "Tue 1 Dec"),
    ],
)
def test_a_day_is_told_the_more_exactly_the_nearer_it_is(at: str, text: str) -> None:
    """In local time; midnight, not 24 hours, parts today from yesterday, and a clock that went back tells no lie."""
    now = datetime.fromisoformat("2026-11-30 14:30:00").timestamp()
    assert formats.day(datetime.fromisoformat(at).timestamp(), now).replace("\u00a0", " ") == text


@pytest.mark.parametrize("at", [1e18, -1e18, float("inf"), float("nan")])
def test_what_is_no_date_is_unknown(at: float) -> None:
    assert formats.day(at, 1_700_000_000.0) == "?"
