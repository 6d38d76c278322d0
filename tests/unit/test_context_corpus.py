"""The recorded conversations: summarise without a model, ask for one, find answers again (issue sections 3 and 5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marextui.context.ask import Question, check, searchable
from marextui.context.messages import Message, Origin, ToolCall, part_from_wire
from marextui.context.offline import offline_summary
from marextui.context.search import Doc
from marextui.context.summary import SECTIONS, parse_summary, render_summary
from marextui.context.summary_request import estimated_tokens, summary_messages

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*.jsonl"))
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="no recordings beside the checkout")]


def _load(path: Path) -> list[Message]:
    messages: list[Message] = []
    turn = 0
    origins: dict[str, Origin] = {"assistant": "model", "tool": "tool", "system": "system"}
    for n, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        raw = json.loads(line)
        turn += raw["role"] == "user"
        content = raw.get("content") or ""
        messages.append(
            Message(
                f"m{n}",
                raw["role"],
                content if isinstance(content, str) else tuple(map(part_from_wire, content)),
                tuple(
                    ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
                    for c in raw.get("tool_calls") or ()
                ),
                raw.get("tool_call_id") or "",
                origin=origins.get(raw["role"], "user"),
                turn=turn,
            )
        )
    return messages


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_offline_summary_of_a_recording(path: Path) -> None:
    """Bounded, deterministic, read back byte for byte; every item names messages of the span."""
    span = _load(path)
    summary = offline_summary(span, cycle=1)
    text = render_summary(summary)
    assert len(text) <= 4800
    assert text == render_summary(offline_summary(span, cycle=1))
    assert render_summary(parse_summary(text, cycle=1)) == text
    assert tuple(s.title for s in summary.sections) == SECTIONS
    assert summary.sections[0].items
    ids = {m.id for m in span}
    assert all(set(i.sources) <= ids for s in summary.sections for i in s.items)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize("window", [4096, 8192, 32_768])
def test_request_of_a_recording_fits(path: Path, window: int) -> None:
    """Case 31: at every window."""
    cap = 1200 if window >= 30_000 else 700
    asked = summary_messages(_load(path), earlier=None, window=window, cap=cap)
    assert sum(estimated_tokens(m["content"], 3.0) for m in asked) <= window - cap


FOUND = {
    "specstory_resume_tui": [
        (
            "What should the upgrade message in the resume TUI say?",
            "search and resume sessions from your other computers",
        ),
        ("Which URL path does the u hotkey open?", r"checkout\?plan=pro"),
        ("Which function builds the checkout URL?", "checkoutURL"),
        ("Where is the openBrowser helper defined?", r"login\.go"),
    ],
    "specstory_docs": [
        ("Which package directory was gemini renamed to?", "geminicli"),
        ("Which test failed?", "TestGenerateAgentSession"),
        ("How was homebrew_setup.md renamed?", "HOMEBREW-SETUP"),
    ],
    "swe_marshmallow": [
        ("What did we change the return statement of TimeDelta serialization to?", r"int\(round\("),
        ("Which file contains the TimeDelta field?", r"marshmallow/fields\.py"),
    ],
    "tau_airline_a": [
        ("What is the customer's user ID?", "sophia_silva_7557"),
        ("How much compensation is offered to Gold members per passenger for canceled flights?", r"\$100"),
    ],
    "oh_ponyc_a": [
        ("On which line is the pattern rule defined?", "666"),
        ("Was ponyc found in the shell?", "not found"),
    ],
    "claude_coverage": [("How many tests passed?", r"\d+ passed")],
    "claude_sample": [("What was the test failure?", "expected 5 but got None")],
    "mini_issue": [("What error occurs when dividing by zero?", "ZeroDivisionError")],
    "oh_darkmode": [("Which class is toggled on the body for dark mode?", "dark-mode")],
}


@pytest.mark.parametrize("name", FOUND)
def test_answers_are_found_by_the_words_of_the_question(name: str) -> None:
    """Issue section 3: reachable in three results of 2 000 characters, with nothing in view."""
    docs = [Doc(m.id, searchable(m)) for m in _load(CORPUS / f"{name}.jsonl")]
    found = check([Question(q, (a,)) for q, a in FOUND[name]], [], docs)
    assert [c.question for c in found if not c.reachable] == []
