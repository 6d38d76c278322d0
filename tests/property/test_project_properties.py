"""The project context under any change: updates add up, blocks come off, prefixes hold (L52, L53, L56–L65, I7)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.cut import cut_candidates
from marextui.context.entries import (
    CompactionCommitted,
    CompactionUndone,
    ContextUpdated,
    MessageAdded,
    ProjectHidden,
    ProjectSnapshotTaken,
    ReasoningDropped,
    Summary,
)
from marextui.context.entry_codec import decode, encode
from marextui.context.fold import Conversation, fold
from marextui.context.marks import CONTEXT_UPDATE_CLOSE, CONTEXT_UPDATE_OPEN, PROJECT_CLOSE
from marextui.context.messages import ImagePart, Message, TextPart, canonical_json, to_wire
from marextui.context.project import Keyed, Page, ProjectSources, ProjectState, Tracker, project_state
from marextui.context.project_block import frozen_block, headed, live_block, prefixed
from marextui.context.project_decision import Moment, decide
from marextui.context.project_delta import applied, delta_between, update_block, without_update
from marextui.context.validate import strict_violations

slugs = st.sampled_from(["a", "b", "ci", "db", "weight", "x-1"])
words = st.text(max_size=40) | st.sampled_from(
    ["</context_update>", "</project_context>", CONTEXT_UPDATE_OPEN, "](a.md)"]
)
pages = st.lists(st.builds(Page, slugs, words, words), max_size=6, unique_by=lambda p: p.name).map(tuple)
trackers = st.lists(st.builds(Tracker, slugs, words, words, words), max_size=6).map(tuple)
sources = st.builds(
    ProjectSources,
    words,
    words,
    pages,
    trackers,
    st.lists(st.tuples(st.just("AGENTS.md"), words), max_size=2).map(tuple),
)
days = st.sampled_from(["2026-10-01", "2026-10-02"])
states = st.builds(lambda s, d: project_state(s, None, day=d), sources, days)
ordered = st.builds(
    lambda s, order: replace(s, pages=tuple(sorted(s.pages, key=lambda k: order.index(k.key[0])))),
    states,
    st.permutations("abcdwx"),
)


@given(states | ordered, states | ordered)
def test_an_announced_delta_makes_the_state_it_was_taken_from(a: ProjectState, b: ProjectState) -> None:
    """L53, L56–L58."""
    delta = delta_between(a, b)
    assert applied(delta, a) == b
    assert applied(delta_between(b, b), b) == b
    if not delta.tells:
        assert replace(a, pages=b.pages) == b


@given(states, states, st.integers(0, 40_000))
def test_a_block_has_one_beginning_and_one_end(a: ProjectState, b: ProjectState, window: int) -> None:
    """L53: no file can close a block of ours or open another."""
    update = update_block(delta_between(a, b), a, "now")
    assert update.count(CONTEXT_UPDATE_CLOSE) == 1
    assert update.count(CONTEXT_UPDATE_OPEN) == 1
    for block in (live_block(b, window), frozen_block(b, window, "/x")):
        assert block.count(PROJECT_CLOSE) == (1 if block else 0)


contents = st.text(max_size=60) | st.lists(
    st.builds(TextPart, st.text(max_size=20)) | st.just(ImagePart("data:x")), max_size=3
).map(tuple)


@given(contents, states, states)
def test_taking_a_block_away_restores_the_message(content, a: ProjectState, b: ProjectState) -> None:
    """L65."""
    block = update_block(delta_between(a, b), a, "now")
    assert without_update(prefixed(content, block)) == content
    twice = prefixed(prefixed(content, block), block)
    assert without_update(without_update(twice)) == content


@given(states, states)
def test_decisions_survive_the_disk(a: ProjectState, b: ProjectState) -> None:
    """L59."""
    delta = delta_between(a, b)
    taken = ProjectSnapshotTaken(1, "why", frozen_block(a, None, "/x"), a, (("the tools", "12"),))
    conversation = fold([decode(*encode(taken))])
    assert conversation.project.snapshot == taken
    assert applied(delta, conversation.project.announced) == b


def sent(conversation: Conversation) -> str:
    """The messages of a request as they are written, after the system message."""
    wire = [to_wire(m) for m in headed(conversation.history(), conversation.project.block)]
    return canonical_json(wire)[1:-1]


@given(st.lists(states, min_size=2, max_size=10))
def test_every_request_begins_with_the_one_before_unless_a_copy_is_taken(steps: list[ProjectState]) -> None:
    """L52, I7: ten turns with changes in between; what is announced adds up to what is on disk."""
    conversation = Conversation()
    before = ""
    for n, live in enumerate(steps, 1):
        asked = Message(f"u{n}", "user", f"question {n}", turn=n)
        conversation.apply(MessageAdded(asked))
        moment = Moment(
            n, live, frozen_block(live, None, "/x"), (("the tools", "1"),), on=True, carrier=asked.id, at=f"{n}"
        )
        anew = False
        for entry in decide(conversation.project, moment):
            conversation.apply(entry)
            anew = anew or isinstance(entry, ProjectSnapshotTaken)
        assert not delta_between(conversation.project.announced, live).tells
        now = sent(conversation)
        assert anew or now.startswith(before)
        if anew:
            assert CONTEXT_UPDATE_CLOSE not in now
        assert sent(fold([*_replayed(conversation)])) == now
        before = now
        conversation.apply(MessageAdded(Message(f"a{n}", "assistant", f"answer {n}", turn=n)))


def _replayed(conversation: Conversation):
    """What of the log makes this conversation: messages, the copy in force, its updates."""
    yield from map(MessageAdded, conversation.messages)
    view = conversation.project
    assert view.snapshot is not None
    yield view.snapshot
    state = view.snapshot.state
    for message_id, text in view.updates:
        yield ContextUpdated(0, message_id, text, delta_between(state, state))


def test_a_key_is_a_file_or_a_slug() -> None:
    """L56, L57: what the other tests rely on."""
    found = project_state(ProjectSources(pages=(Page("a", "A", ""),), trackers=(Tracker("w", "1"),)), None)
    assert found.pages == (Keyed("a.md", "[A](a.md)"),)
    assert found.trackers == (Keyed("w", "w: 1"),)


steps = st.lists(
    st.tuples(states, st.sampled_from(["", "", "", "compact", "undo", "reduce", "hide", "off", "restart"])), max_size=9
)


@given(steps)
@settings(max_examples=150)
def test_whatever_happens_the_view_is_valid_and_says_what_holds(walk: list[tuple[ProjectState, str]]) -> None:
    """L53, L61, L62, L68, L69, I1, I7: compactions, undos, reductions, models without tools, the key off, restarts.

    After each decision a model that reads everything in the view knows what is on disk, or is told nothing at all; and
    what was sent before is sent again unless one of these happened.
    """
    conversation = Conversation()
    before = ""
    for n, (live, what) in enumerate(walk, 1):
        if what == "compact":
            _compact(conversation)
        elif what == "undo" and conversation.compactions:
            conversation.apply(CompactionUndone(conversation.compactions[-1].cycle))
        elif what == "reduce":
            conversation.apply(ReasoningDropped(n, f"u{n}"))
        asked = Message(f"u{n}", "user", f"question {n}", turn=n)
        conversation.apply(MessageAdded(asked))
        moment = Moment(
            n,
            live,
            frozen_block(live, None, "/x"),
            (("the tools", "1"),),
            on=what != "off",
            told=what != "hide",
            carrier=asked.id,
            at=f"{n}",
            restarted=what == "restart",
        )
        taken = what in ("compact", "undo", "hide", "off")
        for entry in decide(conversation.project, moment):
            conversation.apply(decode(*encode(entry)))
            taken = taken or isinstance(entry, ProjectSnapshotTaken | ProjectHidden)
        view, history = conversation.project, conversation.history()
        assert strict_violations(history, with_system=False) == ()
        shown = "".join(m.text for m in history)
        if what in ("hide", "off"):
            assert view.block == ""
            assert CONTEXT_UPDATE_OPEN not in shown
        else:
            assert not delta_between(view.announced, live).tells
            assert view.stale == ""
            assert shown.count(CONTEXT_UPDATE_OPEN) == len([i for i, _ in view.updates if i in _ids(history)])
        now = sent(conversation)
        assert taken or now.startswith(before)
        before = now
        conversation.apply(MessageAdded(Message(f"a{n}", "assistant", f"answer {n}", turn=n)))


def _ids(history: tuple[Message, ...]) -> set[str]:
    return {m.id for m in history}


def _compact(conversation: Conversation) -> None:
    candidates = cut_candidates(conversation.kept())
    if candidates:
        cut = conversation.kept()[candidates[-1]].id
        cycle = conversation.cycle + 1
        conversation.apply(CompactionCommitted(cycle, "manual", cut, Summary(()), "offline", 1, 1, 2, 1, 0.0))
