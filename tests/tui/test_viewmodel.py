"""The view-model: a fold of events and of log pages, without Textual."""

from __future__ import annotations

import pytest

from marextui.context.entries import MessageAdded, NoticeLogged, OmissionRef, OutputsOmitted, Record, TurnClosed
from marextui.context.messages import Message, ToolCall
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.tui.items import (
    AssistantItem,
    CompactionItem,
    Item,
    NoticeItem,
    ReductionItem,
    TextBuffer,
    ToolItem,
    TurnItem,
    UserItem,
    ordered_sections,
    tool_title,
)
from marextui.tui.reductions import headline
from marextui.tui.viewmodel import ViewModel
from tests.tui.scenes import ANSWER, compaction, tool_turn, usage


def folded(*events: ev.Event) -> ViewModel:
    model = ViewModel()
    for event in events:
        model.apply(event)
    return model


def kinds(model: ViewModel) -> list[type[Item]]:
    return [type(i) for i in model.items]


def test_a_turn_with_tools_reads_in_order() -> None:
    model = folded(*tool_turn())
    assert kinds(model) == [UserItem, AssistantItem, ToolItem, ToolItem, AssistantItem, TurnItem]
    read, bash, answer = model.items[2:5]
    assert isinstance(read, ToolItem)
    assert (read.state, read.omission_id, read.summary) == ("done", "om-7f3a", "120 lines")
    assert isinstance(bash, ToolItem)
    assert (bash.state, bash.source) == ("error", "..F\n1 failed")
    assert answer.source == ANSWER


def test_the_same_stream_gives_the_same_screen() -> None:
    one, two = folded(*tool_turn()), folded(*tool_turn())
    assert [(type(i), i.key, i.source, i.version) for i in one.items] == [
        (type(i), i.key, i.source, i.version) for i in two.items
    ]


def test_streamed_text_becomes_the_logged_message_not_a_second_one() -> None:
    model = folded(ev.TextStreamed("m", "Hel"), ev.TextStreamed("m", "lo"))
    item = model.items[0]
    assert isinstance(item, AssistantItem)
    assert item.streaming
    model.apply(ev.MessageAppended(Message("m", "assistant", "Hello!", origin="model"), 1))
    assert len(model.items) == 1
    assert not item.streaming
    assert item.source == "Hello!"


def test_a_dropped_stream_leaves_nothing() -> None:
    model = folded(ev.TextStreamed("m", "Hel"), ev.StreamDropped("m"))
    assert model.items == []
    assert model.get("m") is None


def test_what_was_thought_before_an_interrupt_stays_to_be_read() -> None:
    model = folded(
        ev.MessageAppended(Message("u", "user", "Go on", origin="user"), 1),
        ev.ReasoningStreamed("m", "They want more."),
        ev.TextStreamed("m", "\n"),
        ev.StreamDropped("m"),
        ev.TurnFinished(1, "interrupted", usage()),
    )
    _, thought, turn = model.items
    assert isinstance(thought, AssistantItem)
    assert isinstance(turn, TurnItem)
    assert (thought.source, model.last_answer()) == ("They want more.", "")
    assert (thought.streaming, thought.stopped) == (False, True)


def test_an_interrupted_turn_says_so_everywhere() -> None:
    model = folded(
        ev.TextStreamed("m", "Half an ans"),
        ev.ToolStarted("c", "Bash", "{}", "Bash sleep"),
        ev.TurnFinished(1, "interrupted", usage()),
    )
    answer, tool, turn = model.items
    assert isinstance(answer, AssistantItem)
    assert isinstance(tool, ToolItem)
    assert isinstance(turn, TurnItem)
    assert (answer.streaming, answer.stopped, tool.state, turn.end) == (False, True, "stopped", "interrupted")


def test_a_compaction_card_goes_from_running_to_done_in_place() -> None:
    model = folded(
        ev.CompactionStarted(1, "threshold", "u-9", 48, 12_340),
        ev.Notice("info", "between"),
        ev.CompactionFinished(compaction()),
    )
    assert kinds(model) == [CompactionItem, NoticeItem]
    card = model.items[0]
    assert isinstance(card, CompactionItem)
    assert card.state == "done"
    assert card.source.startswith("## Files Modified")


@pytest.mark.parametrize(("skipped", "state"), [(True, "skipped"), (False, "failed")])
def test_a_failed_compaction_keeps_its_reason(skipped: bool, state: str) -> None:
    model = folded(ev.CompactionFailed("manual", "nothing to compact yet", skipped))
    card = model.items[0]
    assert isinstance(card, CompactionItem)
    assert (card.state, card.reason) == (state, "nothing to compact yet")


def test_sections_that_people_check_come_first_and_empty_ones_not_at_all() -> None:
    titles = [s.title for s in ordered_sections(compaction().summary)]
    assert titles == ["Files Modified", "Decisions Made", "Intent"]


def test_replaced_outputs_are_marked_on_their_cards_and_told() -> None:
    model = folded(*tool_turn())
    model.apply(ev.OutputsReplaced(2, (OmissionRef("t-1", -1, "om-7f3a", 1900),), 480))
    card = model.get("call-1")
    assert isinstance(card, ToolItem)
    assert card.omitted
    told = model.items[-1]
    assert isinstance(told, ReductionItem)
    assert headline(told) == "1 old output was put aside"
    assert (told.freed, [(r.omission_id, r.title) for r in told.rows]) == (480, [("om-7f3a", "Read src/parse.py")])


