"""Images and bytes: a picture costs what it weighs once, and never ends a conversation.

Cases 101–105 of the reported ones and their neighbours; I16; `tests/engine/test_limits.py` has the byte budget itself.
"""

from __future__ import annotations

import base64
import json

import pytest

from marextui.context.budget import Window
from marextui.context.entries import CompactionCommitted, MessageAdded
from marextui.context.entry_codec import encode
from marextui.context.messages import ImagePart, TextPart, canonical_json
from marextui.context.omission import parse_marker
from marextui.engine.archive import LATEST
from marextui.engine.events import CompactionFinished, Notice, OutputsReplaced, TurnFinished
from marextui.engine.policy import Policy
from marextui.engine.ports import RandomIds
from marextui.models.errors import classify
from marextui.models.types import ModelError
from marextui.tools.types import ToolResult
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig
from tests.stubs.scripted_model import ScriptedChat, ScriptedTools, call, say


def picture(n: int, size: int = 900) -> ImagePart:
    return ImagePart("data:image/png;base64," + base64.b64encode(bytes([n % 251]) * size).decode())


async def show(r: Rig, *parts: TextPart | ImagePart) -> TurnFinished:
    mark = len(r.events)
    r.engine.submit_content(parts)
    done = await r.until(lambda e: isinstance(e, TurnFinished), after=mark)
    await r.idle()
    assert isinstance(done, TurnFinished)
    return done


def urls(request) -> list[str]:
    """Addresses of the images in a request."""
    parts = [p for m in request.messages if isinstance(m["content"], list) for p in m["content"]]
    return [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]


def refusal(said: str, status: int = 400) -> ModelError:
    return classify(status, json.dumps({"error": {"message": said}}))


@pytest.mark.parametrize(
    "said",
    [
        "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        "At most 1 image(s) may be provided in one request.",
        "Could not process image",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "This model does not support image input",
        "unknown variant `image_url`, expected `text`",
    ],
)
async def test_a_picture_the_server_refuses_does_not_end_the_conversation(rig: StartRig, said: str) -> None:
    """Neighbour of case 102: it would stand in every later request; it becomes a description that can be read back."""
    r = await rig(window=Window(200_000, "discovery"))
    await show(r, TextPart("an old one"), picture(1))
    r.chat.replies = [[refusal(said)], [refusal(said)], say("I see a description"), say("and on")]
    done = await show(r, TextPart("what is this?"), picture(2))
    assert done.end == "done"
    assert [len(urls(q)) for q in r.chat.turns[1:]] == [2, 1, 0], "the older one first, the newest only when it must"
    assert any("does not take the newest pictures" in n.text for n in r.of(Notice))
    assert (await r.ask("and now?")).end == "done"
    assert urls(r.chat.turns[-1]) == []
    assert r.chat.summary_requests == []
    content = r.engine.session.history()[2].content
    assert isinstance(content, tuple)
    assert isinstance(content[1], TextPart)
    assert await r.engine.read_omission(parse_marker(content[1].text) or "") == picture(2).url
    r.check_log()


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("<html>413 Request Entity Too Large</html>", 413),
        ("Payload Too Large", 500),
        ("request_too_large: Request exceeds the maximum size", 413),
        ("Request body is too large", 400),
        ("body exceeded 10MB limit", 400),
        ("Content length 34000000 exceeds maximum size of 20971520 bytes", 422),
    ],
)
async def test_too_many_bytes_in_any_words_are_not_too_many_tokens(rig: StartRig, said: str, status: int) -> None:
    """Cases 102, 105: pictures go, nothing is summarised, no window is learned."""
    r = await rig(window=Window(200_000, "discovery"), policy=Policy(keep_images=99))
    for n in range(5):
        await show(r, TextPart(f"picture {n}"), picture(n, 60_000))
    r.chat.replies = [[refusal(said, status)], say("fine")]
    sent = len(r.chat.turns)
    assert (await show(r, TextPart("one more"), picture(6, 60_000))).end == "done"
    before, after = (len(canonical_json(list(q.messages))) for q in r.chat.turns[sent:])
    assert after <= before * 0.6
    assert urls(r.chat.turns[-1])[-1] == picture(6, 60_000).url
    assert r.of(CompactionFinished) == []
    assert r.chat.summary_requests == []
    assert r.engine.state.learned is None


