"""What has no room in a summary is stored, and an id stands in its place (P10, I6, I16; case 91)."""

from __future__ import annotations

from dataclasses import replace

from marextui.context.compaction_diff import item_changes
from marextui.context.entries import CompactionCommitted, Folded, Summary, SummaryItem, SummarySection
from marextui.context.entry_codec import decode, encode
from marextui.context.fold import Conversation
from marextui.context.folding import (
    MOST_IDS,
    PENDING,
    fit_tokens,
    folded_text,
    in_place,
    items_of,
    joined,
    named,
    read_folded,
)
from marextui.context.fusion import fuse
from marextui.context.sections import SECTIONS
from marextui.context.summary import parse_summary, render_summary


def made(cycle: int, count: int = 40, section: str = "Files Modified") -> Summary:
    items = (SummaryItem(f"src/f{cycle}_{n}.py: changed", f"src/f{cycle}_{n}.py", cycle, cycle) for n in range(count))
    return Summary((SummarySection("Session Intent", (SummaryItem("go on", "", cycle, cycle),)),
                    SummarySection(section, tuple(items))))  # fmt: skip


def test_the_id_stands_in_the_section_the_items_left() -> None:
    """I6: how many, and how to read them."""
    fitted = fit_tokens(made(1), 200, lambda text: len(text) // 4)
    view = render_summary(named(fitted.summary, "omitted-012"))
    count = len(items_of(fitted.folded))
    assert 0 < count < 40
    assert view.endswith(f"- … {count} earlier items → ReadOmittedContent omitted-012")
    assert "## Session Intent\n- go on (cycle 1)\n\n" in view
    assert len(view) // 4 <= 200
    kept = {i.text for i in items_of(fitted.summary)}
    assert kept | {i.text for i in items_of(fitted.folded)} == {i.text for i in items_of(made(1))}


def test_the_cap_is_counted_where_a_script_takes_a_token_for_each_character() -> None:
    """Case 91: four characters a token is wrong for Chinese."""
    items = tuple(SummaryItem(f"第{n}条：构建失败，因为找不到头文件" * 3) for n in range(80))
    fitted = fit_tokens(Summary((SummarySection("Current State", items),)), 700, len)
    assert len(render_summary(fitted.summary)) <= 700
    assert len(items_of(fitted.summary)) + len(items_of(fitted.folded)) == 80


def test_what_is_stored_reads_back_as_it_stood() -> None:
    """P11: cycle and status of each; one id leads to those before it."""
    gone = Summary(
        (
            SummarySection("Decisions Made", (SummaryItem("use sqlite", "", 1, 3),)),
            SummarySection("Next Steps", (SummaryItem("write tests (soon)", "", 2, 2, status="done"),)),
        )
    )
    before = Summary((SummarySection("Decisions Made", (), (Folded("omitted-003", 2), Folded(PENDING, 1))),))
    text = folded_text(gone, 4, before)
    assert text.splitlines() == [
        "Items folded out of the summary in compaction 4, to keep it within its size.",
        "",
        "## Decisions Made",
        "- use sqlite (cycles 1–3)",
        "",
        "## Next Steps",
        "- write tests (soon) [done] (cycle 2)",
        "",
        "Folded out earlier: omitted-003",
    ]
    assert read_folded(text) == ("use sqlite", "write tests (soon)")


def test_ids_of_earlier_cycles_stay_and_the_count_grows() -> None:
    first = named(fit_tokens(made(1), 200, lambda t: len(t) // 4).summary, "omitted-001")
    second = fit_tokens(fuse(first, made(2), cycle=2), 200, lambda t: len(t) // 4)
    view = render_summary(named(second.summary, "omitted-002"))
    [line] = [line for line in view.splitlines() if "ReadOmittedContent" in line]
    assert line.endswith("ReadOmittedContent omitted-002, omitted-001")
    shown = sum("changed" in line for line in view.splitlines())
    assert line.startswith(f"- … {80 - shown} earlier items")


def test_the_ids_do_not_grow_with_the_number_of_compactions() -> None:
    """I16: the oldest ids are named by the stored texts after them; no item is uncounted."""
    summary = Summary((SummarySection("Findings", ()),))
    gone = Summary((SummarySection("Findings", (SummaryItem("x"),)),))
    for n in range(1, 30):
        summary = named(in_place(summary, gone), f"omitted-{n:03d}")
    assert len(summary.sections[0].folded) == MOST_IDS
    assert sum(f.count for f in summary.sections[0].folded) == 29
    assert summary.sections[0].folded[-1].omission_id == "omitted-029"


def test_in_little_room_one_line_names_all_ids() -> None:
    """M12, rung e: the ids of five sections would take half of a summary of a hundred tokens."""
    sections = tuple(
        SummarySection(title, tuple(SummaryItem(f"{title} {n}") for n in range(5)), (Folded(f"omitted-00{k}", 2),))
        for k, title in enumerate(SECTIONS, 1)
    )
    fitted = fit_tokens(Summary(sections), 100, lambda text: -(-len(text) // 4))
    view = render_summary(named(fitted.summary, "omitted-009"))
    assert len(view) <= 400
    [line] = [line for line in view.splitlines() if "ReadOmittedContent" in line]
    gone = len(items_of(fitted.folded))
    assert line == f"- … {gone + 10} earlier items → ReadOmittedContent omitted-009, omitted-005, omitted-004"
    assert [f.omission_id for s in fitted.summary.sections for f in s.folded] == [
        *(f"omitted-00{k}" for k in range(1, 6)),
        PENDING,
    ]


def test_only_what_stood_in_the_view_is_counted_there() -> None:
    """Superseded items are stored too, but nobody misses them in the view."""
    gone = Summary((SummarySection("Findings", (SummaryItem("old", status="superseded"),)),))
    summary = named(in_place(Summary((SummarySection("Findings", ()),)), gone), "omitted-001")
    assert render_summary(summary) == "## Findings\nnone"
    assert summary.sections[0].folded == (Folded("omitted-001", 0),)


def test_a_section_that_left_altogether_leaves_its_id() -> None:
    """P4: a rewritten summary may drop a whole section."""
    gone = Summary((SummarySection("Risks", (SummaryItem("it may rain"),)),))
    view = render_summary(named(in_place(Summary((SummarySection("Findings", ()),)), gone), "omitted-001"))
    assert view == "## Findings\nnone\n\n## Risks\n- … 1 earlier item → ReadOmittedContent omitted-001"


def test_what_could_not_be_stored_is_not_promised() -> None:
    gone = Summary((SummarySection("Findings", (SummaryItem("x"),)),))
    summary = named(in_place(Summary((SummarySection("Findings", ()),)), gone), "")
    assert summary.sections[0].folded == ()


def test_what_still_stands_is_not_stored_as_gone() -> None:
    kept = Summary((SummarySection("Findings", (SummaryItem("It grew."),)),))
    part = Summary((SummarySection("findings", (SummaryItem("it grew"), SummaryItem("it fell"))),))
    assert [i.text for i in items_of(joined(kept, part, part))] == ["it fell"]


def test_a_model_that_repeats_the_line_adds_no_item() -> None:
    text = "## Findings\n- it grew\n- … 3 earlier items → ReadOmittedContent omitted-012, omitted-003"
    assert [i.text for i in items_of(parse_summary(text, cycle=1, sections=("Findings",)))] == ["it grew"]


def test_the_log_keeps_the_ids_and_the_view_knows_they_are_elsewhere() -> None:
    """I6: a summary written by an earlier version has none."""
    summary = named(fit_tokens(made(1), 200, lambda t: len(t) // 4).summary, "omitted-007")
    entry = CompactionCommitted(1, "manual", "", summary, "model", 9, 2, 900, 90, 1.0)
    kind, payload = encode(entry)
    assert decode(kind, payload) == entry
    conversation = Conversation()
    conversation.apply(entry)
    assert conversation.replaced_ids() == frozenset({"omitted-007"})
    for section in payload["summary"]["sections"]:
        del section["folded"]
    old = decode(kind, payload)
    assert old == replace(entry, summary=named(replace_ids(summary), ""))


def replace_ids(summary: Summary) -> Summary:
    return Summary(tuple(replace(s, folded=()) for s in summary.sections))


def test_the_diff_says_under_which_id_an_item_can_be_read() -> None:
    """P18, case 113."""
    earlier = made(1, 3)
    gone = Summary((SummarySection("Files Modified", earlier.sections[1].items[2:]),))
    later = named(in_place(made(1, 2), gone), "omitted-004")
    [change] = [c for c in item_changes(earlier, later, 2) if c.change not in ("new", "carried")]
    assert (change.change, change.by, change.item.text) == ("folded", "omitted-004", "src/f1_2.py: changed")
