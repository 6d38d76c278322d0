"""What one compaction changed, from the log alone (issue: kept / condensed / omitted / superseded)."""

from __future__ import annotations

from marextui.context.compaction_diff import compaction_diff, item_changes
from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    Entry,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    ShortenedRef,
    Summary,
    SummaryItem,
    SummarySection,
    TextsShortened,
)
from marextui.context.fates import fates, headline, totals
from marextui.context.fold import fold
from marextui.context.fusion import fuse
from marextui.context.messages import ImagePart, Message, TextPart, ToolCall


def one(message: Message) -> int:
    return 1


def summary(**sections: list[str]) -> Summary:
    return Summary(
        tuple(
            SummarySection(title.replace("_", " "), tuple(SummaryItem(t) for t in texts))
            for title, texts in sections.items()
        )
    )


def at_cycle(cycle: int, s: Summary) -> Summary:
    return Summary(
        tuple(
            SummarySection(x.title, tuple(SummaryItem(i.text, i.key, cycle, cycle) for i in x.items))
            for x in s.sections
        )
    )


def committed(cycle: int, cut: str, s: Summary | None = None) -> CompactionCommitted:
    return CompactionCommitted(cycle, "manual", cut, s or summary(), "m", 9, 3, 900, 300, 1.0)


def turn(n: int, output: str = "") -> list[Entry]:
    messages = [Message(f"u{n}", "user", f"question {n}", turn=n)]
    if output:
        call = ToolCall(f"c{n}", "Read", '{"path": "a.py"}')
        messages.append(Message(f"a{n}", "assistant", "", (call,), origin="model", turn=n))
        messages.append(Message(f"t{n}", "tool", output, tool_call_id=f"c{n}", name="Read", origin="tool", turn=n))
    messages.append(Message(f"z{n}", "assistant", f"answer {n}", origin="model", turn=n))
    return [MessageAdded(m) for m in messages]


def by_fate(entries: list[Entry], cycle: int) -> dict[str, list[str]]:
    diff = compaction_diff(entries, cycle, one)
    assert diff is not None
    found: dict[str, list[str]] = {}
    for row in diff.rows:
        found.setdefault(row.fate, []).append(row.message_id)
    return found


def test_every_message_has_its_fate() -> None:
    """Condensed and kept by the cut; stored outputs can be read back; the earlier summary is taken in."""
    log: list[Entry] = [*turn(1, "x" * 900), OutputStored(OmissionRef("t1", -1, "omitted-001", 900)), *turn(2)]
    log += [committed(1, "u2"), *turn(3), committed(2, "u3")]
    assert by_fate(log, 1) == {"condensed": ["u1", "a1", "z1"], "omitted": ["t1"], "kept": ["u2", "z2"]}
    assert by_fate(log, 2) == {
        "superseded": ["summary-1", "summary-1-ack"],
        "condensed": ["u2", "z2"],
        "kept": ["u3", "z3"],
    }


def test_what_stands_as_a_marker_before_and_after_is_omitted_not_kept() -> None:
    """Outputs, arguments and shortened texts alike: each with the id that reads it back."""
    log: list[Entry] = [*turn(1), *turn(2, "x" * 900)]
    log += [OutputsOmitted(3, (OmissionRef("t2", -1, "omitted-001", 900),))]
    log += [InputsOmitted(3, (InputRef("a2", 0, ("path",), "omitted-002", 900),))]
    log += [TextsShortened(3, (ShortenedRef("z2", -1, "omitted-003", 900, 5),))]
    log += [*turn(3), committed(1, "u2")]
    diff = compaction_diff(log, 1, one)
    assert diff is not None
    told = {r.message_id: (r.fate, r.omission_id) for r in diff.rows}
    assert told["t2"] == ("omitted", "omitted-001")
    assert told["a2"] == ("omitted", "omitted-002")
    assert told["z2"] == ("omitted", "omitted-003")
    assert told["u2"] == ("kept", "")


