"""Pairing, order, templates, signatures: after every step a view that any provider takes (17–30; I1, I2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marextui.cli import main
from marextui.context.entries import (
    CompactionCommitted,
    Entry,
    MessageAdded,
    Summary,
    SummaryItem,
    SummarySection,
    TurnClosed,
    TurnOpened,
)
from marextui.context.fold import Conversation, fold
from marextui.context.marks import SUMMARY_MARK
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json, to_wire
from marextui.context.shapes import SHAPES, shape_violations, to_shape
from marextui.context.validate import strict_violations
from marextui.engine.events import CompactionFinished, Notice, PermissionAsked, TurnFinished
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.types import Accepted, Finished, ModelError, ReasoningChunk, TextChunk, ToolCallChunk
from marextui.store.log import LogStore
from marextui.tools.types import ToolResult
from tests.cases.agents import Agent, call, say
from tests.cases.checks import all_holds, as_messages
from tests.cases.conftest import Start
from tests.engine.test_turns import NEED
from tests.stubs.scripted_model import Hold, Piece, ScriptedTools

PICTURE = ImagePart("data:image/png;base64," + "iVBORw0KGgo=" * 40)


def calls(*made: tuple[str, str, str], text: str = "", reason: str = "tool_calls", thought: str = "") -> list[Piece]:
    """One reply with calls as (id, name, arguments), whatever these are."""
    pieces: list[Piece] = [Accepted()]
    if thought:
        pieces.append(ReasoningChunk(thought))
    if text:
        pieces.append(TextChunk(text))
    pieces += [ToolCallChunk(n, *one) for n, one in enumerate(made)]
    return [*pieces, Finished(reason, None)]


REPLIES: dict[str, list[list[Piece]]] = {
    "one id for two calls": [calls(("c", "A", "{}"), ("c", "A", '{"x":1}'))],
    "no ids": [calls(("", "A", "{}"), ("", "A", '{"x":1}'))],
    "a call without a name": [calls(("c1", "", "{}"), ("c2", "A", "{}"))],
    "nothing but a call without a name": [calls(("c1", "", "{}"))],
    "arguments that are no object": [
        calls(("1", "A", "{broken"), ("2", "A", "[1]"), ("3", "A", ""), ("4", "A", '"s"'))
    ],
    "the same id in every round": [calls(("c", "A", "{}")), calls(("c", "A", '{"n":2}')), calls(("c", "A", '{"n":3}'))],
    "text beside calls": [calls(("c", "A", "{}"), text="I look at it.")],
    "pictures in results": [calls((f"c{n}", "Picture", f'{{"n":{n}}}')) for n in range(6)],
    "huge outputs in parallel": [calls(("c", "Big", "{}"), ("d", "Big", '{"n":2}'), ("e", "Big", '{"n":3}'))],
    "a failing tool": [calls(("c", "Fails", "{}"))],
    "a tool that says nothing": [calls(("c", "Silent", "{}"))],
    "a tool that does not exist": [calls(("c", "Nope", "{}"))],
    "calls that end with stop": [calls(("c", "A", "{}"), reason="stop")],
    "calls cut off by the limit": [calls(("c", "A", '{"x":"abc'), reason="length")],
    "reasoning in a loop": [
        calls(("c", "A", "{}"), thought="hm " * 50),
        calls(("d", "A", '{"n":2}'), thought="ah " * 50),
    ],
    "a hundred calls at once": [calls(*((f"p{n}", "A", f'{{"n":{n}}}') for n in range(100)))],
    "no reply": [[Accepted(), Finished("stop", None)]],
    "only reasoning": [[Accepted(), ReasoningChunk("x" * 100), Finished("stop", None)]],
    "dropped in the text": [[Accepted(), TextChunk("half "), ModelError("network", "gone")]],
    "dropped in a call": [[Accepted(), ToolCallChunk(0, "c", "A", '{"x":'), ModelError("network", "gone")]],
}


def odd_tools() -> ScriptedTools:
    return ScriptedTools(
        {
            "A": "a" * 700,
            "Silent": "",
            "Picture": ToolResult("seen", parts=(TextPart("a picture"), PICTURE)),
            "Big": "line of output\n" * 4_000,
            "Fails": ToolResult("boom", True),
        }
    )


@pytest.mark.parametrize("window", [2_048, 8_192, 32_768])
@pytest.mark.parametrize("name", REPLIES)
async def test_whatever_a_model_replies_the_next_views_are_valid(start: Start, name: str, window: int) -> None:
    """I1, cases 17–23, 25: the reply, questions after it, the reply again, and enough talk to compact it away."""
    script = REPLIES[name]
    r = await start(window, chat=Agent(), tools=odd_tools(), policy=Policy(echo_reasoning="reasoning" in name))
    for _ in range(2):
        r.chat.replies = [list(reply) for reply in script]
        await r.ask("Do it now, please.")
        r.chat.replies = []
        await r.ask("And again?")
    for n in range(6):
        assert (await r.ask(f"Question {n}: " + "word " * (window // 24))).end == "done"
    await all_holds(r)


@pytest.mark.parametrize(
    "reply", [[Accepted(), Finished("stop", None)], calls(("c", "", "{}"))], ids=["none", "no name"]
)
async def test_an_answer_without_anything_is_told(start: Start, reply: list[Piece]) -> None:
    """Nobody waits in front of an empty screen."""
    r = await start(chat=Agent([reply]))
    await r.ask("hello?")
    assert [e.text for e in r.of(Notice) if e.level == "warning"] == ["The model answered nothing."]


# -- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["first call", "second call", "model"])
async def test_an_aborted_turn_leaves_pairs_and_alternation(start: Start, at: str) -> None:
    """Cases 17, 23: A[C1, C2], R1, abort, U, (abort), U: the strict form too."""
    hold = Hold()
    tools = ScriptedTools({"A": hold if at == "first call" else "one", "B": hold if at == "second call" else "two"})
    first = [hold] if at == "model" else calls(("c1", "A", "{}"), ("c2", "B", "{}"))
    r = await start(chat=Agent([first]), tools=tools)
    r.engine.submit("Look at both.")
    await hold.reached.wait()
    r.engine.interrupt()
    await r.idle()
    again = Hold()
    r.chat.replies = [[again]]
    r.engine.submit("No, wait.")
    await again.reached.wait()
    r.engine.interrupt()
    await r.idle()
    assert (await r.ask("Go on then.")).end == "done"
    sent = as_messages(r.chat.turns[-1].messages)
    assert strict_violations(sent) == ()
    users = [m.text for m in sent if m.role == "user"]
    assert users[-1].endswith("Go on then.")
    assert "No, wait." in users[-1], "two messages in a row are one for templates that insist on turns"
    await all_holds(r)


async def test_a_denied_call_is_answered(start: Start) -> None:
    """Case 23: the same error 500 came after an action was denied."""
    r = await start(chat=Agent([calls(("c", "Write", "{}"))]), tools=ScriptedTools({"Write": "ok"}, {"Write": NEED}))
    r.engine.submit("Write it.")
    asked = await r.until(lambda e: isinstance(e, PermissionAsked))
    assert isinstance(asked, PermissionAsked)
    r.engine.answer_permission(asked.request_id, "deny", "not now")
    await r.until(lambda e: isinstance(e, TurnFinished))
    await r.idle()
    assert (await r.ask("Then something else.")).end == "done"
    assert r.chat.turns[1].messages[-1]["role"] == "tool"
    await all_holds(r)


# -- cuts and stale logs ----------------------------------------------------------------------------------------------


def logged(*messages: Message, compact_before: str = "", turn_end: bool = True) -> list[Entry]:
    """A log of one turn with those messages and a compaction whose first kept message is `compact_before`."""
    entries: list[Entry] = [TurnOpened(1)]
    told = Summary((SummarySection("Current State", (SummaryItem("what was before"),)),))
    for message in messages:
        if message.id == compact_before:
            entries.append(CompactionCommitted(1, "threshold", compact_before, told, "model", 9, 3, 900, 90, 0.1))
        entries.append(MessageAdded(message))
    if compact_before and compact_before not in {m.id for m in messages}:
        entries.append(CompactionCommitted(1, "threshold", compact_before, told, "model", 9, 3, 900, 90, 0.1))
    if turn_end:
        entries.append(TurnClosed(1, "done", None, None, None, 1.0, "m"))
    return entries


def said(message_id: str, role: str, text: str = "text", **more: Any) -> Message:
    origin = {"user": "user", "assistant": "model", "tool": "tool"}[role]
    return Message(message_id, role, text, origin=origin, turn=1, **more)  # type: ignore[arg-type]


U1, U2 = said("u1", "user"), said("u2", "user")
A1 = said("a1", "assistant", "", tool_calls=(ToolCall("c1", "A", "{}"), ToolCall("c2", "A", "{}")))
R1, R2 = said("r1", "tool", tool_call_id="c1"), said("r2", "tool", tool_call_id="c2")
DONE = said("a2", "assistant", "done")
STALE: dict[str, list[Entry]] = {
    "a compaction between a call and its result": logged(U1, A1, R1, R2, DONE, compact_before="r1"),
    "a compaction between two results": logged(U1, A1, R1, R2, DONE, compact_before="r2"),
    "a compaction before the answer": logged(U1, A1, R1, R2, DONE, compact_before="a2"),
    "a compaction at a message that is not there": logged(U1, A1, R1, R2, DONE, compact_before="gone"),
    "a result without its call": logged(U1, R1, DONE, U2),
    "a call without its results": logged(U1, A1, U2, DONE),
    "results before the call": logged(U1, R2, R1, A1, DONE),
    "results the other way round": logged(U1, A1, R2, R1, DONE),
    "a result across a user message": logged(U1, A1, R1, U2, R2, DONE),
    "the same result twice": logged(U1, A1, R1, R1, R2, said("r3", "tool", tool_call_id="c2"), DONE),
    "only results": logged(R1, R2),
    "only a call": logged(A1),
    "assistants in a row": logged(DONE, said("a3", "assistant", "more"), U1, said("a4", "assistant", "")),
    "empty contents": logged(
        said("u", "user", ""), said("a", "assistant", ""), said("r", "tool", "", tool_call_id="x")
    ),
    "a turn that never ended": logged(U1, A1, R1, turn_end=False),
}


@pytest.mark.parametrize("name", STALE)
async def test_a_stale_log_opens_and_the_conversation_goes_on(start: Start, tmp_path: Path, name: str) -> None:
    """Cases 17–19: what another version, a crash or a bug has left is repaired in the view, never refused."""
    store = await LogStore.open(tmp_path / "log.db")
    await store.create("old", project="p", title="t", at=1.0)
    await store.append("old", STALE[name], at=1.0)
    await store.close()
    r = await start(wanted="old", ids=RandomIds(), chat=Agent())
    assert (await r.ask("Go on.")).end == "done"
    assert (await r.ask("And more.")).end == "done"
    await all_holds(r)
    r.engine.compact()
    await r.idle()
    assert (await r.ask("Still there?")).end == "done"
    r.check_log()


@pytest.mark.parametrize("name", STALE)
def test_a_stale_log_is_valid_for_every_provider(name: str) -> None:
    """I1: after each entry."""
    state = Conversation()
    for entry in STALE[name]:
        state.apply(entry)
        view = state.history()
        for shape in SHAPES:
            assert shape_violations(to_shape(view, shape), shape) == ()


@pytest.mark.parametrize("rounds", [2, 9])
async def test_a_summary_after_a_tool_flow_alternates(start: Start, rounds: int) -> None:
    """Case 22: S U A[C1] R1 ⟂summary U: no two users in a row for templates that count them; 500 forever otherwise."""
    replies = [calls((f"c{n}", "A", f'{{"n":{n}}}'), text="t " * 300) for n in range(rounds)]
    r = await start(4_096, chat=Agent([*replies, say("done")]), tools=ScriptedTools({"A": "a" * 590}))
    await r.ask("Look at all of them.")
    r.engine.compact()
    await r.idle()
    while not r.of(CompactionFinished):
        await r.ask("word " * 100)
    last = as_messages(r.chat.turns[-1].messages)
    assert strict_violations(last) == ()
    assert [m.role for m in last[:3]] == ["system", "user", "assistant"]
    assert last[1].text.startswith(SUMMARY_MARK)
    await all_holds(r)


# -- reasoning and signatures -----------------------------------------------------------------------------------------


async def test_the_thinking_of_the_running_loop_keeps_its_bytes(start: Start) -> None:
    """Cases 25, 26: sent back where it is echoed, byte for byte through the whole loop, also across a compaction."""
    thoughts = [f"thought number {n}: " + "because " * 40 for n in range(8)]
    replies = [calls((f"c{n}", "A", f'{{"n":{n}}}'), thought=t) for n, t in enumerate(thoughts)]
    r = await start(
        4_096,
        chat=Agent([*replies, say("done")]),
        tools=ScriptedTools({"A": "a" * 590}),
        policy=Policy(echo_reasoning=True),
    )
    assert (await r.ask("Think about it.")).end == "done"
    for request in r.chat.turns:
        sent = [m["reasoning_content"] for m in request.messages if m.get("reasoning_content")]
        assert all(t in thoughts for t in sent)
        loop = [m for m in request.messages if m["role"] == "assistant" and m.get("tool_calls")]
        bare = [not m.get("reasoning_content") for m in loop]
        assert bare == sorted(bare, reverse=True), "once one has gone, so have those before it"
    await all_holds(r)


def test_signed_thinking_is_sent_whole_or_not_at_all() -> None:
    """Cases 25–27: a block whose signature is missing, or that was edited into text, takes the whole loop with it."""
    signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    bare = {"type": "thinking", "thinking": "hm"}

    def loop(*blocks: dict[str, str]) -> list[dict[str, Any]]:
        view = [said("u1", "user")]
        for n, block in enumerate(blocks):
            part = OtherPart(canonical_json(block))
            view.append(Message(f"a{n}", "assistant", (part,), (ToolCall(f"c{n}", "A", "{}"),), origin="model"))
            view.append(said(f"r{n}", "tool", tool_call_id=f"c{n}"))
        fragment = to_shape(view, "anthropic")
        assert shape_violations(fragment, "anthropic") == ()
        return [b for m in fragment["messages"] for b in m["content"] if b["type"] == "thinking"]

    assert loop(signed, signed) == [signed, signed]
    assert loop(signed, bare) == []
    assert loop(bare, signed) == []


def test_nothing_that_only_one_provider_can_read_is_needed() -> None:
    """Cases 29, 30: a checkpoint is readable text; encrypted parts of a history are shown to nobody else."""
    view = [
        said("u1", "user", "Fix it."),
        Message("a1", "assistant", (TextPart("fixed"),), origin="model"),
    ]
    sealed = Message("a0", "assistant", (OtherPart('{"type":"redacted_thinking","data":"ZW5j"}'), TextPart("ok")))
    for shape in ("openai", "gemini", "strict"):
        sent = json.dumps(to_shape([said("u0", "user"), sealed, *view], shape))  # type: ignore[arg-type]
        assert "ZW5j" not in sent
    entries = logged(U1, A1, R1, R2, DONE, U2, compact_before="u2")
    assert fold(entries).history()[0].text.startswith(SUMMARY_MARK)
    assert "what was before" in fold(entries).history()[0].text


# -- I2: what is newest stays as it was said --------------------------------------------------------------------------


@pytest.mark.parametrize("window", [4_096, 8_192, 16_384, 32_768, 200_000])
async def test_the_newest_request_and_round_are_sent_byte_for_byte(start: Start, window: int) -> None:
    """I2: through compactions before and inside the turn; the rig's tools stay below their cap."""
    size = max(400, window // 50)
    rounds = [call(("A", f'{{"n":{n}}}'), text="look " * 20, ids=[f"c{n}"]) for n in range(12)]
    outputs = [f"output {n} " + "o" * size for n in range(12)]
    r = await start(window, chat=Agent(), tools=ScriptedTools({"A": list(outputs)}))
    n = 0
    while r.engine.state.reading().over_threshold is False and n < 40:
        n += 1
        await r.ask(f"question {n} " + "word " * (window // 60))
    r.chat.replies = [*rounds, say("done")]
    asked = "Now look at all twelve; the exact words are: ünïcode, 目录, \ttabs and  two blanks."
    sent = len(r.chat.turns)
    assert (await r.ask(asked)).end == "done"
    log = r.engine.session.conversation.messages
    for request in r.chat.turns[sent:]:
        wires = [dict(m) for m in request.messages]
        assert any(m["role"] == "user" and m["content"] == asked for m in wires)
        if wires[-1]["role"] == "tool":
            newest = next(m for m in log if m.role == "tool" and m.tool_call_id == wires[-1]["tool_call_id"])
            assert wires[-1] == to_wire(newest)
    await all_holds(r)


# -- recordings, as a stranger tries them -----------------------------------------------------------------------------


def recorded(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be terse."}, *lines]


def u(text: Any = "go on") -> dict[str, Any]:
    return {"role": "user", "content": text}


def a(*made: Any, text: str | None = None) -> dict[str, Any]:
    tool_calls = [
        {"id": i, "type": "function", "function": {"name": "Read", "arguments": '{"path":"a.py"}'}} for i in made
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if made else {})}


def t(call_id: Any, text: Any = "result " * 60) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


IMAGE = {"type": "image_url", "image_url": {"url": PICTURE.url}}
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "results out of order": recorded(u(), a("1", "2", "3"), t("3"), t("1"), t("2"), a(text="done")),
    "one id twice": recorded(u(), a("x", "x"), t("x", "first"), t("x", "second"), a(text="done")),
    "one id in each round": recorded(u(), a("x"), t("x"), a("x"), t("x"), a(text="done")),
    "no ids at all": recorded(u(), a("", None), t(""), t(None), a(text="done")),
    "results before the call": recorded(u(), t("1"), a("1"), a(text="done")),
    "results across a question": recorded(u(), a("1", "2"), t("1"), u("and?"), t("2"), a(text="done")),
    "an aborted call": recorded(u(), a("1"), u("stop"), u("go on"), a(text="ok")),
    "text and results in one message": recorded(
        u(),
        a("1"),
        u([{"type": "text", "text": "and this"}, {"type": "tool_result", "tool_use_id": "1", "content": "r"}]),
    ),
    "an image in a result": recorded(u(), a("1"), t("1", [{"type": "text", "text": "see"}, IMAGE]), a(text="done")),
    "empty contents": recorded(u(""), a(text=""), u([]), a(text=None), u("x"), {"role": "tool", "content": ""}),
    "users in a row": recorded(u("a"), u("b"), u("c"), a(text="d"), u("e"), u("f")),
    "system in the middle": recorded(u(), {"role": "system", "content": "Be kind."}, a(text="ok"), u(), a(text="ok")),
    "it opens with the assistant": [a(text="Hello, I start."), u("hi"), a("1"), t("1")],
    "it opens with a result": [t("1"), u("hi"), a(text="ok")],
    "only a system prompt and a result": recorded(t("9")),
    "signed thinking": recorded(
        u(),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}},
            ],
        },
        u([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r", "is_error": True}]),
        a(text="done"),
    ),
    "legacy functions": recorded(
        u(),
        {"role": "assistant", "content": None, "function_call": {"name": "Read", "arguments": "{}"}},
        {"role": "function", "name": "Read", "content": "r"},
        a(text="done"),
    ),
    "kinds that are no texts": recorded(u([{"type": ["x"], "text": "y"}]), {"role": ["user"], "content": {"type": {}}}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", HISTORIES)
def test_malformed_recordings_replay_into_valid_views(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, shape: str
) -> None:
    """Cases 17–23, 25: each history four times over, so that it is compacted, at a window where that happens."""
    file, report = tmp_path / "history.json", tmp_path / "report.json"
    filler = [u("word " * 350), a(text="ok")]
    file.write_text(json.dumps([*HISTORIES[name], *filler * 3] * 4))
    code = main(["replay", str(file), "--window", "3000", "--report", str(report), "--shape", shape])
    told = json.loads(report.read_text())
    assert code == 0
    assert told["totals"]["invalid_views"] == 0
    assert told["shape"]["violations"] == []
    assert told["totals"]["compactions"] >= 1
    assert all(s["refused"] or s["used"] <= s["budget"] for s in told["steps"])
    capsys.readouterr()


async def test_queued_messages_after_an_abort_stay_apart_in_the_log(start: Start) -> None:
    """Case 23: joined for a template, but three messages of a person in the log."""
    hold = Hold()
    r = await start(chat=Agent([[hold]]))
    r.engine.submit("one")
    await hold.reached.wait()
    r.engine.submit("two")
    r.engine.interrupt()
    await r.idle()
    r.engine.submit("three")
    await r.until(lambda e: isinstance(e, TurnFinished) and e.turn == 3)
    await r.idle()
    assert [m.text for m in r.engine.session.conversation.messages if m.role == "user"] == ["one", "two", "three"]
    await all_holds(r)
