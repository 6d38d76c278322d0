"""Retrying a turn that stopped in the middle: each request ends as a request must, after an error and a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marextui.context.entries import MessageAdded, TurnClosed, TurnOpened
from marextui.context.messages import Message, ToolCall
from marextui.context.validate import INTERRUPTED_RESULT
from marextui.engine.api import LATEST
from marextui.engine.events import ConversationOpened, Notice, TurnFinished
from marextui.engine.ports import RandomIds
from marextui.models.types import ModelError, TextChunk
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, say


def breaking(text: str) -> list[Any]:
    return [TextChunk(text), ModelError("network", "The connection broke.")]


async def retried(r: Rig) -> TurnFinished:
    mark = len(r.events)
    r.engine.retry()
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    await r.idle()
    assert isinstance(done, TurnFinished)
    r.check_log()
    return done


async def test_a_cut_off_answer_is_gone_on_with_by_a_request_that_ends_with_a_user(tmp_path: Path) -> None:
    """Servers refuse a trailing assistant message, or complete it as a prefix; two of them llama.cpp never takes."""
    chat = ScriptedChat([breaking("Half an ans"), breaking("wer, and"), say("that is all.")])
    r = await Rig(tmp_path, chat=chat).start(connect=False)
    assert (await r.ask("question")).end == "error"
    assert (await retried(r)).end == "error"
    assert (await retried(r)).end == "done"
    for request in r.chat.turns:
        assert request.messages[-1]["role"] == "user"
    said = texts(r.chat.turns[-1])
    assert said[1:3] == ["question", "Half an ans"], "what had arrived is in the view, once, and what was asked too"
    assert said[4] == "wer, and"
    assert [m.text for m in r.history() if m.origin == "user"] == ["question"], "nothing is put into a person's mouth"
    await r.engine.close()


async def test_a_second_retry_without_new_text_adds_nothing(tmp_path: Path) -> None:
    chat = ScriptedChat([breaking("Half"), [ModelError("network", "Gone.")], [ModelError("network", "Gone.")]])
    r = await Rig(tmp_path, chat=chat).start(connect=False)
    await r.ask("question")
    await retried(r)
    length = len(r.history())
    await retried(r)
    assert len(r.history()) == length
    await r.engine.close()


CALLS = (ToolCall("c1", "Look", "{}"), ToolCall("c2", "Look", "{}"))


@pytest.mark.parametrize(
    ("logged", "roles", "told"),
    [
        ([], ["user"], ()),
        (
            [Message("a", "assistant", "", CALLS, origin="model", turn=1)],
            ["user", "assistant", "tool", "tool"],
            (INTERRUPTED_RESULT, INTERRUPTED_RESULT),
        ),
        (
            [
                Message("a", "assistant", "", CALLS, origin="model", turn=1),
                Message("t", "tool", "found", tool_call_id="c1", name="Look", origin="tool", turn=1),
            ],
            ["user", "assistant", "tool", "tool"],
            ("found", INTERRUPTED_RESULT),
        ),
        ([Message("a", "assistant", "some text", origin="model", turn=1)], ["user", "assistant", "user"], ()),
    ],
    ids=["asked", "called", "half answered", "text"],
)
async def test_after_a_crash_the_notice_offers_a_retry_and_the_retry_works(
    tmp_path: Path, logged: list[Message], roles: list[str], told: tuple[str, ...]
) -> None:
    """Case 31: a killed process leaves an open turn; it is neither lost nor a dead end."""
    crashed = await Rig(tmp_path, ids=RandomIds()).start(connect=False)
    session = crashed.engine.session
    await crashed.engine.state.archive.ensure_created(1.0)
    asked = Message("u", "user", "do it", turn=1)
    await session.append(TurnOpened(1), *(MessageAdded(m) for m in (asked, *logged)))
    await crashed.engine.state.archive.close()  # what a killed process leaves: no end of the turn

    r = await Rig(tmp_path, chat=ScriptedChat([say("done now")]), wanted=LATEST, ids=RandomIds()).start(connect=False)
    notices = [n for n in r.of(Notice) if "interrupted by a crash" in n.text]
    assert [n.action for n in notices] == ["retry"]
    assert (await retried(r)).end == "done"
    assert [m["role"] for m in r.chat.turns[0].messages[1:]] == roles
    results = [m["content"] for m in r.chat.turns[0].messages if m["role"] == "tool"]
    assert results == list(told)
    assert r.history()[-1].text == "done now"
    await r.engine.close()


@pytest.mark.parametrize("wanted", [LATEST, "c-nothing"])
async def test_what_cannot_be_resumed_is_said_where_it_can_be_seen(tmp_path: Path, wanted: str) -> None:
    """After the new conversation is opened: opening clears the screen."""
    r = await Rig(tmp_path, wanted=wanted).start(connect=False)
    kinds = [type(e) for e in r.events]
    (notice,) = r.of(Notice)
    assert "this is a new one" in notice.text
    assert kinds.index(Notice) > kinds.index(ConversationOpened)
    await r.engine.close()


async def test_a_retry_of_what_another_process_has_finished_says_so(tmp_path: Path) -> None:
    """Silence would look like a key that does nothing."""
    chat = ScriptedChat([[ModelError("network", "Gone.")]])
    r = await Rig(tmp_path, chat=chat).start(connect=False)
    await r.ask("question")
    session = r.engine.session
    answer = Message("other", "assistant", "the answer", origin="model", turn=1)
    closed = TurnClosed(1, "done", None, None, None, 1.0, "m")
    await session.log.append(session.id, [TurnOpened(1), MessageAdded(answer), closed], at=2.0)
    mark = len(r.events)
    r.engine.retry()
    await r.until(lambda e: isinstance(e, Notice) and "nothing to retry" in e.text, after=mark)
    await r.idle()
    assert r.history()[-1].text == "the answer"
    assert len(r.chat.turns) == 1
    await r.engine.close()
