"""Replies that look like text and are no summary, each told apart in words for people (cases 37, 39, 50; M16)."""

from __future__ import annotations

import json

import pytest

from marextui.context.reply_check import SummaryRejected, check_reply
from marextui.context.reply_forms import without_loops
from marextui.context.summary import SECTIONS, parse_summary
from marextui.context.summary_request import SUMMARIZER_PROMPT, summary_messages
from tests.stubs.talk import assistant, talk, user

NOTES = {
    "session_intent": "make the parser faster",
    "filesModified": [{"path": "src/parser.py", "change": "loop unrolled"}],
    "Decisions Made": ["keep the old API"],
    "current-state": {"tests": "12 pass"},
    "next steps": [],
    "risks": ["none known"],
}
GOOD = "## Session Intent\n- make the parser faster\n## Current State\n- 12 tests pass, the old API is kept\n"


def refused(text: str, **kw: int) -> str:
    with pytest.raises(SummaryRejected) as caught:
        check_reply(text, "stop", False, "", **kw)
    return str(caught.value)


@pytest.mark.parametrize("wrapped", ["{}", "```json\n{}\n```", '{{"summary": {}}}', "[{}]", "<think>hm</think>{}"])
def test_notes_written_as_json_are_read_as_their_sections(wrapped: str) -> None:
    """Small models that were trained on JSON; the content is what was asked for."""
    text = check_reply(wrapped.format(json.dumps(NOTES)), "stop", False, "")
    items = {s.title: [i.text for i in s.items] for s in parse_summary(text, cycle=1).sections}
    assert items == {
        "Session Intent": ["make the parser faster"],
        "Files Modified": ["src/parser.py: loop unrolled"],
        "Decisions Made": ["keep the old API"],
        "Current State": ["tests: 12 pass"],
        "Next Steps": [],
        "Risks": ["none known"],
    }


def test_a_person_s_own_sections_are_found_in_json() -> None:
    """P7."""
    text = check_reply(
        '{"plot": ["the butler lies to the inspector, who notices"]}', "stop", False, "", sections=["Plot"]
    )
    assert text == "## Plot\n- the butler lies to the inspector, who notices"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"error": {"message": "context length exceeded", "type": "invalid_request_error"}}', "error"),
        ('{"ok": true, "items": ["a lot of words", "but no section at all"], "n": 12}', "data"),
        ('["a lot of words", "but no section at all, only a list"]', "data"),
    ],
)
def test_other_json_is_no_summary(text: str, says: str) -> None:
    assert says in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx/1.18.0</body></html>",
        "  <html>\n<body>Please log in to the network of this hotel to go on</body></html>",
        '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
    ],
)
def test_a_proxy_s_page_is_no_summary(text: str) -> None:
    """Case 42's neighbour: the gateway answers 200 with its own page."""
    assert "web page" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that request. Please let me know if there is anything else.",
        "Sure! I'll summarize the conversation for you. Please provide the conversation.",
        "There is no conversation to summarise. Could you share the material you want me to work on?",
        "As an AI language model I do not have access to earlier conversations. How can I help you today?",
        "I have now updated src/parser.py. Next I will measure it. Let me run the benchmark and report back to you.",
        "Je suis désolé, je ne peux pas résumer cela. Pouvez-vous coller la conversation ici ?",
        "Es tut mir leid, ich kann das nicht zusammenfassen. Bitte geben Sie mir den Text noch einmal.",
        "Lo siento, no puedo ayudar con eso. Por favor, comparta el texto que quiere resumir aquí.",
        "抱歉，我无法总结这段对话，因为没有提供任何内容。请提供您希望我总结的完整对话内容，我会尽快为您完成整理和总结工作。",
    ],
)
def test_talk_about_the_task_is_no_summary(text: str) -> None:
    """Case 39: refusals, questions back, and going on with the work."""
    assert "talked about the task" in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sure, here is it. The parser reads tabs now. All 12 tests pass. The old API was kept as the user wanted.",
        f"Here are the notes.\n{GOOD}",
        "Sorry for the delay, says the banner. The user wants it gone from index.html. It is still there.",
    ],
)
def test_a_polite_summary_is_one(text: str) -> None:
    assert check_reply(text, "stop", False, "") == text.strip()


def test_an_echo_of_the_request_is_no_summary() -> None:
    span = talk(user("Make the parser faster."), assistant("Done."), user("Thanks."), assistant("Welcome."))
    system, asked = (m["content"] for m in summary_messages(span, earlier=None, window=8192, cap=700))
    assert system == SUMMARIZER_PROMPT
    for echo in (system, asked, asked[: len(asked) * 2 // 3], f"{system}\n{asked}"):
        assert "repeated" in refused(echo)


def test_headings_filled_with_what_belongs_there_say_nothing() -> None:
    """A template given back empty: its guides are not facts."""
    guides = dict(
        line[2:].split(": ", 1) for line in SUMMARIZER_PROMPT.splitlines() if line.startswith("- ") and ": " in line
    )
    text = "\n".join(f"## {title}\n- {guides[title]}" for title in SECTIONS)
    assert "repeated" in refused(text)
    kept = check_reply(f"{text}\n- the parser is twice as fast now, measured with 12 files", "stop", False, "")
    assert "twice as fast" in kept
    assert guides["Session Intent"] not in kept


@pytest.mark.parametrize(
    "text", ["the " * 400, "I will do it. " * 90, "- step\n" * 300, "ab cd ef gh " * 200], ids=range(4)
)
def test_a_loop_is_no_summary(text: str) -> None:
    assert refused(text)


def test_a_loop_at_the_end_takes_nothing_from_what_came_before() -> None:
    text = check_reply(f"{GOOD}- and then we " + "go on and on " * 200, "length", False, "")
    assert text.endswith("- and then we go on and on")
    assert "12 tests pass" in text


def test_repetition_people_use_is_no_loop() -> None:
    for line in ("no no no", "run `a a a`", "| - | - | - |", "x = [0, 0, 0]"):
        assert without_loops(line) == line


def test_a_server_that_knows_no_cap_is_cut_at_a_line() -> None:
    text = check_reply(
        GOOD + "".join(f"- fact number {n} of very many\n" for n in range(100_000)), "stop", False, "", most_chars=3_000
    )
    assert 2_900 < len(text) <= 3_000
    assert text.splitlines()[-1].endswith("of very many")


def test_escape_bytes_do_not_reach_the_view() -> None:
    """Tools print colours, models copy them."""
    text = check_reply(
        GOOD.replace("12 tests", "\x1b[31m12\x1b[0m tests\x07\x1b]0;title\x07 \u202e"), "stop", False, ""
    )
    assert not [c for c in text if ord(c) < 32 and c != "\n"]
    assert "\u202e" not in text
    assert "12 tests" in text
