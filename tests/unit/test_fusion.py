"""Merging summaries in code (P5, P10, P11; cases 51, 54, 61, 131)."""

from __future__ import annotations

import pytest

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.fusion import contradicts, fit, fuse
from marextui.context.summary import parse_summary, render_summary


def _summary(cycle: int, *lines: str) -> Summary:
    titles = {
        "I": "Session Intent",
        "F": "Files Modified",
        "D": "Decisions Made",
        "C": "Current State",
        "N": "Next Steps",
    }
    text = "\n".join(f"## {titles.get(line[0], 'Notes')}\n- {line[2:]}" for line in lines)
    return parse_summary(text, cycle=cycle)


def _items(summary: Summary, title: str) -> list[tuple[str, str]]:
    return [(i.text, i.status) for s in summary.sections if s.title == title for i in s.items]


def _all(summary: Summary) -> list[SummaryItem]:
    return [i for s in summary.sections for i in s.items]


def test_the_open_step_goes_last_though_older_ones_stand_before_it_as_history() -> None:
    """P10: what is done or superseded is no longer the first step."""
    merged = fuse(
        _summary(1, "N write the parser"), _summary(2, "N measure it", *(f"D keep {n}" for n in "abcdefg")), cycle=2
    )
    kept, gone = fit(merged, len(render_summary(merged)) - 40)
    assert gone
    assert ("measure it", "active") in _items(kept, "Next Steps")


def test_first_summary_is_taken_as_it_is() -> None:
    """P8."""
    new = _summary(1, "I add login", "F a.py: form")
    assert fuse(None, new, cycle=1) == new


def test_files_by_path_latest_note_wins_history_kept() -> None:
    """P10."""
    merged = fuse(
        _summary(1, "F a.py: form", "F b.py: tests"), _summary(2, "F `./a.py` — form and validation"), cycle=2
    )
    assert _items(merged, "Files Modified") == [
        ("a.py: form", "superseded"),
        ("`./a.py` — form and validation", "active"),
        ("b.py: tests", "active"),
    ]
    assert "form and validation (cycles 1–2)" in render_summary(merged)
    assert "supersedes" not in render_summary(merged)


def test_decisions_append_without_duplicates() -> None:
    """P10: said again is one item whose span of cycles grows."""
    merged = fuse(_summary(1, "D Use SQLite."), _summary(2, "D use  sqlite", "D Log in JSON"), cycle=2)
    assert _items(merged, "Decisions Made") == [("Use SQLite.", "active"), ("Log in JSON", "active")]
    assert "- Use SQLite. (cycles 1–2)" in render_summary(merged)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The server listens on port 8080", "Server should listen on port 9090"),
        ("Use tabs", "Do not use tabs"),
        ("Never push to main", "Push to main"),
        ("Use Redis for the cache", "Use Memcached instead of Redis"),
        ("Database: SQLite", "Database: PostgreSQL"),
        ("Cache user sessions in Redis", "Cache user sessions in Memcached"),
        ("Frontend in React", "Frontend switched from React to Svelte"),
        ("Utiliser le port 8080", "Utiliser le port 9090"),
        ("Timeout = 30s", "Timeout = 60s"),
    ],
)
def test_contradiction_supersedes_and_both_stay(older: str, newer: str) -> None:
    """P10, case 131: the newer is active and says what it supersedes; the older stays."""
    assert contradicts(newer, older)
    merged = fuse(_summary(1, f"D {older}"), _summary(2, f"D {newer}"), cycle=2)
    assert _items(merged, "Decisions Made") == [(older, "superseded"), (newer, "active")]
    assert f'- {newer} (supersedes: "{older}") (cycle 2)' in render_summary(merged)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Use Redis for the cache", "Use PostgreSQL for accounts"),
        ("Tests go first", "Docs are written in French"),
        ("Add an endpoint /users", "Add an endpoint /orders"),
        ("Add tests for login", "Add tests for logout"),
        ("Never push to main", "Never edit the lock file"),
        ("Keep Python 3.11", "Keep the API of version 2"),
    ],
)
def test_different_decisions_stay_side_by_side(older: str, newer: str) -> None:
    """P10: a shared word is no contradiction."""
    assert not contradicts(newer, older)
    merged = fuse(_summary(1, f"D {older}"), _summary(2, f"D {newer}"), cycle=2)
    assert {status for _, status in _items(merged, "Decisions Made")} == {"active"}


def test_on_then_off_then_on() -> None:
    """Case 61: the last word counts, and history tells the way."""
    merged = _summary(1, "D use strict mode")
    for cycle, said in ((2, "do not use strict mode"), (3, "use strict mode")):
        merged = fuse(merged, _summary(cycle, f"D {said}"), cycle=cycle)
    active = [text for text, status in _items(merged, "Decisions Made") if status == "active"]
    assert active == ["use strict mode"]


def test_intent_is_kept_and_changes_appended() -> None:
    """P10."""
    merged = fuse(_summary(1, "I add login"), _summary(2, "I also add logout"), cycle=2)
    assert _items(merged, "Session Intent") == [("add login", "active"), ("also add logout", "active")]


