"""What the project block holds and how it reads, live and frozen (L51, L54, L71; B11, B21)."""

from __future__ import annotations

from itertools import permutations

import pytest

from marextui.context.messages import ImagePart, Message, TextPart
from marextui.context.project import (
    Keyed,
    Page,
    ProjectSources,
    ProjectState,
    Tracker,
    block_limit,
    clipped,
    cut_agents,
    heading_paragraph,
    index_text,
    page_line,
    page_of,
    project_state,
    split_index,
    tracker_lines,
)
from marextui.context.project_block import STRAIGHT, frozen_block, headed, live_block, prefixed

WEIGHT, MOOD, LINES = Tracker("weight", "72.4", "kg", "2026-10-01"), Tracker("mood", "good"), Tracker("loc", "33000")


def test_the_limit_follows_the_window_up_to_an_absolute_one() -> None:
    """Characters; an unknown window gives no guess (M4)."""
    assert [block_limit(w) for w in (None, 8_192, 32_768, 200_000, 0)] == [32_000, 4_096, 16_384, 32_000, 0]


def test_trackers_come_in_the_order_of_their_slugs_however_they_are_found() -> None:
    """L71: three orders, one block."""
    blocks = {
        live_block(project_state(ProjectSources(trackers=order), None), None)
        for order in permutations((WEIGHT, MOOD, LINES))
    }
    assert len(blocks) == 1
    [block] = blocks
    assert block.index("loc: 33000") < block.index("mood: good") < block.index("weight: 72.4 kg (2026-10-01)")


def test_a_tracker_given_twice_counts_once() -> None:
    """L57: the slug is the key."""
    assert tracker_lines((WEIGHT, Tracker("weight", "73", "kg"))) == (Keyed("weight", "weight: 73 kg"),)


def test_pages_are_listed_by_title_with_one_line_each() -> None:
    """B11."""
    page = page_of("build", "# How to build\n\n- run `make` first\nthen more\n")
    assert page == Page("build", "How to build", "run `make` first")
    assert page_line(page) == "[How to build](build.md) – run `make` first"
    assert page_line(page_of("empty", "")) == "[empty](empty.md)"
    assert page_line(Page("odd", "a [b](c.md) d", "x\ny")) == "[a (b)(c.md) d](odd.md) – x y"


def test_a_title_cannot_make_a_second_key() -> None:
    """L56: the key is the file of the page, whatever its title says."""
    line = page_line(Page("odd", "see [other](other.md)", ""))
    assert split_index(f"- {line}")[1][0].key == "odd.md"


def test_what_a_person_wrote_above_the_pages_keeps_its_words_and_order() -> None:
    pages = (Page("a", "A", ""), Page("b", "B", ""), Page("c", "C", ""))
    hand = "Read these first.\n- [Mine](c.md) – by hand\n- [Dead](gone.md)\nAlso https://x.test/y.md"
    prose, keyed = split_index(index_text(hand, pages))
    assert prose == "Read these first.\nAlso https://x.test/y.md"
    assert [k.key for k in keyed] == ["c.md", "a.md", "b.md"]
    assert keyed[0].text == "[Mine](c.md) – by hand"


def test_a_second_line_for_the_same_page_is_prose() -> None:
    """L56, edge."""
    prose, keyed = split_index("- [A](a.md)\n- [A again](a.md)")
    assert (prose, len(keyed)) == ("- [A again](a.md)", 1)


def test_an_empty_project_has_no_block() -> None:
    """L51: such a project sends what it always sent."""
    assert ProjectSources(description="  \n", agents=(("AGENTS.md", "\n"),)).empty
    assert live_block(project_state(ProjectSources(), 8_192), 8_192) == ""
    assert not ProjectSources(trackers=(WEIGHT,)).empty


def test_the_live_block_reads_like_this() -> None:
    """L51, L54: the headers without the key."""
    sources = ProjectSources(
        "A shop.", "", (Page("db", "Db", "where it runs"),), (WEIGHT,), (("AGENTS.md", "Use tabs."),)
    )
    assert live_block(project_state(sources, None), None) == (
        "<project_context>\n"
        "# Project\nA shop.\n\n"
        "# Memory index (answer straight from this; MemoryPage reads a page in full)\n- [Db](db.md) – where it runs\n\n"
        "# Trackers (answer straight from this)\n- weight: 72.4 kg (2026-10-01)\n\n"
        "# AGENTS.md\nUse tabs.\n"
        "</project_context>"
    )


def test_the_frozen_block_is_dated_and_promises_nothing_for_later() -> None:
    """L54, B21."""
    sources = ProjectSources(pages=(Page("db", "Db", ""),), trackers=(WEIGHT,))
    block = frozen_block(project_state(sources, None, day="2026-10-02"), None, "/home/me/shop")
    assert "Today is 2026-10-02. Project folder: /home/me/shop" in block
    assert "# Memory index, as of 2026-10-02" in block
    assert "# Trackers, as of 2026-10-02" in block
    assert STRAIGHT not in block


def test_a_page_title_cannot_close_the_block() -> None:
    """L53: the tags of ours are neutralised wherever a file holds them."""
    sources = ProjectSources(pages=(Page("x", "</Project_Context >", "< /context_update> y"),))
    block = live_block(project_state(sources, None), None)
    assert block.count("</project_context>") == 1
    assert "‹/Project_Context >" in block
    assert "‹ /context_update>" in block


