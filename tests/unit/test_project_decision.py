"""When a copy of the project context is taken, announced to, hidden or given up (L53, L59–L63, L67–L69)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    ContextUpdated,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    ProjectHidden,
    ProjectSnapshotDropped,
    ProjectSnapshotTaken,
    ReasoningDropped,
    Summary,
)
from marextui.context.entry_codec import decode, encode
from marextui.context.fold import Conversation, fold
from marextui.context.messages import Message
from marextui.context.project import Keyed, ProjectState
from marextui.context.project_decision import FIRST, KEY_OFF, RESTART, THRESHOLD, Moment, basis_of, decide
from marextui.context.project_entries import ProjectView

EMPTY = ProjectState(day="2026-10-02")
ONE = replace(EMPTY, pages=(Keyed("a.md", "[A](a.md)"),))
TWO = replace(EMPTY, pages=(*ONE.pages, Keyed("b.md", "[B](b.md)")))
BASIS = basis_of({"the system prompt": "s", "the tools": "t", "the model": "m"})


def moment(live: ProjectState = EMPTY, **given) -> Moment:
    made = Moment(1, live, f"<block of {len(live.pages)}>", BASIS, on=True, carrier="u2", at="now")
    return replace(made, **given)


def taken(state: ProjectState = EMPTY, text: str = "<block of 0>") -> ProjectView:
    return ProjectView().after(ProjectSnapshotTaken(1, FIRST, text, state, BASIS))


def test_the_first_request_takes_a_copy_also_of_an_empty_project() -> None:
    """L60: the mark is the decision, not what the block holds."""
    [entry] = decide(ProjectView(), moment())
    assert isinstance(entry, ProjectSnapshotTaken)
    assert (entry.why, entry.text, entry.state) == (FIRST, "<block of 0>", EMPTY)


def test_the_first_page_of_an_empty_project_is_an_update() -> None:
    """L60."""
    view = taken()
    [entry] = decide(view, moment(ONE))
    assert isinstance(entry, ContextUpdated)
    assert entry.message_id == "u2"
    after = view.after(entry)
    assert (after.block, after.announced) == (view.block, ONE)


def test_only_what_came_since_the_last_update_is_announced() -> None:
    """L53: page A, then B; the second update speaks of B alone."""
    view = taken()
    view = view.after(decide(view, moment(ONE))[0])
    [second] = decide(view, moment(TWO, carrier="u3"))
    assert isinstance(second, ContextUpdated)
    assert "b.md" in second.text
    assert "a.md" not in second.text


def test_no_change_is_no_decision() -> None:
    """L53."""
    assert decide(taken(ONE), moment(ONE)) == ()


def test_without_a_message_to_carry_it_a_change_waits() -> None:
    """L53, edge: the state stays unmoved, so that it is announced later."""
    assert decide(taken(), moment(ONE, carrier="")) == ()


def test_a_message_is_given_one_update_only() -> None:
    """What was sent is not changed: a later change waits for the next message."""
    view = taken()
    view = view.after(decide(view, moment(ONE))[0])
    assert decide(view, moment(TWO)) == ()
    assert view.after(ContextUpdated(1, "u2", "<again>", decide(view, moment(TWO, carrier="u3"))[0].delta)) == view


@pytest.mark.parametrize("name", ["the system prompt", "the tools", "the model"])
def test_a_new_copy_is_taken_when_the_prompt_changes_anyway(name: str) -> None:
    """L61."""
    other = tuple((n, "other" if n == name else d) for n, d in BASIS)
    view = taken()
    view = view.after(decide(view, moment(ONE))[0])
    [entry] = decide(view, moment(ONE, basis=other, carrier=""))
    assert isinstance(entry, ProjectSnapshotTaken)
    assert entry.why == f"{name} changed"
    assert view.after(entry).updates == ()


@pytest.mark.parametrize("cause", ["compaction", "reduction"])
def test_a_rewritten_view_takes_a_new_copy_at_once(cause) -> None:
    """L61, L62: also in the middle of a turn, when no message carries an update."""
    view = taken().rewritten(cause)
    [entry] = decide(view, moment(ONE, carrier=""))
    assert isinstance(entry, ProjectSnapshotTaken)
    assert entry.state == ONE
    assert decide(view.after(entry), moment(ONE, carrier="")) == ()


def test_a_restart_takes_a_new_copy_when_there_is_something_to_take() -> None:
    """L61, L67; a copy that still says everything stays, and with it what a server has kept of the prompt."""
    view = taken()
    assert decide(view, moment(restarted=True)) == ()
    [entry] = decide(view, moment(ONE, restarted=True))
    assert entry.why == RESTART
    updated = view.after(decide(view, moment(ONE))[0])
    [entry] = decide(updated, moment(ONE, restarted=True))
    assert isinstance(entry, ProjectSnapshotTaken)


def test_updates_beyond_the_limit_become_a_new_copy() -> None:
    """L63: a copy of 4 000 tokens, updates of 600 and 500."""
    view = taken(text="x" * 16_000)
    first = replace(EMPTY, agents="a" * 2_300)
    view = view.after(decide(view, moment(first))[0])
    assert 570 < len(view.updates[0][1]) // 4 < 630
    second = replace(first, description="d" * 1_700)
    [entry] = decide(view, moment(second, carrier="u3"))
    assert isinstance(entry, ProjectSnapshotTaken)
    assert entry.why == THRESHOLD
    smaller = replace(first, description="d" * 1_200)
    assert isinstance(decide(view, moment(smaller, carrier="u3"))[0], ContextUpdated)


def test_the_key_taken_away_gives_everything_up() -> None:
    """L68."""
    view = taken().after(decide(taken(), moment(ONE))[0])
    [entry] = decide(view, moment(ONE, on=False))
    assert entry == ProjectSnapshotDropped(1, KEY_OFF)
    assert view.after(entry) == ProjectView()
    assert decide(ProjectView(), moment(ONE, on=False)) == ()


def test_where_nothing_of_the_project_is_told_it_is_hidden_and_comes_back_as_it_was() -> None:
    """L69: nothing is announced meanwhile, nothing is lost."""
    view = taken().after(decide(taken(), moment(ONE))[0])
    [entry] = decide(view, moment(TWO, told=False))
    hidden = view.after(entry)
    assert (hidden.block, hidden.heads, hidden.announced) == ("", {}, ONE)
    assert decide(hidden, moment(TWO, told=False)) == ()
    shown, update = decide(hidden, moment(TWO, carrier="u3"))
    assert shown == ProjectHidden(1, False)
    assert isinstance(update, ContextUpdated)
    assert hidden.after(shown) == view
    assert decide(ProjectView(), moment(told=False)) == ()


# -- in a conversation ------------------------------------------------------------------------------------------------

HI, YES, MORE = (
    Message("u1", "user", "hi", turn=1),
    Message("a1", "assistant", "yes", turn=1),
    Message("u2", "user", "more", turn=2),
)
COMPACTED = CompactionCommitted(1, "manual", "u2", Summary(()), "offline", 3, 3, 10, 5, 0.0)


def talked() -> Conversation:
    view = taken()
    return fold(
        [
            view.snapshot,
            MessageAdded(HI),
            MessageAdded(YES),
            MessageAdded(MORE),
            decide(view, moment(ONE))[0],
        ]
    )


def test_an_update_stands_in_the_view_and_not_in_the_message() -> None:
    """L53, L66: what the log holds is what the person wrote; compactions see that too."""
    c = talked()
    assert c.history()[-1].text.startswith('<context_update from="loki"> now\n')
    assert c.history()[-1].text.endswith("</context_update>\n\nmore")
    assert c.message("u2") == MORE
    assert c.shown()[-1] == MORE
    assert c.history()[:-1] == (HI, YES)


def test_a_compaction_takes_the_updates_away_and_an_undo_brings_all_back() -> None:
    """L61; `/compact undo` sends what was sent before, byte for byte."""
    c = talked()
    before, project = c.history(), c.project
    c.apply(COMPACTED)
    assert "context_update" not in "".join(m.text for m in c.history())
    assert c.project.stale == "compaction"
    c.apply(ProjectSnapshotTaken(2, "a compaction", "<new>", TWO, BASIS))
    assert c.without(1).history() == before
    c.apply(CompactionUndone(1))
    assert (c.history(), c.project) == (before, project)


@pytest.mark.parametrize(
    ("entry", "stale"),
    [
        (OutputsOmitted(2, (OmissionRef("u1", -1, "omitted-001", 900),), "age"), ""),
        (OutputsOmitted(2, (OmissionRef("u1", -1, "omitted-001", 900),), "images"), ""),
        (OutputsOmitted(2, (OmissionRef("u1", -1, "omitted-001", 900),), "room"), "reduction"),
        (ReasoningDropped(2, "u2"), "reduction"),
    ],
)
def test_what_merely_grew_old_is_no_reason_for_a_new_copy(entry, stale: str) -> None:
    """L61 meets B7: the omission step touches the turn that has just become old, and the copy stands before it."""
    c = talked()
    c.apply(entry)
    assert c.project.stale == stale


def test_the_decisions_survive_the_disk() -> None:
    """L59: the announced state is there after a restart too."""
    view = taken(TWO)
    update = decide(view, moment(ONE))[0]
    for entry in (view.snapshot, update, ProjectHidden(3, True), ProjectSnapshotDropped(4, "why")):
        assert decode(*encode(entry)) == entry
    restored = fold([decode(*encode(e)) for e in (view.snapshot, update)])
    assert restored.project.announced == ONE


def test_a_conversation_without_the_entries_has_no_copy() -> None:
    """L67."""
    assert fold([MessageAdded(HI)]).project == ProjectView()