async def test_ninety_nine_screenshots_of_a_tool_are_four_pictures_and_descriptions(rig: StartRig) -> None:
    """Case 103: also when a tool made them, turn after turn; each of the others can be read back."""
    shots = [ToolResult("shot", parts=(TextPart(f"shot {n}"), picture(n, 3_000))) for n in range(99)]
    replies = []
    for n in range(99):
        replies += [call(("Shot", json.dumps({"n": n})), ids=[f"s{n}"]), say(f"seen {n}")]
    r = await rig(
        window=Window(400_000, "discovery"), chat=ScriptedChat(replies), tools=ScriptedTools({"Shot": shots[:]})
    )
    for n in range(99):
        await r.ask(f"screenshot {n}")
    sent = urls(r.chat.turns[-1])
    assert len(sent) <= 8
    assert sent[-1] == picture(98, 3_000).url
    gone = [ref for e in r.of(OutputsReplaced) for ref in e.refs if ref.label.startswith("image")]
    assert len(gone) >= 90
    assert len({ref.omission_id for ref in gone}) == len(gone)
    for ref in gone[::17]:
        text = await r.engine.read_omission(ref.omission_id)
        assert text is not None
        assert text.startswith("data:image/png")
    assert max(len(canonical_json(list(q.messages))) for q in r.chat.turns) < 200_000
    r.check_log()


async def test_a_compaction_holds_no_picture_and_the_log_each_one_once(rig: StartRig) -> None:
    """Cases 101, 115, I16: twenty pictures; six compactions more make the log no heavier by any of them."""

    async def weigh(compactions: int, name: str) -> tuple[int, int]:
        folder = r0.folder / name
        folder.mkdir()
        r = await rig(folder=folder, window=Window(100_000, "discovery"), ids=RandomIds())
        for n in range(20):
            await show(r, TextPart(f"picture {n} " + "text " * 150), picture(n, 20_000))
            if compactions and n % (20 // compactions) == 2:
                r.engine.compact(offline=True)
                await r.idle()
                await r.until(lambda e: True)
        await r.idle()
        assert len(r.of(CompactionFinished)) == compactions
        sizes = [(x.entry, len(canonical_json(encode(x.entry)[1]))) for x in await r.records()]
        for entry, size in sizes:
            assert not isinstance(entry, CompactionCommitted) or size < 20_000
        messages = sum(size for entry, size in sizes if isinstance(entry, MessageAdded))
        return messages, sum(size for _, size in sizes)

    r0 = await rig()
    plain, _ = await weigh(0, "none")
    messages, whole = await weigh(6, "six")
    assert messages == pytest.approx(plain, rel=0.01)
    assert whole - messages < 0.25 * messages


async def test_pictures_survive_a_restart_and_an_undo(rig: StartRig) -> None:
    """Cases 101, 113: what was put aside stays aside, what is shown stays shown, and an undo brings the view back."""
    r = await rig(window=Window(100_000, "discovery"), policy=Policy(keep_images=2))
    for n in range(5):
        await show(r, TextPart(f"picture {n} " + "text " * 300), picture(n))
    before = r.history()
    r.engine.compact(offline=True)
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    await r.engine.close()
    again = await rig(window=Window(100_000, "discovery"), wanted=LATEST, ids=RandomIds())
    again.engine.undo_compaction()
    await again.until(lambda e: type(e).__name__ == "CompactionReverted")
    await again.idle()
    assert again.history() == before
    await again.ask("still there?")
    assert urls(again.chat.turns[-1]) == [picture(3).url, picture(4).url]