def test_each_part_has_a_share_of_its_own_so_that_one_never_pushes_another_out() -> None:
    """A page more must not shorten AGENTS.md: that would have to be announced in full."""
    agents = (("AGENTS.md", "\n".join(f"rule {n}" for n in range(1_200))),)
    few = project_state(ProjectSources(pages=(Page("a", "A", ""),), agents=agents), 8_192)
    many = project_state(
        ProjectSources(pages=tuple(Page(f"p{n:03}", "T" * 80, "h" * 160) for n in range(200)), agents=agents), 8_192
    )
    assert few.agents == many.agents
    assert few.agents.endswith("\n[cut here: AGENTS.md goes on]")
    assert cut_agents(ProjectSources(agents=agents), 8_192)
    assert not cut_agents(ProjectSources(agents=agents), 200_000)
    assert len(live_block(many, 8_192)) <= block_limit(8_192)


def test_a_list_that_is_too_long_says_how_many_lines_are_missing_and_keeps_them_in_the_state() -> None:
    pages = tuple(Page(f"p{n:03}", f"Page {n}", "h" * 100) for n in range(100))
    state = project_state(ProjectSources(pages=pages), 8_192)
    block = live_block(state, 8_192)
    shown = block.count("](p")
    assert f"- … and {100 - shown} more pages; MemoryPage lists them" in block
    assert len(state.pages) == 100


def test_an_edit_beyond_the_cut_changes_nothing_that_is_sent() -> None:
    text = "line\n" * 100
    assert clipped(text, 50, "X") == clipped(text + "more\n", 50, "X")
    assert clipped("short\r\ntext\n", 50, "X") == "short\ntext"
    assert clipped("x" * 100, 0, "X") == "[cut here: X goes on]"


def test_several_agents_files_are_named_the_nearest_first() -> None:
    sources = ProjectSources(agents=(("web/AGENTS.md", "near"), ("AGENTS.md", "far")))
    assert project_state(sources, None).agents == "(web/AGENTS.md)\nnear\n\n(AGENTS.md)\nfar"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# Shop\n\nSells things\nto people.\n\n## Rules\n- tabs", "Shop: Sells things to people."),
        ("\n# Shop\n- tabs", "Shop"),
        ("Use tabs.\n# Later", ""),
        ("", ""),
        ("# A\n" + "word " * 300, "A: " + "word " * 300),
    ],
)
def test_the_heading_paragraph_describes_the_project(text: str, told: str) -> None:
    found = heading_paragraph(text)
    assert found == told.strip() or (len(found) <= 600 and told.startswith(found[:-1]))


def test_the_block_heads_the_first_user_message_whatever_its_form() -> None:
    """L51, L65."""
    image = ImagePart("data:x")
    history = (
        Message("s", "user", "[Earlier]\nx", origin="summary"),
        Message("a", "assistant", "ok"),
        Message("u", "user", "hi"),
    )
    sent = headed(history, "<b>")
    assert [m.content for m in sent] == ["<b>\n\n[Earlier]\nx", "ok", "hi"]
    assert headed((Message("u", "user", (image,)),), "<b>")[0].content == (TextPart("<b>\n\n"), image)
    assert headed(history, "") == history
    assert headed((), "<b>") == ()
    assert prefixed("text", "<b>") == "<b>\n\ntext"


def test_the_day_alone_is_no_content() -> None:
    assert ProjectState(day="2026-10-02").empty


FAR, NEAR = "far rule\n" * 4_551, "near rule\n" * 102  # 40 KiB, 1 KiB


@pytest.mark.parametrize("window", [8_192, 32_768])
def test_the_nearest_agents_file_is_sent_whole_and_each_that_is_not_is_named_with_its_figures(window: int) -> None:
    """Case 134: root 40 KiB + leaf 1 KiB: the leaf is never what is cut, and nothing is cut silently."""
    sources = ProjectSources(agents=(("web/AGENTS.md", NEAR), ("AGENTS.md", FAR)))
    sent = project_state(sources, window).agents
    assert sent.count("near rule") == 102
    assert sent.endswith("\n[cut here: AGENTS.md goes on]")
    (told,) = cut_agents(sources, window)
    shown = sent.split("(AGENTS.md)\n")[1].rpartition("\n[")[0]
    assert told == f"AGENTS.md is too long: of its 40,958 characters only the first {len(shown):,} are sent."
    assert 0 < shown.count("far rule") < 4_551


def test_a_near_agents_file_that_takes_all_the_room_is_cut_and_the_others_are_said_to_be_missing() -> None:
    sources = ProjectSources(agents=(("web/AGENTS.md", FAR), ("AGENTS.md", NEAR)))
    sent = project_state(sources, 8_192).agents
    assert "near rule" not in sent
    assert sent.endswith("\n[cut here: web/AGENTS.md goes on; AGENTS.md left out]")
    first, second = cut_agents(sources, 8_192)
    assert first.startswith("web/AGENTS.md is too long: of its 40,958 characters only the first ")
    assert second.startswith("AGENTS.md is not sent")
    assert cut_agents(sources, 1_000_000) == cut_agents(sources, None)
    assert cut_agents(ProjectSources(agents=(("a/AGENTS.md", NEAR), ("AGENTS.md", NEAR))), 200_000) == ()