def test_state_and_steps_are_replaced_and_archived() -> None:
    """P10: a step the new summary tells of is done, any other is superseded; one that still stands stays."""
    old = _summary(1, "C build fails", "N fix the login test", "N write docs", "N release")
    new = _summary(2, "C login test fixed, all green", "N release")
    merged = fuse(old, new, cycle=2)
    assert _items(merged, "Current State") == [("build fails", "superseded"), ("login test fixed, all green", "active")]
    assert _items(merged, "Next Steps") == [
        ("fix the login test", "done"),
        ("write docs", "superseded"),
        ("release", "active"),
    ]
    assert "release (cycles 1–2)" in render_summary(merged)
    assert "write docs" not in render_summary(merged)


def test_an_empty_delta_changes_nothing() -> None:
    """P10: idempotent on empty; also on itself but for the cycles."""
    old = fuse(_summary(1, "I a goal", "F a.py: x", "D b", "C c", "N d"), _summary(2, "N e"), cycle=2)
    assert fuse(old, _summary(3), cycle=3) == old
    assert fuse(old, old, cycle=3) == old


def test_unknown_sections_survive() -> None:
    """P6, P10: nothing an earlier summary said may vanish, however it was headed."""
    old = parse_summary("## Risks\n- may break Windows", cycle=1)
    merged = fuse(old, _summary(2, "N go on"), cycle=2)
    assert _items(merged, "Risks") == [("may break Windows", "active")]


def test_three_cycles_carry_tags_of_at_most_three() -> None:
    """P11."""
    merged = _summary(1, "D one", "F a.py: 1")
    merged = fuse(merged, _summary(2, "D two", "F a.py: 2"), cycle=2)
    merged = fuse(merged, _summary(3, "D three"), cycle=3)
    tags = [line.rsplit("(", 1)[1] for line in render_summary(merged).split("\n") if line.startswith("- ")]
    assert tags == ["cycles 1–2)", "cycle 1)", "cycle 2)", "cycle 3)"]


def test_cycle_one_facts_survive_ten_cycles_verbatim() -> None:
    """P5, case 54: a model that forgets to repeat costs nothing."""
    merged = _summary(1, "D error was E_CONN_4711 in src/net/pool.rs:88", "F src/net/pool.rs: backoff")
    for cycle in range(2, 11):
        merged = fuse(merged, _summary(cycle, f"C state {cycle}", f"F src/f{cycle}.rs: touched"), cycle=cycle)
    text = render_summary(merged)
    assert "E_CONN_4711 in src/net/pool.rs:88 (cycle 1)" in text
    assert "src/net/pool.rs: backoff (cycle 1)" in text


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("## Current State\n- all 12 pass\n## Next Steps\nnone", []),
        ("## Current State\n- all 12 pass\n## Next Steps: none", []),
        ("## Current State\n- tout passe\n## Next Steps\n- aucune", []),
        ("## Current State\n- all 12 pass\n## Next Steps\n- measure", ["measure"]),
        ("## Current State\n- all 12 pass", ["port module 4"]),
        ("## Next Steps\nnone", ["port module 4"]),
    ],
)
def test_steps_end_by_the_word_that_there_are_none_and_not_by_silence(reply: str, left: list[str]) -> None:
    """Cases 51, 54: what was done is not asked for again; what a model forgot to repeat stays. P10: nor by nothing."""
    earlier = parse_summary("## Next Steps\n- port module 4", cycle=1)
    merged = fuse(earlier, parse_summary(reply, cycle=2), cycle=2)
    steps = next(s for s in merged.sections if s.title == "Next Steps")
    assert [i.text for i in steps.items if i.status == "active"] == left
    assert "port module 4" in [i.text for i in steps.items]  # never deleted


def test_associative_on_disjoint_files() -> None:
    """P10."""
    a, b, c = _summary(1, "F a.py: 1"), _summary(2, "F b.py: 2"), _summary(3, "F c.py: 3")
    assert fuse(fuse(a, b, cycle=2), c, cycle=3) == fuse(a, fuse(b, c, cycle=3), cycle=3)


def test_fit_hands_back_what_it_takes_out() -> None:
    """P10: oldest and lowest value first; kept and archived together are the whole."""
    lines = [f"F src/file{n}.py: a note about it" for n in range(30)]
    summary = fuse(
        _summary(1, "I the goal", *lines), _summary(2, "D the newest decision", "N the open request"), cycle=2
    )
    kept, archived = fit(summary, 500)
    assert len(render_summary(kept)) <= 500
    assert sorted(i.text for i in _all(kept) + list(archived)) == sorted(i.text for i in _all(summary))
    for must in ("the goal", "the newest decision", "the open request"):
        assert must in render_summary(kept)
    assert fit(summary, 100_000) == (summary, ())


def test_fit_shortens_a_single_giant() -> None:
    """P10: one item beyond the cap is shortened in the view, its original handed back."""
    giant = Summary((SummarySection("Session Intent", (SummaryItem(("goal " * 500).strip(), "", 1, 1),)),))
    kept, archived = fit(giant, 400)
    assert len(render_summary(kept)) <= 400
    assert "goal goal" in render_summary(kept)
    assert [len(i.text) for i in archived] == [2499]


def test_a_summary_does_not_grow_with_the_number_of_compactions() -> None:
    """I16: superseded items leave too once they fill more than the cap."""
    merged, out, sizes = _summary(1, "C start"), 0, []
    for cycle in range(2, 120):
        merged = fuse(merged, _summary(cycle, f"C state number {cycle} with some words to it"), cycle=cycle)
        merged, archived = fit(merged, 800)
        out += len(archived)
        sizes.append(len(_all(merged)))
    assert sizes[-1] == sizes[50]
    assert out + sizes[-1] == 119
