"""How far a local server is with the prompt: by its own time and the tokens it computed (issue 4, section 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from marextui.engine.events import PromptProcessed
from marextui.tui.glyphs import ASCII, UNICODE
from marextui.tui.prompt_progress import bar, seconds_left, wordings

COUNTS = st.integers(0, 200_000)


@st.composite
def told(draw: st.DrawFn) -> PromptProcessed:
    cached, computed, left = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    seconds = draw(st.none() | st.floats(0, 10_000))
    return PromptProcessed(cached + computed + left, cached, cached + computed, seconds)


def test_the_time_left_goes_by_what_was_computed_and_not_by_what_was_cached() -> None:
    """2,000 of 3,000 new tokens took 20 s: 10 s more, whatever came from the cache; it runs down with the clock."""
    assert seconds_left(PromptProcessed(13_000, 10_000, 12_000, 20.0)) == 10.0
    assert seconds_left(PromptProcessed(13_000, 10_000, 12_000, 20.0), since=4.0) == 6.0
    assert seconds_left(PromptProcessed(13_000, 10_000, 12_000, 20.0), since=40.0) == 0.0


def test_nothing_is_said_before_there_is_anything_to_go_by() -> None:
    assert seconds_left(PromptProcessed(13_000, 10_000, 10_000, 0.2)) is None
    assert seconds_left(PromptProcessed(13_000, 10_000, 12_000)) is None
    assert [w for w in wordings(PromptProcessed(13_000, 10_000, 10_000, 0.2), 0, UNICODE) if "– left" not in w] == []


@given(told(), st.integers(1, 60))
def test_the_bar_has_its_width_and_is_full_only_at_the_end(p: PromptProcessed, width: int) -> None:
    drawn = bar(p, width, ASCII)
    assert len(drawn) == width
    assert (ASCII.free not in drawn) == (p.done == p.total > 0)
    assert drawn == "".join(sorted(drawn, key=[ASCII.cached, ASCII.computed, ASCII.free].index))


@given(told(), st.floats(0, 1_000))
def test_each_wording_is_shorter_than_the_one_before(p: PromptProcessed, since: float) -> None:
    widths = [cell_len(w) for w in wordings(p, since, UNICODE)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] <= 34
