"""Interrupting at every point leaves a valid log and a live engine (case 55, I5); switching and closing too."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.budget import Window
from marextui.context.entries import TurnClosed
from marextui.engine.events import ConversationOpened, Notice, PermissionAsked, PermissionSettled, TurnFinished
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, TextChunk
from tests.engine.test_turns import NEED
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import Hold, ScriptedChat, ScriptedTools, call, say


@pytest.fixture
async def rig(tmp_path: Path):
    made: list[Rig] = []

    async def start(**kw) -> Rig:
        kw.setdefault("window", Window(32_768, "discovery"))
        rig = await Rig(tmp_path, **kw).start(connect=False)
        made.append(rig)
        return rig

    yield start
    for one in made:
        await one.engine.close()


async def stopped(r: Rig) -> TurnFinished:
    r.engine.interrupt()
    r.engine.interrupt()  # impatience must not break the tidying up
    done = await r.until(lambda e: isinstance(e, TurnFinished))
    await r.idle()
    r.check_log()
    assert isinstance(done, TurnFinished)
    closed = [x.entry for x in await r.records() if isinstance(x.entry, TurnClosed)]
    assert closed[-1].end == "interrupted"
    mark = len(r.events)
    r.chat.replies = [say("still here")]
    r.engine.submit("and now?")
    again = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    assert again.end == "done"
    r.check_log()
    return done


async def test_while_a_turn_that_is_done_is_being_closed(rig, monkeypatch) -> None:
    """I5, M44: esc in the moment it ends changes nothing of how it ended, and its line of usage is written."""
    r = await rig(chat=ScriptedChat(replies=[say("All of it.")]))
    hold, write = Hold(), r.journal.append

    async def slowly(line) -> None:
        hold.reached.set()
        await hold.go.wait()
        await write(line)

    monkeypatch.setattr(r.journal, "append", slowly)
    r.engine.submit("hello")
    await hold.reached.wait()
    r.engine.interrupt()
    hold.go.set()
    await r.idle()
    assert [e.end for e in r.of(TurnFinished)] == ["done"]
    assert [x["end"] for x in await r.usage_lines()] == ["done"]
    assert (await r.ask("and now?")).end == "done"


async def test_while_the_model_is_loading(rig) -> None:
    r = await rig()
    r.hub.hold = Hold()
    r.engine.submit("hello")
    await r.hub.hold.reached.wait()
    r.hub.hold.go.set()  # the start itself goes on: the next prompt finds it
    done = await stopped(r)
    assert done.end in ("interrupted", "done")


async def test_while_connecting(rig) -> None:
    hold = Hold()
    r = await rig(chat=ScriptedChat([[hold]]))
    r.engine.submit("hello")
    await hold.reached.wait()
    await stopped(r)
    assert [m.role for m in r.history()] == ["user", "assistant"]
    assert r.chat.closed == 2


async def test_while_streaming_the_text_so_far_is_kept(rig) -> None:
    hold = Hold()
    r = await rig(chat=ScriptedChat([[Accepted(), TextChunk("Once upon"), hold, Finished("stop", None)]]))
    r.engine.submit("tell me a story")
    await hold.reached.wait()
    await stopped(r)
    assert r.history()[1].text == "Once upon"


async def test_while_a_tool_runs_every_call_gets_its_result(rig) -> None:
    """Case 17: the running call says so, those after it were not run; nothing is left unanswered."""
    hold = Hold()
    chat = ScriptedChat([call(("A", "{}"), ("Slow", "{}"), ("C", "{}"))])
    r = await rig(chat=chat, tools=ScriptedTools({"A": "done", "Slow": hold, "C": "never"}))
    r.engine.submit("go")
    await hold.reached.wait()
    await stopped(r)
    results = [m.text for m in r.history() if m.role == "tool"]
    assert results[0] == "done"
    assert results[1].startswith("Interrupted by the user")
    assert results[2].startswith("Not run")
    assert r.tools.cancelled == ["Slow"]
    assert [name for name, _ in r.tools.ran] == ["A", "Slow"]


async def test_while_asking_permission_the_question_is_withdrawn(rig) -> None:
    chat = ScriptedChat([call(("Bash", "{}"))])
    r = await rig(chat=chat, tools=ScriptedTools(needs={"Bash": NEED}))
    r.engine.submit("go")
    asked = await r.until(lambda e: isinstance(e, PermissionAsked))
    await stopped(r)
    assert r.of(PermissionSettled)[0].answer == "withdrawn"
    r.engine.answer_permission(asked.request_id, "once")  # too late: nothing happens
    assert r.tools.ran == []


async def test_idle_it_is_harmless(rig) -> None:
    r = await rig()
    r.engine.interrupt()
    assert (await r.ask("hi")).end == "done"


async def test_queued_prompts_wait_after_an_interrupt_and_stay_separate(rig) -> None:
    """Case 36: queue two, interrupt, submit one: three separate messages, in order."""
    hold = Hold()
    r = await rig(chat=ScriptedChat([[hold]]))
    r.engine.submit("first")
    await hold.reached.wait()
    r.engine.submit("second")
    r.engine.submit("third")
    r.engine.interrupt()
    await r.until(lambda e: isinstance(e, Notice) and "2 queued" in e.text)
    await r.idle()
    assert len(r.of(TurnFinished)) == 1
    r.engine.submit("fourth")
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 4)
    users = [m.text for m in r.engine.session.conversation.messages if m.role == "user"]
    assert users == ["first", "second", "third", "fourth"]


async def test_opening_another_conversation_stops_the_turn_and_keeps_both(rig) -> None:
    hold = Hold()
    r = await rig(chat=ScriptedChat([[TextChunk("part"), hold]]))
    r.engine.submit("one")
    await hold.reached.wait()
    first = r.engine.session.id
    await r.engine.open_conversation(None)
    assert r.engine.session.id != first
    assert r.history() == ()
    await r.ask("two")
    await r.engine.open_conversation(first)
    assert [m.text for m in r.history()] == ["one", "part"]
    assert [e.resumed for e in r.of(ConversationOpened)] == [False, False, True]


async def test_an_unknown_conversation_is_a_notice(rig) -> None:
    r = await rig()
    await r.engine.open_conversation("c-nowhere")
    assert r.of(Notice)[-1].level == "error"


async def test_closing_mid_stream_closes_the_turn_in_the_log(tmp_path: Path) -> None:
    hold = Hold()
    r = await Rig(tmp_path, chat=ScriptedChat([[TextChunk("part"), hold]])).start()
    r.engine.submit("one")
    await hold.reached.wait()
    conversation = r.engine.session.id
    await r.engine.close()
    again = await Rig(tmp_path, wanted=conversation).start()
    assert [m.text for m in again.history()] == ["one", "part"]
    assert not again.engine.session.conversation.open_turn
    await again.engine.close()


async def test_a_crash_mid_turn_is_told_and_repaired_on_resume(tmp_path: Path) -> None:
    """kill -9 between a call and its result: the log is valid when opened again, nothing is lost."""
    hold = Hold()
    chat = ScriptedChat([call(("Slow", "{}"))])
    r = await Rig(tmp_path, chat=chat, tools=ScriptedTools({"Slow": hold})).start()
    r.engine.submit("go")
    await hold.reached.wait()
    conversation = r.engine.session.id
    again = await Rig(
        tmp_path, wanted=conversation, ids=RandomIds()
    ).start()  # the first process is gone without a word
    assert any("interrupted by a crash" in n.text for n in again.of(Notice))
    await again.ask("what happened?")
    again.check_log()
    assert [m.role for m in again.history()] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    await again.engine.close()
    await r.engine.close()


async def test_a_message_sent_while_the_interrupt_is_under_way_is_sent_not_parked(rig) -> None:
    """Esc, then the next message at once: only what was queued before the Esc has to wait for a person."""
    hold = Hold()
    r = await rig(chat=ScriptedChat([[TextChunk("on and on"), hold], say("second answer")]))
    r.engine.submit("first")
    await hold.reached.wait()
    r.engine.interrupt()
    assert r.engine.busy
    r.engine.submit("second")
    done = await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 2)
    assert done.end == "done"
    assert not [n for n in r.of(Notice) if "wait" in n.text]
    r.check_log()