def test_a_cut_inside_a_turn_keeps_its_request() -> None:
    """B13: the repeated request is not condensed; a later cut in the same turn repeats it again."""
    log: list[Entry] = [*turn(1), *turn(2, "out")]
    more = [
        Message("a2b", "assistant", "", (ToolCall("c2b", "Read", "{}"),), origin="model", turn=2),
        Message("t2b", "tool", "two", tool_call_id="c2b", name="Read", origin="tool", turn=2),
    ]
    log += [committed(1, "a2"), *(MessageAdded(m) for m in more), committed(2, "a2b")]
    assert by_fate(log, 1) == {"condensed": ["u1", "z1"], "kept": ["u2", "a2", "t2", "z2"]}
    assert by_fate(log, 2)["kept"] == ["u2", "a2b", "t2b"]
    assert by_fate(log, 2)["condensed"] == ["a2", "t2", "z2"]


def test_an_undone_or_later_followed_compaction_can_still_be_looked_at() -> None:
    log: list[Entry] = [*turn(1), *turn(2), committed(1, "u2"), *turn(3), committed(2, "u3")]
    assert by_fate([*log, CompactionUndone(2)], 2) == by_fate(log, 2)
    diff = compaction_diff([*log, CompactionUndone(2)], 2, one)
    assert diff is not None
    assert diff.undone
    first = compaction_diff([*log, CompactionUndone(2)], 1, one)
    assert first is not None
    assert not first.undone
    assert compaction_diff(log, 3, one) is None


def test_items_say_what_became_of_them() -> None:
    """P10, P11: new, carried, superseded by whom, done, gone."""
    first = at_cycle(
        1,
        summary(
            Decisions_Made=["cache results in redis", "keep the old API"],
            Next_Steps=["measure the parser speed"],
            Current_State=["tests fail"],
        ),
    )
    second = at_cycle(
        2,
        summary(
            Decisions_Made=["cache results in memcached"],
            Next_Steps=["release it"],
            Current_State=["measured the parser speed: done"],
        ),
    )
    merged = fuse(first, second, cycle=2)
    changes = {c.item.text: (c.change, c.by) for c in item_changes(first, merged, 2)}
    assert changes["cache results in memcached"] == ("new", "")
    assert changes["keep the old API"] == ("carried", "")
    assert changes["cache results in redis"] == ("superseded", "cache results in memcached")
    assert changes["measure the parser speed"][0] == "done"
    assert changes["tests fail"][0] == "superseded"
    without = Summary(tuple(s for s in merged.sections if s.title != "Decisions Made"))
    gone = [c.item.text for c in item_changes(merged, without, 3) if c.change == "gone"]
    assert gone == ["keep the old API", "cache results in memcached"]


def test_what_was_superseded_earlier_is_not_told_again() -> None:
    first = at_cycle(1, summary(Decisions_Made=["cache results in redis"]))
    second = fuse(first, at_cycle(2, summary(Decisions_Made=["cache results in memcached"])), cycle=2)
    third = fuse(second, at_cycle(3, summary(Decisions_Made=["log to stderr"])), cycle=3)
    told = [(c.item.text, c.change) for c in item_changes(second, third, 3)]
    assert ("cache results in redis", "superseded") not in told
    assert ("cache results in memcached", "carried") in told


def test_without_an_earlier_summary_everything_is_new() -> None:
    first = at_cycle(1, summary(Decisions_Made=["a b"], Next_Steps=["c d"]))
    assert {c.change for c in item_changes(None, first, 1)} == {"new"}


def test_headlines_name_what_a_message_holds() -> None:
    call = ToolCall("c", "Read", '{"path":\n "a.py"}')
    assert headline(Message("m", "assistant", "", (call,))) == 'calls Read {"path": "a.py"}'
    assert headline(Message("m", "tool", "a\n\nb", name="Bash")) == "Bash: a b"
    assert headline(Message("m", "user", (TextPart("look"), ImagePart("data:,")))) == "[1 image] look"
    assert headline(Message("m", "user", "  ")) == "(empty)"
    assert len(headline(Message("m", "user", "x" * 5_000_000))) == 160


def test_totals_are_in_reading_order_and_only_of_fates_that_occur() -> None:
    state = fold([*turn(1), *turn(2)])
    assert totals(fates(state, 2, lambda m: 7)) == {"condensed": (2, 14), "kept": (2, 14)}
    assert totals(()) == {}
