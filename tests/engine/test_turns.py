"""Turns over a scripted model: what is logged, what is sent, what is measured (M1, M2, M13, M14, M38, M39, I1)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import MessageAdded, TurnClosed, TurnOpened, UsageMeasured
from marextui.engine.events import (
    GaugeChanged,
    MessageAppended,
    Notice,
    PermissionAsked,
    PermissionSettled,
    QueueChanged,
    StepRefused,
    StepStarted,
    TextStreamed,
    ToolFinished,
    ToolOutputStreamed,
    ToolStarted,
    TurnFinished,
)
from marextui.engine.permissions import Decision
from marextui.engine.policy import Policy
from marextui.models.types import Accepted, Finished, ModelError, ReasoningChunk, TextChunk, ToolCallChunk, Usage
from marextui.tools.types import PermissionNeed, ToolResult
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say

KNOWN = Window(32_768, "discovery")


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", KNOWN)
        rig = await Rig(tmp_path, **kw).start()
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def test_a_turn_is_logged_streamed_and_closed(rig) -> None:
    r = await rig(chat=ScriptedChat([say("Hello there.", Usage(100, 5, 40))]))
    done = await r.ask("Hi")
    assert done.end == "done"
    assert "".join(e.text for e in r.of(TextStreamed)) == "Hello there."
    kinds = [type(x.entry) for x in await r.records()]
    assert kinds == [TurnOpened, MessageAdded, MessageAdded, UsageMeasured, TurnClosed]
    assert (done.usage.inp, done.usage.out, done.usage.cache_read, done.usage.cost) == (100, 5, 40, "local")
    [line] = await r.usage_lines()
    assert (line["turn"], line["inp"], line["out"], line["kind"]) == (1, 100, 5, "main")
    r.check_log()


async def test_unknown_usage_is_unknown_and_not_zero(rig) -> None:
    """M38, M44: absent is not 0."""
    r = await rig(chat=ScriptedChat([say("Hello")]))
    done = await r.ask("Hi")
    assert (done.usage.inp, done.usage.out, done.usage.cache_read) == (None, None, None)
    [line] = await r.usage_lines()
    assert line["inp"] is None
    assert line["estimated"] is True


async def test_the_system_message_is_first_and_alone_in_every_request(rig) -> None:
    """M14."""
    r = await rig(chat=ScriptedChat([say("a"), say("b")]))
    await r.ask("one")
    await r.ask("two")
    for request in r.chat.turns:
        roles = [m["role"] for m in request.messages]
        assert roles[0] == "system"
        assert roles.count("system") == 1


async def test_the_budget_is_computed_before_every_call_of_a_tool_loop(rig) -> None:
    """M2: three steps, three computations, each with the then-current history."""
    chat = ScriptedChat([call(("Look", "{}")), call(("Look", "{}"), ids=["second"]), say("done")])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "x" * 400}))
    await r.ask("look twice")
    steps = r.of(StepStarted)
    assert [s.step for s in steps] == [1, 2, 3]
    assert steps[0].used < steps[1].used < steps[2].used


async def test_rules_that_grow_between_turns_lower_the_budget(rig) -> None:
    """M1, M31: MAREX.md appears between two turns and the next request carries it; then it is gone again."""
    r = await rig(chat=ScriptedChat([say("a"), say("b"), say("c")]))
    await r.ask("one")
    rules = r.folder / "project" / "MAREX.md"
    rules.write_text("Always use tabs. " * 100)
    await r.ask("two")
    rules.unlink()
    await r.ask("three")
    budgets = [s.budget for s in r.of(StepStarted)]
    assert budgets[1] < budgets[0] == budgets[2]
    assert "Always use tabs." in texts(r.chat.turns[1])[0]
    assert "Always use tabs." not in texts(r.chat.turns[2])[0]


async def test_the_gauge_is_right_before_the_first_message(rig) -> None:
    """Case 43: an empty session already holds system prompt and tools."""
    r = await rig()
    await r.until(lambda e: isinstance(e, GaugeChanged) and e.gauge.window == 32_768)
    gauge = r.of(GaugeChanged)[-1].gauge
    assert gauge.system > 0
    assert gauge.tools > 0
    assert gauge.used == 0
    assert gauge.budget == 32_768 - 4096 - gauge.system_part


async def test_gauge_segments_sum_to_the_history(rig) -> None:
    """I8."""
    chat = ScriptedChat([call(("Look", "{}")), say("done", Usage(5000, 10))])
    r = await rig(chat=chat, tools=ScriptedTools({"Look": "y" * 500}))
    await r.ask("look")
    for event in r.of(GaugeChanged):
        g = event.gauge
        assert g.summary + g.conversation + g.outputs == g.used
    last = r.of(GaugeChanged)[-1].gauge
    assert last.used == 5000 + 10 - last.system_part
    assert not last.estimated


async def test_tool_results_follow_their_calls_in_order(rig) -> None:
    chat = ScriptedChat([call(("A", '{"x":1}'), ("B", "{}"), text="Let me look."), say("done")])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "from a", "B": ToolResult("broken", is_error=True)}))
    await r.ask("go")
    assert [m.role for m in r.history()] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [e.is_error for e in r.of(ToolFinished)] == [False, True]
    assert [e.title for e in r.of(ToolStarted)] == ['A {"x":1}', "B {}"]
    assert r.of(ToolOutputStreamed)[0].text == "from a"
    [line] = await r.usage_lines()
    assert (line["tools"], line["tool_errors"]) == (2, 1)
    r.check_log()


async def test_a_call_id_the_view_already_uses_is_replaced(rig) -> None:
    """Providers that number calls anew each time must not break the pairing (I1)."""
    chat = ScriptedChat([call(("A", "{}"), ids=["c1"]), call(("A", "{}"), ids=["c1"]), say("done")])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "r"}))
    await r.ask("go")
    ids = [c.id for m in r.history() for c in m.tool_calls]
    assert len(ids) == len(set(ids)) == 2
    r.check_log()


async def test_an_empty_reply_leaves_no_message(rig) -> None:
    r = await rig(chat=ScriptedChat([[Accepted(), TextChunk("  "), Finished("stop", None)], say("now")]))
    await r.ask("hello?")
    await r.ask("again")
    assert [m.role for m in r.history()] == ["user", "assistant"]
    assert "hello?" in r.history()[0].text
    r.check_log()


async def test_reasoning_is_kept_in_the_log_but_not_sent_again(rig) -> None:
    r = await rig(chat=ScriptedChat([[ReasoningChunk("hmm"), TextChunk("yes"), Finished("stop", None)], say("ok")]))
    await r.ask("q")
    await r.ask("q2")
    assert r.history()[1].reasoning == "hmm"
    assert not any("hmm" in t for t in texts(r.chat.turns[1]))


async def test_tool_rounds_end_with_a_call_free_request(rig) -> None:
    """At most 3 rounds on the embedded engine: the last request keeps the tools but may not call."""
    chat = ScriptedChat([call(("A", "{}"), ids=[f"i{n}"]) for n in range(3)] + [say("I stop here.")])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "r"}), policy=Policy(max_tool_rounds=3))
    done = await r.ask("loop")
    assert done.end == "done"
    last = r.chat.turns[-1]
    assert last.extra["tool_choice"] == "none"
    assert last.tools == r.chat.turns[0].tools


async def test_no_tools_are_sent_to_a_model_that_cannot_call(rig) -> None:
    r = await rig(chat=ScriptedChat([say("hi")]))
    r.hub.connection.supports_tools = False
    await r.ask("hello")
    assert r.chat.turns[0].tools == ()


async def test_messages_typed_while_busy_are_sent_one_by_one(rig) -> None:
    """Case 36: three separate messages, in order."""
    r = await rig(chat=ScriptedChat([say("1"), say("2"), say("3")]))
    for text in ("one", "two", "three"):
        r.engine.submit(text)
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 3)
    assert [m.text for m in r.history() if m.role == "user"] == ["one", "two", "three"]


async def test_queued_prompts_can_be_edited_and_dropped(rig) -> None:
    r = await rig(chat=ScriptedChat([say("1"), say("2")]))
    for text in ("one", "two", "three"):
        r.engine.submit(text)
    queue = r.of(QueueChanged)
    assert queue == []  # nothing runs yet: the first is taken at once
    await r.until(lambda e: isinstance(e, QueueChanged) and len(e.items) == 2)
    two, three = r.of(QueueChanged)[-1].items
    assert r.engine.edit_queued(two.id, "second")
    dropped = r.engine.drop_queued(three.id)
    assert dropped is not None
    assert dropped.text == "three"
    assert not r.engine.edit_queued("gone", "x")
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 2)
    await r.idle()
    assert [m.text for m in r.history() if m.role == "user"] == ["one", "second"]


async def test_blank_prompts_are_not_sent(rig) -> None:
    r = await rig()
    r.engine.submit("  \n ")
    await r.idle()
    assert r.chat.requests == []


NEED = PermissionNeed("bash", "Run a command", "rm -rf x", "rm -rf x")


@pytest.mark.parametrize(
    ("answer", "ran", "told"),
    [("once", 1, "result of Bash"), ("deny", 0, "Reason: too dangerous")],
)
async def test_permission_once_and_denied(rig, answer: str, ran: int, told: str) -> None:
    chat = ScriptedChat([call(("Bash", "{}")), say("done")])
    r = await rig(chat=chat, tools=ScriptedTools(needs={"Bash": NEED}))
    r.engine.submit("clean up")
    asked = await r.until(lambda e: isinstance(e, PermissionAsked))
    assert isinstance(asked, PermissionAsked)
    r.engine.answer_permission(asked.request_id, answer, "too dangerous")
    await r.until(lambda e: isinstance(e, TurnFinished))
    assert len(r.tools.ran) == ran
    assert told in r.history()[2].text
    assert r.of(PermissionSettled)[0].answer == answer
    r.check_log()


async def test_permission_for_the_conversation_is_asked_once(rig) -> None:
    other = replace(NEED, scope="rm y")
    chat = ScriptedChat([call(("Bash", "{}"), ids=["1"]), call(("Bash", "{}"), ids=["2"]), say("done")])
    r = await rig(chat=chat, tools=ScriptedTools(needs={"Bash": NEED}))
    r.engine.submit("clean up twice")
    asked = await r.until(lambda e: isinstance(e, PermissionAsked))
    r.engine.answer_permission(asked.request_id, "conversation")
    await r.until(lambda e: isinstance(e, TurnFinished))
    assert len(r.tools.ran) == 2
    assert len(r.of(PermissionAsked)) == 1
    assert (other.kind, other.scope) not in r.engine.state.permissions.granted


async def test_nobody_to_ask_denies_what_was_not_allowed(rig) -> None:
    chat = ScriptedChat([call(("Bash", "{}"), ("Edit", "{}")), say("done")])
    tools = ScriptedTools(needs={"Bash": NEED, "Edit": replace(NEED, kind="edit")})
    r = await rig(chat=chat, tools=tools, unattended={"edit": Decision("once")})
    await r.ask("do it")
    assert [name for name, _ in tools.ran] == ["Edit"]
    assert "nobody can be asked" in r.history()[2].text


async def test_a_model_error_ends_the_turn_and_retry_resumes_it(rig) -> None:
    """The prompt is not sent twice; what had arrived is kept."""
    chat = ScriptedChat([[TextChunk("Half an ans"), ModelError("network", "The connection broke.")], say("whole")])
    r = await rig(chat=chat)
    done = await r.ask("question")
    assert done.end == "error"
    notice = [n for n in r.of(Notice) if n.level == "error"][-1]
    assert (notice.text, notice.action) == ("The connection broke.", "retry")
    assert r.history()[-1].text == "Half an ans"
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    users = [m for m in r.history() if m.role == "user" and m.origin == "user"]
    assert len(users) == 1
    r.check_log()


async def test_a_dead_model_is_started_anew_on_retry(rig) -> None:
    chat = ScriptedChat([[ModelError("server", "The engine died.")], say("back")])
    r = await rig(chat=chat)
    await r.ask("q")
    r.hub.connection.alive = False
    before = r.hub.connects
    mark = len(r.events)
    r.engine.retry()
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    assert done.end == "done"
    assert r.hub.connects == before + 1


async def test_without_any_model_the_message_is_kept(rig) -> None:
    r = await rig()
    r.hub.nothing = True
    await r.engine.state.control.drop()
    r.engine.state.control.choice = None
    done = await r.ask("hello")
    assert done.end == "error"
    assert r.history()[-1].text == "hello"


async def test_a_request_that_cannot_fit_is_refused_naming_the_biggest(rig) -> None:
    """Case 2: never silently over budget; the biggest contributor is named, and the message stays in the log."""
    r = await rig(window=Window(2048, "discovery"))
    (r.folder / "project" / "MAREX.md").write_text("Always be careful. " * 600)
    done = await r.ask("hello")
    assert done.end == "refused"
    [refused] = r.of(StepRefused)
    assert "rules 2.9k" in refused.reason
    assert r.history()[-1].text == "hello"
    assert r.chat.turns == []


async def test_titles_come_from_the_first_message(rig) -> None:
    r = await rig()
    await r.ask("Fix the \x1b[31mparser\x1b[0m\nplease")
    [row] = await r.engine.conversations()
    assert row.title.startswith("Fix the parser")
    assert "\x1b" not in row.title


async def test_an_empty_conversation_leaves_no_trace(rig) -> None:
    r = await rig()
    assert await r.engine.conversations() == []


async def test_messages_are_announced_with_their_log_position(rig) -> None:
    r = await rig(chat=ScriptedChat([say("yes")]))
    await r.ask("q")
    by_seq = {x.seq: x.entry for x in await r.records()}
    for event in r.of(MessageAppended):
        assert by_seq[event.seq] == MessageAdded(event.message)


async def test_views_are_byte_prefixes_of_the_next(rig) -> None:
    """I7: between rewrites every request starts with the bytes of the one before."""
    replies = []
    for n in range(6):
        replies += [call(("A", "{}"), ids=[f"k{n}"]), say(f"answer {n}")]
    r = await rig(chat=ScriptedChat(replies), tools=ScriptedTools({"A": "short"}))
    for n in range(6):
        await r.ask(f"question {n}")
    bodies = [list(q.messages) for q in r.chat.turns]
    for before, after in itertools.pairwise(bodies):
        assert after[: len(before)] == before


def test_unused_chunks_are_tool_fragments() -> None:
    """Fragments without a name never become a call."""
    from marextui.engine.bus import Bus
    from marextui.engine.reply import Reply

    reply = Reply("m", 1, Bus())
    reply.feed(ToolCallChunk(0, arguments="{}"))
    reply.feed(Finished("stop", None))
    assert reply.message(taken_ids=frozenset()) is None


async def test_a_defect_of_ours_closes_the_turn_and_is_told(rig, monkeypatch) -> None:
    """An unexpected exception is neither swallowed nor leaves the engine waiting."""
    r = await rig(chat=ScriptedChat([say("never")]))

    def broken() -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(type(r.engine.state), "system_part", lambda self: broken())
    mark = len(r.events)
    r.engine.submit("hello")
    with pytest.raises(ZeroDivisionError):  # the gauge at the end of the turn is broken too in this test
        r.engine.state.reading()
    await r.until(lambda e: isinstance(e, Notice) and "Internal error" in e.text, after=mark)
    await r.idle()
    monkeypatch.undo()
    assert (await r.ask("again")).end == "done"