def test_an_error_carries_its_hint_and_action() -> None:
    model = folded(ev.ModelFailed("tiny", "it died", "Look at the log.", retry=True), ev.Notice("warning", "w"))
    failed = model.items[0]
    assert isinstance(failed, NoticeItem)
    assert (failed.level, failed.hint, failed.action) == ("error", "Look at the log.", "retry")


def page(*entries: object, first: int = 1, more: bool = False) -> HistoryPage:
    rows = tuple(
        Record(first + i, 0.0, MessageAdded(e) if isinstance(e, Message) else e)  # type: ignore[arg-type]
        for i, e in enumerate(entries)
    )
    return HistoryPage(rows, first, more)


CALL = Message("a1", "assistant", "", (ToolCall("c1", "Read", '{"path": "a.py"}'),), origin="model")
RESULT = Message("t1", "tool", "content", tool_call_id="c1", name="Read", origin="tool")


def test_older_pages_come_before_and_positions_stay() -> None:
    model = ViewModel()
    model.apply(ev.ConversationOpened("c", "t", True, 4))
    model.prepend(page(Message("u2", "user", "two"), Message("a2", "assistant", "2"), first=3, more=True))
    before = {item.key: position for position, item in model.positions()}
    model.prepend(page(Message("u1", "user", "one"), Message("a1", "assistant", "1")))
    after = {item.key: position for position, item in model.positions()}
    assert [i.key for i in model.items] == ["u1", "a1", "u2", "a2"]
    assert {k: after[k] for k in before} == before
    assert not model.more


def test_a_call_and_its_result_meet_across_a_page_boundary() -> None:
    model = ViewModel()
    model.prepend(page(RESULT, first=3, more=True))
    model.prepend(page(CALL, first=2))
    assert [i.key for i in model.items] == ["c1"]
    card = model.items[0]
    assert isinstance(card, ToolItem)
    assert (card.name, card.arguments, card.source, card.state) == ("Read", '{"path": "a.py"}', "content", "done")


def test_a_page_loaded_while_events_arrive_repeats_nothing() -> None:
    model = folded(ev.MessageAppended(Message("u1", "user", "hi"), 1))
    grown = model.prepend(page(Message("u1", "user", "hi")))
    assert grown == 0
    assert [i.key for i in model.items] == ["u1"]


def test_the_log_knows_turns_notices_and_omissions() -> None:
    model = ViewModel()
    model.prepend(
        page(
            CALL,
            RESULT,
            OutputsOmitted(2, (OmissionRef("t1", -1, "om-1", 900),)),
            NoticeLogged("error", "it broke"),
            TurnClosed(1, "error", None, 5, None, 2.0, "tiny"),
        )
    )
    assert kinds(model) == [ToolItem, ReductionItem, NoticeItem, TurnItem]
    card = model.items[0]
    assert isinstance(card, ToolItem)
    assert (card.omission_id, card.omitted) == ("om-1", True)


def test_synthetic_messages_are_not_shown() -> None:
    model = folded(
        ev.MessageAppended(Message("s", "user", "[summary]", origin="summary"), 1),
        ev.MessageAppended(Message("x", "system", "rules", origin="system"), 2),
    )
    assert model.items == []


def test_search_looks_at_everything_loaded_whatever_the_case() -> None:
    model = folded(*tool_turn())
    assert [model.at(p).key for p in model.find("PARSE")] == ["u-1", "call-1", "a-2"]
    assert [model.at(p).key for p in model.find("run its tests")] == ["a-1"]
    assert model.find("") == []


def test_opening_another_conversation_forgets_the_first_but_not_the_model() -> None:
    model = folded(ev.ModelReady("tiny", True, True, 8192, "x"), *tool_turn())
    changed = model.apply(ev.ConversationOpened("c2", "Other", False, 0))
    assert "reset" in changed
    assert model.items == []
    assert (model.title, model.status.model) == ("Other", "tiny")


def test_status_words_come_from_the_events() -> None:
    model = folded(ev.ModelLoading("tiny", "joining parts", 50, 200))
    assert (model.status.phase, model.status.detail) == ("loading", "tiny: joining parts 25 %")
    model.apply(ev.ModelReady("tiny", True, True, 8192, "x"))
    assert model.status.phase == "idle"
    model.apply(ev.PhaseChanged("prompt"))
    model.apply(ev.PromptProcessed(3_000, 1_000, 1_500))
    assert model.status.progress == ev.PromptProcessed(3_000, 1_000, 1_500)
    model.apply(ev.PhaseChanged("streaming"))
    assert model.status.progress is None


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("Read", '{"offset": 3, "path": "a.py"}', "Read a.py"),
        ("Bash", '{"command": "ls"}', "Bash ls"),
        ("Odd", "{not json", "Odd {not json"),
        ("None", "", "None"),
        ("List", "[1]", "List [1]"),
    ],
)
def test_titles_from_logged_calls(name: str, arguments: str, title: str) -> None:
    assert tool_title(name, arguments) == title


def test_a_text_buffer_joins_once() -> None:
    buffer = TextBuffer()
    assert not buffer
    buffer.add("a")
    buffer.add("b")
    assert str(buffer) == "ab"
    assert buffer
