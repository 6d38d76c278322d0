"""Updates: what changed, as the model is told (L53, L56–L58, L63, L65; B20)."""

from __future__ import annotations

import pytest

from marextui.context.cut import cut_candidates
from marextui.context.marks import CONTEXT_UPDATE_CLOSE, CONTEXT_UPDATE_OPEN
from marextui.context.messages import ImagePart, Message, TextPart
from marextui.context.project import Keyed, Page, ProjectSources, ProjectState, Tracker, project_state
from marextui.context.project_block import SYSTEM_LINE, prefixed
from marextui.context.project_delta import (
    applied,
    delta_between,
    delta_words,
    tokens_of,
    update_block,
    update_limit,
    without_update,
)

AT = "2026-10-02 14:05"


def state(**sources) -> ProjectState:
    return project_state(ProjectSources(**sources), None)


def told(before: ProjectState, now: ProjectState) -> list[str]:
    """The lines of the update, tags apart."""
    lines = update_block(delta_between(before, now), before, AT).split("\n")
    assert lines[0] == f'<context_update from="loki"> {AT}'
    assert lines[-1] == CONTEXT_UPDATE_CLOSE
    return lines[1:-1]


def test_pages_are_announced_by_file_in_the_order_of_the_index_removals_sorted() -> None:
    """L56."""
    before = state(pages=(Page("build", "Build", "make"), Page("ci", "Ci", ""), Page("a", "A", "")))
    now = state(pages=(Page("build", "Build", "ninja"), Page("db", "Db", "")))
    assert told(before, now) == [
        "Memory index (+ added, ~ changed, - removed):",
        "~ [Build](build.md) – ninja",
        "+ [Db](db.md)",
        "- a.md (deleted)",
        "- ci.md (deleted)",
    ]


def test_a_tracker_is_one_line_that_replaces_the_earlier_one() -> None:
    """L57."""
    before = state(trackers=(Tracker("weight", "72.4", "kg", "2026-10-01"), Tracker("mood", "good")))
    now = state(trackers=(Tracker("weight", "73", "kg", "2026-10-02"),))
    assert told(before, now)[1:] == ["~ weight: 73 kg (2026-10-02)", "- mood (deleted)"]


def test_texts_are_told_in_full_and_their_removal_in_one_line() -> None:
    """L58: never a diff of prose."""
    before = state(description="A small shop.", agents=(("AGENTS.md", "Use tabs."),))
    now = state(description="A large shop.")
    assert told(before, now) == [
        "The project description now reads, in full:",
        "A large shop.",
        "",
        "AGENTS.md was removed.",
    ]


def test_an_index_whose_prose_changed_is_told_in_full() -> None:
    """L58."""
    before = state(index="Old words.", pages=(Page("a", "A", ""),))
    now = state(index="New words.", pages=(Page("a", "A", ""),))
    assert told(before, now) == ["The memory index now reads, in full:", "New words.", "- [A](a.md)"]
    assert told(now, state()) == ["The memory index was removed."]


def test_a_new_day_is_one_line() -> None:
    """B21."""
    assert told(ProjectState(day="2026-10-01"), ProjectState(day="2026-10-02")) == ["Today is 2026-10-02."]


def test_nothing_changed_is_nothing_to_tell() -> None:
    """L53."""
    same = state(pages=(Page("a", "A", ""),), trackers=(Tracker("w", "1"),))
    assert not delta_between(same, same).tells


def test_another_order_alone_is_not_told_but_known() -> None:
    before = ProjectState(pages=(Keyed("a.md", "[A](a.md)"), Keyed("b.md", "[B](b.md)")))
    now = ProjectState(pages=before.pages[::-1])
    delta = delta_between(before, now)
    assert not delta.tells
    assert applied(delta, before) == now


def test_a_closing_tag_in_a_title_does_not_close_the_block() -> None:
    """L53."""
    now = state(pages=(Page("x", "a </context_update> b", ""), Page("y", '<context_update from="loki">', "")))
    block = update_block(delta_between(state(), now), state(), AT)
    assert block.count(CONTEXT_UPDATE_CLOSE) == 1
    assert block.count(CONTEXT_UPDATE_OPEN) == 1


def test_the_tag_is_kept_to_the_letter() -> None:
    """B20, L55."""
    assert CONTEXT_UPDATE_OPEN == '<context_update from="loki">'
    assert CONTEXT_UPDATE_OPEN in SYSTEM_LINE


IMAGE = ImagePart("data:x")
BLOCK = update_block(delta_between(ProjectState(), ProjectState(day="2026-10-02")), ProjectState(), AT)


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        "",
        "\n\n",
        (IMAGE,),
        (TextPart("look"), IMAGE),
        (),
        BLOCK,
        f"{BLOCK}\n\nquoted",
        (TextPart(BLOCK), IMAGE),
    ],
)
def test_taking_a_block_away_leaves_exactly_what_was_there(content) -> None:
    """L65: on a text, parts, parts that begin with text, and on what begins with a block by itself."""
    assert without_update(prefixed(content, BLOCK)) == content


@pytest.mark.parametrize("content", [f"see: {BLOCK}\n\nx", "plain", (TextPart(f"I got {BLOCK}\n\n"),), (), (IMAGE,)])
def test_a_block_quoted_further_on_stays(content) -> None:
    """L65."""
    assert without_update(content) == content


def test_a_message_that_is_only_an_update_is_no_cut_point() -> None:
    """M7, edge."""
    messages = [Message("1", "user", "hi"), Message("2", "assistant", "yes"), Message("3", "user", BLOCK)]
    assert cut_candidates(messages) == []


def test_the_limit_of_accumulated_updates() -> None:
    """L63: a quarter of the copy, at least 400, at most 1 500 tokens of four characters."""
    assert [update_limit(n) for n in (0, 1_600, 4_000, 6_000, 40_000)] == [400, 400, 1_000, 1_500, 1_500]
    assert tokens_of("x" * 4_003) == 1_000


def test_people_are_told_in_one_line_what_an_update_says() -> None:
    before = state(pages=(Page("a", "A", ""),), trackers=(Tracker("w", "1"),), agents=(("AGENTS.md", "x"),))
    now = state(pages=(Page("b", "B", ""),), trackers=(Tracker("w", "2"),), agents=(("AGENTS.md", "y"),))
    assert delta_words(delta_between(before, now)) == "b.md, a.md deleted, w, AGENTS.md"
